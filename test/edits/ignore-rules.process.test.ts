import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { IgnoreRules, TooManyStepsError } from '../../src/edits/root/ignore-rules.ts';
import { OffLimits } from '../../src/edits/root/off-limits.ts';
import { newRoot } from './folder.ts';

const hasGit = spawnSync('git', ['--version']).status === 0;

const environment = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' };
const git = (cwd: string, args: readonly string[], input = '') =>
  spawnSync('git', ['-c', 'core.ignorecase=false', '-c', 'core.excludesFile=/dev/null', ...args], {
    cwd,
    input,
    env: environment,
    encoding: 'utf8',
  });

const paths: readonly string[] = [
  'a',
  'b',
  'ab',
  'ba',
  'aab',
  'a.b',
  'A',
  '-',
  ']',
  '[',
  '!a',
  '#a',
  'a b',
  'a ',
  '\\a',
  'é',
  'c1',
  '*',
  'd/a',
  'd/b',
  'd/ab',
  'd/a.b',
  'd/d/a',
  'd/d/b',
  'd/d/d/a',
  'd/d/d/ab',
  'd/e/a',
  'd/e/ab',
  'da/a',
  'da/b/a',
  'e/d/a',
  'e/d/d/b',
  'e/ab/b',
];
const folders = [
  ...new Set(
    paths.flatMap((path) =>
      path
        .split('/')
        .slice(0, -1)
        .map((_, i, names) => names.slice(0, i + 1).join('/')),
    ),
  ),
];

/** What Git ignores of these paths, with these rules. */
function ignoredByGit(root: string, rules: Readonly<Record<string, string>>): Set<string> {
  for (const folder of ['', ...folders]) rmSync(join(root, folder, '.gitignore'), { force: true });
  for (const [folder, text] of Object.entries(rules)) writeFileSync(join(root, folder, '.gitignore'), text);
  const all = [...paths, ...folders].map((path) => `${path}\0`).join('');
  const { stdout, status, stderr } = git(root, ['check-ignore', '-z', '--stdin', '--no-index'], all);
  if (status !== 0 && status !== 1) throw new Error(stderr);
  return new Set(stdout.split('\0').slice(0, -1));
}

async function ignoredByUs(root: string): Promise<Set<string>> {
  const offLimits = await OffLimits.of(root, false);
  const ignored = new Set<string>();
  for (const path of paths) if (await offLimits.reason(path)) ignored.add(path);
  for (const path of folders) if (await offLimits.reason(path, true)) ignored.add(path);
  return ignored;
}

function repository(): string {
  const root = newRoot();
  git(root, ['init', '-q']);
  for (const folder of folders) mkdirSync(join(root, folder), { recursive: true });
  for (const path of paths) writeFileSync(join(root, path), '');
  return root;
}

const piece = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('a', 'b', 'd', 'e', 'ab', 'A', 'é', '.', '-', ' ', 'c1') },
  { weight: 5, arbitrary: fc.constantFrom('*', '**', '?', '/', '/**/', '**/', '/**', '***') },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      '[ab]',
      '[!a]',
      '[^d]',
      '[a-c]',
      '[]a]',
      '[!]]',
      '[a-]',
      '[-a]',
      '[[:alpha:]]',
      '[[:digit:]b]',
      '[a',
      '[[:x:]]',
      '[[:a]',
      '[[a:]]',
      '[\\]]',
      '[b-a]',
      '[a-\\c]',
      '[[.a.]]',
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom('\\', '\\*', '\\a', '\\ ', '\\!', '\\#', '\\/', '!', '#', '\t') },
);
const line = fc
  .tuple(
    fc.constantFrom('', '', '', '!', '/', '#', '!/'),
    fc.array(piece, { maxLength: 5 }),
    fc.constantFrom('', '', '/', ' ', '\r'),
  )
  .map(([begin, pieces, end]) => begin + pieces.join('') + end);
const file = fc.array(line, { minLength: 1, maxLength: 4 }).map((lines) => lines.join('\n'));
const rules = fc.record({ '': file, d: file, 'd/d': file, e: file }, { requiredKeys: [''] });

describe.skipIf(!hasGit)('the rules of .gitignore files (needs git)', () => {
  test('ignore what `git check-ignore` ignores, for any patterns in a file and in those of folders below it', async () => {
    const root = repository();
    await fc.assert(
      fc.asyncProperty(rules, async (written) => {
        expect([ignoredByGit(root, written), await ignoredByUs(root)].map((each) => [...each].sort())).toSatisfy(
          ([theirs, ours]: string[][]) => {
            expect(ours).toEqual(theirs);
            return true;
          },
        );
      }),
      { numRuns: process.env.PAWL_TORTURE === '1' ? 2_000 : 60 },
    );
  });

  test.for([
    'a\n!d/a\n',
    '/d/*\n!/d/d',
    'd/\n!d/a',
    '**/a',
    'd/**',
    'd/**/a',
    'd**/a',
    'a**',
    '*.b',
    '\uFEFFa',
    '/*\n!/d\n/d/*\n!/d/e',
    'a\\ ',
    'a\\',
    '[',
    '!',
    '/',
    '//',
    '**',
    '**/',
    '/**',
    'd/***/a',
    '\\!a',
    '\\#a',
    'e/**/b/',
    '*[!b]',
    'a\r\nb\r',
    'd\\/a',
    'd/\\*',
    '[[:upper:]]',
    '?[!a-z]?',
  ])('ignore as Git does: %j', async (text) => {
    const root = repository();
    expect([...ignoredByGit(root, { '': text })].sort()).toEqual([...(await ignoredByUs(root))].sort());
  });
});

describe('a pattern that is made to take long', () => {
  const spent = (pattern: string, path: string) => {
    const budget = { steps: 100_000_000 };
    const verdict = new IgnoreRules(pattern).match(path, false, budget);
    return { verdict, steps: 100_000_000 - budget.steps };
  };

  test.for(['**a', '*a', 'x/**/a', '[a]*', '?*', '**/a'])(
    'costs no more steps than its elements times the bytes of the name: %s, repeated',
    (part) => {
      for (const times of [10, 40, 160]) {
        const path = `${'a'.repeat(times * 4)}/${'a'.repeat(times * 4)}ba`;
        const { steps } = spent(`${part.repeat(times)}`, path);
        expect(steps).toBeLessThanOrEqual(4 * part.length * times * Buffer.byteLength(path));
      }
    },
  );

  test('ends by an error once its steps are used up, and its path is off limits then', async () => {
    const hostile = `${'*a'.repeat(500)}[c]`;
    const rules = new IgnoreRules(Array.from({ length: 100 }, () => hostile).join('\n'));
    expect(() => rules.match('a'.repeat(1_000), false, { steps: 100_000 })).toThrow(TooManyStepsError);
    const root = newRoot();
    writeFileSync(join(root, '.gitignore'), Array.from({ length: 250 }, () => hostile).join('\n'));
    const offLimits = await OffLimits.of(root);
    expect(await offLimits.reason('a'.repeat(1_000))).toBe('the patterns of its .gitignore take too long to compare');
    expect(await offLimits.reason('b')).toBeUndefined();
  });
});
