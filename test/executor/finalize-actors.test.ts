import fc from 'fast-check';
import { CriticKillError, type RunResult, ShutdownError } from 'pawl';
import { callTool, fail, reply } from 'pawl/testing';
import { expect, test } from 'vitest';
import { hostOf, toolOf } from '../fixtures/host.ts';
import { afterCrash, headOfWrite, type StoreCall, watchedStore } from '../fixtures/watched-store.ts';

const stopKinds = [
  'signal: shutdown',
  'signal: wrapped shutdown',
  'signal: a member of an AggregateError is a shutdown',
  'signal: no reason',
  'signal: a kill',
  'cancel',
  'executor shutdown',
  'deadline',
] as const;
type StopKind = (typeof stopKinds)[number];

const reasons: Partial<Record<StopKind, () => unknown>> = {
  'signal: shutdown': () => new ShutdownError(),
  'signal: wrapped shutdown': () => new Error('a', { cause: new Error('b', { cause: new ShutdownError() }) }),
  'signal: a member of an AggregateError is a shutdown': () => new AggregateError([new ShutdownError()]),
  'signal: no reason': () => undefined,
  'signal: a kill': () => new CriticKillError(),
};

/** What the contract says of a run that is stopped before its end, by the first cause. */
const statusAfter = (kind: StopKind): RunResult['status'] => {
  if (kind.includes('shutdown')) return 'interrupted';
  if (kind === 'signal: a kill') return 'killed';
  return kind === 'deadline' ? 'timeout' : 'cancelled';
};

const stories = fc.record({
  steps: fc.integer({ min: 0, max: 3 }),
  isOnce: fc.boolean(),
  isModelDown: fc.boolean(),
  /** At which of the moments at which the run calls somebody it is stopped. */
  moment: fc.integer({ min: 0, max: 16 }),
  stops: fc.array(fc.constantFrom(...stopKinds), { minLength: 0, maxLength: 2 }),
});
type Story = typeof stories extends fc.Arbitrary<infer T> ? T : never;

const maxRuntimeMs = 1_000;

/** A clock whose timers fire at once when it jumps: everything of one moment happens in one turn of the event loop. */
function suddenClock() {
  let time = 0;
  const timers = new Set<{ due: number; callback: () => void }>();
  return {
    now: () => time,
    monotonic: () => time,
    setTimeout(callback: () => void, ms: number) {
      const timer = { due: time + ms, callback };
      timers.add(timer);
      return timer;
    },
    clearTimeout: (timer: unknown) => void timers.delete(timer as never),
    jump(ms: number) {
      time += ms;
      for (const timer of [...timers]) if (timer.due <= time && timers.delete(timer)) timer.callback();
    },
  };
}

async function play({ steps, isOnce, isModelDown, moment, stops }: Story) {
  const clock = suddenClock();
  const controller = new AbortController();
  let count = 0;
  let first: StopKind | undefined;
  const come = async (isAfterEnd: boolean) => {
    if (count++ !== moment || stops.length === 0 || isAfterEnd) return;
    for (const kind of stops) {
      // The working time of a run begins when it is accepted.
      if (kind === 'deadline' && host.model.calls.length === 0) continue;
      first ??= kind;
      const reason = reasons[kind];
      if (reason) controller.abort(reason());
      else if (kind === 'cancel') host.executor.runs.get().forEach(({ runId }) => void cancel(runId));
      else if (kind === 'executor shutdown') void host.executor.shutdown();
      else clock.jump(maxRuntimeMs);
    }
  };
  const cancel = (runId: string) => {
    const run = host.executor.get(runId);
    if (run?.actor) void run.cancel();
  };
  const isAfterEnd = (call: StoreCall) =>
    ['delete', 'keepOutcome', 'release'].includes(call.method) || headOfWrite(call)?.outcome !== undefined;
  const store = watchedStore({ before: (call) => come(isAfterEnd(call)) });
  const work = Array.from({ length: steps }, (_, i) => async () => {
    await come(false);
    return callTool('work', { i });
  });
  const last = async () => {
    await come(false);
    return isModelDown ? fail(new Error('down')) : reply('done');
  };
  const tool = async () => {
    await come(false);
    return 'ok';
  };
  const host = hostOf({
    script: [...work, last],
    tools: [toolOf('work', isOnce ? 'once' : 'read', tool)],
    agent: { maxRuntimeMs },
    checkpoints: store,
    clock,
  });
  const result = await host.run({ runId: 'run-1' }, { signal: controller.signal });
  return { result, store, first, host };
}

async function goOn(left: Awaited<ReturnType<typeof afterCrash>>, { steps, isModelDown }: Story): Promise<RunResult> {
  const record = await left.load('run-1');
  const script = Array.from({ length: steps - (record?.iteration ?? 0) - (record?.openStep ? 1 : 0) }, (_, i) =>
    callTool('work', { again: i }),
  );
  const next = hostOf({
    script: [...script, isModelDown ? fail(new Error('down')) : reply('done')],
    tools: [toolOf('work')],
    checkpoints: left,
  });
  return next.run({ runId: 'run-1' });
}

const CASES = 2_000;

test(`${CASES} real runs end once, as the matrix says, with the record gone or left in the store (finalize 2, 8)`, async () => {
  const counts = new Map<string, number>();
  let resumed = 0;
  await fc.assert(
    fc.asyncProperty(stories, async (story) => {
      const { result, store, first, host } = await play(story);
      const own = story.isModelDown ? 'error' : 'ok';
      const expected = first ? statusAfter(first) : own;
      expect(result.status).toBe(expected);
      const isLeft = (await store.load('run-1')) !== null;
      expect(isLeft).toBe(expected === 'interrupted');
      expect(await store.listInterrupted()).toHaveLength(isLeft ? 1 : 0);
      expect(host.warnings).toEqual([]);
      counts.set(expected, (counts.get(expected) ?? 0) + 1);
      if (!isLeft) return;
      resumed += 1;
      expect((await goOn(await afterCrash(store), story)).status).toBe(own);
    }),
    { numRuns: CASES },
  );
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  expect(total).toBeGreaterThanOrEqual(CASES);
  for (const status of ['ok', 'error', 'cancelled', 'killed', 'timeout', 'interrupted'])
    expect(counts.get(status) ?? 0, status).toBeGreaterThan(CASES / 200);
  expect(resumed).toBeGreaterThan(CASES / 20);
}, 180_000);
