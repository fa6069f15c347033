import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sqliteStore } from 'pawl/stores/sqlite';
import { describe, expect, test } from 'vitest';
import { agentFile, emptyFolder, jsonLines, pawl } from './pawl.ts';

const flaky = agentFile('flaky');

/** A run that has paid, and failed after it. */
async function failed(how = '1') {
  const cwd = emptyFolder();
  const run = ['run', flaky, 'Pay.', '--run-id', 'order-17'];
  const ended = await pawl(run, { cwd, env: { FLAKY: how } });
  return { cwd, ended, paid: () => readFileSync(join(cwd, 'paid.txt'), 'utf8') };
}

/** What the journal of the run has of its life. */
async function lifeOf(cwd: string): Promise<readonly string[]> {
  await using store = sqliteStore({ path: join(cwd, '.pawl/runs.db') });
  const page = await store.journal.read('order-17', { after: 0, limit: 99 });
  return (page?.entries ?? []).map(({ event }) => event.type).filter((type) => type.startsWith('run.'));
}

describe('`pawl fork`', () => {
  test('starts another run with the first steps of one, with what --effects says of its calls (lab 26)', async () => {
    const { cwd, paid } = await failed();
    const fork = (...words: string[]) => pawl(['fork', 'order-17', ...words], { cwd });
    const asked = await fork('--at', '0');
    expect([asked.code, asked.stderr]).toEqual([
      2,
      expect.stringMatching(/--effects live, ask or refuse; nothing was done[^\n]*\n$/),
    ]);
    expect((await fork('--at', '9', '--effects', 'live')).stderr).toContain('--at must be 0 to 1');
    expect(await fork('--at', '1', '--effects', 'live')).toMatchObject({ code: 0, stdout: 'all is paid\n' });
    expect(paid()).toBe('paid\n');
    const refusing = await fork('--at', '0', '--effects', 'refuse', '--run-id', 'f', '--json', '--agent', flaky);
    expect(jsonLines(refusing.stdout).at(-1)).toMatchObject({
      type: 'run.ended',
      runId: 'f',
      status: 'ok',
      forkedFrom: { at: 0 },
    });
    expect((await pawl(['show', 'f'], { cwd })).stdout).toContain('of order-17, at step 0\n');
    expect(refusing.stderr).toBe('');
    const told = await fork('--at', '0', '--effects', 'refuse');
    expect(told.stderr).toMatch(/pawl: 1 call of the fork \S+ was refused: pay\n/);
    expect(paid()).toBe('paid\n');
    expect((await pawl(['fork', 'order-17'], { cwd })).code).toBe(2);
    expect((await pawl(['fork', 'nobody', '--at', '0'], { cwd })).code).toBe(2);
  });

  test('with --effects ask waits for a person, ends with 75, and is resumed with the module that it was given (lab 26)', async () => {
    const { cwd, paid } = await failed();
    const env = { PAWL_STATE_HOME: join(cwd, 'elsewhere') };
    const fork = ['fork', 'order-17', '--at', '0', '--effects', 'ask', '--run-id', 'f'];
    const waits = await pawl([...fork, '--agent', flaky], { cwd, env });
    expect(waits).toMatchObject({ code: 75, stdout: '' });
    expect(waits.stderr).toContain('This run is a fork of run order-17.');
    const [, waitId = ''] = /pawl approve f (\S+)/.exec(waits.stderr) ?? [];
    expect(await pawl(['approve', 'f', waitId], { cwd, env })).toMatchObject({ code: 0 });
    expect(paid()).toBe('paid\n');
    expect(await pawl(['resume', 'f'], { cwd, env })).toMatchObject({ code: 0, stdout: 'all is paid\n' });
    expect(paid()).toBe('paid\npaid\n');
  });
});

describe('`pawl fork` of a run that ended ok', () => {
  test('knows the module that it was started with (lab 26)', async () => {
    const { cwd } = await failed('');
    const fork = await pawl(['fork', 'order-17', '--at', '1', '--effects', 'live'], { cwd });
    expect(fork).toMatchObject({ code: 0, stdout: 'all is paid\n' });
  });
});

describe('`pawl retry`', () => {
  test('continues a run that ended badly, with the module that it was started with; `pawl run` names it (lab 26)', async () => {
    const { cwd, ended, paid } = await failed();
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toMatch(/once the cause is mended, continue it with: pawl retry order-17\n$/);
    expect(await pawl(['retry', 'order-17'], { cwd })).toMatchObject({ code: 0, stdout: 'all is paid\n' });
    expect(paid()).toBe('paid\n');
    const shown = await pawl(['show', 'order-17'], { cwd });
    expect(shown.stdout).toMatch(/\nretried +.+ ago, after 1 step; MODEL had ended it\n/);
    expect(shown.stdout).toMatch(/\nstep 1 · scripted\/scripted\n {2}pay \{\} → paid \(.*\)\nstep 2 ·/);
    expect(await lifeOf(cwd)).toEqual(['run.started', 'run.ended', 'run.retried', 'run.resumed', 'run.ended']);
    const again = await pawl(['retry', 'order-17'], { cwd });
    expect(again).toMatchObject({ code: 2, stderr: expect.stringMatching(/has its answer[^\n]+nothing was done/) });
  });

  test('with --json prints the lines of `pawl run`; a second bad end can be retried too (lab 26)', async () => {
    const { cwd, paid } = await failed();
    expect(await pawl(['retry', 'order-17', '--json'], { cwd, env: { FLAKY: '1' } })).toMatchObject({ code: 1 });
    const { stdout } = await pawl(['retry', 'order-17', '--json'], { cwd });
    expect(jsonLines(stdout).at(-1)).toMatchObject({ type: 'run.ended', runId: 'order-17', status: 'ok' });
    const shown = JSON.parse((await pawl(['show', 'order-17', '--json'], { cwd })).stdout);
    expect(shown.retries).toMatchObject([
      { steps: 1, error: { code: 'MODEL' } },
      { steps: 1, error: { code: 'MODEL' } },
    ]);
    expect(paid()).toBe('paid\n');
  });

  test('of no run, of an unknown one, or without its module does nothing, with exit code 2 (lab 26)', async () => {
    const { cwd, paid } = await failed();
    expect(await pawl(['retry'], { cwd })).toMatchObject({ code: 2, stderr: expect.stringContaining('needs the id') });
    expect((await pawl(['retry', 'nobody'], { cwd })).code).toBe(2);
    const env = { PAWL_STATE_HOME: join(cwd, 'elsewhere') };
    const { code, stderr } = await pawl(['retry', 'order-17'], { cwd, env });
    expect([code, stderr]).toEqual([2, expect.stringContaining('name its agent with --agent')]);
    const shown = await pawl(['show', 'order-17', '--json'], { cwd });
    expect(JSON.parse(shown.stdout)).toMatchObject({ status: 'ended' });
    expect((await pawl(['retry', 'order-17', '--agent', flaky], { cwd, env })).code).toBe(0);
    expect(paid()).toBe('paid\n');
  });

  test('of a run that waits for its model asks it at once; without its module nothing is written (lab 6, 26)', async () => {
    const { cwd, ended, paid } = await failed('key');
    expect(ended.code).toBe(75);
    const env = { PAWL_STATE_HOME: join(cwd, 'elsewhere') };
    const shown = async () =>
      JSON.parse((await pawl(['show', 'order-17', '--json'], { cwd })).stdout) as { status: string };
    expect(await shown()).toMatchObject({ status: 'waiting' });
    expect((await pawl(['retry', 'order-17'], { cwd, env })).code).toBe(2);
    expect(await shown()).toMatchObject({ status: 'waiting' });
    expect(await pawl(['retry', 'order-17'], { cwd })).toMatchObject({ code: 0, stdout: 'all is paid\n' });
    expect(paid()).toBe('paid\n');
  });

  test('of a workflow takes the event again at which it failed; a workflow has no steps to fork at (lab 4, 10, 26)', async () => {
    const cwd = emptyFolder();
    const failed = await pawl(['run', agentFile('order'), '--run-id', 'w'], { cwd, env: { FLAKY: '1' } });
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringMatching(/no such order[\s\S]*pawl retry w\n$/) });
    const retried = await pawl(['retry', 'w'], { cwd });
    expect([retried.code, JSON.parse(retried.stdout)]).toEqual([0, { n: 1 }]);
    const over = await pawl(['retry', 'w'], { cwd });
    expect(over).toMatchObject({ code: 2, stderr: expect.stringContaining('does not continue; nothing was done') });
    const fork = await pawl(['fork', 'w', '--at', '0'], { cwd });
    expect(fork).toMatchObject({ code: 2, stderr: expect.stringContaining('it has no steps to fork at; nothing') });
  });

  test('of a run that was cancelled from the command line continues it after its last step (lab 4, 26)', async () => {
    const { cwd, ended, paid } = await failed('key');
    expect(ended.code).toBe(75);
    expect(await pawl(['cancel', 'order-17'], { cwd })).toMatchObject({ code: 0 });
    expect((await pawl(['show', 'order-17'], { cwd })).stdout).toContain('ended: cancelled');
    expect(await pawl(['retry', 'order-17'], { cwd })).toMatchObject({ code: 0, stdout: 'all is paid\n' });
    expect(paid()).toBe('paid\n');
  });
});
