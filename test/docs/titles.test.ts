import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { plainPage } from '../tidy/rules.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const filesOf = (pattern: string) => globSync(pattern, { cwd: root }).map((path) => path.replaceAll('\\', '/'));
const read = (path: string) => readFileSync(`${root}/${path}`, 'utf8');

/** The text that comes first in `test(…)` and `describe(…)`, and behind the rows of `test.for([…])(…)`. */
function titlesOf(source: string): string[] {
  const call =
    /(?:\b(?:test|describe)(?:\.\w+)*(?:\([^\n]*?\))?|^ *[\])}]*(?: as const[^\n]*?)?\))\(\s*(?:\w+\((?:'\w+', )?)*/;
  const title = /(?:'((?:\\.|[^'\\\n])*)'|"((?:\\.|[^"\\\n])*)"|`([^`]*)`)/;
  const found = source.matchAll(new RegExp(`${call.source}${title.source}`, 'gm'));
  return [...found].map(([, single, double, template]) => single ?? double ?? template ?? '');
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
