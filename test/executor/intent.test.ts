import { memoryStore, type RunCheckpoint, type ToolContext } from 'pawl';
import { createCheckpointerFactory } from 'pawl/stores/kit';
import { callTools, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { headOfWrite, isWrite, onlyRecord, watchedStore } from '../fixtures/watched-store.ts';

const calls = (...names: string[]) => callTools(names.map((name, i) => ({ name, input: { i }, callId: `c${i}` })));
const states = (record: RunCheckpoint | null) => record?.openStep?.calls.map(({ state }) => state).join();

describe('what is stored around a call', () => {
  test.for(['once', 'idempotent'] as const)(
    'the intent of a %s call is in the store before the call starts (executor 14)',
    async (effect) => {
      const store = memoryStore();
      let found: RunCheckpoint | null = null;
      const tool = toolOf('work', effect, async () => {
        found = await store.load('run-1');
      });
      await hostOf({ script: [calls('work'), reply('end')], tools: [tool], store }).run({
        runId: 'run-1',
      });
      expect(found).toMatchObject({
        openStep: { calls: [{ callId: 'c0', name: 'work', effect, state: 'started', attempt: 1, input: { i: 0 } }] },
      });
    },
  );

  test('a call with effects waits for a slow store; a read call beside it does not (executor 14)', async () => {
    const slow = gate();
    const started: string[] = [];
    const store = watchedStore({ before: (call) => headOfWrite(call)?.openStep && slow.pass() });
    const note = async (_: unknown, { callId }: ToolContext) => void started.push(callId);
    const host = hostOf({
      script: [calls('send', 'look'), reply('end')],
      tools: [toolOf('send', 'once', note), toolOf('look', 'read', note)],
      store,
    });
    const run = host.run();
    await slow.reached;
    await settle();
    expect(started).toEqual(['c1']);
    slow.open();
    await run;
    expect(started).toEqual(['c1', 'c0']);
  });

  test.for([
    ['once', 2],
    ['idempotent', 2],
    ['read', 1],
  ] as const)('a step with one %s call costs exactly %i writes (checkpoint 18)', async ([effect, count]) => {
    const store = watchedStore();
    const host = hostOf({ script: [calls('work'), reply('end')], tools: [toolOf('work', effect)], store });
    await host.run({ runId: 'run-1' });
    const heads = store.log.filter(isWrite).map((call) => headOfWrite(call));
    const ofStep = heads.slice(1, -1);
    expect(ofStep).toHaveLength(count);
    expect(ofStep.at(-1)).toMatchObject({ iteration: 1 });
  });

  test('the results of calls with effects are stored as they arrive: their siblings do not wait (executor 14)', async () => {
    const store = memoryStore();
    const slow = gate();
    const tools = [toolOf('fast', 'once', () => 'quick'), toolOf('slow', 'once', () => slow.pass())];
    const run = hostOf({ script: [calls('fast', 'slow'), reply('end')], tools, store }).run({
      runId: 'run-1',
    });
    await until(async () => states(await store.load('run-1')) === 'done,started');
    expect((await onlyRecord(store)).messages).toHaveLength(1);
    slow.open();
    expect((await run).status).toBe('ok');
  });

  test('a once call whose intent was still on its way when a shutdown came has not run: it runs after the restart (executor 14)', async () => {
    const inner = memoryStore();
    const slow = gate();
    const store = watchedStore({ before: (call) => headOfWrite(call)?.openStep && slow.pass() }, inner);
    let runs = 0;
    const send = toolOf('send', 'once', () => ++runs);
    const first = hostOf({ script: [calls('send')], tools: [send], store });
    const run = await first.start({ runId: 'run-1' });
    await slow.reached;
    const shutdown = first.executor.shutdown();
    slow.open();
    await shutdown;
    expect((await run.result).status).toBe('interrupted');
    expect(runs).toBe(0);
    await settle();
    const second = hostOf({ script: [reply('end')], tools: [send], store: inner });
    expect(await second.run({ runId: 'run-1' })).toMatchObject({ status: 'ok' });
    expect(runs).toBe(1);
  });

  test('with a throttle, intents and results of calls with effects are written all the same, read steps are put off (checkpoint 18)', async () => {
    for (const [effect, count] of [
      ['once', 2],
      ['read', 0],
    ] as const) {
      const store = watchedStore();
      const checkpointer = createCheckpointerFactory(store, { throttleMs: 3_600_000 });
      const host = hostOf({
        script: [calls('work'), reply('end')],
        tools: [toolOf('work', effect)],
        ports: { checkpointer },
      });
      await host.run({ runId: 'run-1' });
      expect(store.log.filter(isWrite)).toHaveLength(1 + count + 1);
    }
  });
});
