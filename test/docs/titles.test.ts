import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { plainPage } from '../tidy/rules.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const filesOf = (pattern: string) => globSync(pattern, { cwd: root }).map((path) => path.replaceAll('\\', '/'));
const read = (path: string) => readFileSync(`${root}/${path}`, 'utf8');

/** The text that stands first in `test(…)`, `test.for(…)(…)` and `describe(…)`, one a line. */
function titlesOf(source: string): string[] {
  const first = /\b(?:test|describe)(?:\.\w+)*(?:\([^\n]*?\))?\(\s*(?:\w+\()?(?:'((?:\\.|[^'\\\n])*)'|`([^`]*)`)/g;
  return [...source.matchAll(first)].map(([, quoted, template]) => quoted ?? template ?? '');
}

test('titles of decisions are plain English', () => {
  const titles = filesOf('docs/decisions/*.md').map((path) => ({ path, text: read(path).split('\n')[0] ?? '' }));
  expect(titles.length).toBeGreaterThan(80);
  expect(titles.flatMap((title) => plainPage(title))).toEqual([]);
});

test('titles of tests have no words of spoken or old English', () => {
  const titles = filesOf('test/**/*.test.ts').flatMap((path) => titlesOf(read(path)).map((text) => ({ path, text })));
  expect(titles.length).toBeGreaterThan(3_000);
  const spoken = titles.filter((title) => plainPage(title).length > 0);
  expect(spoken).toEqual([]);
});
