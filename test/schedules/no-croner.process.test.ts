import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { packageFlags } from '../toolchain/programs.ts';

/** A program in which the package `croner` is not installed. */
const program = (times: string) => `
  import { registerHooks } from 'node:module';
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier === 'croner') throw Object.assign(new Error('Cannot find module'), { code: 'MODULE_NOT_FOUND' });
      return next(specifier, context);
    },
  });
  const { createExecutor, memoryStore } = await import('pawl');
  try {
    createExecutor({ store: memoryStore(), schedules: [{ id: 'a', ${times}, start: () => {} }] });
    console.log('made');
  } catch (error) {
    console.log(error instanceof TypeError, error.message);
  }
`;

test.each([
  ["every: '1h'", 'made'],
  [
    "cron: '0 7 * * *'",
    'true createExecutor: schedule a: cron needs the package croner, which is not installed: npm install croner',
  ],
])('without croner a schedule with %s: %s (schedules 1)', (times, said) => {
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [...packageFlags, '--input-type=module', '--eval', program(times)],
    {
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
      encoding: 'utf8',
    },
  );
  expect([stdout, stderr]).toEqual([`${said}\n`, '']);
});
