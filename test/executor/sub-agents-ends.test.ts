import { createPalette, defineAgent, memoryStore, type Run, type RunOutcome } from 'pawl';
import { callTool, callTools, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { LeaseLostError } from '../../src/values/errors.ts';
import { answeringModel, promptOf, turnsOf } from '../fixtures/answering-model.ts';
import { childId } from '../fixtures/child-id.ts';
import { type HostOptions, hostOf, settle, until } from '../fixtures/host.ts';
import { hostMachine, startHost } from '../fixtures/host-machine.ts';
import { notingCritic } from '../fixtures/noting-ports.ts';
import { watchedStore } from '../fixtures/watched-store.ts';

const DAY = 86_400_000;
/** The root has two leads, each of them two workers; the workers wait in their first turn, for ever. */
const ids = [
  'r',
  childId('r', 'a'),
  childId('r', 'b'),
  childId('r', 'a', 'a'),
  childId('r', 'a', 'b'),
  childId('r', 'b', 'a'),
  childId('r', 'b', 'b'),
];
const palette = createPalette({
  agents: [
    defineAgent({ id: 'lead', instructions: 'lead', subAgents: ['worker'] }),
    defineAgent({ id: 'worker', instructions: 'worker' }),
  ],
});

/** The tree, with all of its workers in their model calls. */
async function tree(options: HostOptions = {}, begin?: (host: ReturnType<typeof hostOf>) => Run | Promise<Run>) {
  const clock = testClock();
  const store = watchedStore({}, memoryStore({ clock }));
  const outcomes: RunOutcome[] = [];
  const model = answeringModel((request) => {
    const name = request.system === 'Work.' ? 'agent__lead' : 'agent__worker';
    if (request.system === 'worker') return hang();
    return callTools(
      ['a', 'b'].map((callId) => ({ name, input: { prompt: `${promptOf(request)}${callId}` }, callId })),
    );
  });
  const host = hostOf({
    models: { fast: model },
    agent: { subAgents: ['lead'], maxRuntimeMs: 10 * DAY },
    clock,
    store,
    defaults: { maxRuntimeMs: 10 * DAY, firstChunkMs: 10 * DAY },
    onOutcome: (outcome) => void outcomes.push(outcome),
    ...options,
    ports: { palette, ...options.ports },
  });
  const run = (await begin?.(host)) ?? (await host.start({ runId: 'r', prompt: 'Go.' }));
  await until(() => model.calls.length === 7, 'all workers at work');
  const live = () => host.executor.runs.get().map(({ runId }) => runId);
  expect(live().toSorted()).toEqual(ids.toSorted());
  return { ...host, model, clock, store, outcomes, run, live };
}

type Tree = Awaited<ReturnType<typeof tree>>;

/** Whether all model calls under way have been told to stop. */
const stoppedCalls = ({ model }: Tree) =>
  model.calls.filter(({ system, signal }) => system === 'worker' && signal?.aborted).length;

const statuses = ({ outcomes }: Tree) => Object.fromEntries(outcomes.map(({ runId, status }) => [runId, status]));

describe('a tree of three levels whose root is ended', () => {
  test('by a cancel: every model call is aborted in that very turn of the event loop, and none is made after it (supervision 7)', async () => {
    const family = await tree();
    const result = family.run.cancel('enough');
    expect(stoppedCalls(family)).toBe(4);
    await result;
    await settle();
    expect(family.model.calls).toHaveLength(7);
    expect(await result).toMatchObject({ status: 'cancelled', error: { message: 'enough' } });
  });

  test('by a cancel: every run of it is finalised by the matrix, its outcome told once and its record gone (supervision 7)', async () => {
    const family = await tree();
    await family.run.cancel();
    await until(() => family.live().length === 0, 'the end of all runs');
    expect(statuses(family)).toEqual(Object.fromEntries(ids.map((id) => [id, 'cancelled'])));
    expect(family.outcomes).toHaveLength(7);
    expect(await family.store.listInterrupted()).toEqual([]);
  });

  test.for([
    ['the deadline', 'timeout'],
    ['a kill', 'killed'],
    ["the caller's signal", 'cancelled'],
    ['a save that failed for good', 'error'],
  ] as const)('by %s: the same holds for all that it has put to work (supervision 7)', async ([how, status]) => {
    const critic = notingCritic((_, { runId }) => (runId === 'r' ? {} : null));
    const caller = new AbortController();
    const agent = { subAgents: ['lead'], maxRuntimeMs: how === 'the deadline' ? 1_000 : 10 * DAY };
    const family = await tree({ agent, ...(how === 'a kill' ? { ports: { critic } } : {}) }, (host) =>
      host.start({ runId: 'r', prompt: 'Go.' }, { signal: caller.signal }),
    );
    if (how === 'the deadline') await family.clock.advance(1_000);
    if (how === 'a kill') critic.watched[0]?.kill('enough');
    if (how === "the caller's signal") caller.abort();
    if (how === 'a save that failed for good') {
      const { append } = family.store;
      const tooLarge = Object.assign(new Error('too large'), { code: 'RECORD_TOO_LARGE' });
      family.store.append = (delta, options) =>
        delta.runId === 'r' && !delta.head.outcome ? Promise.reject(tooLarge) : append(delta, options);
      await family.run.steer('Say it.').catch(() => {});
    }
    expect((await family.run.result).status).toBe(status);
    await until(() => family.live().length === 0, 'the end of all runs');
    expect(statuses(family)).toEqual({ ...Object.fromEntries(ids.map((id) => [id, 'cancelled'])), r: status });
    expect(await family.store.listInterrupted()).toEqual([]);
    expect(family.model.calls).toHaveLength(7);
  });

  test('by a shutdown: all are left, at once, without an outcome, uncounted and free for the next process (supervision 7)', async () => {
    const family = await tree();
    await family.executor.shutdown();
    expect(family.clock.now()).toBe(0);
    expect(await family.run.result).toMatchObject({ status: 'interrupted', error: { code: 'ERR_SHUTDOWN' } });
    expect(family.outcomes).toEqual([]);
    const left = await family.store.listInterrupted();
    expect(left.map(({ runId }) => runId).toSorted()).toEqual(ids.toSorted());
    for (const { runId } of left) {
      expect((await family.store.load(runId))?.attempts).toBe(0);
      expect(await family.store.claim(runId, 'another', 1_000)).not.toBeNull();
    }
    expect(family.model.calls).toHaveLength(7);
  });

  test('by a shutdown in the reason of the caller’s signal: all are left too (finalize 1)', async () => {
    const caller = new AbortController();
    const family = await tree({}, (host) => host.start({ runId: 'r', prompt: 'Go.' }, { signal: caller.signal }));
    caller.abort(Object.assign(new Error('deploy'), { code: 'ERR_SHUTDOWN' }));
    await until(() => family.live().length === 0, 'the end of all runs');
    expect(family.outcomes).toEqual([]);
    expect(await family.store.listInterrupted()).toHaveLength(7);
  });

  test('because its lease is lost: the next owner continues with its children, so these are left (supervision 7)', async () => {
    const family = await tree({ defaults: { leaseMs: 30_000, maxRuntimeMs: 10 * DAY, firstChunkMs: 10 * DAY } });
    const { renew } = family.store;
    family.store.renew = (claim, ms) =>
      claim.runId === 'r' ? Promise.reject(new LeaseLostError('taken')) : renew(claim, ms);
    await family.clock.advance(10_000);
    expect(await family.run.result).toMatchObject({ status: 'interrupted', error: { code: 'LEASE_LOST' } });
    await until(() => family.live().length === 0, 'the end of all runs');
    expect(family.outcomes).toEqual([]);
    expect(await family.store.listInterrupted()).toHaveLength(7);
    for (const id of ids.slice(1)) expect(await family.store.claim(id, 'another', 1_000)).not.toBeNull();
  });

  test('by its host machine, which leaves the state that it was invoked in: all are left (supervision 7)', async () => {
    let leave = () => {};
    const family = await tree({}, async (host) => {
      const machine = startHost(hostMachine(host.executor, host.agent, { runId: 'r', prompt: 'Go.' } as never));
      leave = () => machine.send({ type: 'leave' });
      await until(() => host.executor.get('r')?.actor);
      return host.executor.get('r') as Run;
    });
    leave();
    expect(stoppedCalls(family)).toBe(4);
    await until(() => family.live().length === 0, 'the end of all runs');
    expect(family.outcomes).toEqual([]);
    expect(await family.store.listInterrupted()).toHaveLength(7);
  });

  test('holds on to nothing of its children: no listener on its signal, no timer (executor 5)', async () => {
    const family = await tree({ retention: { records: 0 } });
    await family.run.cancel();
    await until(() => family.live().length === 0, 'the end of all runs');
    await settle();
    // The look for ends to deliver.
    expect(family.clock.pending).toBe(1);
  });
});

describe('a run in the middle of a tree', () => {
  test('that is cancelled by its id ends with all below it; its parent gets that as data and continues (supervision 6)', async () => {
    const model = answeringModel((request) => {
      if (request.system === 'worker') return hang();
      if (turnsOf(request) > 0) return reply(JSON.stringify(request.messages.at(-1)));
      return callTool(request.system === 'Work.' ? 'agent__lead' : 'agent__worker', { prompt: 'x' }, 'a');
    });
    const store = memoryStore();
    const host = hostOf({
      models: { fast: model },
      agent: { subAgents: ['lead'] },
      store,
      ports: { palette },
    });
    const run = await host.start({ runId: 'r' });
    await until(() => model.calls.length === 3);
    await (host.executor.get(childId('r', 'a')) as Run).cancel('not this one');
    const result = await run.result;
    expect(result.status).toBe('ok');
    expect(result.output).toContain('lead ended with status cancelled: CANCELLED: not this one');
    await settle();
    expect(await store.listInterrupted()).toEqual([]);
  });

  test('whose actor is stopped continues: its parent waits for it, and asks for it again (supervision 7)', async () => {
    let isHeld = true;
    const model = answeringModel((request) => {
      if (request.system === 'worker') return isHeld ? hang() : reply('worked');
      if (turnsOf(request) > 0) return reply(JSON.stringify(request.messages.at(-1)));
      return callTool('agent__worker', { prompt: 'x' }, 'a');
    });
    const store = memoryStore();
    const host = hostOf({
      models: { fast: model },
      agent: { subAgents: ['worker'] },
      store,
      ports: { palette },
    });
    const run = await host.start({ runId: 'r' });
    await until(() => model.calls.length === 2);
    isHeld = false;
    (host.executor.get(childId('r', 'a')) as unknown as { actor: { stop: () => void } }).actor.stop();
    expect((await run.result).output).toContain('worked');
    expect(model.calls).toHaveLength(4);
  });
});
