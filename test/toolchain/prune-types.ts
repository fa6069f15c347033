// What compilers read of the package: the declarations that an entry point exports, and all that these name. tsc writes those of
// every module, and half of them stand for code that users cannot reach.
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { posix } from 'node:path';
import { parseSync } from 'rolldown/utils';

/** A node of the syntax tree, of any type: what is read of it. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly name?: string;
  readonly value?: string;
  readonly id?: Node | null;
  readonly declaration?: Node | null;
  readonly declarations?: readonly Node[];
  readonly source?: Node | null;
  readonly specifiers?: readonly Node[];
  readonly local?: Node;
  readonly imported?: Node;
  readonly exported?: Node;
}

/** A name that one file takes from another: `*` is all of it. */
interface Taken {
  readonly file: string;
  readonly name: string;
}

/** One top-level statement that declares names. */
interface Declaration {
  /** From its docstring on. */
  readonly start: number;
  readonly end: number;
  readonly names: readonly string[];
  /** Every identifier in it: too many rather than too few. */
  readonly mentions: ReadonlySet<string>;
  /** Of `import('./x.js').Name`. */
  readonly taken: readonly Taken[];
}

/** One `import { … } from`, or `export { … } from`. */
interface Clause {
  readonly start: number;
  readonly end: number;
  readonly specifiers: readonly { readonly name: string; readonly text: string }[];
}

interface TypeFile {
  readonly text: string;
  readonly declarations: readonly Declaration[];
  readonly clauses: readonly Clause[];
  /** By the name in this file. */
  readonly imports: ReadonlyMap<string, Taken | undefined>;
  /** By the exported name; `undefined`: of another package. */
  readonly exports: ReadonlyMap<string, Taken | undefined>;
}

/**
 * Deletes each declaration below `dist` that no entry point reaches, and each file that is empty then.
 * @param entries the declaration files of the entry points, for example `dist/src/index.d.ts`
 */
export function pruneTypes(entries: readonly string[]): void {
  const files = new Map<string, TypeFile>();
  const fileAt = (path: string): TypeFile => {
    const file = files.get(path) ?? parse(path);
    files.set(path, file);
    return file;
  };
  const needed = new Needed(fileAt);
  for (const entry of entries) needed.add({ file: entry, name: '*' });
  for (const path of globSync('dist/**/*.d.ts').map((found) => found.replaceAll('\\', '/'))) {
    const names = needed.of(path);
    if (names === undefined) rmSync(path);
    else writeFileSync(path, pruned(fileAt(path), names));
  }
}

/** The names of each file that an entry point reaches. */
class Needed {
  readonly #names = new Map<string, Set<string>>();
  readonly #fileAt: (path: string) => TypeFile;

  constructor(fileAt: (path: string) => TypeFile) {
    this.#fileAt = fileAt;
  }

  of(path: string): ReadonlySet<string> | undefined {
    return this.#names.get(path);
  }

  add(first: Taken): void {
    const open = [first];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const names = this.#names.get(next.file) ?? new Set();
      this.#names.set(next.file, names);
      if (names.has(next.name)) continue;
      names.add(next.name);
      open.push(...takenBy(this.#fileAt(next.file), next));
    }
  }
}

function takenBy(found: TypeFile, { file, name }: Taken): Taken[] {
  if (name === '*') {
    const own = found.declarations.flatMap(({ names }) => names);
    return [...own, ...found.exports.keys()].map((each) => ({ file, name: each }));
  }
  const elsewhere = [found.exports.get(name), found.imports.get(name)].filter((taken) => taken !== undefined);
  const declared = found.declarations.filter(({ names }) => names.includes(name));
  return [
    ...elsewhere,
    ...declared.flatMap(({ mentions, taken }) => [...[...mentions].map((each) => ({ file, name: each })), ...taken]),
  ];
}

function pruned({ text, declarations, clauses }: TypeFile, names: ReadonlySet<string>): string {
  const cuts: { start: number; end: number; instead: string }[] = [];
  for (const { start, end, names: own } of declarations) {
    if (!own.some((name) => names.has(name))) cuts.push({ start, end, instead: '' });
  }
  for (const { start, end, specifiers } of clauses) {
    const rest = specifiers.filter(({ name }) => names.has(name));
    if (rest.length === specifiers.length) continue;
    const [first, last] = [text.indexOf('{', start), text.lastIndexOf('}', end)];
    const list = `${text.slice(start, first)}{ ${rest.map((each) => each.text).join(', ')} ${text.slice(last, end)}`;
    cuts.push({ start, end, instead: rest.length === 0 ? '' : list });
  }
  cuts.sort((one, other) => other.start - one.start);
  const result = cuts.reduce((left, { start, end, instead }) => left.slice(0, start) + instead + left.slice(end), text);
  // Without any, a compiler takes the file for a script, whose names are global.
  const whole = /^(?:import|export)\b/m.test(result) ? result : `${result}export {};\n`;
  return whole.replaceAll(/^(?: {4})+/gm, (spaces) => '\t'.repeat(spaces.length / 4));
}

function parse(path: string): TypeFile {
  const text = readFileSync(path, 'utf8');
  const { program, comments, errors } = parseSync(path, text, { lang: 'dts' });
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const file = {
    text,
    declarations: [] as Declaration[],
    clauses: [] as Clause[],
    imports: new Map<string, Taken | undefined>(),
    exports: new Map<string, Taken | undefined>(),
  };
  for (const statement of program.body as unknown as Node[]) {
    const before = comments.filter(({ end }) => end <= statement.start).at(-1);
    const isAbove = before !== undefined && text.slice(before.end, statement.start).trim() === '';
    const isDocstring = isAbove && text.startsWith('/**', before.start);
    const { end } = statement;
    const range = { start: isDocstring ? before.start : statement.start, end: text[end] === '\n' ? end + 1 : end };
    addStatement(file, statement, { path, range });
  }
  return file;
}

type Growing = { [K in keyof TypeFile]: TypeFile[K] } & {
  readonly declarations: Declaration[];
  readonly clauses: Clause[];
  readonly imports: Map<string, Taken | undefined>;
  readonly exports: Map<string, Taken | undefined>;
};

function addStatement(
  file: Growing,
  statement: Node,
  { path, range }: { path: string; range: { start: number; end: number } },
): void {
  const isImport = statement.type === 'ImportDeclaration';
  if (isImport || (statement.type === 'ExportNamedDeclaration' && statement.declaration === null)) {
    addClause(file, statement, { path, range });
    return;
  }
  const declared = statement.declaration ?? statement;
  const names = namesOf(declared);
  if (names.length === 0) throw new Error(`${path}: a ${declared.type} without a name`);
  const mentions = new Set<string>();
  const taken: Taken[] = [];
  walk(declared, (node) => {
    if (node.type === 'Identifier') mentions.add(node.name ?? '');
    const target = node.type === 'TSImportType' && targetOf(path, node, '*');
    if (target) taken.push(target);
  });
  file.declarations.push({ ...range, names, mentions, taken });
}

function addClause(
  file: Growing,
  statement: Node,
  { path, range }: { path: string; range: { start: number; end: number } },
): void {
  const isImport = statement.type === 'ImportDeclaration';
  const specifiers = (statement.specifiers ?? []).map((node) => {
    const local = nameIn(node.local);
    const name = isImport ? local : nameIn(node.exported);
    if (isImport) file.imports.set(name, targetOf(path, statement, nameIn(node.imported) || '*'));
    else file.exports.set(name, statement.source ? targetOf(path, statement, local) : { file: path, name: local });
    return { name, text: file.text.slice(node.start, node.end) };
  });
  if (specifiers.length > 0 && file.text.slice(range.start, range.end).includes('{')) {
    file.clauses.push({ ...range, specifiers });
  }
}

/** Where a statement with a `source` leads to: nowhere for another package. */
function targetOf(path: string, { source }: Node, name: string): Taken | undefined {
  const request = nameIn(source);
  if (!request.startsWith('.')) return undefined;
  const target = posix.join(posix.dirname(path), request);
  return { file: target.replace(/(?:\.d)?\.[jt]s$/, '.d.ts'), name };
}

function namesOf(declared: Node): string[] {
  return (declared.declarations ?? [declared]).flatMap(({ id }) => (id ? [nameIn(id)] : []));
}

function nameIn(node: Node | null | undefined): string {
  return node?.name ?? node?.value ?? '';
}

function walk(node: unknown, visit: (node: Node) => void): void {
  if (typeof node !== 'object' || node === null) return;
  if ('type' in node && typeof node.type === 'string') visit(node as Node);
  for (const child of Object.values(node)) walk(child, visit);
}
