import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseSync } from 'rolldown/utils';
import { entryPoints } from '../toolchain/entry-points.ts';

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}
interface Declaration extends Node {
  readonly id?: { readonly name: string };
  readonly body?: Node | null;
  readonly declarations?: readonly { readonly id: { readonly name: string } & Node; readonly init?: Node }[];
}
interface ExportNode extends Node {
  readonly declaration?: Declaration | null;
  readonly source?: { readonly value: string } | null;
  readonly specifiers: readonly { readonly exported: { readonly name: string } }[];
}
interface Parsed {
  readonly text: string;
  readonly exports: readonly ExportNode[];
  readonly comments: readonly { readonly value: string; readonly end: number }[];
}

const parsed = new Map<string, Parsed>();

function parse(root: string, path: string): Parsed {
  const known = parsed.get(path);
  if (known) return known;
  const text = readFileSync(join(root, path), 'utf8');
  const { program, comments } = parseSync(path, text, { lang: 'ts', sourceType: 'module' });
  const exports = (program.body as unknown as ExportNode[]).filter(({ type }) => type === 'ExportNamedDeclaration');
  const result = { text, exports, comments };
  parsed.set(path, result);
  return result;
}

/** The page of public names, made of the entry points' exports and their docstrings. */
export function referencePage(root: string): string {
  const parts = entryPoints.map(({ name, source }) => [`## ${name}`, '', ...exportsOf(root, source)].join('\n'));
  const intro = [
    '# Reference',
    '',
    'The public names, made from their docstrings by `npm run docs`; a test fails when it is out of date.',
    '',
  ];
  return `${[...intro, parts.join('\n')].join('\n').trimEnd()}\n`;
}

function exportsOf(root: string, path: string): string[] {
  return parse(root, path).exports.flatMap((node) => {
    if (node.declaration) return entry(root, path, nameOf(node.declaration));
    const file = node.source ? join(dirname(path), node.source.value) : path;
    return node.specifiers.flatMap(({ exported }) => entry(root, file, exported.name));
  });
}

function entry(root: string, path: string, name: string): string[] {
  const { text, exports, comments } = parse(root, path);
  const node = exports.find(({ declaration }) => declaration && nameOf(declaration) === name);
  const passedOn = exports.find(({ specifiers }) => specifiers.some(({ exported }) => exported.name === name));
  if (passedOn?.source) return entry(root, join(dirname(path), passedOn.source.value), name);
  if (!node?.declaration) throw new Error(`${path} declares no ${name}`);
  const comment = comments.findLast(({ end }) => end <= node.start && text.slice(end, node.start).trim() === '');
  return [`### ${name}`, '', ...docOf(comment?.value), '```dts', signature(text, node.declaration), '```', ''];
}

function nameOf({ id, declarations }: Declaration): string {
  return id?.name ?? declarations?.[0]?.id.name ?? '';
}

/** Declarations without the bodies of functions and classes. */
function signature(text: string, declaration: Declaration): string {
  const isBodyless = declaration.type === 'FunctionDeclaration' || declaration.type === 'ClassDeclaration';
  const constant = declaration.declarations?.[0];
  const end = isBodyless ? declaration.body?.start : constant?.id.end;
  return text.slice(declaration.start, end ?? declaration.end).trim();
}

/** A docstring as paragraphs; its example as it is. */
function docOf(comment: string | undefined): string[] {
  if (!comment?.startsWith('*')) return [];
  const lines = comment
    .slice(1)
    .split('\n')
    .map((line) => line.replace(/^\s*\* ?/, '').trimEnd());
  const [prose = '', example] = lines
    .join('\n')
    .trim()
    .split(/^@example/m);
  const text = prose
    .trim()
    .replaceAll(/^@(\w+)/gm, '\n*$1*')
    .trim();
  return [...(text ? [text, ''] : []), ...(example ? ['```text', example.trim(), '```', ''] : [])];
}
