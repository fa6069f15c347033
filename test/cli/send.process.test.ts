import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createExecutor } from '../../src/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { until } from '../fixtures/host.ts';
import door from './agents/door.ts';
import parcel from './agents/parcel.ts';
import { agentFile, emptyFolder, jsonLines, pawl } from './pawl.ts';
import { interruptedRun, storeRuns } from './stored-runs.ts';

/** A store with the run `p` of a workflow, which waits, and a command on it. */
async function desk() {
  const cwd = emptyFolder();
  const open = () => sqliteStore({ path: join(cwd, 'runs.db') });
  const checkpoints = open();
  const executor = createExecutor({ store: checkpoints, workflows: [parcel], defaults: { waitLingerMs: 1 } });
  await executor.start(parcel, { runId: 'p', input: undefined });
  await until(async () => (await executor.waiting({ kind: 'question' })).length === 1);
  await executor.shutdown();
  await checkpoints.close();
  return { cwd, open, go: (...args: string[]) => pawl([...args, '--store', 'runs.db'], { cwd }) };
}

describe.concurrent('`pawl send`', () => {
  test('gives an event to the process that has the workflow, once for an id (workflow 25)', async () => {
    const { go, open } = await desk();
    const args = ['send', 'p', 'stop', '--data', '{ "by": "ada" }', '--id', 'click-7', '--json'];
    for (const _ of [1, 2]) {
      const { code, stdout } = await go(...args);
      expect({ code, lines: jsonLines(stdout) }).toEqual({
        code: 0,
        lines: [{ runId: 'p', type: 'stop', id: 'click-7', status: 'sent' }],
      });
    }
    const store = open();
    expect((await store.commands.inbox({ runId: 'p' })).map(({ command }) => command)).toEqual([
      expect.objectContaining({ kind: 'event', id: 'click-7', event: { type: 'stop', by: 'ada' } }),
    ]);
    const executor = createExecutor({ store, workflows: [parcel] });
    await executor.recover();
    await until(async () => (await executor.find('p'))?.status === 'ended');
    expect(await executor.find('p')).toMatchObject({ outcome: { status: 'ok' } });
    await store.close();
  });

  test('refuses an event of XState, data that is no object, a run of an agent and an unknown run, with exit code 2 (workflow 18, 25)', async () => {
    const { cwd, go } = await desk();
    await storeRuns(join(cwd, 'runs.db'), interruptedRun());
    const refused = async (...args: string[]) => {
      const { code, stderr } = await go('send', ...args);
      return [code, stderr];
    };
    expect(await refused('p', 'xstate.done.actor.pay')).toEqual([2, expect.stringContaining("is XState's own")]);
    expect(await refused('p', 'stop', '--data', '[1]')).toEqual([2, expect.stringContaining('must be a JSON object')]);
    expect(await refused('r1', 'stop')).toEqual([2, expect.stringContaining('is of an agent')]);
    expect(await refused('nobody', 'stop')).toEqual([2, expect.stringContaining('there is no run nobody')]);
    expect(await refused('p')).toEqual([2, expect.stringContaining('the type of an event')]);
  });
});

test('`pawl send` with the module warns of an event that the present state does not take (workflow 25)', async () => {
  const { go } = await desk();
  const { code, stderr } = await go('send', 'p', 'stopp', '--agent', agentFile('parcel'));
  expect([code, stderr]).toEqual([
    0,
    expect.stringContaining('does not take stopp in its present state: it takes stop'),
  ]);
  expect((await go('send', 'p', 'stop', '--agent', agentFile('parcel'))).stderr).not.toContain('warning');
});

test('`pawl waiting` lists what a person must answer before timers, in JSON too (workflow 11, 25)', async () => {
  const { go } = await desk();
  const { waits } = JSON.parse((await go('waiting', '--json')).stdout) as { waits: { kind: string }[] };
  expect(waits.map(({ kind }) => kind)).toEqual(['question', 'timer']);
  expect((await go('waiting')).stdout.match(/^run p .*/gm)).toEqual([
    'run p of parcel waits for an answer',
    'run p of parcel waits for a time',
  ]);
});

describe.concurrent('`pawl show` of a workflow', () => {
  test('prints its state and timers, and with its module the events that the state takes (workflow 25)', async () => {
    const { go } = await desk();
    const { stdout } = await go('show', 'p');
    expect(stdout).toMatch(/^state +asking$/m);
    expect(stdout).toMatch(/^timer +xstate\.after\.aDay\.\(machine\)\.asking, .*, in 2[34] h/m);
    expect(stdout).not.toMatch(/^(takes|prompt) /m);
    const known = await go('show', 'p', '--agent', agentFile('parcel'));
    expect(known.stdout).toMatch(/^takes +stop$/m);
    const { workflow } = JSON.parse((await go('show', 'p', '--agent', agentFile('parcel'), '--json')).stdout);
    expect(workflow).toMatchObject({ state: 'asking', takes: ['stop'], calls: [{ name: 'manager' }] });
  });

  test('with the module of another agent says that this module cannot continue it', async () => {
    const { go } = await desk();
    const { code, stdout } = await go('show', 'p', '--agent', agentFile('greeter'));
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^blocked +there is no agent parcel/m)]);
  });
});

test('`pawl show`, `pawl waiting` and `pawl doctor` say of a workflow without call and timer that an event continues it (workflow 25)', async () => {
  const cwd = emptyFolder();
  const store = sqliteStore({ path: join(cwd, 'runs.db') });
  const executor = createExecutor({ store, workflows: [door], defaults: { waitLingerMs: 1 } });
  await (await executor.start(door, { runId: 'd', input: undefined })).result;
  await executor.shutdown();
  await store.close();
  const go = async (...args: string[]) => (await pawl([...args, '--store', 'runs.db'], { cwd })).stdout;
  const text = 'it is in state open, with no call and no timer: it continues with an event';
  expect(await go('waiting')).toContain(`run d of door waits: ${text}`);
  const shown = await go('show', 'd', '--agent', agentFile('door'));
  expect(shown).toMatch(/^waits +it is in state open, .* an event \(go\)$/m);
  expect(shown).toMatch(/^continue with: .*pawl send d go/m);
  for (const named of [[agentFile('door')], ['--agent', agentFile('door')]])
    expect(await go('doctor', ...named)).toContain(`${text} (go)`);
  // A deployment without it.
  expect(await go('doctor', '--agent', agentFile('parcel'))).toMatch(
    /^! skipped +d: there is no agent door .*AGENT_NOT_FOUND/m,
  );
});

describe.concurrent('`pawl run` and `pawl resume` of a workflow', () => {
  test('take its module, run it until it waits, and continue it to the output of its machine (workflow 25)', async () => {
    const cwd = emptyFolder();
    const go = (...args: string[]) => pawl([...args, '--store', 'runs.db'], { cwd });
    const run = await go('run', agentFile('parcel'), '{ "order": "7" }', '--run-id', 'p');
    expect([run.code, run.stderr]).toEqual([75, expect.stringContaining('waits for a time, an answer')]);
    expect((await go('send', 'p', 'stop', '--data', '{ "by": "ada" }', '--agent', agentFile('parcel'))).code).toBe(0);
    const { code, stdout } = await go('resume', 'p', '--agent', agentFile('parcel'));
    expect([code, JSON.parse(stdout)]).toEqual([0, { by: 'ada' }]);
    const shown = (await go('show', 'p')).stdout;
    expect(shown).toMatch(/^status +ended: ok$/m);
    expect(shown).toMatch(/^state +done$/m);
    expect(shown).toContain('transitions:\n  begun → asking (xstate.init)\n  asking → done (stop)\n');
    expect(shown).toContain('"by": "ada"');
  });

  test('refuse an input that is no JSON, with exit code 2 (workflow 25)', async () => {
    const { code, stderr } = await pawl(['run', agentFile('parcel'), 'order 7'], { cwd: emptyFolder() });
    expect([code, stderr]).toEqual([2, expect.stringContaining('the input of a workflow must be JSON, not order 7')]);
  });
});
