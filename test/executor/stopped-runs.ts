import type { RunResult } from 'pawl';
import { callTool, fail, reply } from 'pawl/testing';
import { expect } from 'vitest';
import { CriticKillError, ShutdownError } from '../../src/values/errors.ts';
import { hostOf, toolOf } from '../fixtures/host.ts';
import { afterCrash, headOfWrite, type StoreCall, watchedStore } from '../fixtures/watched-store.ts';

/** How a run can be stopped. */
export const stopKinds = [
  'signal: shutdown',
  'signal: wrapped shutdown',
  'signal: a member of an AggregateError is a shutdown',
  'signal: no reason',
  'signal: a kill',
  'cancel',
  'executor shutdown',
  'deadline',
] as const;
export type StopKind = (typeof stopKinds)[number];

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

/** A run of some steps, each with one call, and where and how it is stopped. */
export interface StopStory {
  readonly steps: number;
  readonly isOnce: boolean;
  readonly isModelDown: boolean;
  /** At which of the moments at which the run calls somebody it is stopped. */
  readonly moment: number;
  /** All at that moment; the first decides. */
  readonly stops: readonly StopKind[];
}

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

async function play({ steps, isOnce, isModelDown, moment, stops }: StopStory) {
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
    ['delete', 'history.end', 'outcomes.keep', 'release'].includes(call.method) ||
    headOfWrite(call)?.outcome !== undefined;
  const store = watchedStore({ before: (call) => come(isAfterEnd(call)) });
  const work = Array.from({ length: steps }, (_, i) => async () => {
    await come(false);
    return callTool('work', { i });
  });
  const last = async () => {
    await come(false);
    return isModelDown ? fail(Object.assign(new Error('down'), { statusCode: 400 })) : reply('done');
  };
  let cutAt: number | undefined;
  const tool = async () => {
    if (count === moment) cutAt = moment;
    await come(false);
    return 'ok';
  };
  const host = hostOf({
    script: [...work, last],
    tools: [toolOf('work', isOnce ? 'once' : 'read', tool)],
    agent: { maxRuntimeMs },
    store,
    clock,
  });
  const result = await host.run({ runId: 'run-1' }, { signal: controller.signal });
  return { result, store, first, host, moments: count, cutAt };
}

async function goOn(
  left: Awaited<ReturnType<typeof afterCrash>>,
  { steps, isModelDown }: StopStory,
): Promise<RunResult> {
  const record = await left.load('run-1');
  const script = Array.from({ length: steps - (record?.iteration ?? 0) - (record?.openStep ? 1 : 0) }, (_, i) =>
    callTool('work', { again: i }),
  );
  const next = hostOf({
    script: [...script, isModelDown ? fail(Object.assign(new Error('down'), { statusCode: 400 })) : reply('done')],
    tools: [toolOf('work')],
    store: left,
  });
  return next.run({ runId: 'run-1' });
}

/** What a story came to. */
export interface Told {
  readonly status: RunResult['status'];
  /** How many moments there were at which the run could be stopped. */
  readonly moments: number;
  readonly isResumed: boolean;
}

/** Plays a story and checks its end: the one that the matrix says, with the record gone or left in the store. */
export async function checkEnd(story: StopStory): Promise<Told> {
  const { result, store, first, host, moments, cutAt } = await play(story);
  const own = story.isModelDown ? 'error' : 'ok';
  const expected = first ? statusAfter(first) : own;
  const title = JSON.stringify(story);
  expect(result.status, title).toBe(expected);
  const isLeft = (await store.load('run-1')) !== null;
  expect(isLeft, title).toBe(expected === 'interrupted');
  expect(await store.listInterrupted(), title).toHaveLength(isLeft ? 1 : 0);
  const isCut = story.isOnce && cutAt === story.moment && expected !== 'interrupted';
  expect(
    host.warned.map(({ fields }) => fields.event),
    title,
  ).toEqual(isCut ? ['call.unknown'] : []);
  if (isLeft) expect((await goOn(await afterCrash(store), story)).status, title).toBe(own);
  return { status: expected, moments, isResumed: isLeft };
}
