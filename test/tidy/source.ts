import { posix } from 'node:path';
import { parseSync } from 'rolldown/utils';

/** A file as it lies in the repository: the path is relative to the root, with forward slashes. */
export interface SourceText {
  readonly path: string;
  readonly text: string;
}

export interface Source extends SourceText {
  readonly program: Node;
  readonly imports: readonly Import[];
  readonly comments: readonly Span[];
  /** The 1-based line of an offset into the text. */
  lineAt(offset: number): number;
}

/** A part of the text, from an offset up to another. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** A node of the syntax tree (ESTree with TypeScript's nodes), read without a schema. */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

/** One place where a file names another module: import, re-export, `import()` or an import type. */
export interface Import {
  readonly specifier: string;
  /** The file a relative specifier points to, as a path from the root; undefined for packages. */
  readonly target: string | undefined;
  readonly typeOnly: boolean;
  readonly line: number;
}

export function parse({ path, text }: SourceText): Source {
  const { program, comments, errors } = parseSync(path, text, {
    lang: path.endsWith('.tsx') ? 'tsx' : 'ts',
    sourceType: 'module',
  });
  if (errors[0] !== undefined) throw new SyntaxError(`${path} does not parse: ${errors[0].message}`);
  const lineAt = lineCounter(text);
  const root = program as unknown as Node;
  return { path, text, program: root, lineAt, comments, imports: importsOf(root, path, lineAt) };
}

export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';
}

/** Visits a node and everything below it, parents first. */
export function walk(node: Node, visit: (node: Node, parent: Node | undefined) => void): void {
  for (const [each, parent] of nodesBelow(node)) visit(each, parent);
}

type WithParent = readonly [node: Node, parent: Node | undefined];

const known = new WeakMap<Node, readonly WithParent[]>();

/** A node and everything below it. Dozens of rules look at each file: of a whole one the list is made once. */
function nodesBelow(node: Node): readonly WithParent[] {
  const nodes = known.get(node) ?? [];
  if (nodes.length > 0) return nodes;
  const found: WithParent[] = [];
  listBelow([node, undefined], found);
  if (node.type === 'Program') known.set(node, found);
  return found;
}

function listBelow(one: WithParent, found: WithParent[]): void {
  found.push(one);
  const [node] = one;
  for (const child of Object.values(node)) {
    if (Array.isArray(child)) {
      for (const each of child) if (isNode(each)) listBelow([each, node], found);
    } else if (isNode(child)) listBelow([child, node], found);
  }
}

/** The name of an identifier, a private name or a quoted key. */
export function nameOf(node: unknown): string | undefined {
  if (!isNode(node)) return undefined;
  const name = node.type === 'Literal' ? node.value : node.name;
  return typeof name === 'string' ? name : undefined;
}

function importsOf(program: Node, path: string, lineAt: (offset: number) => number): Import[] {
  const imports: Import[] = [];
  walk(program, (node) => {
    const specifier = isModuleReference(node) ? nameOf(node.source) : undefined;
    if (specifier === undefined) return;
    const relative = specifier.startsWith('.');
    const target = relative ? posix.join(posix.dirname(path), specifier) : undefined;
    // `import { type A }` is not type-only: under verbatimModuleSyntax it still loads the module.
    const typeOnly = node.type === 'TSImportType' || node.importKind === 'type' || node.exportKind === 'type';
    imports.push({ specifier, target, typeOnly, line: lineAt(node.start) });
  });
  return imports;
}

function isModuleReference({ type }: Node): boolean {
  const references = [
    'ImportDeclaration',
    'ExportNamedDeclaration',
    'ExportAllDeclaration',
    'ImportExpression',
    'TSImportType',
  ];
  return references.includes(type);
}

function lineCounter(text: string): (offset: number) => number {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return (offset) => {
    const next = starts.findIndex((start) => start > offset);
    return next === -1 ? starts.length : next;
  };
}
