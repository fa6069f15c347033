import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agentFile, emptyFolder, Pawl, pawl } from './pawl.ts';

test('a running store is backed up and restored, and its run continues once a person has unparked it (edges 27)', async () => {
  const cwd = emptyFolder();
  const run = new Pawl(['run', agentFile('counter'), '--run-id', 'r1'], { cwd, env: { HOLD: 'go' } });
  await run.says('holding');
  const made = await pawl(['backup', 'copies/runs.backup', '--json'], { cwd });
  expect(made.code).toBe(0);
  expect(JSON.parse(made.stdout)).toMatchObject({
    backup: 'copies/runs.backup',
    takenAt: expect.stringMatching(/^20/),
  });
  expect(run.child.exitCode).toBeNull();
  run.child.kill('SIGKILL');
  await run.ended;

  const again = await pawl(['backup', 'copies/runs.backup'], { cwd });
  expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('exists, and is not overwritten') });
  expect(await pawl(['restore', 'copies/runs.backup'], { cwd })).toMatchObject({
    ...{ code: 2, stderr: expect.stringContaining('needs --store <new file>') },
  });
  const over = await pawl(['restore', 'copies/runs.backup', '--store', '.pawl/runs.db'], { cwd });
  expect(over).toMatchObject({ code: 2, stderr: expect.stringContaining('is not overwritten') });

  const store = ['--store', 'restored.db'];
  const restored = await pawl(['restore', 'copies/runs.backup', ...store, '--json'], { cwd });
  expect(JSON.parse(restored.stdout)).toMatchObject({ store: join(cwd, 'restored.db'), parked: ['r1'], resumed: [] });
  const resumed = await pawl(['resume', ...store], { cwd });
  expect(resumed.stdout).toBe('');
  expect(await pawl(['list', ...store], { cwd })).toMatchObject({
    stdout: expect.stringContaining('restored from a backup'),
  });
  expect(await pawl(['unpark', 'r1', ...store], { cwd })).toMatchObject({ code: 0 });
  const ended = await pawl(['resume', 'r1', '--agent', agentFile('counter'), ...store], { cwd });
  expect(ended).toMatchObject({ code: 0, stdout: 'counted to 3\n' });
});

test('a backup of no store, or of one in PostgreSQL, is one sentence that says what to do (edges 27)', async () => {
  const cwd = emptyFolder();
  const none = await pawl(['backup', 'runs.backup'], { cwd });
  expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining('there is no store') });
  const server = ['--store', 'postgres://ada@127.0.0.1/app'];
  const dumped = await pawl(['backup', 'runs.backup', ...server], { cwd });
  expect(dumped).toMatchObject({ code: 2, stderr: expect.stringContaining('pg_dump') });
  const restored = await pawl(['restore', 'runs.backup', ...server], { cwd });
  expect(restored).toMatchObject({ code: 2, stderr: expect.stringContaining('pg_restore') });
  expect(existsSync(join(cwd, 'runs.backup'))).toBe(false);
});
