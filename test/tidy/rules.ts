import { posix } from 'node:path';
import { type Import, isNode, type Node, nameOf, type Source, type SourceText, type Span, walk } from './source.ts';

export interface Finding {
  readonly path: string;
  readonly line: number;
  readonly message: string;
}

export type Rule = (source: Source) => Finding[];

/** For each area of the code (a path prefix): the other areas it may import. `!` takes away, `*` at the end matches any rest. */
export type ImportTable = Readonly<Record<string, readonly string[]>>;

/** For each package: the areas that may import it. */
export type PackageTable = Readonly<Record<string, { readonly from: readonly string[]; readonly typeOnly?: boolean }>>;

const functions = new Set([
  'FunctionDeclaration',
  'FunctionExpression',
  'ArrowFunctionExpression',
  'TSDeclareFunction',
  'TSEmptyBodyFunctionExpression',
  'TSMethodSignature',
  'TSFunctionType',
  'TSCallSignatureDeclaration',
  'TSConstructSignatureDeclaration',
]);

export function linesPerFile(most: number): Rule {
  return ({ path, text }) => {
    const lines = text.replace(/\n$/, '').split('\n').length;
    return lines > most ? [{ path, line: most + 1, message: `${lines} lines, at most ${most}` }] : [];
  };
}

export function linesPerFunction(most: number): Rule {
  return (source) =>
    collect(source, (node, parent) => {
      if (!functions.has(node.type)) return undefined;
      const lines = source.lineAt(node.end) - source.lineAt(node.start) + 1;
      return lines > most ? `${functionName(node, parent)} has ${lines} lines, at most ${most}` : undefined;
    });
}

/** Counts signatures too: an interface that asks for more would force its implementations. */
export function parametersPerFunction(most: number, mayHaveOneMore: readonly string[]): Rule {
  return (source) =>
    collect(source, (node, parent) => {
      if (!functions.has(node.type)) return undefined;
      const name = functionName(node, parent);
      const limit = mayHaveOneMore.includes(name) ? most + 1 : most;
      const count = children(node.params).filter((param) => nameOf(param) !== 'this').length;
      return count > limit ? `${name} has ${count} parameters, at most ${limit}` : undefined;
    });
}

export function importsFollow(table: ImportTable): Rule {
  return ({ path, imports }) => {
    const area = mostSpecific(Object.keys(table), path);
    if (area === undefined) return [{ path, line: 1, message: 'has no row in the import table' }];
    const allowed = [area, ...(table[area] ?? [])];
    return imports
      .filter(({ target }) => target !== undefined && !isAllowed(target, allowed))
      .map(({ target, line }) => ({ path, line, message: `${area} must not import ${target}` }));
  };
}

export function packagesFollow(table: PackageTable): Rule {
  return ({ path, imports }) =>
    imports.flatMap(({ specifier, target, typeOnly, line }) => {
      if (target !== undefined) return [];
      const name = mostSpecific(Object.keys(table), specifier);
      const row = name === undefined ? undefined : table[name];
      if (row === undefined || !isAllowed(path, row.from)) {
        return [{ path, line, message: `must not import ${specifier}` }];
      }
      const asValue = row.typeOnly === true && !typeOnly;
      return asValue ? [{ path, line, message: `${specifier} is for types: write \`import type\`` }] : [];
    });
}

/**
 * Reports small files that only their neighbour imports: they belong into it. Those of `apart` stand alone, and an entry point
 * takes none in: it would pass on all that they export.
 */
export function noSmallParts(sources: readonly Source[], { lines, apart, entryPoints }: SmallParts): Finding[] {
  const importers = new Map<string, Set<string>>();
  for (const { path, imports } of sources) {
    for (const { target } of imports) {
      if (target !== undefined) importers.set(target, (importers.get(target) ?? new Set()).add(path));
    }
  }
  return sources.flatMap(({ path, text }) => {
    const [importer, ...others] = importers.get(path) ?? [];
    if (importer === undefined || others.length > 0 || folderOf(importer) !== folderOf(path)) return [];
    if (text.split('\n').length - 1 >= lines || isAllowed(path, apart) || entryPoints.includes(importer)) return [];
    return [{ path, line: 1, message: `has less than ${lines} lines and only ${importer} imports it: merge them` }];
  });
}

interface SmallParts {
  readonly lines: number;
  readonly apart: readonly string[];
  readonly entryPoints: readonly string[];
}

/** Reports folders that more files lie in than one can look over, without those in folders below. */
export function filesPerFolder(sources: readonly Source[], most: number): Finding[] {
  const counts = new Map<string, number>();
  for (const { path } of sources) counts.set(folderOf(path), (counts.get(folderOf(path)) ?? 0) + 1);
  return [...counts].flatMap(([path, count]) =>
    count > most ? [{ path, line: 1, message: `holds ${count} files, at most ${most}` }] : [],
  );
}

/**
 * Reports circles of imports: each that loads values, and those of types that leave their folder. Types of one folder may name
 * each other.
 */
export function noCycles(sources: readonly Source[]): Finding[] {
  const values = circles(sources, ({ typeOnly }) => !typeOnly);
  const wide = circles(sources, () => true).filter(
    (circle) => new Set(circle.map(({ path }) => folderOf(path))).size > 1,
  );
  const finding = (circle: readonly Source[], what: string): Finding[] => {
    const [first] = circle;
    if (first === undefined) return [];
    return [{ path: first.path, line: 1, message: `circle of ${what}: ${circle.map(({ path }) => path).join(', ')}` }];
  };
  return [
    ...values.flatMap((circle) => finding(circle, 'values')),
    ...wide.flatMap((circle) => finding(circle, 'folders')),
  ];
}

/** Reports areas (`src/store`, `machines`) that import each other, types included: the house has no arrow that runs back up. */
export function areasInOneDirection(sources: readonly Source[]): Finding[] {
  const areaOf = (path: string) => /^src\/[^/]+|^[^/]+/.exec(path)?.[0] ?? path;
  const imports = new Map<string, Set<string>>();
  for (const { path, imports: own } of sources) {
    const area = areaOf(path);
    const named = own.flatMap(({ target }) => (target === undefined ? [] : areaOf(target)));
    imports.set(area, new Set([...(imports.get(area) ?? []), ...named.filter((each) => each !== area)]));
  }
  return groups([...imports.keys()], (area) => [...(imports.get(area) ?? [])]).map((circle) => {
    const path = circle[0] ?? '';
    return { path, line: 1, message: `areas that import each other: ${circle.join(', ')}` };
  });
}

/** The files that reach each other by imports that count, group by group. */
function circles(sources: readonly Source[], counts: (each: Import) => boolean): Source[][] {
  const byPath = new Map(sources.map((source) => [source.path, source]));
  return groups(sources, ({ imports }) =>
    imports.filter(counts).flatMap(({ target }) => byPath.get(target ?? '') ?? []),
  );
}

/** The nodes of a graph that reach each other, group by group (Tarjan). */
function groups<T>(nodes: readonly T[], targetsOf: (node: T) => readonly T[]): T[][] {
  const order = new Map<T, { index: number; low: number; isOpen: boolean }>();
  const open: T[] = [];
  const found: T[][] = [];
  const visit = (node: T): { low: number } => {
    const mark = { index: order.size, low: order.size, isOpen: true };
    order.set(node, mark);
    open.push(node);
    const targets = targetsOf(node);
    for (const target of targets) {
      const known = order.get(target);
      if (!known) mark.low = Math.min(mark.low, visit(target).low);
      else if (known.isOpen) mark.low = Math.min(mark.low, known.index);
    }
    if (mark.low !== mark.index) return mark;
    const group = open.splice(open.indexOf(node));
    for (const each of group) Object.assign(order.get(each) ?? {}, { isOpen: false });
    if (group.length > 1 || targets.includes(node)) found.push(group);
    return mark;
  };
  for (const node of nodes) if (!order.has(node)) visit(node);
  return found;
}

/** Participles are for states; words that are verbs too (`read`, `need`) begin a function. */
const participle =
  /^#?(?:begun|done|found|given|held|kept|left|made|said|sent|shown|taken|told|written|(?!need|feed|seed|proceed|succeed|exceed|embed)[a-z]+ed)(?=[A-Z]|$)/;

/** Names that authors of stores know. */
const ofStores: readonly string[] = ['heldUntil', 'queuedRun', 'settledLater'];

/** Who reads a call that takes time must see what it does. */
export const asyncBeginsWithVerb: Rule = (source) =>
  collect(source, (node, parent) => {
    // What a generator gives one after the other may be named by what it is.
    if (node.async !== true || node.generator === true || !functions.has(node.type)) return undefined;
    const name = functionName(node, parent);
    return !ofStores.includes(name) && participle.test(name)
      ? `the asynchronous ${name} begins with a participle: begin it with a verb`
      : undefined;
  });

export const noDefaultExport: Rule = (source) =>
  collect(source, (node) => {
    const named = node.type === 'ExportSpecifier' && nameOf(node.exported) === 'default';
    return named || node.type === 'ExportDefaultDeclaration' ? 'default export' : undefined;
  });

export const noExportStar: Rule = (source) =>
  collect(source, ({ type }) => (type === 'ExportAllDeclaration' ? 'export *: name what is exported' : undefined));

export const noAny: Rule = (source) => collect(source, ({ type }) => (type === 'TSAnyKeyword' ? 'any' : undefined));

/** What a module keeps by an object (an executor, a run, an agent) is a field of that object, or of the services of one executor. */
export const noModuleWeakMap =
  (area: string): Rule =>
  ({ path, text }) =>
    path.startsWith(area)
      ? text.split('\n').flatMap((content, index) => {
          const kind = /^(?:export )?(?:const|let|var) .*= new (Weak(?:Map|Set))\b/.exec(content)?.[1];
          return kind === undefined ? [] : [{ path, line: index + 1, message: `a ${kind} of the module` }];
        })
      : [];

export const noUnfinishedWork: Rule = ({ path, text }) =>
  text.split('\n').flatMap((content, index) => {
    const mark = /\b(?:TODO|FIXME|XXX)\b/.exec(content)?.[0];
    return mark === undefined ? [] : [{ path, line: index + 1, message: mark }];
  });

export const goodNames: Rule = ({ path }) => {
  const finding = (message: string) => [{ path, line: 1, message }];
  const names = path.replace(/\.tsx?$/, '').split('/');
  if (!names.every((name) => /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name))) return finding('is not kebab-case');
  const vague = names.find((name) => /^(?:utils?|helpers?|common|managers?|types?)$/.test(name));
  return vague === undefined ? [] : finding(`"${vague}" does not say what the file holds`);
};

/** Looks at the literals under `states` and at those handed to `createStateConfig`; spreads and names are taken on trust. */
export const statesAreDescribed: Rule = (source) => {
  const findings: Finding[] = [];
  const check = (name: string, state: unknown): void => {
    const config = withoutAssertions(state);
    if (config?.type !== 'ObjectExpression' || property(config, 'description') !== undefined) return;
    findings.push({ path: source.path, line: source.lineAt(config.start), message: `${name} has no description` });
  };
  walk(source.program, (node) => {
    if (node.type === 'ObjectExpression') {
      const states = withoutAssertions(property(node, 'states')?.value);
      for (const state of children(states?.properties))
        check(`state ${nameOf(state.key) ?? '[computed]'}`, state.value);
    }
    if (node.type === 'CallExpression' && calleeName(node) === 'createStateConfig') {
      check('createStateConfig', children(node.arguments)[0]);
    }
  });
  return findings;
};

/** A sentence must say what a function or a class is for. A constructor may leave that to its class. */
export const docstringsBeginWithSentence: Rule = (source) =>
  collect(source, (node, parent) => {
    if (!isFunctionOrClass(node)) return undefined;
    const { start } = parent?.type === 'ExportNamedDeclaration' ? parent : node;
    const comment = source.comments.findLast(({ end }) => end <= start);
    if (!comment || source.text.slice(comment.end, start).trim() !== '') return undefined;
    const tag = /^\/\*\*[\s*]*(@\w*)/.exec(source.text.slice(comment.start, comment.end))?.[1];
    return tag === undefined
      ? undefined
      : `the docstring of ${functionName(children(node.declarations)[0] ?? node, parent)} begins with ${tag}: say first what it does`;
  });

/** A newcomer searches for what a function or a class does: its docstring says it in the words for which one looks. */
export const exportsHaveDocstrings: Rule = (source) =>
  collect(source, (node, parent) => {
    const { declaration } = node;
    if (node.type !== 'ExportNamedDeclaration' || !isNode(declaration) || !isFunctionOrClass(declaration))
      return undefined;
    const comment = source.comments.findLast(({ end }) => end <= node.start);
    const isDocstring = comment && source.text.startsWith('/**', comment.start);
    if (isDocstring && source.text.slice(comment.end, node.start).trim() === '') return undefined;
    const name = functionName(children(declaration.declarations)[0] ?? declaration, node);
    // The docstring of an overloaded function is at its first signature.
    const isOverloaded = children(parent?.body).some(
      ({ declaration: other }) =>
        isNode(other) && other.type === 'TSDeclareFunction' && functionName(other, node) === name,
    );
    return isOverloaded
      ? undefined
      : `${name} is exported and has no docstring: say in its first sentence what it returns or does`;
  });

function isFunctionOrClass(node: Node): boolean {
  if (node.type === 'MethodDefinition') return node.kind !== 'constructor';
  if (node.type !== 'VariableDeclaration') return ['FunctionDeclaration', 'ClassDeclaration'].includes(node.type);
  return children(node.declarations).some(({ init }) => isNode(init) && functions.has(init.type));
}

/** Words and phrases of spoken or old English, which readers with English as their third language do not know, and what to write. */
const plainFor: Readonly<Record<string, string>> = {
  'whoever|somebody|everybody': 'a person, the caller, the reader',
  nobody: 'no person, no process',
  whatever: 'any value',
  anew: 'again',
  'go on|goes on|going on|gone on|went on': 'continue',
  "let go|lets go|letting go|let's go": 'release',
  '(?:is|are|was|were|be|been|being) told|told of': 'read, get, know',
  'hear|hears': 'get, read',
  'in hand': 'held',
  'as good as': 'nearly',
  'for ever': 'without an end',
  'under its eyes': 'while it looks',
  'comes? to nothing|came to nothing': 'has no effect',
  'stands? in|stood in|standing in': 'replace',
};

/** A phrase may be broken by the end of a line, and by the mark with which the next line of a comment begins. */
const banned = Object.entries(plainFor).map(([words, instead]) => ({
  pattern: new RegExp(`\\b(?:${words.replaceAll(' ', '(?:\\s|\\*|//)+')})\\b`, 'gi'),
  instead,
}));

/** Reports banned words in comments and in literals of at least 25 characters, which are messages and help texts. */
export const plainWords: Rule = (source) =>
  [...joinedComments(source), ...longLiterals(source)].flatMap(({ start, end }) =>
    bannedIn(source.text.slice(start, end)).map(({ index, words }) => ({
      path: source.path,
      line: source.lineAt(start + index),
      message: words,
    })),
  );

/** Reports banned words in a page of the documentation. */
export function plainPage({ path, text }: SourceText): Finding[] {
  return bannedIn(text).map(({ index, words }) => ({
    path,
    line: text.slice(0, index).split('\n').length,
    message: words,
  }));
}

function bannedIn(text: string): { index: number; words: string }[] {
  return banned
    .flatMap(({ pattern, instead }) =>
      [...text.matchAll(pattern)].map(({ 0: match, index }) => ({ match, index, instead })),
    )
    .sort((one, other) => one.index - other.index)
    .map(({ match, index, instead }) => ({
      index,
      words: `"${match.replace(/(?:\s|\*|\/\/)+/g, ' ').toLowerCase()}" is not plain English: ${instead}`,
    }));
}

/** Line comments that follow each other are read as one. */
function joinedComments({ comments, text }: Source): Span[] {
  const joined: { start: number; end: number }[] = [];
  for (const { start, end } of comments) {
    const last = joined.at(-1);
    if (last && text.slice(last.end, start).trim() === '') last.end = end;
    else joined.push({ start, end });
  }
  return joined;
}

function longLiterals({ program }: Source): Span[] {
  const spans: Span[] = [];
  walk(program, (node) => {
    const isText = node.type === 'Literal' && typeof node.value === 'string';
    if ((isText || node.type === 'TemplateLiteral') && node.end - node.start >= 25) spans.push(node);
  });
  return spans;
}

function collect(source: Source, judge: (node: Node, parent: Node | undefined) => string | undefined): Finding[] {
  const findings: Finding[] = [];
  walk(source.program, (node, parent) => {
    const message = judge(node, parent);
    if (message !== undefined) findings.push({ path: source.path, line: source.lineAt(node.start), message });
  });
  return findings;
}

function functionName(node: Node, parent: Node | undefined): string {
  const name = nameOf(node.id) ?? nameOf(node.key) ?? nameOf(parent?.key) ?? nameOf(parent?.id);
  return name ?? 'a function';
}

function matches(path: string, pattern: string): boolean {
  if (pattern.endsWith('*')) return path.startsWith(pattern.slice(0, -1));
  return path === pattern || path === `${pattern}.ts` || path.startsWith(`${pattern}/`);
}

function mostSpecific(patterns: readonly string[], path: string): string | undefined {
  return patterns.filter((pattern) => matches(path, pattern)).sort((a, b) => b.length - a.length)[0];
}

function isAllowed(path: string, patterns: readonly string[]): boolean {
  const [takenAway, given] = [patterns.filter((p) => p.startsWith('!')), patterns.filter((p) => !p.startsWith('!'))];
  return given.some((p) => matches(path, p)) && !takenAway.some((p) => matches(path, p.slice(1)));
}

function folderOf(path: string): string {
  return posix.dirname(path);
}

function children(value: unknown): Node[] {
  return Array.isArray(value) ? value.filter(isNode) : [];
}

function property(object: Node, key: string): Node | undefined {
  return children(object.properties).find((each) => each.type === 'Property' && nameOf(each.key) === key);
}

function calleeName({ callee }: Node): string | undefined {
  return isNode(callee) ? (nameOf(callee) ?? nameOf(callee.property)) : undefined;
}

function withoutAssertions(value: unknown): Node | undefined {
  if (!isNode(value)) return undefined;
  const wrappers = ['TSAsExpression', 'TSSatisfiesExpression', 'ParenthesizedExpression'];
  return wrappers.includes(value.type) ? withoutAssertions(value.expression) : value;
}
