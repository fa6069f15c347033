import { memoryStore } from 'pawl';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { insideOf } from '../../../src/executor/inside.ts';
import { CheckpointCorruptError } from '../../../src/values/errors.ts';
import { hostOf, toolOf, until } from '../../fixtures/host.ts';
import { change, leftBehind } from '../../fixtures/left-runs.ts';
import { plainStore, watchedStore } from '../../fixtures/watched-store.ts';
import { mailTool } from '../../http/web-host.ts';
import { collecting } from '../../otel/spans.ts';

const defaults = { waitLingerMs: 1 };

/** A run `r` that rests until a person approves its mail. */
async function resting(store = memoryStore()) {
  const host = hostOf({ store, script: [callTool('mail', { to: 'ada' })], tools: [mailTool], defaults });
  await host.start({ runId: 'r' });
  await until(() => host.executor.runs.get().length === 0);
  return store;
}

describe('executor.explain', () => {
  test('says of a run that rests what it waits for, from which state it continues, and what it has not read', async () => {
    const store = await resting();
    await store.commands.send('r', { id: 'c1', kind: 'steer', text: 'Be quick.' });
    const { executor, agent } = hostOf({ store, tools: [mailTool] });
    const seen = await executor.explain('r');
    expect(seen).toMatchObject({
      runId: 'r',
      verdict: 'resumes',
      state: 'running.waiting',
      isLive: false,
      record: { iteration: 0, openStep: { calls: [{ name: 'mail', state: 'waiting' }] } },
      commands: [{ command: { kind: 'steer', text: 'Be quick.' } }],
      agent: { definition: { version: agent.version }, phases: [] },
    });
    expect(seen?.record?.definition).toEqual(seen?.agent?.definition);
    const before = await hostOf({ store: await resting() }).executor.explain('r');
    expect(before).toMatchObject({
      verdict: 'waits',
      reason: expect.stringMatching(/^it waits for an approval, until /),
      needsPerson: true,
    });
  });

  test('reads, and neither claims nor writes', async () => {
    const store = watchedStore({}, await resting());
    await hostOf({ store }).executor.explain('r');
    expect([...new Set(store.methods)].sort()).toEqual(['commands.inbox', 'listInterrupted', 'load']);
  });

  test('names the process that works on a run, and until when its claim is valid', async () => {
    const store = memoryStore();
    const other = hostOf({ store, script: [hang()] });
    await other.start({ runId: 'r' });
    const seen = await hostOf({ store }).executor.explain('r');
    expect(seen).toMatchObject({ verdict: 'live', code: 'RUN_OWNED_ELSEWHERE', isLive: false });
    expect(seen?.owner?.name).toContain(`|${process.pid}|`);
    expect(seen?.owner?.until).toBeGreaterThan(Date.now());
    const here = await other.executor.explain('r');
    expect(here).toMatchObject({ verdict: 'live', state: 'running.calling-model', isLive: true });
    await other.executor.shutdown();
  });

  test('judges as the next recovery of this executor: attempts, agents, parking', async () => {
    const store = await leftBehind(1);
    expect(await hostOf({ store }).executor.explain('r0')).toMatchObject({
      verdict: 'resumes',
      reason: 'it continues after 1 step',
      state: 'running.entering',
    });
    const foreign = hostOf({ store, agent: { id: 'other' } });
    expect(await foreign.executor.explain('r0')).toMatchObject({ verdict: 'skipped', code: 'AGENT_NOT_FOUND' });
    const without = hostOf({ store, agents: [] });
    expect(await without.executor.explain('r0')).toMatchObject({ verdict: 'resumes' });
    await change(store, 'r0', (record) => ({ ...record, attempts: 3 }));
    expect(await hostOf({ store }).executor.explain('r0')).toMatchObject({
      verdict: 'parked',
      code: 'TOO_MANY_ATTEMPTS',
    });
  });

  test('says of a run that a newer deployment has claimed that this one leaves it, also where it lacks the agent (operations 35)', async () => {
    const store = memoryStore();
    const newer = hostOf({ store, script: [callTool('look'), hang()], tools: [toolOf('look')], deployment: 7 });
    const run = await newer.start({ runId: 'r' });
    await until(async () => (await store.load('r'))?.iteration === 1);
    const seen = (options: Parameters<typeof hostOf>[0]) => hostOf({ store, ...options }).executor.explain('r');
    expect(await seen({ deployment: 6 })).toMatchObject({ verdict: 'live' });
    await newer.executor.shutdown({ drainMs: 0 });
    await run.result;
    const left = {
      ...{ verdict: 'skipped', code: 'NEWER_DEPLOYMENT', needsPerson: true },
      reason: 'it is left to deployment 7, which has worked on it and is newer than this one',
    };
    expect(await seen({ deployment: 6 })).toMatchObject(left);
    expect(await seen({ deployment: 6, agents: [hostOf({ agent: { id: 'other' } }).agent] })).toMatchObject(left);
    expect(await seen({ deployment: 7 })).toMatchObject({ verdict: 'resumes' });
    expect(await seen({})).toMatchObject({ verdict: 'resumes' });
    // One that rests needs an answer first.
    const rests = await resting();
    const claim = await rests.claim('r', 'o', 1_000, { deployment: 9 });
    expect(claim && (await rests.due.leave(claim, { readUpTo: 0 }))).toBe(true);
    expect(await hostOf({ store: rests, deployment: 6 }).executor.explain('r')).toMatchObject({ verdict: 'waits' });
  });

  test('of a run that ended has the record while that is kept, then the outcome, then null', async () => {
    const store = memoryStore();
    const keeping = hostOf({ store, retention: { records: 60_000 }, script: [reply('kept')] });
    await keeping.run({ runId: 'kept' });
    await hostOf({ store, script: [reply('gone')] }).run({ runId: 'gone' });
    const { executor } = hostOf({ store });
    const ended = { verdict: 'ended', reason: 'it has ended: ok', needsPerson: false };
    expect(await executor.explain('kept')).toMatchObject({
      ...ended,
      state: 'settled',
      record: { messages: [{ role: 'user' }, { role: 'assistant' }] },
      outcome: { output: 'kept' },
    });
    const gone = await executor.explain('gone');
    expect(gone).toMatchObject({ ...ended, outcome: { output: 'gone' } });
    expect(gone?.record).toBeUndefined();
    expect(await executor.explain('unknown')).toBeNull();
  });

  test('has the id of the trace of a run that is live, rests, has ended, or is known by its outcome (otel 2)', async () => {
    const store = memoryStore();
    const { process } = collecting();
    const host = hostOf({ ...{ store, tools: [mailTool], script: [hang()] }, tracing: process() });
    await host.start({ runId: 'live' });
    const live = await host.executor.explain('live');
    expect(live?.traceId).toMatch(/^[0-9a-f]{32}$/);
    await host.executor.shutdown({ drainMs: 0 });
    const ended = hostOf({ store, tracing: process() });
    expect((await ended.executor.explain('live'))?.traceId).toBe(live?.traceId);
    await ended.run({ runId: 'live' });
    const outcome = await ended.executor.explain('live');
    expect([outcome?.record, outcome?.traceId]).toEqual([undefined, live?.traceId]);
    await hostOf({ store }).run({ runId: 'plain' });
    expect(await ended.executor.explain('plain')).not.toHaveProperty('traceId');
  });

  test('has a damaged record as a part of its answer; a store that does not answer is an error', async () => {
    const store = plainStore(await leftBehind(1));
    const damaged = { ...store, load: () => Promise.reject(new CheckpointCorruptError('its checksum is wrong')) };
    const seen = await hostOf({ store: damaged }).executor.explain('r0');
    expect(seen).toMatchObject({ verdict: 'unreadable', code: 'CHECKPOINT_CORRUPT', needsPerson: true });
    expect(seen?.reason).toContain('its checksum is wrong');
    const away = { ...store, load: () => Promise.reject(new Error('no route')) };
    await expect(hostOf({ store: away }).executor.explain('r0')).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    });
  });

  test('shows no text that `redact` removes, also of a record that was written without it', async () => {
    const store = await resting();
    await store.commands.send('r', { id: 'c1', kind: 'steer', text: 'Ask ada.' });
    const { executor } = hostOf({ store, redact: (text) => text.replaceAll('ada', '[name]') });
    const text = JSON.stringify(await executor.explain('r'));
    expect(text).toContain('[name]');
    // As a word: an id may have these letters in it.
    expect(text).not.toMatch(/\bada\b/);
  });

  test('reads some of the messages, and says how many there are; `migrate` still gets all of them (studio 33)', async () => {
    const store = await resting();
    const whole = await hostOf({ store }).executor.explain('r');
    const count = whole?.record?.messages.length ?? 0;
    expect(whole?.messageCount).toBe(count);
    const migrated: number[] = [];
    const migrate = ({ messages }: { readonly messages: readonly unknown[] }) => void migrated.push(messages.length);
    for (const options of [{}, { migrate }, { store: plainStore(store) }]) {
      const { executor } = hostOf({ store: store, ...options });
      for (const [from, to] of [
        [0, 0],
        [0, 1],
        [count - 1, 99],
        [99, 120],
        [1, 0],
      ] as const) {
        const seen = await executor.explain('r', { messages: { from, to } });
        expect(seen?.messageCount).toBe(count);
        expect(seen?.record?.messages).toEqual(whole?.record?.messages.slice(from, to));
        expect(seen?.record?.openStep).toEqual(whole?.record?.openStep);
      }
      for (const wrong of [{ from: -1, to: 2 }, { from: 0, to: 1.5 }, { from: 0 }, null])
        await expect(executor.explain('r', { messages: wrong } as never)).rejects.toThrow(TypeError);
    }
    expect(new Set(migrated)).toEqual(new Set([count]));
  });

  test('with the line of a list lists nothing, and says the same (studio 11)', async () => {
    const store = watchedStore({}, await resting());
    const { executor } = hostOf({ store, tools: [mailTool] });
    const [listed] = await executor.list();
    const before = store.log.length;
    const seen = await executor.explain('r', { listed });
    expect(store.methods.slice(before)).not.toContain('listInterrupted');
    expect(seen).toEqual(await executor.explain('r'));
    await expect(executor.explain('r', { line: listed } as never)).rejects.toThrow(TypeError);
  });

  test('knows the state of a pipeline: between two phases, or in one', async () => {
    const store = await leftBehind(1);
    const phases = [
      { name: 'plan', instructions: 'Plan.' },
      { name: 'write', instructions: 'Write.' },
    ];
    const { executor } = hostOf({ store, agent: { phases } });
    const stateOf = async () => (await executor.explain('r0'))?.state;
    expect(await stateOf()).toBe('between-phases');
    await change(store, 'r0', (record) => ({ ...record, openPhase: { index: 1, hash: 'h', iteration: 1 } }));
    expect(await stateOf()).toBe('phase(1).entering');
    expect((await executor.explain('r0'))?.agent?.phases).toEqual(['plan', 'write']);
  });
});

test('the change mark of an executor is equal while nothing is written, and undefined for a store that cannot tell', async () => {
  const store = memoryStore();
  const { executor, run } = hostOf({ store });
  const before = await insideOf(executor).changeMark();
  await executor.list();
  expect(await insideOf(executor).changeMark()).toBe(before);
  await run();
  expect(await insideOf(executor).changeMark()).not.toBe(before);
  expect(await insideOf(hostOf({ store: plainStore(store) }).executor).changeMark()).toBeUndefined();
  expect(await insideOf(hostOf().executor).changeMark()).toBeUndefined();
});

test('executor.capabilities names what the store and the options allow', () => {
  const all = { journal: false, waits: true, commands: true, history: true, threads: true };
  expect(hostOf({ store: memoryStore() }).executor.capabilities).toEqual(all);
  expect(hostOf({ store: memoryStore(), journal: true }).executor.capabilities.journal).toBe(true);
  const none = { journal: false, waits: false, commands: false, history: false, threads: false };
  expect(hostOf({ store: plainStore(memoryStore()), journal: true }).executor.capabilities).toEqual(none);
  expect(hostOf().executor.capabilities).toEqual(none);
  expect(hostOf({ tools: [toolOf('look')] }).executor.capabilities).toEqual(none);
});
