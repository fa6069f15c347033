import { type CheckpointStore, memoryStore } from 'pawl';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { boundedStore } from '../../src/store/checked-store.ts';
import { type MethodName, methodOf, wrapStore } from '../../src/store/read-only.ts';
import { settle } from '../fixtures/host.ts';
import { plainStore } from '../fixtures/watched-store.ts';

function methodsOf(store: CheckpointStore): readonly MethodName[] {
  const names: MethodName[] = [];
  wrapStore(store, (name, call) => {
    names.push(name);
    return call;
  });
  return names.toSorted();
}

const methods = methodsOf(memoryStore());

/** A store of which no call is answered. */
const silent = () => wrapStore<CheckpointStore>(memoryStore(), () => () => new Promise(() => {}));

describe('a bounded store', () => {
  test.for(methods)('ends %s after its time, and says which call was not answered', async (name) => {
    const clock = testClock(0);
    const store = boundedStore(silent(), { ms: 100, clock });
    const seen: unknown[] = [];
    void Promise.resolve(methodOf(store, name)?.()).catch((error: unknown) => seen.push(error));
    await clock.advance(99);
    expect(seen).toEqual([]);
    await clock.advance(1);
    expect(seen).toMatchObject([{ code: 'PORT_TIMEOUT', message: `store.${name} did not answer within 100 ms` }]);
  });

  test('has the methods of the store, and no others', () => {
    const limit = { ms: 100, clock: testClock(0) };
    expect(methodsOf(boundedStore(memoryStore(), limit))).toEqual(methods);
    expect(methods).toContain('limits.takeTurns');
    expect(methodsOf(boundedStore(plainStore(), limit))).toEqual(['delete', 'listInterrupted', 'load', 'save']);
  });

  test('passes on what the store answers or throws, with the store as `this`, and leaves no timer', async () => {
    const clock = testClock(0);
    let timers = 0;
    const counting = {
      ...clock,
      setTimeout: (callback: () => void, ms: number) => {
        timers += 1;
        return clock.setTimeout(callback, ms);
      },
      clearTimeout: (timer: unknown) => {
        timers -= 1;
        clock.clearTimeout(timer);
      },
    };
    const own = {
      runs: 3,
      load() {
        if (this.runs === 3) throw new Error('no such disk');
      },
      async listInterrupted() {
        return [this.runs];
      },
    };
    const store = boundedStore(own as unknown as CheckpointStore, { ms: 100, clock: counting });
    await expect(store.load('r')).rejects.toThrow('no such disk');
    expect(await store.listInterrupted()).toEqual([3]);
    expect(timers).toBe(0);
  });

  test('drops what a call answers too late, also a rejection', async () => {
    const clock = testClock(0);
    const late = Promise.withResolvers<never>();
    const inner: CheckpointStore = { ...silent(), load: () => late.promise };
    const store = boundedStore(inner, { ms: 100, clock });
    const load = store.load('r').catch((error: unknown) => error);
    await clock.advance(100);
    late.reject(new Error('too late'));
    await settle();
    expect(await load).toMatchObject({ code: 'PORT_TIMEOUT' });
  });
});
