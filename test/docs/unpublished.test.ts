import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { expect, test } from 'vitest';
import { IS_PUBLISHED } from '../../src/values/texts/command-name.ts';

/** What would make npm fetch the name, and what stands there until it is published. */
const fetching =
  /npx (?:-y |--yes )?pawl\b|npm (?:install|i|add|create|init) (?:[^\n`'"|]* )?pawl(?:@\S+)?(?=[\s`'"]|$)/m;
const local = /npx --no-install pawl\b|pawl-\d+\.\d+\.\d+\.tgz/;
const isRead = (file: string) =>
  ['.md', '.ts', '.tsx', '.js', '.json', '.txt', '.html', '.yml', ''].includes(extname(file));

function filesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    // `dist` is made of pages that are read where they are written.
    if (entry.isDirectory()) return ['node_modules', 'dist'].includes(entry.name) ? [] : filesIn(path);
    return isRead(path) ? [path] : [];
  });
}

test('no page and no printed command makes npm fetch the name before it is published (edges 30)', () => {
  const wrong = IS_PUBLISHED ? local : fetching;
  const files = ['README.md', ...['docs', 'src', 'create-pawl', 'site'].flatMap(filesIn)].filter(
    (file) => !file.startsWith(join('docs', 'contract')) && !file.endsWith('command-name.ts'),
  );
  expect(files.length).toBeGreaterThan(300);
  expect(files.filter((file) => wrong.test(readFileSync(file, 'utf8')))).toEqual([]);
});

/** What a line installs from the registry; a major stands after each name. */
const installed = /npm (?:install|i|add)((?: +[^\s`'"|#]+)+)/g;
const withoutMajor = (text: string) =>
  [...text.matchAll(installed)]
    .flatMap(([, words = '']) => words.trim().split(/ +/))
    .filter((word) => /^@?[a-z]/.test(word) && !/.@\^?\d|\.tgz$/.test(word));

test('each install line of the pages and templates names a major of each package', () => {
  const files = ['README.md', ...['docs', 'create-pawl'].flatMap(filesIn)].filter(
    (file) => !/docs.(?:contract|decisions|reference)/.test(file),
  );
  expect(files.flatMap((file) => withoutMajor(readFileSync(file, 'utf8')).map((word) => [file, word]))).toEqual([]);
});

test.for([
  'npx pawl run',
  'npm install pawl @ai-sdk/openai',
  'npm i -D pawl',
  'npm create pawl',
  'npm install pawl@latest',
])('%s would fetch the name (edges 30)', (text) => expect(fetching.test(text)).toBe(true));

test.for(['npx --no-install pawl run', 'npm install ../pawl/pawl-0.1.0.tgz x', 'npm run pawl'])(
  '%s fetches nothing under the name (edges 30)',
  (text) => expect(fetching.test(text)).toBe(false),
);
