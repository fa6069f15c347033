import { readFileSync } from 'node:fs';
import { createExecutor, defineAgent, encrypt } from 'pawl';
import type { FullStore } from 'pawl/stores/kit';
import { checkpointStoreContract, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test, vi } from 'vitest';
import { compareAndSetStore, type Keys, keysOn } from '../../docs/examples/store/compare-and-set.ts';
import { changeCases, countCases } from '../../src/testing/store-contract/change-cases.ts';
import { eventCases } from '../../src/testing/store-contract/event-cases.ts';
import { historyCases } from '../../src/testing/store-contract/history-cases.ts';
import { journalCases } from '../../src/testing/store-contract/journal-cases.ts';
import { limitCases } from '../../src/testing/store-contract/limits/limit-cases.ts';
import { scheduleCases } from '../../src/testing/store-contract/schedules/schedule-cases.ts';
import { threadCases } from '../../src/testing/store-contract/thread-cases.ts';

const maps = new WeakMap<FullStore, Map<string, string>>();
const key = '7d1zDd2Q0oYbTq3sG5nXkHhZ1Ww8RrC4mJpVfUe9aLA=';

function storeOn(map: Map<string, string>, options = {}): FullStore {
  const store = compareAndSetStore(keysOn(map), options);
  maps.set(store, map);
  return store;
}

/** The title of a case as users see it: without the number of its clause. */
const titleOf = ({ title }: { readonly title: string }) => title.replace(/ \([^()]*\)$/, '');

function contractOf(options: Parameters<typeof compareAndSetStore>[1] = {}) {
  return checkpointStoreContract<FullStore>({
    create: async () => storeOn(new Map(), options),
    reopen: async (store) => storeOn(maps.get(store) ?? new Map(), options),
    damage: async (store, runId, kind) => {
      const map = maps.get(store) ?? new Map<string, string>();
      const text = map.get(`run:${runId}`) ?? '';
      const newer = () => {
        const value = JSON.parse(text);
        const head = value.record.head.replace(/"version":\d+/, '"version":99');
        return JSON.stringify({ ...value, record: { ...value.record, version: 99, head } });
      };
      map.set(`run:${runId}`, kind === 'newer' ? newer() : text.slice(0, -10));
    },
  });
}

describe('the compare-and-set store, made with pawl/stores/kit', () => {
  const cases = contractOf();
  const runs = new Map<string, Promise<string | undefined>>();
  /** Why a case is skipped, if it is. Two tests ask for each case, which is run once, whoever asks first. */
  const once = ({ title, run }: (typeof cases)[number]): Promise<string | undefined> => {
    const played = async () => {
      let why: string | undefined;
      await run({
        skip: (note?: string) => {
          why = note ?? title;
        },
      });
      return why;
    };
    const known = runs.get(title) ?? played();
    runs.set(title, known);
    return known;
  };
  for (const each of cases) {
    test(each.title, async (context) => {
      const why = await once(each);
      if (why !== undefined) context.skip(why);
    });
  }

  test('has no signals, kept records, threads, journals, marks of changes, schedules and limits, and passes every other case of the contract', async () => {
    const store = storeOn(new Map());
    const skipped: string[] = [];
    for (const each of cases) if ((await once(each)) !== undefined) skipped.push(each.title);
    const groups = [eventCases, journalCases, historyCases, threadCases, changeCases, scheduleCases, limitCases];
    const others = groups.flat().flatMap((each) => (countCases.includes(each) ? [] : [titleOf(each)]));
    expect(skipped.toSorted()).toEqual(others.toSorted());
    expect(Object.keys(store)).toEqual(expect.arrayContaining(['append', 'claim', 'commands', 'outcomes', 'due']));
  });

  test('has at most 160 lines', () => {
    const url = new URL('../../docs/examples/store/compare-and-set.ts', import.meta.url);
    expect(readFileSync(url, 'utf8').trimEnd().split('\n').length).toBeLessThanOrEqual(160);
  });

  test('removes the key of a run when its outcome may be forgotten, and counts it before', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_000 });
    try {
      const map = new Map<string, string>();
      const store = storeOn(map);
      const script = [reply('done'), reply('done'), reply('done')];
      const agent = defineAgent({ id: 'agent', instructions: 'Answer.' });
      const executor = createExecutor({ models: { fast: scriptedModel(script) }, agents: [agent], store });
      await executor.run(agent, { runId: 'old', prompt: 'Go.' });
      await executor.run(agent, { runId: 'held', prompt: 'Go.' });
      vi.setSystemTime(1_000 + 60_000);
      await executor.run(agent, { runId: 'new', prompt: 'Go.' });
      const [{ kept }] = [...map.values()].map((text) => JSON.parse(text));
      // An owner that is about to start the run again keeps its lease.
      await store.claim('held', 'elsewhere|1', 10 * kept.untilMs);
      vi.setSystemTime(kept.untilMs);
      expect(await store.outcomes.forget({ dryRun: true })).toBe(1);
      expect([...map.keys()]).toEqual(['run:old', 'run:held', 'run:new']);
      expect(await store.outcomes.forget({ dryRun: false })).toBe(1);
      expect([...map.keys()]).toEqual(['run:held', 'run:new']);
      await executor.shutdown();
    } finally {
      vi.useRealTimers();
    }
  });

  test('is encrypted by the kit where it gets a codec', async () => {
    const map = new Map<string, string>();
    const store = storeOn(map, { codec: encrypt({ keys: { now: key }, current: 'now' }) });
    const executor = createExecutor({
      models: { fast: scriptedModel([reply('a secret answer')]) },
      store,
    });
    const agent = defineAgent({ id: 'a', instructions: 'a secret instruction' });
    expect((await executor.run(agent, { runId: 'run', prompt: 'a secret question' })).output).toBe('a secret answer');
    expect((await store.outcomes.find('run'))?.output).toBe('a secret answer');
    expect([...map.values()].join()).not.toContain('secret');
    await executor.shutdown();
  });

  test('of two processes that change one run at once, both are heard: a swap that fails is decided again', async () => {
    const map = new Map<string, string>();
    let swaps = 0;
    const slow: Keys = {
      ...keysOn(map),
      swap: async (...args) => {
        await new Promise((resolve) => setImmediate(resolve));
        swaps += 1;
        return keysOn(map).swap(...args);
      },
    };
    const [one, two] = [compareAndSetStore(slow), compareAndSetStore(slow)];
    const claims = await Promise.all([one.claim('run', 'one', 60_000), two.claim('run', 'two', 60_000)]);
    expect(claims.filter((claim) => claim !== null)).toHaveLength(1);
    expect(swaps).toBeGreaterThan(2);
  });
});
