import fc from 'fast-check';
import { type Message, memoryStore } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, callTools, reply, type ScriptedEntry, testClock } from 'pawl/testing';
import { expect, onTestFinished, test } from 'vitest';
import { seed, torture } from '../crash/random.ts';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { watchedStore } from '../fixtures/watched-store.ts';

type Memory = ReturnType<typeof memoryStore>;
type Clock = ReturnType<typeof testClock>;

const stores = {
  memory: (clock: Clock) => memoryStore({ clock }),
  SQLite: (clock: Clock) => {
    const store = sqliteStore({ path: ':memory:', clock });
    onTestFinished(() => store.close());
    return store as unknown as Memory;
  },
};
const retention = { records: '1h' };

/** Tools that note what they did. */
function tools() {
  const did: string[] = [];
  const tool = (name: string, effect: 'read' | 'idempotent' | 'once') =>
    toolOf(name, effect, (input) => {
      did.push(`${name} ${JSON.stringify(input)}`);
      if (name === 'bad') throw new Error('bad luck');
      return { [name]: input };
    });
  return { did, all: [tool('look', 'read'), tool('book', 'idempotent'), tool('pay', 'once'), tool('bad', 'read')] };
}

test.for(Object.entries(stores))(
  'a process that dies at any write of a fork leaves no fork, or one that the same call ends: %s (lab 12, 31)',
  async ([, make]) => {
    const script = [callTool('look', {}, 'a'), callTool('pay', { n: 2 }, 'b'), reply('done')];
    for (let diesAfter = 1; ; diesAfter++) {
      const clock = testClock(1_000);
      const inner = make(clock);
      const { did, all } = tools();
      const host = (store: Memory, from: number) =>
        hostOf({ store, clock, tools: all, script: script.slice(from), retention });
      await host(inner, 0).run({ runId: 'r' });
      const before = await inner.load('r', { ended: true });
      let writes = 0;
      const never = () => new Promise<never>(() => {});
      const isDead = () => writes >= diesAfter;
      const mortal = watchedStore(
        {
          before: () => (isDead() ? never() : undefined),
          after: ({ method }) => {
            if (['claim', 'save', 'append', 'end', 'release'].includes(method)) writes += 1;
            return isDead() ? never() : undefined;
          },
        },
        inner,
      );
      const options = { at: 1, runId: 'f', effects: 'live' } as const;
      const forked = host(mortal, 1)
        .executor.fork('r', options)
        .then(({ result }) => result);
      await Promise.race([forked, until(isDead)]);
      await clock.advance(120_000);
      const left = await inner.load('f');
      const answered = left ? left.iteration + (left.openStep ? 1 : 0) : 1;
      const next = host(inner, answered);
      expect(await (await next.executor.fork('r', options)).result).toMatchObject({
        ...{ status: 'ok', output: 'done', forkedFrom: { runId: 'r', at: 1 } },
      });
      expect(did.filter((each) => each.startsWith('pay')).length).toBeLessThanOrEqual(2);
      expect(await inner.load('r', { ended: true })).toEqual(before);
      expect(await inner.listInterrupted()).toEqual([]);
      if (!isDead()) return;
    }
  },
);

const call = fc.record({
  name: fc.constantFrom('look', 'look', 'book', 'pay', 'pay', 'bad', 'gone'),
  input: fc.constantFrom<{ readonly n: number }>({ n: 1 }, { n: 2 }, { n: 3 }),
});
const turns = fc.array(fc.array(call, { minLength: 1, maxLength: 3 }), { maxLength: 4 });
/** The turns of each phase; one phase = the agent has none. */
const plans = fc.array(turns, { minLength: 1, maxLength: 3 });

const unmarked = (messages: readonly Message[] | null | undefined) =>
  messages?.map(({ role, content }) => JSON.stringify([role, content]));

const RUNS = torture > 1 ? 400 : 60;

test(`a fork at each step of ${RUNS} random runs is the whole run, and makes nothing before the cut again (seed ${seed}) (lab 11, 31)`, {
  timeout: 120_000 * torture,
}, async () => {
  const defaults = { maxConsecutiveToolErrors: 99, maxSameToolCallRepeats: 99 };
  let forks = 0;
  await fc.assert(
    fc.asyncProperty(plans, async (plan) => {
      let id = 0;
      const script: ScriptedEntry[] = plan.flatMap((each, phase) => [
        ...each.map((calls) => callTools(calls.map((made) => ({ ...made, callId: `c${id++}` })))),
        reply(`phase ${phase} is done`),
      ]);
      const phases = plan.map((_, i) => ({ name: `p${i}`, instructions: `Do ${i}.` }));
      const agent = { maxSteps: 99, ...(plan.length > 1 ? { phases } : {}) };
      const store = memoryStore();
      const { did, all } = tools();
      const host = (from: number) =>
        hostOf({ store, tools: all, agent, script: script.slice(from), retention, defaults });
      const whole = await host(0).run({ runId: 'r' });
      const calls = did.splice(0);
      for (let at = 0; at <= script.length; at++) {
        const next = host(at);
        const fork = await (await next.executor.fork('r', { at, runId: `f${at}`, effects: 'live' })).result;
        expect([fork.status, fork.output]).toEqual([whole.status, whole.output]);
        expect(unmarked(await next.executor.messages(`f${at}`))).toEqual(unmarked(whole.messages));
        expect(fork.phases.map(({ output }) => output)).toEqual(whole.phases.map(({ output }) => output));
        expect(next.model.calls.length).toBe(script.length - at);
        // The calls of one step run side by side: they are compared as a set.
        const made = did.splice(0);
        expect(made.toSorted()).toEqual(calls.slice(calls.length - made.length).toSorted());
        forks += 1;
      }
    }),
    { numRuns: RUNS, seed },
  );
  expect(forks).toBeGreaterThan(3 * RUNS);
});
