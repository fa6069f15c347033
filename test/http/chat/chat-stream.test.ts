import type { Executor, RunEvent, Wait } from 'pawl';
import { describe, expect, test } from 'vitest';
import { chatFrames } from '../../../src/http/chat/chat-stream.ts';
import { frameId, placeInFrame } from '../../../src/http/chat/frame-id.ts';
import { treeEvents } from '../../../src/http/chat/tree-events.ts';
import { Reading } from '../../../src/http/reading.ts';
import { systemClock } from '../../../src/values/clock.ts';
import { approval, type Bodies, call, done, ended, opened, snapshot, started, story } from './run-story.ts';

/** What a run does meanwhile: a pause of so many ms. */
type Told = Bodies | number;

interface World {
  readonly runs: { readonly [runId: string]: readonly Told[] };
  /** The open waits of the run, and its unread commands, as the store has them. */
  readonly waits?: () => readonly Wait[];
  readonly unread?: () => number;
}

/** An executor whose runs have these journals. A journal without an end stays open. */
function executorOf({ runs, waits = () => [], unread = () => 0 }: World): Executor {
  async function* events(runId: string, { signal }: { signal: AbortSignal }): AsyncGenerator<RunEvent> {
    for (const told of runs[runId] ?? []) {
      if (typeof told === 'number') await new Promise((resolve) => setTimeout(resolve, told));
      else yield* story(told);
    }
    if (JSON.stringify(runs[runId]).includes('run.ended')) return;
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  }
  const control = () => ({ unread: async () => unread() });
  const find = async () => ({ status: waits().length > 0 ? 'waiting' : 'live', waits: waits() });
  return { events, control, find } as unknown as Executor;
}

/** Reads runs for a caller. */
const readerOf = (world: World) => ({
  executor: executorOf(world),
  clock: systemClock,
  reading: new Reading(systemClock),
  callerId: 'ada',
});

/** Longer than any stream takes to its end. */
const LONG_MS = 30_000;

/** The finish reason of a stream that ends within some time, by default a short one; undefined for one that stays open. */
async function finishOf(world: World, answered: readonly string[] = [], ms = 200): Promise<string | undefined> {
  const stop = new AbortController();
  const source = { ...readerOf(world), runId: 'r', answered: new Set(answered) };
  const timer = setTimeout(() => stop.abort(), ms);
  let text = '';
  try {
    for await (const frame of chatFrames(source, stop.signal)) text += frame;
  } catch (error) {
    expect(String(error)).toContain('ended before the run did');
  }
  clearTimeout(timer);
  return /"finishReason":"([a-z-]+)"/.exec(text)?.[1];
}

const wait = approval('w', 'c', 'mail');
const asked: readonly Told[] = [
  started,
  snapshot(1, call('c', 'mail')),
  opened(wait),
  { type: 'run.waiting', waits: 1 },
];

describe('The stream of a run that waits', () => {
  test('ends if only a person can continue the run (web 28)', async () =>
    expect(await finishOf({ runs: { r: asked }, waits: () => [wait] }, [], LONG_MS)).toBe('tool-calls'));

  test('stays open for a wait that is over by now: its events follow (web 31)', async () =>
    expect(await finishOf({ runs: { r: asked }, waits: () => [] })).toBeUndefined());

  test('stays open while an answer is on its way (web 28, 31)', async () => {
    expect(await finishOf({ runs: { r: asked }, waits: () => [wait], unread: () => 1 })).toBeUndefined();
    expect(await finishOf({ runs: { r: asked }, waits: () => [wait] }, ['w'])).toBeUndefined();
  });

  test('takes an answer that is read between two looks for no open question (web 28, 35)', async () => {
    // The run reads its inbox between the look at its record and the look at the inbox.
    let looks = 0;
    const world = {
      runs: { r: asked },
      waits: () => (looks++ === 0 ? [wait] : []),
      unread: () => (looks === 0 ? 1 : 0),
    };
    expect(await finishOf(world)).toBeUndefined();
  });

  test('ends after an answer that was refused (web 29)', async () => {
    const refused = { type: 'wait.refused', waitId: 'w', code: 'ANSWER_REFUSED', reason: 'not you' } as const;
    const world = { runs: { r: [...asked, refused] }, waits: () => [wait] };
    expect(await finishOf(world, ['w'], LONG_MS)).toBe('tool-calls');
  });

  test('shows an answer that was refused where it was sent: no event of the run says so (edges 22)', async () => {
    const source = { ...readerOf({ runs: { r: asked }, waits: () => [wait] }), runId: 'r' };
    let text = '';
    for await (const frame of chatFrames(
      { ...source, refused: new Map([['w', 'ANSWER_REFUSED']]) },
      AbortSignal.timeout(LONG_MS),
    ))
      text += frame;
    expect(text).toContain('"refused":"ANSWER_REFUSED"');
    expect(text.match(/tool-approval-request/g)).toHaveLength(2);
  });

  test('has the waits of the record that no event announced: a process died before (web 28, 35)', async () => {
    const lost = { runs: { r: asked.slice(0, 2) }, waits: () => [wait] };
    expect(await finishOf(lost, [], 300)).toBeUndefined();
    expect(await finishOf(lost, [], LONG_MS)).toBe('tool-calls');
  });

  test('never ends cleanly without the end of its run (web 24)', async () =>
    expect(await finishOf({ runs: { r: [started] } })).toBeUndefined());
});

describe('The waits of a run below', () => {
  const child: Wait = { id: 'k', createdAt: 5, step: 1, callId: 'c', tool: 'agent__b', kind: 'child', childRunId: 'b' };
  const below = { ...approval('w', 'inner', 'mail'), step: 7 };
  const answered = { type: 'wait.answered', waitId: 'w', kind: 'approval', how: 'deny', callId: 'inner' } as const;
  const root = [started, snapshot(1, call('c', 'agent__b')), opened(child), { type: 'run.waiting', waits: 1 } as const];
  /** What comes up to an event; without one, up to the end. */
  const read = async (runs: World['runs'], upTo?: string) => {
    const source = { ...readerOf({ runs }), signal: AbortSignal.timeout(LONG_MS) };
    const seen: string[] = [];
    for await (const { event, isBelow } of treeEvents(source, 'r')) {
      const of = 'wait' in event ? `${event.wait.callId} ${event.wait.step}` : '';
      seen.push(`${isBelow ? '> ' : ''}${event.type} ${of}`.trim());
      if (seen.at(-1) === upTo) break;
    }
    return seen;
  };

  test('come with the call of the run, and before the end of that call (web 29)', async () => {
    const end = [done(1, 'c', 'agent__b', { type: 'text', value: 'x' }), ended()];
    const seen = await read({ r: [...root, ...end], b: [20, started, opened(below), 20, answered, ended()] });
    expect(seen.slice(2)).toEqual([
      ...['wait.opened c 1', 'run.waiting', '> run.started', '> wait.opened c 1', '> wait.answered', '> run.ended'],
      ...['tool.done', 'run.ended'],
    ]);
  });

  test('of a child of a child come with the same call (web 29)', async () => {
    const inner: Wait = { ...child, id: 'k2', childRunId: 'd', step: 3, callId: 'x' };
    const runs = { r: root, b: [started, opened(inner)], d: [opened(below)] };
    expect(await read(runs, '> wait.opened c 1')).toContain('> wait.opened c 1');
  });

  test('end the stream if they are all for persons, and no run below works (web 28)', async () => {
    const world = { runs: { r: root, b: [opened(below)] }, waits: () => [below] };
    expect(await finishOf(world, [], LONG_MS)).toBe('tool-calls');
    expect(await finishOf({ runs: { r: root, b: [started] }, waits: () => [below] })).toBeUndefined();
    const working: readonly Told[] = [started, opened(below)];
    expect(await finishOf({ ...world, runs: { r: root, b: working } })).toBeUndefined();
    const waiting: readonly Told[] = [...working, { type: 'run.waiting', waits: 1 }];
    expect(await finishOf({ ...world, runs: { r: root, b: waiting } }, [], LONG_MS)).toBe('tool-calls');
  });
});

describe('The id of a chunk', () => {
  test('names the run, the step, and the open questions of the step; another text is none (web 23)', () => {
    expect(placeInFrame('a%2Fb/3')).toEqual({ runId: 'a/b', step: 3, asked: [] });
    expect(placeInFrame('r/end')).toEqual({ runId: 'r', step: 'end', asked: [] });
    const asking = { runId: 'r', step: 1, asked: ['v', 'w/,\n'] };
    expect(placeInFrame(frameId(asking))).toEqual(asking);
    expect(frameId(asking)).not.toContain('\n');
    for (const id of ['', 'r', 'r/', 'r/x', 'r/1/2/3', 'r/end/w', 'r/1/%', 'r/-1', '%/1', `r/${'9'.repeat(20)}`])
      expect(placeInFrame(id)).toBeUndefined();
  });
});
