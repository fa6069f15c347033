import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'rolldown/utils';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const pages = [
  'checkpoint',
  'edges',
  'engine',
  'executor',
  'fan-out',
  'faults',
  'finalize',
  'lab',
  'failover',
  'operations',
  'otel',
  'pipeline',
  'recovery',
  'schedules',
  'studio',
  'supervision',
  'waiting',
  'web',
  'workflow',
];
const names = pages.join('|');

/** `(recovery 3, 7, faults 5, promise a)`: at the end of a title. */
const cites = new RegExp(
  `\\(((?:(?:${names}) \\d+(?:, \\d+)*|promise [a-g])(?:, (?:(?:${names}) \\d+(?:, \\d+)*|promise [a-g]))*)\\)$`,
);
/** What looks like a citation. */
const like = new RegExp(`(?:^|\\()(?:(?:${names}) ?F?\\d|faults? F?\\d|promise [a-g]\\b|issue \\d)`);

const words = new RegExp(`(?:${names}) ?F?\\d|faults? F?\\d|promise [a-g]\\b|issue \\d`);

/** All texts of the tests and of the published suite, templates with … for what is put in. */
function titles(): { readonly file: string; readonly text: string }[] {
  const files = globSync(['test/**/*.ts', 'src/testing/**/*.ts'], { cwd: root });
  return files
    .filter((file) => !/fixtures|\.blocks|docs[\\/]contract/.test(file))
    .flatMap((file) => {
      const source = readFileSync(`${root}/${file}`, 'utf8');
      // A file without any such words needs no parser to show that no text of it cites.
      return words.test(source) ? textsOf(source).map((text) => ({ file, text })) : [];
    });
}

function textsOf(source: string): string[] {
  const { program } = parseSync('a.ts', source, { lang: 'ts', sourceType: 'module' });
  const texts: string[] = [];
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) for (const each of node) visit(each);
    else if (typeof node === 'object' && node !== null) {
      const { type, value, quasis } = node as {
        type?: string;
        value?: unknown;
        quasis?: { value: { cooked: string } }[];
      };
      if (type === 'Literal' && typeof value === 'string') texts.push(value);
      else if (type === 'TemplateLiteral') texts.push((quasis ?? []).map(({ value }) => value.cooked).join('\u2026'));
      for (const child of Object.values(node)) visit(child);
    }
  };
  visit(program);
  return texts;
}

/** `recovery 3`, `faults 5`, `promise a` of a title. */
function citedBy(text: string): string[] {
  const items = cites.exec(text)?.[1]?.split(', ') ?? [];
  let page = '';
  return items.map((item) => {
    if (/^\d+$/.test(item)) return `${page} ${item}`;
    page = item.replace(/ \w+$/, '');
    return item;
  });
}

/** A clause may end with the reason why no test cites it. */
const hasReason = (text: string) => /\*No\s+test: /.test(text);

/** Clauses of a page in their order, each with its text. */
function clausesOf(page: string): { readonly number: number; readonly text: string }[] {
  const parts = readFileSync(`${root}/docs/contract/${page}.md`, 'utf8')
    .split(/^(?=\d+\. )/m)
    .slice(1);
  return parts.map((text) => ({ number: Number.parseInt(text, 10), text }));
}

const found = titles();
const cited = new Set(found.flatMap(({ text }) => citedBy(text)));
const promises = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((letter) => `promise ${letter}`);
const clauses = pages.flatMap((page) =>
  clausesOf(page).map(({ number, text }) => ({ name: `${page} ${number}`, text })),
);

describe('the contract', () => {
  test('numbers the clauses of each page in rising order: a number is never given twice, not even after its clause is gone', () => {
    for (const page of pages) {
      const numbers = clausesOf(page).map(({ number }) => number);
      expect(numbers, page).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    }
    expect(clauses.length).toBeGreaterThan(120);
  });

  test('has each clause and promise that a test title cites', () => {
    const known = new Set([...clauses.map(({ name }) => name), ...promises]);
    expect([...cited].filter((name) => !known.has(name))).toEqual([]);
    expect(cited.size).toBeGreaterThan(120);
  });

  test('is cited in one form: (recovery 3, 7, faults 5), at the end of a title', () => {
    expect(found.filter(({ text }) => like.test(text.replace(cites, '')))).toEqual([]);
  });

  test('has a test for each clause, or says why it has none', () => {
    const untested = clauses.filter(({ name, text }) => !cited.has(name) && !hasReason(text));
    expect(untested.map(({ name }) => name)).toEqual([]);
    const both = clauses.filter((clause) => cited.has(clause.name) && hasReason(clause.text));
    expect(both.map(({ name }) => name)).toEqual([]);
  });
});
