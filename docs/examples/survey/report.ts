import { basename } from 'node:path';
import { type Facts, topTerms } from './facts.ts';

/** What the survey found out about one file. */
export type Surveyed =
  | { readonly file: string; readonly facts: Facts; readonly isCut: boolean }
  | { readonly file: string; readonly skipped: string };

export interface Survey {
  readonly folder: string;
  /** Files that were too many to look at. */
  readonly leftOut: number;
  readonly files: readonly Surveyed[];
}

type Text = Extract<Surveyed, { facts: Facts }>;

const SHARED_TERMS = 15;
const TERMS_PER_FILE = 8;

/** The report: totals, a table with a row a file, a section a file, the words that files share. */
export function reportOf(survey: Survey): string {
  const rows = survey.files.map((each) => `| ${[cell(each.file), ...cellsOf(each)].join(' | ')} |`);
  const shared = sharedTerms(textsOf(survey), SHARED_TERMS);
  return [
    `# Survey of ${basename(survey.folder)}`,
    totals(survey),
    '## Overview',
    ['| File | Lines | Words | Begins with |', '| --- | ---: | ---: | --- |', ...rows].join('\n'),
    '## Files',
    ...survey.files.map((each) => `### ${each.file}\n\n${describe(each)}`),
    '## Words that files share',
    ['| Word | Files | Times |', '| --- | ---: | ---: |', ...shared.map((row) => `| ${row.join(' | ')} |`)].join('\n'),
    '',
  ]
    .join('\n\n')
    .trimEnd()
    .concat('\n');
}

/** One file in a few sentences; also the note on it. */
export function describe(each: Surveyed): string {
  if ('skipped' in each) return `Skipped: ${each.skipped}.`;
  const { lines, words, firstSentence, headings, exports, counts } = each.facts;
  const terms = topTerms(counts, TERMS_PER_FILE).map(([term, count]) => `${term} (${count})`);
  return [
    `${counted(lines, 'line')}, ${counted(words, 'word')}${each.isCut ? ' in the part that was read' : ''}.`,
    firstSentence === '' ? '' : `Begins: “${firstSentence}”`,
    sentence('Headings', headings),
    sentence('Exports', exports),
    sentence('Frequent words', terms),
  ]
    .filter((part) => part !== '')
    .join(' ');
}

/** The survey in two sentences. */
export function summaryOf(survey: Survey): string {
  const shared = sharedTerms(textsOf(survey), 5).map(([term]) => term);
  const terms = shared.length > 0 ? ` The words that most of them share: ${shared.join(', ')}.` : '';
  return `Surveyed ${basename(survey.folder)}: ${totals(survey)}${terms}`;
}

function totals({ files, leftOut }: Survey): string {
  const texts = textsOf({ files });
  const sum = (read: (facts: Facts) => number) => texts.reduce((total, { facts }) => total + read(facts), 0);
  const skipped = files.length - texts.length;
  const passedOver = skipped > 0 ? `, ${skipped} skipped` : '';
  const unseen = leftOut > 0 ? ` ${counted(leftOut, 'more file')} not looked at.` : '';
  const [lines, words] = [sum((facts) => facts.lines), sum((facts) => facts.words)];
  return `${counted(files.length, 'file')}${passedOver}, ${counted(lines, 'line')}, ${counted(words, 'word')}.${unseen}`;
}

function textsOf({ files }: Pick<Survey, 'files'>): Text[] {
  return files.filter((each): each is Text => 'facts' in each);
}

/** Words by the number of files that have them, then by how often they occur, then by name. */
function sharedTerms(texts: readonly Text[], most: number): [term: string, files: number, times: number][] {
  const seen = new Map<string, [files: number, times: number]>();
  for (const { facts } of texts) {
    for (const [term, count] of facts.counts) {
      const [files, times] = seen.get(term) ?? [0, 0];
      seen.set(term, [files + 1, times + count]);
    }
  }
  const shared = [...seen]
    .filter(([, [files]]) => files > 1)
    .map(([term, [files, times]]) => [term, files, times] as const);
  return shared
    .sort(([a, filesA, timesA], [b, filesB, timesB]) => filesB - filesA || timesB - timesA || (a < b ? -1 : 1))
    .slice(0, most)
    .map((row) => [...row]);
}

function cellsOf(each: Surveyed): string[] {
  if ('skipped' in each) return ['', '', `(${cell(each.skipped)})`];
  return [String(each.facts.lines), String(each.facts.words), cell(each.facts.firstSentence)];
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

function sentence(name: string, items: readonly string[]): string {
  return items.length === 0 ? '' : `${name}: ${items.join(', ')}.`;
}

function counted(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}
