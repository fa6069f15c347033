import { globSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { torture } from '../crash/random.ts';
import { dangerOf, expressionsOf, Proofs } from './expressions.ts';
import { parse } from './source.ts';

// The checker runs in this process, in JavaScript; without this it starts a thread, Java or a binary.
beforeAll(() => vi.stubEnv('RECHECK_SYNC_BACKEND', 'pure'));
afterAll(() => vi.unstubAllEnvs());

const root = fileURLToPath(new URL('../..', import.meta.url));
const inSources = globSync('{src,machines}/**/*.ts', { cwd: root })
  .sort()
  .flatMap((path) => expressionsOf(parse({ path, text: readFileSync(`${root}/${path}`, 'utf8') })));
const found = (text: string) => expressionsOf(parse({ path: 'src/run/a.ts', text }));

test('every regular expression of src and machines takes linear time at most', () => {
  expect(inSources.length).toBeGreaterThan(20);
  // Committed with the sources: a fresh checkout proves only what is new, and `npm run torture` proves all of them again.
  const proofs = new Proofs(`${root}/test/tidy/linear-expressions.json`, { isBelieved: torture === 1 });
  const dangers = inSources.flatMap((expression) => {
    const danger = proofs.dangerOf(expression);
    return danger === undefined ? [] : [`${expression.path}:${expression.line} ${expression.text} ${danger}`];
  });
  proofs.keep();
  expect(dangers).toEqual([]);
});

describe('the check of regular expressions', () => {
  test('finds literals wherever they stand, and what RegExp is called with', () => {
    const text = [
      'const a = /a/;',
      "b.replace(/b/g, '').split(/c/u);",
      "const f = (d = { e: [/e/] }) => new RegExp('f+', 'i');",
      "RegExp('g');",
      'f(new RegExp(h));',
      'class I { static j = /j/; }',
      "const k = '/k/'; // /k/",
      "new RegExp('l', 'u');",
    ].join('\n');
    expect(found(text).map(({ line, pattern, flags }) => `${line}: ${pattern} ${flags}`)).toEqual([
      '1: a ',
      '2: b g',
      '2: c u',
      '3: e ',
      '3: f+ i',
      '4: g ',
      '5: undefined ',
      '6: j ',
    ]);
  });

  test.for([
    ['/^(a+)+$/', 'takes exponential time'],
    ['/\\s+$/', 'takes 2nd degree polynomial time'],
    ['/\\s*\\S+/g', 'takes 2nd degree polynomial time'],
    ['/^```(?:json)?\\s*\\n([\\s\\S]*?)\\n?```$/', 'takes 2nd degree polynomial time'],
    ['/^```(?:json)?\\s*([\\s\\S]*?)\\s*```$/', 'takes 3rd degree polynomial time'],
    ["a(new RegExp('^(a|a)*$'))", 'takes exponential time'],
    ['/(a*)\\1/', 'is not proved linear (unsupported)'],
    ['a(new RegExp(pattern))', 'is built at run time, so that nothing proves it linear'],
  ])('refuses %s: it %s', ([text, danger]) => {
    expect(found(text as string).map(dangerOf)).toEqual([danger]);
  });

  test.for([
    '/^[a-z]+$/',
    '/^\\s*\\n/',
    '/\\{\\{([^{}]*)\\}\\}/g',
    '/^\\d{4}-\\d{2}/',
    '/[^\\x20-\\x7e]/g',
    '/\\p{Cc}/u',
  ])('accepts %s', (text) => expect(found(text).map(dangerOf)).toEqual([undefined]));

  test('keeps proofs alone, each for its expression; a file of proofs that cannot be read holds none', () => {
    const path = join(mkdtempSync(join(tmpdir(), 'pawl-proofs-')), 'cache', 'proofs.json');
    const of = (pattern: string, flags = '') => new Proofs(path).dangerOf({ pattern, flags });
    const proofs = new Proofs(path);
    expect(proofs.dangerOf({ pattern: '^[a-z]+$', flags: '' })).toBeUndefined();
    expect(proofs.dangerOf({ pattern: '^(a+)+$', flags: '' })).toBe('takes exponential time');
    expect(proofs.dangerOf({ flags: '' })).toBe('is built at run time, so that nothing proves it linear');
    proofs.keep();
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual([
      expect.stringMatching(/^recheck [\d.]+ \/\^\[a-z\]\+\$\/$/),
    ]);
    expect(of('^(a+)+$')).toBe('takes exponential time');
    expect(of('\\s+$')).toBe('takes 2nd degree polynomial time');
    // A proof that is found there is believed; another flag is another expression.
    writeFileSync(path, readFileSync(path, 'utf8').replace('^[a-z]+$', '\\\\s+$'));
    expect([of('\\s+$'), of('\\s+$', 'u')]).toEqual([undefined, 'takes 2nd degree polynomial time']);
    writeFileSync(path, '{"damaged');
    expect(of('\\s+$')).toBe('takes 2nd degree polynomial time');
  });
});
