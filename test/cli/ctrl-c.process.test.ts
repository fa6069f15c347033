import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { agentFile, emptyFolder, Pawl, pawl } from './pawl.ts';

/** Holds the run at its second number, until a test makes the file. */
const held = { HOLD: 'go' };

describe.concurrent('a signal', { timeout: 180_000 }, () => {
  test.for([
    ['SIGINT', 130],
    ['SIGTERM', 75],
  ] as const)('%s leaves the run with exit code %i, and resuming gives the same result', async ([signal, exitCode]) => {
    const cwd = emptyFolder();
    const args = ['run', agentFile('counter'), 'go', '--run-id', 'r 1', '--store', 'runs.db'];
    const run = new Pawl(args, { cwd, env: held });
    await run.says('holding');
    run.child.kill(signal);
    const { code, stdout, stderr } = await run.ended;
    expect({ code, stdout }).toEqual({ code: exitCode, stdout: '' });
    expect(stderr).toMatch(/continue with: pawl resume 'r 1' --store runs\.db\n$/);
    expect((await pawl(['list', '--store', 'runs.db'], { cwd })).stdout).toContain('interrupted');

    const resumed = await pawl(['resume', 'r 1', '--store', 'runs.db'], { cwd });
    expect(resumed).toMatchObject({ code: 0, stdout: 'counted to 3\n' });
    expect(resumed.stderr).toMatch(/^resumed r 1\nstep 2: count; 30 tokens so far\n/);
  });

  test.for([
    ['SIGINT', 130],
    ['SIGTERM', 75],
  ] as const)('%s cuts `pawl resume` of all runs with exit code %i where it leaves one', async ([signal, exitCode]) => {
    const cwd = emptyFolder();
    const run = new Pawl(['run', agentFile('counter'), '--run-id', 'r1'], { cwd, env: held });
    await run.says('holding');
    run.child.kill('SIGKILL');
    await run.ended;
    const resumed = new Pawl(['resume'], { cwd, env: held });
    await resumed.says('holding');
    resumed.child.kill(signal);
    expect(await resumed.ended).toMatchObject({ code: exitCode, stdout: '' });
    expect(await pawl(['resume'], { cwd })).toMatchObject({ code: 0, stdout: 'counted to 3\n' });
  });

  test('a parked run makes `pawl run` exit with 75, and after `pawl unpark` it ends', async () => {
    const cwd = emptyFolder();
    const args = ['run', agentFile('counter'), 'go', '--run-id', 'r1'];
    const run = new Pawl(args, { cwd, env: held });
    await run.says('holding');
    run.child.kill('SIGTERM');
    expect(await run.ended).toMatchObject({ code: 75 });
    expect(await pawl(['park', 'r1'], { cwd })).toMatchObject({ code: 0 });
    expect(await pawl(args, { cwd })).toMatchObject({
      code: 75,
      stdout: '',
      stderr: expect.stringContaining('parked'),
    });
    expect(await pawl(['unpark', 'r1'], { cwd })).toMatchObject({ code: 0 });
    expect(await pawl(args, { cwd })).toMatchObject({ code: 0, stdout: 'counted to 3\n' });
  });

  test('that comes again ends the process at once', async () => {
    const cwd = emptyFolder();
    const run = new Pawl(['run', agentFile('counter'), 'go', '--store', 'runs.db'], { cwd, env: held });
    await run.says('holding');
    // Somebody else holds the lock: the run cannot be saved, and the first signal has to wait for that.
    const db = new DatabaseSync(join(cwd, 'runs.db'));
    db.exec('BEGIN IMMEDIATE');
    run.child.kill('SIGINT');
    await run.says('again to exit now');
    // What followed within a tenth of a second would be the same press of Ctrl-C, seen twice.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(run.child.exitCode).toBeNull();
    const signalledAt = performance.now();
    run.child.kill('SIGINT');
    const { code } = await run.ended;
    db.close();
    expect(code).toBe(130);
    expect(performance.now() - signalledAt).toBeLessThan(15_000);
    // The other program was the last to close the file: it has put the -wal file into it, so nothing is missing.
    const refused = await pawl(['resume', '--store', 'runs.db'], { cwd });
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--accept-without-wal') });
    expect(await pawl(['restore', '--accept-without-wal', 'runs.db'], { cwd })).toMatchObject({ code: 0 });
    expect(await pawl(['resume', '--store', 'runs.db'], { cwd })).toMatchObject({ code: 0, stdout: 'counted to 3\n' });
  });
});

describe.concurrent('a run that lives in another process', { timeout: 180_000 }, () => {
  test('is shown with its process, is not resumed, and is not disturbed', async () => {
    const cwd = emptyFolder();
    const run = new Pawl(['run', agentFile('counter'), '--run-id', 'r1'], { cwd, env: held });
    await run.says('holding');
    const [list, show, one, again, all] = await Promise.all([
      pawl(['list'], { cwd }),
      pawl(['show', 'r1', '--json'], { cwd }),
      pawl(['resume', 'r1'], { cwd }),
      pawl(['run', agentFile('counter'), '--run-id', 'r1'], { cwd }),
      pawl(['resume'], { cwd }),
    ]);
    const { pid } = run.child;
    expect(list.stdout).toContain(`live (pid ${pid})`);
    expect(JSON.parse(show.stdout)).toMatchObject({ status: 'live', pid });
    expect(one).toEqual({
      code: 2,
      stdout: '',
      stderr: `pawl: run r1: a process works on it (process ${pid}); wait for it, or end that process first\n`,
    });
    expect(again.code).toBe(2);
    expect(again.stderr).toMatch(/another process; wait for that process, or end it/);
    expect(all.code).toBe(0);
    expect(all.stderr).toContain(`skipped r1: a process works on it (process ${pid})`);
    writeFileSync(join(cwd, 'go'), '');
    expect(await run.ended).toMatchObject({ code: 0, stdout: 'counted to 3\n' });
  });

  test('is resumed at once when that process was killed', async () => {
    const cwd = emptyFolder();
    const run = new Pawl(['run', agentFile('counter'), '--run-id', 'r1'], { cwd, env: held });
    await run.says('holding');
    run.child.kill('SIGKILL');
    await run.ended;
    const resumed = await pawl(['resume', 'r1'], { cwd });
    expect(resumed).toMatchObject({ code: 0, stdout: 'counted to 3\n' });
    expect(resumed.stderr).not.toContain('step 1');
  });
});
