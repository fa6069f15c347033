import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { proseOf, sentencesOf, wordCount } from './sentences.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (page: string) => readFileSync(`${root}/${page}`, 'utf8');

/** Not read: what is made from docstrings. */
const generated = ['docs/cli.md', 'docs/http-api.md', 'docs/members.md', 'docs/options.md', 'docs/reference.md'];
const pages = ['README.md', ...['docs/*.md', 'create-pawl/**/*.md'].flatMap((each) => globSync(each, { cwd: root }))]
  .map((page) => page.replaceAll('\\', '/'))
  .filter((page) => !generated.includes(page))
  .sort();

/** The pages that a newcomer reads first: the first group of the map. */
const startPages = [...(read('docs/README.md').split(/^## /m)[1] ?? '').matchAll(/\]\(([a-z-]+\.md)\)/g)].map(
  ([, page]) => `docs/${page}`,
);

const isFirst = (page: string) => [...startPages, 'README.md', 'docs/README.md'].includes(page);

/** A sentence with more words than this is long. */
const MOST_WORDS = 25;

/** Pages with a larger share of long sentences than others may have, in percent. These numbers only fall. */
const longAllowed: Readonly<Record<string, number>> = { 'docs/architecture.md': 13 };

const longIn = (page: string) => sentencesOf(read(page)).filter((sentence) => wordCount(sentence) > MOST_WORDS);
const mostLong = (page: string) => (isFirst(page) ? 0 : (longAllowed[page] ?? 5));

/** Words with several meanings, what to write, and how often the pages may still have them. These numbers only fall. */
const words = [
  { word: 'host', pattern: /\bhosts?\b/gi, instead: 'application, computer', most: 82 },
  { word: 'turn', pattern: /\bturns?\b/gi, instead: 'model call, message, tick, fair order', most: 141 },
  { word: 'iteration', pattern: /\biterations?\b/gi, instead: 'step', most: 0 },
  { word: 'journal', pattern: /\bjournals?\b/gi, instead: 'event log', most: 33 },
  { word: 'rests', pattern: /\b(?:rests|rested|resting)\b/gi, instead: 'is suspended', most: 6 },
  { word: 'kept event', pattern: /\bkept events?\b/gi, instead: 'durable event', most: 0 },
  { word: 'passing event', pattern: /\bpassing events?\b/gi, instead: 'transient event', most: 0 },
  { word: 'kept outcome', pattern: /\bkept outcomes?\b/gi, instead: 'stored outcome', most: 3 },
];

describe('the pages', () => {
  test('are found, with those that are read first', () => {
    expect(pages.length).toBeGreaterThan(50);
    expect(startPages).toContain('docs/quickstart.md');
  });

  test.for(pages)(
    '%s has short sentences: none over 25 words where a newcomer begins, one of twenty elsewhere',
    (page) => {
      const all = sentencesOf(read(page)).length;
      const long = longIn(page);
      const share = all === 0 ? 0 : (100 * long.length) / all;
      expect([share <= mostLong(page), share <= mostLong(page) ? [] : long]).toEqual([true, []]);
    },
  );

  test('that may have more long sentences need it', () => {
    const shares = Object.keys(longAllowed).map((page) => (100 * longIn(page).length) / sentencesOf(read(page)).length);
    expect(shares.map((share) => Math.ceil(share))).toEqual(Object.values(longAllowed));
  });

  test.for(words)('say “$word” no more often than now: write $instead', ({ pattern, most }) => {
    const found = pages.flatMap((page) => proseOf(read(page)).match(pattern) ?? []).length;
    expect(found).toBeLessThanOrEqual(most);
  });
});

describe('a sentence', () => {
  test('ends at its sign, also in bold and before code, and not at a number or an abbreviated name', () => {
    const page = 'One two. **Three four.** `five` six: 0.3 s.\n\n* Seven (e.g. eight) nine?\n  Ten.\n';
    expect(sentencesOf(page)).toEqual([
      'One two.',
      '**Three four.**',
      '`five` six: 0.3 s.',
      'Seven (e.g. eight) nine?',
      'Ten.',
    ]);
  });

  test('is no code, no table and no heading, and the address of a link is no part of it', () => {
    const page = '# Head line.\n\n```ts\nA b. C d.\n```\n\n| a. B |\n\nSee [the page](a-page.md).\n';
    expect(sentencesOf(page)).toEqual(['See [the page].']);
    expect(wordCount('See [the page] = now.')).toBe(4);
  });
});
