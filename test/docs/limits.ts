import { globSync, readFileSync } from 'node:fs';
import { parseSync } from 'rolldown/utils';
import { type Limit, sections, type Unit } from './limits-table.ts';

/** Names of the constants on the page. */
export const shownLimits: ReadonlySet<string> = new Set(
  sections.flatMap(({ limits }) => limits.map(({ code }) => code.split(': ').at(-1) ?? '')),
);

/** The page of limits, its numbers read off the code. */
export function limitsPage(root: string): string {
  const numbers = numbersOf(root);
  const parts = sections.flatMap(({ title, text, limits }) => [
    `## ${title}`,
    '',
    ...(text ? [text, ''] : []),
    '| what | limit | changed by |',
    '| --- | --- | --- |',
    ...limits.map(
      (limit) => `| ${limit.what} | ${written(numberOf(numbers, limit), limit.unit)} | ${optionOf(limit)} |`,
    ),
    '',
  ]);
  const intro = [
    '# Limits',
    '',
    'Each default and each bound that a host, a model or a user can meet. The numbers are read off the code by `npm run docs`, and a',
    'test fails when this page is out of date. Ki and Mi are 1,024 and 1,048,576 bytes or characters.',
    '',
  ];
  return `${[...intro, ...parts].join('\n').trimEnd()}\n`;
}

function optionOf({ option }: Limit): string {
  if (option === undefined) return 'fixed';
  return option.includes('`') ? option : `\`${option}\``;
}

/** The number that a line is about: one, or the same wherever it stands. */
function numberOf(numbers: readonly NumberInCode[], { code }: Limit): number {
  const [name = '', folder = ''] = code.split(': ').reverse();
  const values = numbers
    .filter((number) => number.name === name && number.path.startsWith(folder))
    .map(({ value }) => value);
  const [value, other] = [...new Set(values)];
  if (value === undefined) throw new Error(`test/docs/limits.ts: there is no number ${code} in src or machines`);
  if (other !== undefined) throw new Error(`test/docs/limits.ts: ${code} may be ${value} or ${other}; name a folder`);
  return value;
}

interface NumberInCode {
  readonly path: string;
  readonly name: string;
  readonly value: number;
}

const known = new Map<string, readonly NumberInCode[]>();

/**
 * Numbers of the code: constants, defaults of options, and numbers in tables. How much Studio shows at once bounds no run. They are
 * read once: no source changes meanwhile.
 */
export function numbersOf(root: string): readonly NumberInCode[] {
  const numbers = known.get(root) ?? readNumbers(root);
  known.set(root, numbers);
  return numbers;
}

function readNumbers(root: string): NumberInCode[] {
  const paths = globSync('{src,machines}/**/*.ts', { cwd: root }).filter((path) => !/^src.studio/.test(path));
  return paths.flatMap((path) => {
    const { program } = parseSync(path, readFileSync(`${root}/${path}`, 'utf8'), { lang: 'ts', sourceType: 'module' });
    const named = [...numbersIn(program, new Map())];
    return named.map(([name, value]) => ({ path: path.replaceAll('\\', '/'), name, value }));
  });
}

/** A node of the syntax tree, as far as numbers are written in one. */
interface Syntax {
  readonly type: string;
  readonly value?: unknown;
  readonly name?: string;
  readonly operator?: string;
  readonly id?: Syntax;
  readonly init?: Syntax;
  readonly key?: Syntax;
  readonly left?: Syntax;
  readonly right?: Syntax;
}

function numbersIn(node: unknown, found: Map<string, number>): ReadonlyMap<string, number> {
  if (Array.isArray(node)) for (const each of node) numbersIn(each, found);
  else if (typeof node === 'object' && node !== null) {
    const { type, id, init, key, value, left, right } = node as Syntax;
    if (type === 'VariableDeclarator') note(id, init, found);
    if (type === 'Property') note(key, value as Syntax, found);
    if (type === 'AssignmentPattern') note(left, right, found);
    for (const child of Object.values(node)) numbersIn(child, found);
  }
  return found;
}

function note(named: Syntax | undefined, written: Syntax | undefined, found: Map<string, number>): void {
  const value = written && amountOf(written, found);
  if (named?.name !== undefined && value !== undefined && !found.has(named.name)) found.set(named.name, value);
}

/** The value of a number, a product, a power, or a constant that stands above. */
function amountOf(written: Syntax, known: ReadonlyMap<string, number>): number | undefined {
  const { type, value, name, operator, left, right } = written;
  if (type === 'Literal' && typeof value === 'number') return value;
  if (type === 'Identifier' && name !== undefined) return known.get(name);
  if (type !== 'BinaryExpression' || !left || !right) return undefined;
  const [a, b] = [amountOf(left, known), amountOf(right, known)];
  if (a === undefined || b === undefined) return undefined;
  return operator === '*' ? a * b : operator === '**' ? a ** b : operator === '/' ? a / b : undefined;
}

const times = [
  ['days', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

function written(value: number, unit: Unit = 'number'): string {
  if (unit === 'ms') {
    const [name, ms] =
      times.find(([_, ms]) => value % ms === 0 && value > ms) ?? (value >= 1_000 ? ['s', 1_000] : ['ms', 1]);
    return `${value / ms} ${name}`;
  }
  if (unit === 'size') return value % 2 ** 20 === 0 ? `${value / 2 ** 20} Mi` : `${value / 2 ** 10} Ki`;
  return value.toLocaleString('en-US');
}

/** The figure of the line that names an option; undefined if no line does. */
export function limitOfOption(root: string, option: string): number | undefined {
  const line = sections.flatMap(({ limits }) => limits).find((limit) => limit.option?.replaceAll('`', '') === option);
  return line && numberOf(numbersOf(root), line);
}
