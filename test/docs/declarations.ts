import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseSync } from 'rolldown/utils';

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

/** A statement that names something, as far as pages are made of it. */
export interface Declaration extends Node {
  readonly id?: { readonly name: string };
  readonly body?: (Node & { readonly body?: readonly Member[] }) | null;
  readonly declarations?: readonly { readonly id: { readonly name: string } & Node; readonly init?: Node }[];
  readonly extends?: readonly Heritage[];
}

interface Heritage extends Node {
  readonly expression: { readonly name?: string };
}

interface ExportNode extends Node {
  readonly declaration?: Declaration | null;
  readonly source?: { readonly value: string } | null;
  readonly specifiers: readonly { readonly exported: { readonly name: string } }[];
}

/** A field or a method of an interface or a class. */
interface Member extends Node {
  readonly key?: { readonly name?: string };
  readonly optional?: boolean;
  readonly typeAnnotation?: { readonly typeAnnotation: Node };
  readonly params?: readonly { readonly name?: string; readonly optional?: boolean }[];
  readonly returnType?: { readonly typeAnnotation: Node };
}

interface Parsed {
  readonly text: string;
  readonly exports: readonly ExportNode[];
  /** Those that are not exported too. */
  readonly declarations: readonly Declaration[];
  readonly imports: ReadonlyMap<string, string>;
  readonly comments: readonly { readonly value: string; readonly end: number }[];
}

const parsed = new Map<string, Parsed>();

/** Reads a source file, once. */
export function parse(root: string, path: string): Parsed {
  const known = parsed.get(path);
  if (known) return known;
  const text = readFileSync(join(root, path), 'utf8');
  const { program, comments, module } = parseSync(path, text, { lang: 'ts', sourceType: 'module' });
  const body = program.body as unknown as readonly (ExportNode & Declaration)[];
  const exports = body.filter(({ type }) => type === 'ExportNamedDeclaration');
  const declarations = body.flatMap((node) => (node.declaration ? [node.declaration] : node.id ? [node] : []));
  const imports = new Map(
    module.staticImports.flatMap(({ moduleRequest, entries }) =>
      entries.map(({ localName }) => [localName.value, join(dirname(path), moduleRequest.value)] as const),
    ),
  );
  const result = { text, exports, declarations, imports, comments };
  parsed.set(path, result);
  return result;
}

export function nameOf({ id, declarations }: Declaration): string {
  return id?.name ?? declarations?.[0]?.id.name ?? '';
}

/** A docstring by its parts: the sentences, and the texts behind the tags. */
export interface Doc {
  readonly text: string;
  readonly tags: ReadonlyMap<string, readonly string[]>;
}

/** A field of an interface, as its declaration has it. */
export interface DeclaredMember {
  readonly name: string;
  readonly isOptional: boolean;
  /** For example `number`, or `(runId: string) => void`; the parameters and the return value of a method. */
  readonly type: string;
  /** Of a method, the names of its parameters; an optional one ends in `?`. */
  readonly params?: readonly string[];
  readonly returns?: string;
  readonly doc: Doc;
}

/** The members of an interface, those of the interfaces that it extends first. @throws {Error} if the file declares none of that name */
export function membersOf(root: string, path: string, name: string): readonly DeclaredMember[] {
  const { text, declarations, imports } = parse(root, path);
  const found = declarations.find((each) => nameOf(each) === name && each.type === 'TSInterfaceDeclaration');
  if (!found) throw new Error(`${path} declares no interface ${name}`);
  const inherited = (found.extends ?? []).flatMap((each) => {
    const other = each.expression.name;
    // Of `Omit<…>` and other types that are computed, the page names the interface itself.
    if (other === undefined || each.end - each.start > other.length) return [];
    return membersOf(root, imports.get(other) ?? path, other);
  });
  const own = (found.body?.body ?? []).flatMap((member) => {
    const key = member.key?.name;
    if (key === undefined) return [];
    const isMethod = member.type === 'TSMethodSignature';
    const annotation = member.typeAnnotation?.typeAnnotation ?? member;
    const type = text.slice(annotation.start, annotation.end);
    return [
      {
        name: key,
        isOptional: member.optional === true,
        type: plainType(isMethod ? type.slice(key.length) : type),
        ...(isMethod ? calledAs(text, member) : {}),
        doc: docBefore(root, path, member.start),
      },
    ];
  });
  return [...inherited.filter((each) => own.every(({ name }) => name !== each.name)), ...own];
}

function calledAs(text: string, { params = [], returnType }: Member): Pick<DeclaredMember, 'params' | 'returns'> {
  const value = returnType?.typeAnnotation;
  return {
    params: params.map(({ name = '', optional }) => `${name}${optional ? '?' : ''}`),
    returns: value ? plainType(text.slice(value.start, value.end)) : 'void',
  };
}

/** The docstring of an exported type. @throws {Error} if the file declares none of that name */
export function typeDocOf(root: string, path: string, name: string): Doc {
  const node = parse(root, path).exports.find(({ declaration }) => declaration && nameOf(declaration) === name);
  if (!node) throw new Error(`${path} exports no ${name}`);
  return docBefore(root, path, node.start);
}

/** The words of a type that is one of some texts, in the order of the code. */
export function wordsOf(root: string, path: string, name: string): readonly string[] {
  const { text, declarations } = parse(root, path);
  const found = declarations.find((each) => nameOf(each) === name);
  return found ? [...text.slice(found.start, found.end).matchAll(/'([^']+)'/g)].map(([, word = '']) => word) : [];
}

/** A type on one line, without what says nothing about its values. */
function plainType(type: string): string {
  return type
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\breadonly /g, '')
    .replace(/ \| undefined$/, '')
    .replace(/[;,]$/, '')
    .replace(/^\| /, '')
    .trim();
}

/** The docstring that ends right before this place. */
export function docBefore(root: string, path: string, start: number): Doc {
  const { text, comments } = parse(root, path);
  const comment = comments.findLast(({ end }) => end <= start && text.slice(end, start).trim() === '');
  return readDoc(comment?.value ?? '');
}

const TAG = /(?:^|\s)@(default|example|throws|param|returns)\b/g;

function readDoc(comment: string): Doc {
  if (!comment.startsWith('*')) return { text: '', tags: new Map() };
  const plain = comment
    .slice(1)
    .replaceAll(/\n\s*\*? ?/g, '\n')
    .trim();
  const marks = [...plain.matchAll(TAG)];
  const tags = new Map<string, string[]>();
  for (const [i, mark] of marks.entries()) {
    const [whole, tag = ''] = mark;
    const rest = plain.slice(mark.index + whole.length, marks[i + 1]?.index).trim();
    tags.set(tag, [...(tags.get(tag) ?? []), rest]);
  }
  return { text: plain.slice(0, marks[0]?.index).replaceAll(/\s+/g, ' ').trim(), tags };
}
