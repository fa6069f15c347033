import { randomUUID } from 'node:crypto';
import {
  type Budget,
  createExecutor,
  createPalette,
  defineAgent,
  type Middleware,
  memoryStore,
  type RunCheckpoint,
  type RunOutcome,
} from 'pawl';
import { toResumeState } from 'pawl/stores/kit';
import { callTool, callTools, hang, recordingCheckpointer, reply, testClock } from 'pawl/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runLine } from '../../src/http/runs/run-line.ts';
import { births, childRunId, idempotencyKeyOf, outcomeIdOf } from '../../src/run/identity.ts';
import { reviewer } from '../fixtures/family.ts';
import { type HostOptions, hostOf, toolOf, until } from '../fixtures/host.ts';
import { childOf, hostMachine, outputOf, restoreHost, roundTrip, startHost } from '../fixtures/host-machine.ts';
import { afterCrash, onlyRecord } from '../fixtures/watched-store.ts';

const known = births.make;
beforeEach(() => {
  births.make = () => randomUUID();
});
afterEach(() => {
  births.make = known;
});

const HOUR = 3_600_000;
const never = () => new Promise<never>(() => {});
const call = { callId: 'c' };

/** A tool that takes note of the keys that it gets; while `isStuck` no call of it ends. */
function payment() {
  const keys: string[] = [];
  const state = { isStuck: false };
  const pay = toolOf('pay', 'idempotent', (_, { idempotencyKey }) => {
    keys.push(idempotencyKey);
    return state.isStuck ? never() : 'paid';
  });
  return { keys, state, pay };
}

/** The host of runs that pay and ask a reviewer, and everything that it was told which names a run for its receivers. */
function notingHost(options: HostOptions = {}) {
  const named: string[] = [];
  const budget: Budget = {
    check: async () => {},
    reserve: async (callerId, { key, modelTier, model }) => {
      named.push(key);
      return { key, callerId, modelTier, model };
    },
    commit: async () => ({ tokens: 1, usd: 0, seconds: 0 }),
    refund: async () => {},
  };
  const middleware: Middleware[] = [
    {
      model: ({ key }, next) => {
        named.push(key);
        return next();
      },
      tool: ({ key }, next) => {
        named.push(key);
        return next();
      },
    },
  ];
  const { keys, pay } = payment();
  const ask = callTools([
    { name: 'pay', input: { cents: 499 }, callId: 'c' },
    { name: 'agent__reviewer', input: { prompt: 'Look.' }, callId: 'r' },
  ]);
  const host = hostOf({
    script: [ask, reply('looked'), reply('done')],
    tools: [pay],
    agent: { subAgents: ['reviewer'] },
    ports: { budget, palette: createPalette({ agents: [reviewer] }) },
    middleware,
    onOutcome: ({ runId, outcomeId }) => void named.push(outcomeId, ...(runId === 'order-17' ? [] : [runId])),
    ...options,
  });
  return { ...host, namesOf: () => [...new Set([...named, ...keys])] };
}

describe('two runs under one id, the first of which was erased', () => {
  test('share no key of a tool call, of a model call or in the budget, no child and no outcome id (edges 17)', async () => {
    const store = memoryStore();
    const retention = { records: HOUR };
    const lives: (readonly string[])[] = [];
    for (let life = 0; life < 2; life++) {
      const host = notingHost({ store, retention });
      expect(await host.run({ runId: 'order-17' })).toMatchObject({ status: 'ok' });
      await until(() => host.namesOf().some((name) => name.startsWith('order-17:') && name.endsWith(':1')));
      lives.push(host.namesOf());
      await host.executor.erase('order-17');
      expect(await host.executor.history()).toEqual([]);
      await host.executor.shutdown();
    }
    const [first = [], second = []] = lives;
    // Three turns, each in the budget and in the middleware; two tool calls; the child. The ids of the two ends read like first turns.
    expect(first).toHaveLength(9);
    expect(second).toHaveLength(first.length);
    expect(first.filter((name) => second.includes(name))).toEqual([]);
  });
});

/** A run whose process dies in a call, and what its store has then. */
async function diedInCall() {
  const { keys, state, pay } = payment();
  const script = [callTool('pay', {}, 'c'), reply('done')];
  const store = memoryStore();
  state.isStuck = true;
  const first = hostOf({ script, tools: [pay], store });
  void first.run({ runId: 'r' });
  await until(() => keys.length === 1);
  const left = await afterCrash(store);
  state.isStuck = false;
  return { keys, pay, left, next: { script: script.slice(1), tools: [pay] } };
}

describe('a run that continues makes its calls with the keys that it began with (edges 17)', () => {
  test('from its record', async () => {
    const { keys, left, next } = await diedInCall();
    const { birth } = await onlyRecord(left);
    expect(birth).toMatch(/^[0-9a-f-]{36}$/);
    await hostOf({ ...next, store: left }).run({ runId: 'r' });
    expect(keys).toEqual(Array(2).fill(idempotencyKeyOf({ runId: 'r', birth }, call)));
  });

  test('from the state that a host gives with a handle of its own', async () => {
    const { keys, left, next } = await diedInCall();
    const resume = toResumeState(await onlyRecord(left));
    const checkpointer = recordingCheckpointer();
    await hostOf(next).run({ runId: 'r' }, { resume, checkpointer });
    expect(new Set(keys).size).toBe(1);
    const { birth, beganAt } = resume;
    expect(checkpointer.states.at(-1)).toMatchObject({ birth, beganAt });
  });

  test('from its admission, in another process', async () => {
    const { keys, pay } = payment();
    const options = { script: [callTool('pay', {}, 'c'), reply('done')], tools: [pay], store: memoryStore() };
    const first = hostOf(options);
    await first.start({ runId: 'r' }, { drive: 'later' });
    const { birth } = await onlyRecord(options.store);
    await hostOf(options).executor.drive('r');
    expect(keys).toEqual([idempotencyKeyOf({ runId: 'r', birth }, call)]);
  });

  test('from a snapshot of a host’s machine that was taken before its first record', async () => {
    const { keys, pay } = payment();
    const options = { script: [callTool('pay', {}, 'c'), reply('done')], tools: [pay] };
    const first = hostOf({ ...options, store: memoryStore() });
    const snapshot = roundTrip(startHost(hostMachine(first.executor, first.agent)).getPersistedSnapshot());
    const { birth } = childOf(snapshot);
    const next = hostOf({ ...options, store: memoryStore() });
    await outputOf(restoreHost(hostMachine(next.executor, next.agent), snapshot) as never);
    expect(birth).toBeDefined();
    expect(keys).toContain(idempotencyKeyOf({ runId: 'r', birth }, call));
  });

  test('and a start that joins it changes nothing of it', async () => {
    const store = memoryStore();
    const { start } = hostOf({ script: [hang()], store });
    await start({ runId: 'r' });
    const { birth } = await onlyRecord(store);
    expect((await start({ runId: 'r' })).accepted).toBe('joined');
    expect(await onlyRecord(store)).toMatchObject({ birth });
  });
});

/** The record of a version before births. */
const unborn = ({ birth: _, beganAt: __, ...record }: RunCheckpoint): RunCheckpoint => record;

describe('a record without a birth, which an older version wrote', () => {
  test('keeps the keys, the outcome id and the list of that version to its end (edges 17)', async () => {
    const { keys, left, next } = await diedInCall();
    const store = memoryStore();
    await store.save(unborn(await onlyRecord(left)));
    const ends: RunOutcome[] = [];
    await hostOf({ ...next, store, onOutcome: (end) => void ends.push(end) }).run({ runId: 'r' });
    expect(keys[1]).toBe(idempotencyKeyOf({ runId: 'r' }, call));
    expect(ends).toMatchObject([{ outcomeId: outcomeIdOf({ runId: 'r' }, 1) }]);
  });
});

test.for([
  ['of its birth', true],
  ['of an older version', false],
] as const)('`erase` finds the children %s (edges 17)', async ([, isBorn]) => {
  const store = memoryStore();
  const { executor, agent } = notingHost({ store, retention: { records: HOUR } });
  await (await executor.start(agent, { prompt: 'Go.', runId: 'order-17' })).result;
  const kept = (await store.load('order-17', { ended: true })) as RunCheckpoint;
  const old = childRunId({ runId: 'order-17' }, 'r');
  if (!isBorn) {
    // The records of an older version: the same runs under the names that they had then.
    const child = (await store.load(childRunId({ runId: 'order-17', birth: kept.birth }, 'r'), {
      ended: true,
    })) as RunCheckpoint;
    await executor.erase('order-17');
    for (const record of [unborn(kept), { ...unborn(child), meta: { ...child.meta, runId: old } }]) {
      const { runId } = record.meta;
      const { outcome, ...open } = record;
      await store.save(open);
      const claim = await store.claim(runId, 'o', HOUR);
      if (claim && outcome) await store.history.end(claim, { outcome, keepUntil: Number.MAX_SAFE_INTEGER });
    }
  }
  expect(await executor.history()).toHaveLength(2);
  await executor.erase('order-17');
  expect(await executor.history()).toEqual([]);
});

describe('when a run began', () => {
  test('is what each process of it tells its ports and its lists, also after its end (edges 17)', async () => {
    const clock = testClock(5_000);
    const infos: number[] = [];
    const options: HostOptions = {
      clock,
      retention: { records: HOUR },
      ports: { audit: { startRun: ({ startedAt }) => void infos.push(startedAt) as never } },
    };
    const store = memoryStore({ clock });
    const first = hostOf({ ...options, script: [hang()], store });
    await first.start({ runId: 'r' });
    const live = await first.executor.list();
    const left = memoryStore({ clock });
    await left.save(await onlyRecord(store));
    await clock.advance(60_000);
    const next = hostOf({ ...options, script: [reply('done')], store: left });
    const stored = await next.executor.list();
    const found = await next.executor.find('r');
    await next.run({ runId: 'r' });
    expect(infos).toEqual([5_000, 5_000]);
    const ended = await next.executor.find('r');
    const kept = await next.executor.history();
    for (const line of [...live, ...stored, found, ended, ...kept]) expect(line).toMatchObject({ beganAt: 5_000 });
    expect(found && runLine(found)).toMatchObject({ beganAt: 5_000 });
  });

  test('is when its process took it up where its record does not say it (edges 17)', async () => {
    const clock = testClock(5_000);
    const infos: number[] = [];
    const store = memoryStore({ clock });
    await hostOf({ clock, script: [hang()], store }).start({ runId: 'r' });
    const left = memoryStore({ clock });
    await left.save(unborn(await onlyRecord(store)));
    await clock.advance(60_000);
    const ports = {
      audit: { startRun: ({ startedAt }: { startedAt: number }) => void infos.push(startedAt) as never },
    };
    await hostOf({ clock, script: [reply('done')], store: left, ports }).run({ runId: 'r' });
    expect(infos).toEqual([65_000]);
  });
});

test('a host’s own port of ids makes no births: runs of two executors with equal ids share no key (edges 17)', async () => {
  const keys: string[] = [];
  for (let i = 0; i < 2; i++) {
    const { pay, keys: mine } = payment();
    const model = hostOf({ script: [callTool('pay', {}, 'c'), reply('done')] }).model;
    const agent = defineAgent({ id: 'payer', instructions: 'Pay.', tools: [pay] });
    const executor = createExecutor({ models: { fast: model }, ids: () => 'same', random: () => 0.5 });
    await executor.run(agent, { prompt: 'Go.' });
    keys.push(...mine);
  }
  expect(new Set(keys).size).toBe(2);
});
