import type { memoryStore } from 'pawl';
import { callTool, reply, type ScriptedEntry } from 'pawl/testing';
import { expect } from 'vitest';
import { type Clock, systemClock } from '../../../src/values/clock.ts';
import { torture } from '../../crash/random.ts';
import { gate, toolOf, until } from '../../fixtures/host.ts';
import { notingBudget } from '../../fixtures/noting-ports.ts';
import { watchedStore } from '../../fixtures/watched-store.ts';
import { textsIn, threadHost } from './thread-host.ts';

export type ThreadedStore = ReturnType<typeof memoryStore>;

/** Writes of a store that a turn makes. */
const changing = new Set([
  'threads.admit',
  'threads.rewind',
  'save',
  'append',
  'history.end',
  'claim',
  'release',
  'outcomes.keep',
  'delete',
]);
const defaults = { leaseMs: 40, dueMs: 5 };
/** After a write the store is as it is before the next one: to die then is the same but for the process that dies. */
const moments = torture > 1 ? (['before', 'after'] as const) : (['before'] as const);

/** A process that is killed before, or after, its nth write: no later call of it reaches the store. */
function dying(
  inner: ThreadedStore,
  { when, writes, ...options }: { when: 'before' | 'after'; writes: number } & Parameters<typeof threadHost>[0],
) {
  let left = writes;
  const dies = (isTime: boolean) => {
    if (left > 0 && isTime) left -= 1;
    if (left <= 0) throw new Error('killed');
  };
  const store = watchedStore(
    {
      before: ({ method }) => dies(when === 'before' && changing.has(method)),
      after: ({ method }) => dies(when === 'after' && changing.has(method)),
    },
    inner,
  );
  // Its timers would run for the rest of the test.
  const clock: Clock = {
    ...systemClock,
    setTimeout: (callback, ms) => systemClock.setTimeout(() => left > 0 && callback(), ms),
  };
  return { ...threadHost({ store, clock, defaults, journal: true, ...options }), isDead: () => left <= 0 };
}

/**
 * Waits until a killed process is dead, or has answered a message. A busy machine may take its short lease from it before that: then
 * it takes the run up again.
 */
async function isDeadOrDone(killed: ReturnType<typeof dying>, id: string): Promise<void> {
  await until(async () => {
    if (killed.isDead() || (await stateIn(killed, id)) === 'ended') return true;
    await killed.host.executor.recover().catch(() => undefined);
    return false;
  });
}

const stateIn = async ({ thread }: Pick<ReturnType<typeof threadHost>, 'thread'>, id: string) =>
  (await thread.turn(id).catch(() => undefined))?.state;

/** A thread whose first turn was left by a process in the midst of its work, and is parked since. */
export async function leftAndParked(
  store: ThreadedStore,
  code: string,
  options: Parameters<typeof threadHost>[0] = {},
) {
  const before = threadHost({ store, ...options });
  const first = await before.thread.send({ id: 'm1', text: 'first' });
  return {
    before,
    first,
    park: async () => {
      await before.host.executor.shutdown({ drainMs: 0 });
      // Its claim is released a moment later.
      await until(async () => {
        const record = await store.load(first.runId);
        if (!record) throw new Error('the run has no record');
        const parked = { ...record, parked: { code, reason: 'for a test' } };
        return store.save(parked).then(
          () => true,
          () => false,
        );
      }, 'the parking');
    },
  };
}

/**
 * Kills the process that gets the message behind a parked turn, at each of its writes.
 * @param open makes an empty store @param repairs how the next process finds what the killed one left
 * @param stride 1 = at each of its writes, 2 = at each second one
 */
export async function killsBehindParked(
  open: () => Promise<ThreadedStore> | ThreadedStore,
  repairs: 'recover' | 'work' | 'sweep' = 'recover',
  stride = 1,
): Promise<void> {
  for (const when of moments) {
    for (let writes = 1, isOver = false; !isOver; writes += stride) {
      const store = await open();
      const asked = gate<never>();
      const script: ScriptedEntry[] = [() => asked.pass()];
      const { first, park } = await leftAndParked(store, 'TOO_MANY_ATTEMPTS', { script });
      await asked.reached;
      await park();
      const killed = dying(store, { when, writes });
      const sent = await killed.thread.send({ id: 'm2', text: 'next' }).catch(() => undefined);
      await isDeadOrDone(killed, 'm2');
      isOver = !killed.isDead();
      // A lease of its own as long as usual: a busy machine would lose a short one.
      const { thread, host, ended } = threadHost({ store, defaults: { dueMs: 5 } });
      if (repairs === 'work') host.executor.work({ dueMs: 5 });
      if (repairs === 'sweep') await host.executor.recover();
      const isAnswered = async () => {
        if (repairs === 'recover') await host.executor.recover();
        const turn = await thread.turn('m2');
        if (!turn && !sent) await thread.send({ id: 'm2', text: 'next' });
        return turn?.state === 'ended';
      };
      await until(isAnswered, `the answer after ${writes} writes (${when})`);
      const shown = textsIn((await thread.messages()).map(({ message }) => message));
      expect(shown).toEqual(['first', 'next', 'done']);
      const outcome = { status: 'error', error: { code: 'TOO_MANY_ATTEMPTS' } };
      expect(await host.executor.find(first.runId)).toMatchObject({ outcome });
      // Later turns do not send the parked one, whichever process has ended it.
      await ended((await thread.send({ id: 'm3', text: 'sure?' })).runId);
      expect(textsIn(host.model.calls.at(-1)?.messages ?? [])).toEqual(['next', 'done', 'sure?']);
      await host.executor.shutdown();
    }
  }
}

/**
 * Kills the process that parks a turn behind which a message waits, at each of its writes. A worker finds what it left.
 * @param open makes an empty store @param stride 1 = at each of its writes
 */
export async function killsOfParking(open: () => Promise<ThreadedStore> | ThreadedStore, stride = 1): Promise<void> {
  for (const when of moments) {
    for (let writes = 1, isOver = false; !isOver; writes += stride) {
      const store = await open();
      const paying = gate();
      let calls = 0;
      const ports = { budget: notingBudget({ refuse: () => calls++ > 0 }) };
      const tools = [toolOf('pay', 'once', () => paying.pass())];
      const killed = dying(store, { when, writes, ports, tools, script: [callTool('pay', {})] });
      for (const id of ['m1', 'm2']) await killed.thread.send({ id, text: id }).catch(() => undefined);
      paying.open();
      await isDeadOrDone(killed, 'm2');
      isOver = !killed.isDead();
      const { thread, host } = threadHost({ store, tools, defaults: { dueMs: 5 } });
      for (const id of ['m1', 'm2']) if (!(await thread.turn(id))) await thread.send({ id, text: id });
      host.executor.work({ dueMs: 5 });
      const isAnswered = async () => (await thread.turn('m2'))?.state === 'ended';
      await until(isAnswered, `the answer after ${writes} writes (${when})`);
      await host.executor.shutdown();
    }
  }
}

interface Retry {
  /** `m0` and `m1` are answered. */
  readonly messageId: 'm0' | 'm1';
  readonly again: (killed: ReturnType<typeof threadHost>) => Promise<unknown>;
}

export const retryOfLast: Retry = { messageId: 'm1', again: ({ thread }) => thread.retry('m1') };

/**
 * Kills the process that begins another run of a message, at each of its writes.
 * @param open makes an empty store @param retry default: it retries the last message @param stride 1 = at each of its writes
 */
export async function killsOfRetry(
  open: () => Promise<ThreadedStore> | ThreadedStore,
  { messageId, again }: Retry = retryOfLast,
  stride = 1,
): Promise<void> {
  const [kept, later] = messageId === 'm1' ? [['m0', 'zero', 'm1'], []] : [['m0'], ['m1', 'one']];
  for (const when of moments) {
    for (let writes = 1, isOver = false; !isOver; writes += stride) {
      const store = await open();
      const before = threadHost({ store, script: [reply('zero'), reply('one')] });
      for (const id of ['m0', 'm1']) await before.ended((await before.thread.send({ id, text: id })).runId);
      await before.host.executor.shutdown();
      const killed = dying(store, { when, writes });
      await again(killed).catch(() => undefined);
      await isDeadOrDone(killed, messageId);
      isOver = !killed.isDead();
      const { thread, host } = threadHost({ store, defaults });
      const texts = async () => textsIn((await thread.messages()).map(({ message }) => message));
      // No one sends it again: the thread has it, with the earlier answer or with the next one.
      expect((await texts()).slice(0, kept.length)).toEqual(kept);
      await until(async () => {
        await host.executor.recover();
        return (await thread.turn(messageId))?.state === 'ended';
      }, `the end after ${writes} writes (${when})`);
      const [answer, ...rest] = (await texts()).slice(kept.length);
      expect([messageId === 'm1' ? 'one' : 'zero', 'done']).toContain(answer);
      expect([[], later]).toContainEqual(rest);
      if (isOver) expect([answer, ...rest]).toEqual(['done']);
      await host.executor.shutdown();
    }
  }
}
