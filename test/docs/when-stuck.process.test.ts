import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { HealthReason } from 'pawl';
import { describe, expect, test } from 'vitest';
import { readCommandLine } from '../../src/cli/table/command-line.ts';
import { type LogRow, logTable } from '../../src/log/table.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(`${root}/docs/when-stuck.md`, 'utf8');

/** The commands of the page, in blocks and in lines. */
const commands = [...page.matchAll(/^(pawl .+)$/gm), ...page.matchAll(/`(pawl [^`]+)`/g)].map(
  (match) => match[1] ?? '',
);

/** A reason that is missing here does not compile. */
const reasons: { readonly [reason in HealthReason]: true } = {
  STARTING: true,
  STORE_AWAY: true,
  STORE_FULL: true,
  DRAINING: true,
  LOOP_BLOCKED: true,
  NOT_POLLING: true,
};

/** The codes with which runs are parked or left alone: each stands beside the reason in words. */
const parkings = globSync('src/{executor,run,store,cli}/**/*.ts', { cwd: root }).flatMap((file) =>
  [...readFileSync(`${root}/${file}`, 'utf8').matchAll(/code: '([A-Z_]+)',\s*reason/g)].map((match) => match[1] ?? ''),
);

describe('the page for runs that are stuck', () => {
  test.for([...new Set(commands)])('names a command of the command line: %s', (command) => {
    expect(() => readCommandLine(command.split(' ').slice(1))).not.toThrow();
  });

  test.for([...new Set([...parkings, 'SETUP', 'MODEL_OUTAGE', 'BUDGET_EXCEEDED', 'PARKED'])])(
    'says what to do about a run that is parked, or left alone, with %s (operations 39)',
    (code) => expect(page).toContain(`\`${code}\``),
  );

  test.for([
    'The disk was full, or the store was away',
    'A backup was restored',
    'The key is lost',
    'Two versions run',
    'A host was frozen',
    'A worker uses too much memory',
  ])('says what Pawl does itself, what is lost and what to do: %s (operations 37)', (heading) => {
    const [, entry = ''] = page.split(`\n## ${heading}\n`);
    const [text = ''] = entry.split('\n## ');
    expect(text).toMatch(/^\n```sh\npawl [^\n]+\n```\n/);
    expect([...text.matchAll(/^\* \*\*([^*]+)\*\*:/gm)].map((match) => match[1])).toEqual([
      'Pawl itself',
      'Lost',
      'Do',
    ]);
  });

  test.for(Object.keys(reasons))(
    'says what to do about a process that is not well by %s (operations 3, 39)',
    (reason) => {
      const [, entry = ''] = page.split('\n## A process is not well\n');
      expect(entry.split('\n## ')[0]).toMatch(new RegExp(`^\\| \`${reason}\` \\| [^|]+ \\| [^|]+ \\|$`, 'm'));
    },
  );

  test.for(Object.entries(logTable as Readonly<Record<string, LogRow>>).filter(([, { level }]) => level === 'error'))(
    'is where the log line %s, which needs a person, leads to (operations 10, 39)',
    ([, { remedy }]) => expect(remedy).toContain('](when-stuck.md#'),
  );

  test('was found to have commands, and codes of the code', () => {
    expect(commands.length).toBeGreaterThan(15);
    expect(parkings.length).toBeGreaterThan(4);
  });

  test('names only codes that the page of errors explains, or that a parked run or a process has', () => {
    const errors = readFileSync(`${root}/docs/errors.md`, 'utf8');
    const named = [...page.matchAll(/`([A-Z]+_[A-Z_]+)`/g)].map((match) => match[1] ?? '');
    const reasons = readFileSync(`${root}/docs/operations.md`, 'utf8');
    const isKnown = (code: string) =>
      code.startsWith('PAWL_') ||
      errors.includes(`\`${code}\``) ||
      parkings.includes(code) ||
      reasons.includes(`| \`${code}\` |`);
    expect(named.filter((code) => !isKnown(code))).toEqual([]);
  });
});
