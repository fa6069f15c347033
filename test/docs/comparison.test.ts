import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

test('the lines that the comparison counts are those of its programs, without comments (workflow 31)', () => {
  const page = readFileSync(new URL('../../docs/comparison.md', import.meta.url), 'utf8');
  const programs = [...page.matchAll(/^```(?:ts|js)\n(.*?)^```$/gms)].map(([, code = '']) => code);
  const counted = programs.map((code) => code.split('\n').filter((line) => /^\s*[^\s/]/.test(line)).length);
  const row = /^\| lines of code \| (\d+) \| (\d+) \| (\d+) \|$/m.exec(page);
  expect(row?.slice(1).map(Number)).toEqual(counted);
});
