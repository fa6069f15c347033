import fc from 'fast-check';
import { memoryStore } from 'pawl';
import { callTools, reply, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { torture } from '../../crash/random.ts';
import { gate, hostOf, settle, toolOf, until } from '../../fixtures/host.ts';
import { afterCrash, headOfWrite, isWrite, onlyRecord, watchedStore } from '../../fixtures/watched-store.ts';

/** A tool whose calls wait until the test lets each of them go, and which of them have begun. */
function sendingOf(count: number) {
  const begun: number[] = [];
  const gates = Array.from({ length: count }, () => gate());
  const tool = toolOf('send', 'once', async ({ n }, { signal }) => {
    begun.push(n as number);
    await Promise.race([gates[n as number]?.pass(), aborted(signal)]);
    return `sent ${n}`;
  });
  const open = async (...calls: number[]) => {
    for (const n of calls) gates[n]?.open();
    await settle();
  };
  return { begun, open, tool };
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
}

const sends = (count: number) => callTools(Array.from({ length: count }, (_, n) => ({ name: 'send', input: { n } })));

test('a run that drains starts no call any more: two of six are waited for, and the next process runs the four others (finalize 9)', async () => {
  const store = memoryStore();
  const { begun, open, tool } = sendingOf(6);
  const agent = { toolConcurrency: 2 };
  const host = hostOf({ store, tools: [tool], agent, script: [sends(6)] });
  const run = await host.start({ runId: 'r' });
  await until(() => begun.length === 2);
  const shutdown = host.executor.shutdown();
  await open(0);
  expect(begun).toEqual([0, 1]);
  await open(1);
  await shutdown;
  expect(await run.result).toMatchObject({ status: 'interrupted', error: { code: 'ERR_SHUTDOWN' } });
  const calls = (await onlyRecord(store)).openStep?.calls.map(({ state, attempt }) => `${state} ${attempt}`);
  expect(calls).toEqual(['done 1', 'done 1', 'planned 0', 'planned 0', 'planned 0', 'planned 0']);

  const next = hostOf({ store, tools: [tool], agent, script: [reply('all sent')] });
  const rest = next.run({ runId: 'r' });
  await open(2, 3, 4, 5);
  const { messages } = await rest;
  expect(begun).toEqual([0, 1, 2, 3, 4, 5]);
  expect(JSON.stringify(messages)).not.toContain('Outcome unknown');
});

test('a run that drains starts no call that only reads either', async () => {
  const store = memoryStore();
  const { open, begun, tool } = sendingOf(1);
  let looks = 0;
  const look = toolOf('look', 'read', async () => `look ${++looks}`);
  const calls = [
    { name: 'send', input: { n: 0 } },
    { name: 'look', input: {} },
  ];
  const host = hostOf({
    store,
    tools: [tool, look],
    agent: { toolConcurrency: 1 },
    script: [callTools(calls)],
  });
  await host.start({ runId: 'r' });
  await until(() => begun.length === 1);
  const shutdown = host.executor.shutdown();
  await open(0);
  await shutdown;
  expect(looks).toBe(0);
  expect((await onlyRecord(store)).openStep?.calls.map(({ state }) => state)).toEqual(['done', 'planned']);
});

test('once a run has to drain, it begins nothing after that, and no call with effects is cut, lost or made twice (finalize 9)', async () => {
  const effect = fc.constantFrom('read' as const, 'idempotent' as const, 'once' as const);
  const call = fc.record({ effect, turns: fc.nat(8) });
  await fc.assert(
    fc.asyncProperty(
      fc.array(call, { minLength: 1, maxLength: 8 }),
      fc.integer({ min: 1, max: 4 }),
      fc.nat(30),
      fc.nat(3),
      async (calls, toolConcurrency, moment, latency) => {
        const store = watchedStore({ after: (call) => isWrite(call) && settle(latency) });
        const begun: string[] = [];
        const tools = (['read', 'idempotent', 'once'] as const).map((name) =>
          toolOf(name, name, async ({ turns }, { callId }) => {
            begun.push(`${name} ${callId}`);
            await settle(turns as number);
          }),
        );
        const script = [callTools(calls.map(({ effect: name, turns }) => ({ name, input: { turns } }))), reply('done')];
        const host = hostOf({ store, tools, agent: { toolConcurrency }, script });
        await host.start({ runId: 'r' });
        await settle(moment);
        const before = begun.length;
        await host.executor.shutdown();
        expect(begun).toHaveLength(before);
        const left = await store.load('r');
        if (left) {
          const hasAsked = left.openStep !== undefined || left.iteration > 0;
          const next = hostOf({
            store,
            tools,
            agent: { toolConcurrency },
            script: script.slice(hasAsked ? 1 : 0),
          });
          const result = await next.run({ runId: 'r' });
          expect(result).toMatchObject({ status: 'ok', output: 'done' });
          expect(JSON.stringify(result.messages)).not.toContain('Outcome unknown');
        }
        const effects = begun.filter((name) => !name.startsWith('read'));
        expect(effects).toHaveLength(calls.filter((made) => made.effect !== 'read').length);
        expect(new Set(effects).size).toBe(effects.length);
      },
    ),
    { numRuns: torture > 1 ? 500 : 25 },
  );
});

/** A run that waits for one call while the intent to run another is on its way into the store, and is then told to leave. */
async function leftWithAnIntentUnderWay() {
  const store = memoryStore();
  const landing = gate();
  const checkpoints = watchedStore(
    {
      after: (call) => {
        const isIntent = isWrite(call) && headOfWrite(call)?.openStep?.calls[2]?.state === 'started';
        return isIntent ? landing.pass() : undefined;
      },
    },
    store,
  );
  const sending = sendingOf(3);
  const host = hostOf({ store: checkpoints, tools: [sending.tool], agent: { toolConcurrency: 2 }, script: [sends(3)] });
  await host.start({ runId: 'r' });
  await until(() => sending.begun.length === 2);
  await sending.open(0);
  await landing.reached;
  const shutdown = host.executor.shutdown();
  await settle();
  landing.open();
  await settle();
  return { store, shutdown, ...sending };
}

test('a call whose intent is on its way into the store when its run begins to drain does not begin', async () => {
  const { store, shutdown, begun, open } = await leftWithAnIntentUnderWay();
  expect(begun).toEqual([0, 1]);
  await open(1);
  await shutdown;
  expect((await onlyRecord(store)).openStep?.calls.map(({ state }) => state)).toEqual(['done', 'done', 'planned']);
});

test('a process that is killed while it drains leaves what it had not begun as planned, not with an unknown outcome', async () => {
  const { store, begun } = await leftWithAnIntentUnderWay();
  expect(begun).toEqual([0, 1]);
  const record = await onlyRecord(await afterCrash(store));
  expect(record.openStep?.calls.map(({ state }) => state)).toEqual(['done', 'started', 'planned']);
});

test('a tool that is cut off when a drain runs out gets the shutdown at once, before the last save (finalize 9)', async () => {
  const clock = testClock();
  const told: string[] = [];
  const saving = gate();
  let isCut = false;
  const store = watchedStore({
    before: (call) => {
      if (!isCut || !isWrite(call)) return undefined;
      told.push('the last save begins');
      return saving.pass();
    },
  });
  const sending = gate();
  const send = toolOf('send', 'once', (_, { signal }) => {
    signal.addEventListener('abort', () =>
      told.push((signal.reason as { code?: string }).code ?? String(signal.reason)),
    );
    return sending.pass();
  });
  const host = hostOf({ clock, store, tools: [send], script: [callTools([{ name: 'send', input: {} }])] });
  const run = await host.start({ runId: 'r' });
  await sending.reached;
  const shutdown = host.executor.shutdown({ drainMs: 1_000 });
  isCut = true;
  await clock.advance(760);
  await saving.reached;
  expect(told).toEqual(['ERR_SHUTDOWN', 'the last save begins']);
  saving.open();
  await shutdown;
  expect(await run.result).toMatchObject({ status: 'interrupted', error: { code: 'ERR_SHUTDOWN' } });
});
