import { readFileSync } from 'node:fs';
import * as http from 'pawl/http';
import { expect, test } from 'vitest';
import { knownProblems } from '../../src/http/problem.ts';

test('pawl/http offers exactly these names', () =>
  expect(Object.keys(http).sort()).toEqual(['healthHandler', 'httpHandler', 'localOnly', 'toNodeListener']));

test('docs/errors.md has a row for each code of an HTTP answer, with its status and title (web 22)', () => {
  const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| (\d{3}) \| `([A-Z_]+)` \| (.+) \|$/gm)].map(([, status, code, title]) => [
    code,
    Number(status),
    title,
  ]);
  expect(rows.toSorted()).toEqual(knownProblems().toSorted());
});
