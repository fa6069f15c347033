import fc from 'fast-check';
import { type Message, memoryStore, type Run, type RunResult } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, callTools, fail, reply, type ScriptedEntry, testClock } from 'pawl/testing';
import { expect, onTestFinished, test } from 'vitest';
import { seed, torture } from '../crash/random.ts';
import { type HostOptions, hostOf, toolOf, until } from '../fixtures/host.ts';
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
const turn = fc.record({
  calls: fc.array(call, { minLength: 1, maxLength: 3 }),
  /** Its host says something to the run meanwhile. */
  says: fc.boolean(),
  /** The model fails before it, and the run is retried. */
  fails: fc.constantFrom(false, false, true),
});
const turns = fc.array(turn, { maxLength: 4 });
/** The turns of each phase; one phase = the agent has none. */
const plans = fc.array(turns, { minLength: 1, maxLength: 3 });

const unmarked = (messages: readonly Message[] | null | undefined) =>
  messages?.map(({ role, content }) => JSON.stringify([role, content])) ?? [];

const failing = fail(Object.assign(new Error('no key'), { statusCode: 400 }));
const defaults = { maxConsecutiveToolErrors: 99, maxSameToolCallRepeats: 99, waitLingerMs: 1 };
const isBig = ({ name, input }: { name: string; input: unknown }) => name === 'pay' && (input as { n: number }).n === 3;

/** Plays a run to its end: a person approves what it asks, and its host retries it. */
async function played({ executor }: ReturnType<typeof hostOf>, begin: () => Promise<Run>): Promise<RunResult> {
  let run = await begin();
  for (;;) {
    const { runId } = run;
    const result = await run.result;
    if (result.status === 'ok') return result;
    for (const { id } of await executor.waiting({ runId })) await executor.control(runId).approve(id);
    run = await (result.status === 'waiting' ? begin() : executor.retry(runId));
  }
}

/** The turns of a plan, in their order: those with calls, and the answer of each phase. */
function stepsOf(plan: Parameters<Parameters<typeof plans.map>[0]>[0]) {
  let id = 0;
  return plan.flatMap((each, phase) => [
    ...each.map(({ calls, says, fails }) => ({
      ...{ says, fails },
      entry: callTools(calls.map((made) => ({ ...made, callId: `c${id++}` }))),
    })),
    { says: false, fails: false, entry: reply(`phase ${phase} is done`) },
  ]);
}

/** What the host says in a turn; it is read before the next one. */
const said = (step: number) => `Said in turn ${step}.`;

const RUNS = torture > 1 ? 400 : 16;

test(`a fork at each step of ${RUNS} random runs with steered texts, approvals and retries is the whole run, and makes nothing before the cut again (seed ${seed}) (lab 11, 31)`, {
  timeout: 120_000 * torture,
}, async () => {
  const met = { forks: 0, says: 0, asks: 0, fails: 0 };
  const approvals: HostOptions['approvals'] = (made) => {
    if (!isBig(made)) return made.verdict;
    met.asks += 1;
    return 'ask';
  };
  await fc.assert(
    fc.asyncProperty(plans, async (plan) => {
      const steps = stepsOf(plan);
      const phases = plan.map((_, i) => ({ name: `p${i}`, instructions: `Do ${i}.` }));
      const agent = { maxSteps: 99, ...(plan.length > 1 ? { phases } : {}) };
      const store = memoryStore();
      const { did, all } = tools();
      const host = (runId: string, from: number): ReturnType<typeof hostOf> => {
        const script = steps.slice(from).flatMap(({ says, fails, entry }, i): ScriptedEntry[] => {
          const answer: ScriptedEntry = async () => {
            if (says) await next.executor.control(runId).steer(said(from + i));
            return entry;
          };
          // A fork is not retried where its origin was.
          return runId === 'r' && fails ? [failing, answer] : [answer];
        });
        const next = hostOf({ store, tools: all, agent, script, retention, defaults, approvals });
        return next;
      };
      const first = host('r', 0);
      const whole = await played(first, () => first.start({ runId: 'r' }));
      met.says += steps.filter(({ says }) => says).length;
      met.fails += (await store.load('r', { ended: true }))?.retries?.length ?? 0;
      const calls = did.splice(0);
      for (let at = 0; at <= steps.length; at++) {
        const next = host(`f${at}`, at);
        const options = { at, runId: `f${at}`, effects: 'live' } as const;
        const fork = await played(next, () => next.executor.fork('r', options));
        expect([fork.status, fork.output]).toEqual([whole.status, whole.output]);
        const kept = unmarked(whole.messages).filter((text) => !text.includes(said(at - 1)));
        expect(unmarked(await next.executor.messages(`f${at}`))).toEqual(kept);
        expect(fork.phases.map(({ output }) => output)).toEqual(whole.phases.map(({ output }) => output));
        expect(next.model.calls.length).toBe(steps.length - at);
        // The calls of one step run side by side: they are compared as a set.
        const made = did.splice(0);
        expect(made.toSorted()).toEqual(calls.slice(calls.length - made.length).toSorted());
        met.forks += 1;
      }
    }),
    { numRuns: RUNS, seed },
  );
  expect(met.forks).toBeGreaterThan(3 * RUNS);
  expect(Math.min(met.says, met.asks, met.fails)).toBeGreaterThan(RUNS / 4);
});
