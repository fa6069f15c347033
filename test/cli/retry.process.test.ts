import { readFileSync } from 'node:fs';
import { join } from 'node:path';
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
    expect(refusing.stderr).toBe('');
    const told = await fork('--at', '0', '--effects', 'refuse');
    expect(told.stderr).toMatch(/pawl: 1 call of the fork \S+ was refused: pay\n/);
    expect(paid()).toBe('paid\n');
    expect((await pawl(['fork', 'order-17'], { cwd })).code).toBe(2);
    expect((await pawl(['fork', 'nobody', '--at', '0'], { cwd })).code).toBe(2);
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
    expect(shown.stdout).toMatch(/\nstep 1 · scripted\/scripted\n {2}pay \{\} → paid \(.*\)\nstep 2 ·/);
    const again = await pawl(['retry', 'order-17'], { cwd });
    expect(again).toMatchObject({ code: 2, stderr: expect.stringMatching(/has its answer[^\n]+nothing was done/) });
  });

  test('with --json prints the lines of `pawl run`; a second bad end can be retried too (lab 26)', async () => {
    const { cwd, paid } = await failed();
    expect(await pawl(['retry', 'order-17', '--json'], { cwd, env: { FLAKY: '1' } })).toMatchObject({ code: 1 });
    const { stdout } = await pawl(['retry', 'order-17', '--json'], { cwd });
    expect(jsonLines(stdout).at(-1)).toMatchObject({ type: 'run.ended', runId: 'order-17', status: 'ok' });
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
});
