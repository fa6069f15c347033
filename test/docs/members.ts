import { policyOf } from '../../src/values/error-codes.ts';
import { type DeclaredMember, membersOf, typeDocOf, wordsOf } from './declarations.ts';
import { type MemberSection, memberSections, resultSections, wordSections } from './members-table.ts';

/** The members of a section that have a docstring: an overload without one is described by the first. */
export function shownMembers(root: string, { of, path }: MemberSection): readonly DeclaredMember[] {
  const all = membersOf(root, path, of);
  return all.filter(
    ({ name, type, doc }, i) =>
      type !== 'undefined' && (doc.text !== '' || all.findIndex((each) => each.name === name) === i),
  );
}

/** The sentence that the page has of a member: the first of its docstring. */
export function sentenceOf({ doc }: DeclaredMember): string {
  const [sentence = ''] = doc.text.split(/(?<=[.!?]) (?=[A-Z`])/);
  return sentence;
}

const code = (text: string) => `\`${text.replaceAll('|', '\\|')}\``;
const cell = (text: string) => text.replaceAll('|', '\\|');

function memberRow(member: DeclaredMember): string {
  const { name, params, returns, type, doc } = member;
  const named = (doc.tags.get('throws') ?? []).flatMap((text) => text.match(/\b[A-Z][A-Z_]{3,}\b/g) ?? []);
  const codes = [...new Set(named)].filter((each) => policyOf(each) !== undefined);
  const errors = codes.map((each) => `[\`${each}\`](errors.md#${each.toLowerCase()})`).join(', ');
  const called = params ? `${name}(${params.join(', ')})` : name;
  const [value] = doc.tags.get('returns') ?? [];
  const what = `${cell(sentenceOf(member))}${value === undefined ? '' : ` Returns ${cell(value.replaceAll(/\s+/g, ' '))}.`}`;
  return `| ${code(called)} | ${code(returns ?? type)} | ${what.replace(/\.\.$/, '.')} | ${errors} |`;
}

function membersTable(members: readonly DeclaredMember[]): string[] {
  return [
    '| member | type or answer | what it does | errors |',
    '| --- | --- | --- | --- |',
    ...members.map(memberRow),
    '',
  ];
}

function memberPart(root: string, section: MemberSection): string[] {
  const { title, text, subjects } = section;
  const members = shownMembers(root, section);
  const head = [`## ${title}`, '', text, ''];
  if (!subjects) return [...head, ...membersTable(members)];
  const parts = Object.entries(subjects).flatMap(([subject, names]) => [
    `### ${subject}`,
    '',
    ...membersTable(names.flatMap((name) => members.filter((member) => member.name === name))),
  ]);
  return [...head, ...parts];
}

function resultPart(root: string, section: MemberSection): string[] {
  const known = section.of === 'EndedFacts' ? [] : membersOf(root, section.path, 'EndedFacts');
  const fields = membersOf(root, section.path, section.of).filter(
    ({ name, type }) => type !== 'undefined' && known.every((each) => each.name !== name),
  );
  const rows = fields.map(
    ({ name, type, isOptional, doc }) =>
      `| ${code(name)} | ${code(type)}${isOptional ? ', or absent' : ''} | ${cell(doc.text)} |`,
  );
  return [
    `### ${section.title}`,
    '',
    section.text,
    '',
    '| field | type | what it is |',
    '| --- | --- | --- |',
    ...rows,
    '',
  ];
}

/** The words of a type, each with the sentence that its docstring has about it. */
export function shownWords(root: string, { of, path }: MemberSection): readonly (readonly [string, string])[] {
  const doc = typeDocOf(root, path, of).text;
  return wordsOf(root, path, of).map((word) => {
    const [, sentence = ''] = doc.split(`\`${word}\`: `);
    return [word, sentence.split(/ (?=`[a-z]+`: )/)[0] ?? ''];
  });
}

function wordPart(root: string, section: MemberSection): string[] {
  const rows = shownWords(root, section).map(([word, sentence]) => `| \`${word}\` | ${cell(sentence)} |`);
  return [`### ${section.title}`, '', section.text, '', '| word | what it means |', '| --- | --- |', ...rows, ''];
}

const intro = [
  '# Executor, run, control, result',
  '',
  'What each object can do, and what each result says. Made from the docstrings by `npm run docs`; [Options](options.md) has what they take.',
  'A wrong call rejects with a `TypeError`. A store that does not answer rejects with its own error, usually',
  '[`STORE_UNAVAILABLE`](errors.md#store_unavailable).',
  '',
];

/** docs/members.md: a table for each object, and the words of results. */
export function membersPage(root: string): string {
  const parts = [
    ...memberSections.flatMap((section) => memberPart(root, section)),
    ...['## Result', ''],
    ...resultSections.flatMap((section) => resultPart(root, section)),
    ...['## Words', ''],
    ...wordSections.flatMap((section) => wordPart(root, section)),
  ];
  return `${[...intro, ...parts].join('\n').trimEnd()}\n`;
}
