import { globSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { parseSync } from 'rolldown/utils';

interface Node {
  readonly type: string;
  readonly start: number;
}
interface Statement extends Node {
  readonly declaration?: (Node & { readonly id?: Named; readonly declarations?: readonly { id: Named }[] }) | null;
}
interface Named {
  readonly name?: string;
}

/** A name that a file exports, with the first sentence of its docstring. */
interface Exported {
  readonly name: string;
  readonly sentence: string;
  readonly isType: boolean;
}

/** How many files import a name of a file. */
type Importers = ReadonlyMap<string, number>;

/** A bound, as `MAX_DEPTH`, is a detail of its file. */
const BOUND = /^[A-Z\d_]+$/;

const placeOf = (path: string, name: string) => `${path}#${name}`;

const intro = `# Each file, and what it is for

Made by \`npm run docs\` from the docstrings. [Architecture](architecture.md) has the plan of the house, and its index the questions
that are asked most. A line names what a file exports: first the name that the file has too, then
values before types, those that more files import before others. Tests lie below \`test\`, in the same folders.
`;

/** docs/files.md: a line for each file of the package, by folder. */
export function filesPage(root: string): string {
  const paths = globSync(['machines/**/*.ts', 'src/**/*.{ts,tsx}'], { cwd: root })
    .map((path) => path.replaceAll('\\', '/'))
    .sort();
  const importers = importersIn(root, paths);
  const byFolder = Map.groupBy(paths, (path) => dirname(path));
  const parts = [...byFolder.keys()].sort().map((folder) => {
    const lines = (byFolder.get(folder) ?? []).map((path) => lineOf(root, path, importers));
    return `## ${folder}\n\n${lines.join('\n')}\n`;
  });
  return `${intro}\n${parts.join('\n')}`;
}

function importersIn(root: string, paths: readonly string[]): Importers {
  const counts = new Map<string, number>();
  for (const path of paths) {
    const { staticImports } = parseSync(path, readFileSync(join(root, path), 'utf8')).module;
    for (const { moduleRequest, entries } of staticImports) {
      const target = posix.join(posix.dirname(path), moduleRequest.value);
      for (const { importName } of entries) {
        const place = placeOf(target, importName.name ?? '');
        counts.set(place, (counts.get(place) ?? 0) + 1);
      }
    }
  }
  return counts;
}

function lineOf(root: string, path: string, importers: Importers): string {
  const text = readFileSync(join(root, path), 'utf8');
  const file = path.slice(path.lastIndexOf('/') + 1);
  const exported = exportsOf(path, text);
  const [first, ...others] = ordered(exported, path, importers);
  const own = /^(?:#!.*\n)?\/\/ (.+)/.exec(text)?.[1];
  if (!first) return `* \`${file}\`: ${own ?? 'an entry point.'}`;
  const named = [first, ...others].map(({ name }) => `\`${name}\``).join(', ');
  const sentence = own ?? [first, ...others].find((each) => each.sentence)?.sentence ?? '';
  return `* \`${file}\` (${named})${sentence === '' ? '' : `: ${sentence}`}`;
}

function ordered(exported: readonly Exported[], path: string, importers: Importers): readonly Exported[] {
  const plain = (name: string) => name.toLowerCase().replace(/[^a-z\d]/g, '');
  const file = plain(posix.basename(path).replace(/\.tsx?$/, ''));
  const rank = ({ name, isType }: Exported) => (plain(name) === file ? 0 : isType ? 3 : BOUND.test(name) ? 2 : 1);
  const uses = ({ name }: Exported) => importers.get(placeOf(path, name)) ?? 0;
  return exported.toSorted((a, b) => rank(a) - rank(b) || uses(b) - uses(a));
}

function exportsOf(path: string, text: string): readonly Exported[] {
  const { program, comments } = parseSync(path, text);
  const docs = (comments as readonly { type: string; value: string; end: number }[]).filter(
    ({ type, value }) => type === 'Block' && value.startsWith('*'),
  );
  return (program.body as unknown as readonly Statement[]).flatMap((statement) => {
    if (statement.type !== 'ExportNamedDeclaration' || !statement.declaration) return [];
    const { type, id, declarations } = statement.declaration;
    const names = declarations ? declarations.map((each) => each.id.name) : [id?.name];
    const doc = docs.findLast(({ end }) => end <= statement.start && text.slice(end, statement.start).trim() === '');
    const isType = type.startsWith('TS');
    return names.flatMap((name) => (name === undefined ? [] : [{ name, sentence: firstSentence(doc?.value), isType }]));
  });
}

function firstSentence(doc = ''): string {
  const plain = doc
    .replace(/^\*/, '')
    .replace(/\s*\n\s*\*?\s*/g, ' ')
    .trim();
  const [whole = ''] = plain.split(/ @\w|(?<=[.!?;]) (?=[A-Z`])/);
  return whole.startsWith('@') ? '' : whole;
}
