import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
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
  readonly kind: keyof typeof ranks;
}

const ranks = { function: 1, constant: 2, type: 3 };

const intro = `# Each file, and what it is for

Made by \`npm run docs\` from the docstrings. [Architecture](architecture.md) has the plan of the house, and its index the questions
that are asked most. A line names what a file exports, the most important first. Tests lie below \`test\`, in the same folders.
`;

/** docs/files.md: a line for each file of the package, by folder. */
export function filesPage(root: string): string {
  const paths = globSync(['machines/**/*.ts', 'src/**/*.{ts,tsx}'], { cwd: root })
    .map((path) => path.replaceAll('\\', '/'))
    .sort();
  const byFolder = Map.groupBy(paths, (path) => dirname(path));
  const parts = [...byFolder.keys()].sort().map((folder) => {
    const lines = (byFolder.get(folder) ?? []).map((path) => lineOf(root, path));
    return `## ${folder}\n\n${lines.join('\n')}\n`;
  });
  return `${intro}\n${parts.join('\n')}`;
}

function lineOf(root: string, path: string): string {
  const text = readFileSync(join(root, path), 'utf8');
  const file = path.slice(path.lastIndexOf('/') + 1);
  const exported = exportsOf(path, text);
  const [first, ...others] = ordered(exported, file);
  const own = /^(?:#!.*\n)?\/\/ (.+)/.exec(text)?.[1];
  if (!first) return `* \`${file}\`: ${own ?? 'an entry point.'}`;
  const named = [first, ...others].map(({ name }) => `\`${name}\``).join(', ');
  const sentence = own ?? [first, ...others].find((each) => each.sentence)?.sentence ?? '';
  return `* \`${file}\` (${named})${sentence === '' ? '' : `: ${sentence}`}`;
}

/** The export that has the file's name comes first, then functions and classes, then constants, then types. */
function ordered(exported: readonly Exported[], file: string): readonly Exported[] {
  const plain = (name: string) => name.toLowerCase().replace(/[^a-z\d]/g, '');
  const isMain = ({ name }: Exported) => plain(name) === plain(file.replace(/\.tsx?$/, ''));
  const rank = (each: Exported) => (isMain(each) ? 0 : ranks[each.kind]);
  return exported.toSorted((a, b) => rank(a) - rank(b));
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
    const kind = type.startsWith('TS') ? 'type' : declarations ? 'constant' : 'function';
    return names.flatMap((name) => (name === undefined ? [] : [{ name, sentence: firstSentence(doc?.value), kind }]));
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
