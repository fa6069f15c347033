import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { expect, test } from 'vitest';
import { IS_PUBLISHED } from '../../src/values/texts/command-name.ts';

/** What would make npm fetch the name, and what stands there until it is published. */
const fetching =
  /npx (?:-y |--yes )?pawl\b|npm (?:install|i|add|create|init) (?:[^\n`'"|]* )?pawl(?:@\S+)?(?=[\s`'"]|$)/m;
const local = /npx --no-install pawl\b|pawl-\d+\.\d+\.\d+\.tgz/;
const isRead = (file: string) => ['.md', '.ts', '.tsx', '.json', '.txt', '.html'].includes(extname(file));

function filesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : filesIn(path);
    return isRead(path) ? [path] : [];
  });
}

test('no page and no printed command makes npm fetch the name before it is published (edges 30)', () => {
  const wrong = IS_PUBLISHED ? local : fetching;
  const files = ['README.md', ...filesIn('docs'), ...filesIn('src')].filter(
    (file) => !file.startsWith(join('docs', 'contract')) && !file.endsWith('command-name.ts'),
  );
  expect(files.length).toBeGreaterThan(300);
  expect(files.filter((file) => wrong.test(readFileSync(file, 'utf8')))).toEqual([]);
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
