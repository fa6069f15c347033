import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'rolldown/utils';
import type { RunEventBody } from '../../src/run/events/body.ts';
import { type FieldRedaction, keepOf, runEventTable, specOf } from '../../src/run/events/table.ts';

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}
interface Field extends Node {
  readonly key: { readonly name: string };
  readonly optional: boolean;
  readonly typeAnnotation: { readonly typeAnnotation: Node & { readonly literal?: { readonly value: string } } };
}
interface Member extends Node {
  readonly members: readonly Field[];
}

/** A type of events as its declaration has it. */
interface DeclaredEvent {
  readonly type: string;
  readonly doc: string;
  /** For example `step: number`. */
  readonly fields: readonly string[];
}

const BEGIN = '<!-- Made by `npm run docs`: -->';
const END = '<!-- Up to here. -->';

/** docs/events.md with its table of events as they are declared today. */
export function eventsPage(root: string): string {
  const page = readFileSync(join(root, 'docs/events.md'), 'utf8');
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin === -1 || end < begin) throw new Error('docs/events.md has no place for the table of events');
  return `${page.slice(0, begin)}${BEGIN}\n\n${eventTable(root)}\n\n${page.slice(end)}`;
}

function eventTable(root: string): string {
  const events = declaredEvents(readFileSync(join(root, 'src/run/events/body.ts'), 'utf8'));
  const rows = events.map(({ type, doc, fields }) => {
    const cells = [`\`${type}\``, doc, fields.map(code).join(', '), hiddenIn(type), keptOf(type)];
    return `| ${cells.join(' | ')} |`;
  });
  return ['| event | when | fields | `redact` changes | journal |', '| --- | --- | --- | --- | --- |', ...rows].join(
    '\n',
  );
}

/** The members of `RunEventBody` in a source text, each with its docstring and its fields. */
export function declaredEvents(text: string): readonly DeclaredEvent[] {
  const { program, comments } = parseSync('events.ts', text, { lang: 'ts', sourceType: 'module' });
  const declarations = program.body.flatMap((node) =>
    node.type === 'ExportNamedDeclaration' && node.declaration?.type === 'TSTypeAliasDeclaration'
      ? [node.declaration]
      : [],
  );
  const declared = declarations.find(({ id }) => id.name === 'RunEventBody')?.typeAnnotation;
  if (declared?.type !== 'TSUnionType') throw new Error('src/run/events/body.ts declares no union RunEventBody');
  return (declared.types as unknown as readonly Member[]).map((member) => {
    const before = comments.findLast(({ end }) => end <= member.start);
    const isDoc = before && /^[\s|]*$/.test(text.slice(before.end, member.start));
    const [type, ...fields] = member.members;
    return {
      type: type?.typeAnnotation.typeAnnotation.literal?.value ?? '',
      doc: isDoc ? sentencesOf(before.value) : '',
      fields: fields.map((field) => {
        const { start, end } = field.typeAnnotation.typeAnnotation;
        return `${field.key.name}${field.optional ? '?' : ''}: ${text.slice(start, end).replaceAll('readonly ', '')}`;
      }),
    };
  });
}

const sentencesOf = (comment: string) =>
  comment
    .replaceAll(/^\s*\*\s?/gm, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();
const code = (text: string) => `\`${text.replaceAll('|', '\\|')}\``;

const hidden: Readonly<Record<Exclude<FieldRedaction, 'public'>, (field: string) => string>> = {
  text: (field) => field,
  json: (field) => `texts in ${field}`,
  content: (field) => `texts in ${field}`,
  output: (field) => `texts in ${field}`,
  error: (field) => `messages in ${field}`,
  wait: (field) => `texts in ${field}`,
};

function hiddenIn(type: string): string {
  const rows = Object.entries(specOf({ type }).redact);
  return rows.flatMap(([field, how]) => (how === 'public' ? [] : [hidden[how](`\`${field}\``)])).join(', ');
}

/** What an event may hold that its journal class depends on. */
const cases = { 'if `effect` is `read`': { effect: 'read' }, 'if `isLate`': { isLate: true } };

function keptOf(type: string): string {
  // With which save an event is kept is of no interest to a reader.
  const keepIf = (facts: object) =>
    keepOf({ type, effect: 'once', ...facts } as unknown as RunEventBody).replace(/^with-.*/, 'kept');
  const usual = keepIf({});
  const others = Object.entries(cases).filter(([, facts]) => keepIf(facts) !== usual);
  return [usual, ...others.map(([when, facts]) => `${keepIf(facts)} ${when}`)].join('; ');
}

/** The types that have a row. */
export const listedEvents: readonly string[] = Object.keys(runEventTable);
