import fc from 'fast-check';
import { runMachine } from 'pawl/machines';
import { expect, test } from 'vitest';
import { initialTransition, transition } from 'xstate';
import {
  afterStep,
  answer,
  freshProgress,
  limits,
  resolution,
  settledOutput,
  stepEvents,
} from '../fixtures/machine-events.ts';

const machine = runMachine({ id: 'worker' });
const waysOut = ['completing', 'failing', 'leaving-running'] as const;
type WayOut = (typeof waysOut)[number];

const data = (code: string, cause?: object) => ({ name: 'E', code, message: 'm', ...(cause ? { cause } : {}) });
const causes = {
  shutdown: data('ERR_SHUTDOWN'),
  'wrapped shutdown': data('X', data('Y', data('ERR_SHUTDOWN'))),
  deadline: data('DEADLINE_EXCEEDED'),
  kill: data('CRITIC_KILL'),
  'caller cancel': data('CANCELLED'),
  'lost lease': data('LEASE_LOST'),
} as const;
const isShutdown = (name: keyof typeof causes) => name.endsWith('shutdown');

/** How a run goes when nobody stops it, and who stops it after how many of its events. */
const stories = fc.record({
  begin: fc.constantFrom('accepted', 'accepted', 'accepted', 'refused', 'delivered ok', 'delivered error'),
  isDurable: fc.boolean(),
  /** The save of the last step lands only after the answer is there. */
  isSlow: fc.boolean(),
  steps: fc.integer({ min: 0, max: 3 }),
  end: fc.constantFrom('answer', 'model error', 'step limit', 'tool loop', 'never'),
  stops: fc.array(
    fc.record({
      after: fc.integer({ min: 0, max: 12 }),
      cause: fc.constantFrom(...(Object.keys(causes) as (keyof typeof causes)[])),
      isCancel: fc.boolean(),
    }),
    { maxLength: 3 },
  ),
});
type Story = typeof stories extends fc.Arbitrary<infer T> ? T : never;
type Stimulus = {
  readonly event: object;
  readonly kind: 'begin' | 'work' | 'end' | 'stop';
  readonly isShutdown?: boolean;
};

function eventsOf(story: Story): Stimulus[] {
  const { begin, isDurable, steps, end } = story;
  const events: Stimulus[] = [{ event: resolution(begin, isDurable), kind: 'begin' }];
  const failing = end === 'tool loop';
  const count = end === 'step limit' ? limits.maxIterations : failing ? 3 : steps;
  for (let step = 1; step <= count; step++) {
    const work = [...stepEvents(step, { failing }), ...(isDurable ? [afterStep(step)] : [])];
    const isLast = failing || end === 'step limit' ? step === count : false;
    events.push(...work.map((event, i): Stimulus => ({ event, kind: isLast && i === 1 ? 'end' : 'work' })));
  }
  if (end === 'answer') {
    const landing = story.isSlow && isDurable && count > 0 ? events.pop() : undefined;
    events.push({ event: answer(count + 1), kind: landing ? 'work' : 'end' });
    if (landing) events.push({ ...landing, kind: 'end' });
  }
  if (end === 'model error') events.push({ event: answer(count + 1, data('MODEL')), kind: 'end' });
  const stops = story.stops.map(({ after, cause, isCancel }) => ({
    after,
    event: isCancel ? { type: 'run.cancel', reason: 'enough' } : { type: 'run.stop', cause: causes[cause] },
    isShutdown: !isCancel && isShutdown(cause),
  }));
  for (const { after, ...stop } of stops.sort((a, b) => b.after - a.after)) {
    events.splice(Math.min(after, events.length), 0, { ...stop, kind: 'stop' });
  }
  return events;
}

/** The matrix once more, told from the story alone. */
function expectedEnd(story: Story, events: readonly Stimulus[]): WayOut | undefined {
  let stopped: { isShutdown: boolean } | undefined;
  let hasBegun = false;
  const byCause = () => (stopped?.isShutdown ? 'leaving-running' : 'failing');
  for (const { kind, isShutdown: isFromShutdown = false } of events) {
    if (kind === 'stop') {
      stopped ??= { isShutdown: isFromShutdown };
      if (hasBegun) return byCause();
    } else if (kind === 'begin') {
      if (story.begin === 'delivered ok') return 'completing';
      if (story.begin === 'delivered error') return 'failing';
      if (story.begin === 'refused') return byCause();
      if (stopped) return byCause();
      hasBegun = true;
    } else if (kind === 'end') {
      return story.end === 'answer' ? 'completing' : 'failing';
    }
  }
  return undefined;
}

function play(events: readonly Stimulus[]) {
  let [snapshot] = initialTransition(machine, { progress: freshProgress() });
  const entered: WayOut[] = [];
  const look = () => {
    const way = waysOut.find((name) => snapshot.value === name);
    if (way && entered.at(-1) !== way) entered.push(way);
  };
  for (const { event } of events) {
    [snapshot] = transition(machine, snapshot, event as never);
    look();
  }
  const settled = settledOutput();
  if (entered.length > 0) [snapshot] = transition(machine, snapshot, settled as never);
  return { entered, snapshot };
}

const CASES = 6_000;

test(`the machine leaves by the way that the matrix says, and by no other, in ${CASES} random stories (finalize 2, 3, 8)`, () => {
  const counts = new Map<string, number>();
  fc.assert(
    fc.property(stories, (story) => {
      const events = eventsOf(story);
      const expected = expectedEnd(story, events);
      const { entered, snapshot } = play(events);
      expect(entered).toEqual(expected ? [expected] : []);
      expect(snapshot.status).toBe(expected ? 'done' : 'active');
      counts.set(String(expected), (counts.get(String(expected)) ?? 0) + 1);
    }),
    { numRuns: CASES },
  );
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  expect(total).toBeGreaterThanOrEqual(CASES);
  for (const way of [...waysOut, 'undefined']) expect(counts.get(way) ?? 0, way).toBeGreaterThan(CASES / 100);
}, 180_000);
