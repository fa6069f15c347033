import { defineAgent, defineTool, defineWorkflow, type MigrateWorkflow, step } from 'pawl';
import { callTool, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type AnyStateMachine, assign, setup } from 'xstate';
import { worldOf } from './world.ts';

describe('processes that only call work()', () => {
  /** A version of a workflow that waits for `go`. The second one asks in another state. */
  const versionOf = (version: '1' | '2') => {
    const machine = setup({ types: { output: {} as string } }).createMachine({
      initial: version === '1' ? 'waiting' : 'asking',
      states: {
        [version === '1' ? 'waiting' : 'asking']: { on: { go: 'done' } },
        done: { type: 'final' },
      },
      output: version,
    } as never);
    const migrate: MigrateWorkflow = (snapshot) => {
      snapshot.value = 'asking';
    };
    const given = { id: 'flow', version, machine: machine as unknown as AnyStateMachine };
    return defineWorkflow(version === '1' ? given : { ...given, migrate });
  };

  test('run a workflow that another process has begun, and that an event wakes (workflow 1)', async () => {
    const flow = versionOf('1');
    const { boot, pass, store } = worldOf([flow]);
    const first = boot();
    await first.start(flow, { runId: 'r' });
    await pass(4_000);
    await first.shutdown();
    const worker = boot();
    worker.work();
    await boot().control('r').send({ type: 'go' });
    await pass(8_000);
    expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok', data: '1' });
    await worker.shutdown();
  });

  test('migrate a run when it wakes, and not before, beside processes of the old version (workflow 1, 21)', async () => {
    const { boot, pass, store } = worldOf([versionOf('1')]);
    const ids = ['a', 'b', 'c', 'd'];
    const old = boot();
    for (const runId of ids) await old.start(versionOf('1'), { runId });
    await pass(4_000);
    const worker = boot(versionOf('2'));
    worker.work();
    await pass(8_000);
    for (const runId of ids) expect((await store.load(runId))?.workflow?.snapshot).toMatchObject({ value: 'waiting' });
    // The new one alone is there for the first half of them.
    await old.shutdown();
    for (const runId of ['a', 'b']) await worker.control(runId).send({ type: 'go' }, { id: runId });
    await pass(8_000);
    for (const runId of ['a', 'b']) expect(await store.outcomes.find(runId)).toMatchObject({ status: 'ok', data: '2' });
    const older = boot();
    older.work();
    for (const runId of ['c', 'd']) await older.control(runId).send({ type: 'go' }, { id: runId });
    await pass(16_000);
    // Whichever took it, its end is that of one version, and no run is parked.
    for (const runId of ['c', 'd'])
      expect(await store.outcomes.find(runId)).toMatchObject({ status: 'ok', data: expect.stringMatching(/^[12]$/) });
    await Promise.all([worker.shutdown(), older.shutdown()]);
  });
});

test('a question of an agent below a workflow is listed for the workflow, and its answer reaches the agent (workflow 10)', async () => {
  const confirm = defineTool({
    name: 'confirm',
    description: '',
    input: {},
    effect: 'read',
    execute: (_, { ask }) => ask({ question: 'Really?' }),
  });
  const clerk = defineAgent({ id: 'clerk', instructions: '', model: 'any', tools: [confirm] });
  const machine = setup({
    types: { context: {} as { said: string }, output: {} as string },
    actors: { clerk: step(clerk) },
  }).createMachine({
    context: { said: '' },
    initial: 'asking',
    states: {
      asking: {
        invoke: {
          src: 'clerk',
          input: { prompt: 'Ask.' },
          onDone: { target: 'done', actions: assign({ said: ({ event }) => event.output.output }) },
        },
      },
      done: { type: 'final' },
    },
    output: ({ context }) => context.said,
  });
  const flow = defineWorkflow({ id: 'flow', machine });
  const asked = scriptedModel([callTool('confirm', {}), reply('Sure.')]);
  const { boot, pass, store } = worldOf([flow], { agents: [clerk], models: { any: asked } });
  const executor = boot();
  await executor.start(flow, { runId: 'r', input: undefined });
  await pass(4_000);
  const [wait] = await executor.waiting({ kind: 'question' });
  expect(wait).toMatchObject({ rootRunId: 'r', agentId: 'clerk', question: 'Really?' });
  await executor.control('r').answer(wait?.id ?? '', 'sure');
  await pass(8_000);
  expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok', data: 'Sure.' });
  // The model read what the person said.
  expect(JSON.stringify(asked.calls.at(-1))).toContain('sure');
  await executor.shutdown();
});
