import { basename } from 'node:path';
import { type Review, type Reviews, type Survey, totalsOf } from './answers.ts';

/** The report: totals, a section a part with a table of its findings, and what was not reviewed. */
export function reportOf({ folder, leftOut, parts }: Survey, all: Reviews): string {
  const { files, findings } = totalsOf(all);
  const about = new Map(parts.map((part) => [part.part, part.about]));
  const unseen = leftOut > 0 ? ` ${counted(leftOut, 'more file')} not looked at.` : '';
  return [
    `# Review of ${basename(folder)}`,
    `${counted(files, 'file')} in ${counted(parts.length, 'part')}, ${counted(findings, 'finding')}.${unseen}`,
    ...all.reviews.flatMap((review) => section(review, about.get(review.part) ?? '')),
    ...all.failed.flatMap(({ part, why }) => [`## ${part}: not reviewed`, why]),
  ]
    .filter((block) => block !== '')
    .join('\n\n')
    .concat('\n');
}

function section({ title, files, findings }: Review, about: string): string[] {
  const rows = findings.map(({ file, line, what }) => `| ${cell(file)} | ${line} | ${cell(what)} |`);
  const table = ['| File | Line | What |', '| --- | ---: | --- |', ...rows].join('\n');
  return [`## ${title}`, about, `${counted(files, 'file')} read.`, rows.length === 0 ? '' : table];
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}

function counted(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}
