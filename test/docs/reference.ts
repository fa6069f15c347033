import { dirname, join } from 'node:path';
import { entryPoints } from '../toolchain/entry-points.ts';
import { type Declaration, nameOf, parse } from './declarations.ts';
import { taskOf, taskTitles } from './reference-tasks.ts';

/** A public name, and where it is declared. */
interface Entry {
  readonly name: string;
  readonly path: string;
  readonly declaration: Declaration;
}

/** The page of public names: contents first, then each entry point by task, made of exports and their docstrings. */
export function referencePage(root: string): string {
  const anchors = new Anchors(['Reference', 'Contents']);
  const points = entryPoints.map(({ name, source }) => pointOf(name, entriesOf(root, source), anchors));
  const linked = new Map(points.flatMap(({ groups }) => groups.flatMap(({ entries }) => [...anchors.of(entries)])));
  const intro = [
    '# Reference',
    '',
    'The public names, made from their docstrings by `npm run docs`; a test fails when it is out of date. Each entry links to the types',
    'that its signature names.',
    '',
    '## Contents',
    '',
  ];
  const contents = points.flatMap((point) => [`* [\`${point.name}\`](#${point.anchor})`, ...contentsOf(point, linked)]);
  const body = points.flatMap((point, index) => bodyOf(root, withoutThoseOf(points.slice(0, index), point), linked));
  return `${[...intro, ...contents, '', ...body].join('\n').trimEnd()}\n`;
}

interface Group {
  readonly title: string;
  readonly entries: readonly Entry[];
}
interface Point {
  readonly name: string;
  readonly anchor: string;
  readonly groups: readonly Group[];
}

function pointOf(name: string, entries: readonly Entry[], anchors: Anchors): Point {
  const anchor = anchors.next(name);
  const groups = groupsOf(name, entries);
  for (const { title, entries } of groups) {
    if (title !== '') anchors.next(title);
    for (const entry of entries) anchors.add(entry);
  }
  return { name, anchor, groups };
}

function contentsOf({ groups }: Point, linked: ReadonlyMap<string, string>): string[] {
  return groups.map(({ title, entries }) => {
    const links = entries.map(({ name, path }) => `[${name}](#${linked.get(keyOf({ name, path }))})`);
    return `  * ${title === '' ? '' : `${title}: `}${links.join(', ')}`;
  });
}

/** A name that several entry points have is printed with the first of them. */
function withoutThoseOf(earlier: readonly Point[], { groups, ...point }: Point): Point {
  const known = new Set(earlier.flatMap((each) => each.groups.flatMap(({ entries }) => entries.map(keyOf))));
  const others = groups.map((group) => ({
    ...group,
    entries: group.entries.filter((entry) => !known.has(keyOf(entry))),
  }));
  return { ...point, groups: others };
}

function bodyOf(root: string, { name, groups }: Point, linked: ReadonlyMap<string, string>): string[] {
  const anchorsByName = new Map([...linked].map(([key, anchor]) => [key.split(' ')[0] ?? '', anchor]));
  const parts = groups.flatMap(({ title, entries }) => [
    ...(title === '' ? [] : [`### ${title}`, '']),
    ...entries.flatMap((entry) => printed(root, entry, anchorsByName)),
  ]);
  const above = parts.length === 0 ? ['All of its names are above.', ''] : parts;
  return [`## ${name}`, '', ...above];
}

/** Functions, classes and constants of a task first, then its types; both in alphabetical order. */
function groupsOf(point: string, entries: readonly Entry[]): Group[] {
  const isValue = ({ declaration }: Entry) => !declaration.type.startsWith('TS');
  const sorted = entries.toSorted((a, b) => Number(isValue(b)) - Number(isValue(a)) || a.name.localeCompare(b.name));
  if (point !== 'pawl') return [{ title: '', entries: sorted }];
  const groups = taskTitles().map((title) => ({ title, entries: sorted.filter((entry) => taskOf(entry) === title) }));
  return groups.filter(({ entries }) => entries.length > 0);
}

function entriesOf(root: string, path: string): Entry[] {
  const names = parse(root, path).exports.flatMap((node) => {
    if (node.declaration) return [[path, nameOf(node.declaration)] as const];
    const file = node.source ? join(dirname(path), node.source.value) : path;
    return node.specifiers.map(({ exported }) => [file, exported.name] as const);
  });
  return names.map(([file, name]) => declared(root, file, name));
}

function declared(root: string, path: string, name: string): Entry {
  const { exports } = parse(root, path);
  const declaration = exports.find((node) => node.declaration && nameOf(node.declaration) === name)?.declaration;
  if (declaration) return { name, path, declaration };
  const passedOn = exports.find(({ specifiers }) => specifiers.some(({ exported }) => exported.name === name));
  if (!passedOn?.source) throw new Error(`${path} declares no ${name}`);
  return declared(root, join(dirname(path), passedOn.source.value), name);
}

function printed(root: string, { name, path, declaration }: Entry, anchors: ReadonlyMap<string, string>): string[] {
  const { text, exports, comments } = parse(root, path);
  const node = exports.find((each) => each.declaration === declaration);
  const start = node?.start ?? declaration.start;
  const comment = comments.findLast(({ end }) => end <= start && text.slice(end, start).trim() === '');
  const dts = signature(text, declaration);
  const named = [...new Set(dts.replaceAll(/\/\*[\s\S]*?\*\/|'[^'\n]*'/g, '').match(/\b[A-Z]\w+/g) ?? [])];
  const links = named
    .filter((other) => other !== name && anchors.has(other))
    .map((other) => `[${other}](#${anchors.get(other)})`);
  const see = links.length === 0 ? [] : [`See ${links.join(', ')}.`, ''];
  return [`#### ${name}`, '', ...docOf(comment?.value), '```dts', dts, '```', '', ...see];
}

const keyOf = ({ name, path }: Pick<Entry, 'name' | 'path'>) => `${name} ${path}`;

/** Anchors of headings, as GitHub makes them: a repeated one gets a number. */
class Anchors {
  readonly #counts = new Map<string, number>();
  readonly #byEntry = new Map<string, string>();

  constructor(headings: readonly string[]) {
    for (const heading of headings) this.next(heading);
  }

  next(heading: string): string {
    const slug = heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-');
    const count = this.#counts.get(slug) ?? 0;
    this.#counts.set(slug, count + 1);
    return count === 0 ? slug : `${slug}-${count}`;
  }

  add(entry: Entry): void {
    if (!this.#byEntry.has(keyOf(entry))) this.#byEntry.set(keyOf(entry), this.next(entry.name));
  }

  *of(entries: readonly Entry[]): Iterable<[string, string]> {
    for (const entry of entries) yield [keyOf(entry), this.#byEntry.get(keyOf(entry)) ?? ''];
  }
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
