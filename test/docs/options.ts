import { usualDefaults } from '../../src/executor/host/defaults.ts';
import { journalDefaults } from '../../src/executor/host/journal-options.ts';
import { type DeclaredMember, membersOf } from './declarations.ts';
import { type OptionSection, optionSections } from './options-table.ts';

/** An option as the page shows it. */
export interface ShownOption {
  readonly name: string;
  readonly type: string;
  /** `required`, or a default as code or in words. */
  readonly usual: string | undefined;
  readonly text: string;
  /** One line of code. */
  readonly example: string | undefined;
}

/** Defaults that are tables in the code: read there, not in the docstrings. */
const tables: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  Defaults: { ...usualDefaults },
  JournalOptions: { ...journalDefaults },
};

/** The options of a section in the order of the code. */
export function shownOptions(root: string, { of, path }: OptionSection): readonly ShownOption[] {
  const members = membersOf(root, path, of);
  return members.map((member) => shown(member, of));
}

function shown(member: DeclaredMember, of: string): ShownOption {
  const { name, type, params, doc } = member;
  const usual = usualOf(member, of);
  const example = doc.tags.get('example')?.[0] ?? evident({ name, type, usual });
  return { name, type: params ? `method ${type}` : type, usual, text: doc.text, example };
}

function usualOf({ name, isOptional, doc }: DeclaredMember, of: string): string | undefined {
  const [table, own] = [tables[of], optionSections.find(({ title }) => title === `${callOf(of)}: ${name}`)];
  if (table) return codeOf(table[name]);
  const said = isOptional ? doc.tags.get('default')?.[0] : 'required';
  return said ?? (own && `[below](#${anchorOf(own.title)})`);
}

const callOf = (of: string) => optionSections.find((section) => section.of === of)?.title;
const anchorOf = (title: string) =>
  title
    .toLowerCase()
    .replaceAll(/[^a-z\d -]/g, '')
    .replaceAll(' ', '-');

/** The example of an option whose type and default say how it is written: a number, a flag, one of some words. */
function evident({ name, type, usual }: Pick<ShownOption, 'name' | 'type' | 'usual'>): string | undefined {
  if (type === 'boolean') return `${name}: ${usual !== 'true'}`;
  if (/^'/.test(type)) return `${name}: ${type.split(' | ').find((word) => word !== usual)}`;
  return usual !== undefined && (isNumber(usual) || /^'/.test(usual)) ? `${name}: ${usual}` : undefined;
}

const isNumber = (text: string) => /^[\d_.]+$/.test(text);

function codeOf(value: unknown): string {
  if (typeof value === 'number') return value.toLocaleString('en-US').replaceAll(',', '_');
  return typeof value === 'string' ? `'${value}'` : String(value);
}

const units: readonly (readonly [RegExp, string])[] = [
  [/Ms$/, 'ms'],
  [/Bytes$/, 'bytes'],
  [/Chars$/, 'characters'],
  [/Tokens$/, 'tokens'],
];

/** `number` with its unit; another type as it is. */
function typeOf({ name, type }: ShownOption): string {
  const unit = /\bnumber\b/.test(type) ? units.find(([suffix]) => suffix.test(name))?.[1] : undefined;
  return `${code(type)}${unit === undefined ? '' : `, ${unit}`}`;
}

const code = (text: string) => `\`${text.replaceAll('|', '\\|')}\``;

function usualCell({ usual = '' }: ShownOption): string {
  return isNumber(usual) || /^(?:'.*'|true|false|\{.*\})$/.test(usual) ? code(usual) : usual;
}

function rowOf(option: ShownOption): string {
  const { name, text, example } = option;
  const shownExample = example === undefined ? '' : `<br>${code(example)}`;
  const cells = [code(name), typeOf(option), usualCell(option), `${text.replaceAll('|', '\\|')}${shownExample}`];
  return `| ${cells.join(' | ')} |`;
}

function tableOf(options: readonly ShownOption[]): string[] {
  return [
    '| option | type | default | what it does, and an example |',
    '| --- | --- | --- | --- |',
    ...options.map(rowOf),
    '',
  ];
}

function sectionOf(root: string, section: OptionSection): string[] {
  const options = shownOptions(root, section);
  const { title, text, subjects } = section;
  const head = [`## ${title}`, '', ...(text ? [text, ''] : [])];
  if (!subjects) return [...head, ...tableOf(options)];
  const parts = Object.entries(subjects).flatMap(([subject, names]) => {
    const rows = names.map((name) => options.find((option) => option.name === name));
    return [`### ${subject}`, '', ...tableOf(rows.filter((row) => row !== undefined))];
  });
  return [...head, ...parts];
}

const intro = [
  '# Options',
  '',
  'Each option with its type, its default and an example. An editor shows the same texts. An option that Pawl does not know is refused with',
  'a `TypeError` that names the nearest one. Made from the docstrings by `npm run docs`.',
  '',
];

/** docs/options.md: a table for each call that takes options. */
export function optionsPage(root: string): string {
  return `${[...intro, ...optionSections.flatMap((section) => sectionOf(root, section))].join('\n').trimEnd()}\n`;
}

/** A program with each example of the page in its place. */
export function examplesOf(root: string, prelude: string): string {
  const lines = optionSections.flatMap((section, i) => {
    const { of, path, with: given = '' } = section;
    const examples = shownOptions(root, section).map(
      ({ name, example = '' }, k) => `export const o${i}_${k}: Pick<O${i}${given}, '${name}'> = { ${example} };`,
    );
    return [`import type { ${of} as O${i} } from '../../../../${path}';`, ...examples];
  });
  return `${prelude}\n${lines.join('\n')}\n`;
}
