import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type CheckpointStore, type Executor, memoryStore } from 'pawl';
import { describe, expect, test } from 'vitest';
import { workerOf } from '../../docs/deploy/functions/cloudflare.ts';
import { handlerOf } from '../../docs/deploy/functions/lambda.ts';
import { isAllowed, sliceBelow } from '../../docs/deploy/functions/slice.ts';
import { maxDuration, routeOf } from '../../docs/deploy/functions/vercel.ts';
import { QueuedRuns, uncutMessages } from '../examples/queued-runs.ts';

const secret = 'not to be guessed';
const never = () => new Promise<never>(() => {});
const runIds = ['run-0', 'run-1', 'run-2', 'run-3'];
const CUTS = 20;

/** A store as one instance sees it: the instance is killed after so many writes of records, the last of which it does not see. */
function mortal(store: CheckpointStore, after: number) {
  const died = Promise.withResolvers<'cut'>();
  let writes = 0;
  const get = (target: object, name: string): unknown => {
    const member: unknown = Reflect.get(target, name);
    // A group of methods.
    if (typeof member === 'object' && member !== null) return new Proxy(member, { get });
    if (typeof member !== 'function') return member;
    return async (...args: unknown[]) => {
      if (writes >= after) return never();
      const answer: unknown = await member.apply(target, args);
      if (name === 'append' || name === 'save') writes += 1;
      if (writes < after) return answer;
      died.resolve('cut');
      return never();
    };
  };
  return { store: new Proxy(store, { get }) as CheckpointStore, died: died.promise };
}

type Host = ReturnType<QueuedRuns['host']>;

/** One request of the cron on a fresh instance, as each platform makes it. */
const platforms: { readonly [name: string]: (host: Host) => Promise<unknown> } = {
  Vercel: async (host) => {
    const { GET } = routeOf({ ...host, secret, waitUntil: () => {} });
    return GET(new Request('https://a.test/api/pawl', { headers: { authorization: `Bearer ${secret}` } }));
  },
  Lambda: ({ executor }) => handlerOf(executor)({}, { getRemainingTimeInMillis: () => 60_000 }),
  Cloudflare: async ({ executor }) => {
    const under: Promise<unknown>[] = [];
    const worker = workerOf(() => ({ executor, close: async () => {} }));
    worker.scheduled({}, {}, { waitUntil: (work) => void under.push(work) });
    await Promise.all(under);
  },
};

async function areOver(executor: Executor): Promise<boolean> {
  const found = await Promise.all(runIds.map((runId) => executor.find(runId)));
  return found.every((each) => each?.status === 'ended');
}

describe('a function', () => {
  test.each(Object.entries(platforms))(
    'of %s is killed 20 times in the middle of its work, and every run ends once (operations 32)',
    async (_, request) => {
      const store = memoryStore();
      const runs = new QueuedRuns(store);
      const ends = new Set<string>();
      const host = (seen: CheckpointStore) =>
        runs.host({
          store: seen,
          defaults: { leaseMs: 100 },
          onOutcome: ({ runId, outcomeId, status }) => void ends.add(`${runId} ${status} ${outcomeId}`),
        });
      const watch = runs.host();
      for (const runId of runIds)
        await watch.executor.start(watch.agent, { runId, prompt: 'Begin.' }, { drive: 'later' });
      let cuts = 0;
      for (let round = 0; !(await areOver(watch.executor)); round++) {
        expect(round, 'the runs do not end').toBeLessThan(200);
        const instance = mortal(store, cuts < CUTS ? 2 + (round % 3) : Number.POSITIVE_INFINITY);
        const how = await Promise.race([request(host(instance.store)), instance.died]);
        if (how === 'cut') cuts += 1;
        // The leases of the dead are over before the next request.
        await sleep(120);
      }
      expect(cuts).toBe(CUTS);
      const uncut = await uncutMessages(store);
      for (const runId of runIds) {
        const messages = await watch.executor.messages(runId);
        expect(messages?.at(-1)).toEqual(uncut.at(-1));
      }
      expect(runs.repeated()).toEqual([]);
      // One end of each, however often it was delivered.
      expect([...ends].map((end) => end.split(' ').slice(0, 2).join(' ')).sort()).toEqual(
        runIds.map((id) => `${id} ok`),
      );
      await watch.executor.shutdown();
    },
  );

  test('begins a run at a POST, answers, and works on it afterwards (operations 32)', async () => {
    const store = memoryStore();
    const under: Promise<unknown>[] = [];
    const { executor, agent } = new QueuedRuns(store).host();
    const { POST } = routeOf({ executor, agent, secret, waitUntil: (work) => void under.push(work) });
    const post = (given: string) =>
      POST(
        new Request('https://a.test/api/pawl', {
          method: 'POST',
          headers: { authorization: `Bearer ${given}` },
          body: JSON.stringify({ id: 'run-0', prompt: 'Begin.' }),
        }),
      );
    expect((await post('wrong')).status).toBe(401);
    expect(under).toEqual([]);
    expect((await post(secret)).status).toBe(202);
    await Promise.all(under);
    expect((await executor.find('run-0'))?.status).toBe('ended');
    await executor.shutdown();
  });

  test('ends its work 5 s below the limit of its platform (operations 32)', () => {
    for (const limitMs of [10_000, 60_000, 900_000]) {
      const { budgetMs = 0, graceMs = 0 } = sliceBelow(limitMs);
      expect(budgetMs + graceMs).toBe(limitMs - 5_000);
      expect(graceMs).toBeGreaterThan(0);
    }
    expect(sliceBelow(1_000)).toEqual({ budgetMs: 0, graceMs: 0 });
    expect(maxDuration).toBe(60);
  });

  test('lets in the secret of its cron, and nothing else (operations 32)', () => {
    const asked = (authorization?: string) =>
      isAllowed(
        new Request('https://a.test', authorization === undefined ? {} : { headers: { authorization } }),
        secret,
      );
    expect(asked(`Bearer ${secret}`)).toBe(true);
    for (const wrong of [undefined, '', secret, `Bearer ${secret}!`, 'Bearer ', `bearer ${secret}`])
      expect(asked(wrong), wrong).toBe(false);
    expect(isAllowed(new Request('https://a.test', { headers: { authorization: 'Bearer ' } }), '')).toBe(false);
    const unset = process.env.PAWL_TEST_NO_SUCH_SECRET as string;
    const guess = new Request('https://a.test', { headers: { authorization: 'Bearer undefined' } });
    expect(isAllowed(guess, unset)).toBe(false);
    const text = readFileSync(new URL('../../docs/deploy/functions/slice.ts', import.meta.url), 'utf8');
    expect(text).toContain('timingSafeEqual(');
  });

  test('of Vercel is called each minute, at its own path (operations 32)', () => {
    const file = new URL('../../docs/deploy/functions/vercel.json', import.meta.url);
    expect(JSON.parse(readFileSync(file, 'utf8')).crons).toEqual([{ path: '/api/pawl', schedule: '* * * * *' }]);
  });
});
