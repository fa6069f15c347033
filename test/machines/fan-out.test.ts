import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fanOutMachine } from '../../machines/fan-out.ts';
import type { RunOutput } from '../../src/run/result.ts';
import { torture } from '../crash/random.ts';
import { cause, late, outputOf, walk } from '../fan-out/chart-walk.ts';

describe('the chart of a fan-out', () => {
  test('all models are asked at the same time, each by an actor of its own (fan-out 1)', () => {
    const fanOut = walk();
    expect([fanOut.state, fanOut.children]).toEqual(['opening', ['open']]);
    fanOut.opened();
    expect([fanOut.state, fanOut.of('model.asked')]).toEqual(['asking', [0, 1, 2]]);
    expect(fanOut.children).toEqual(['model(0)', 'model(1)', 'model(2)']);
    expect(fanOut.region(1)).toEqual({ asking: 'working' });
  });

  test('one that fails leaves the others at it, and its run is no child any more (fan-out 1)', () => {
    const fanOut = walk();
    fanOut.opened();
    fanOut.ends(1, 'error');
    expect([fanOut.region(0), fanOut.region(1)]).toEqual([{ asking: 'working' }, 'failed']);
    expect(fanOut.children).toEqual(['model(0)', 'model(2)']);
    fanOut.ends(0);
    fanOut.ends(2);
    expect([fanOut.state, fanOut.children]).toEqual(['closing', ['close']]);
    expect(fanOut.sent).toEqual([]);
    fanOut.done('close');
    expect([fanOut.state, fanOut.children]).toEqual(['closed', []]);
  });

  test.for([
    ['ok', 'answered'],
    ['error', 'failed'],
    ['timeout', 'failed'],
    ['cancelled', 'failed'],
    ['killed', 'failed'],
    ['interrupted', 'left'],
  ] as const)('a run that ends %s has its model %s (fan-out 1)', ([status, state]) => {
    const fanOut = walk();
    fanOut.opened();
    fanOut.ends(1, status);
    expect(fanOut.region(1)).toBe(state);
    expect(fanOut.emitted.at(-1)).toEqual({ type: 'model.ended', place: 1, output: outputOf(status) });
    expect(fanOut.context.outputs).toEqual({ 1: outputOf(status) });
  });

  test('a model that answered in an earlier process is not asked again; when all have, none is (fan-out 5)', () => {
    const some = walk({ answered: [0, 2] });
    some.opened();
    expect([some.of('model.asked'), some.children, some.region(0)]).toEqual([[1], ['model(1)'], 'answered']);
    const all = walk({ answered: [0, 1, 2] });
    all.opened();
    expect([all.state, all.of('model.asked'), all.children]).toEqual(['closing', [], ['close']]);
  });

  test('what cannot be opened is closed again, and no model is asked (fan-out 1)', () => {
    const fanOut = walk({ hasJudge: true });
    fanOut.done('open', { error: cause });
    expect([fanOut.state, fanOut.emitted, fanOut.context.error]).toEqual(['closing', [], cause]);
    fanOut.done('close');
    expect(fanOut.state).toBe('closed');
  });

  test('each state says what it is', () => {
    const { root } = fanOutMachine([{ id: 'm0' }]);
    const all = (node: typeof root): (typeof root)[] =>
      Object.values(node.states).flatMap((each) => [each, ...all(each)]);
    for (const node of all(root)) expect(node.description, node.id).toMatch(/\.$/);
    expect(all(root).length).toBeGreaterThan(10);
  });
});

describe('leaving off', () => {
  test('leaving off before the start asks no model (fan-out 6)', () => {
    const fanOut = walk({ hasJudge: true, answered: [1] });
    fanOut.leave();
    expect([fanOut.state, fanOut.context.cause]).toEqual(['opening', cause]);
    fanOut.opened();
    expect([fanOut.state, fanOut.of('model.asked'), fanOut.children]).toEqual(['closing', [], ['close']]);
  });

  test('all models at work get one request to leave off, and are waited for (fan-out 6)', () => {
    const fanOut = walk();
    fanOut.opened();
    fanOut.ends(0);
    fanOut.leave();
    fanOut.leave();
    expect(fanOut.sent).toEqual([
      { to: 'model(1)', type: 'run.leave' },
      { to: 'model(2)', type: 'run.leave' },
    ]);
    expect([fanOut.of('model.leaving'), fanOut.region(1)]).toEqual([[1, 2], { asking: 'leaving' }]);
    fanOut.ends(1, 'interrupted');
    expect(fanOut.emitted.at(-1)).toEqual({ type: 'model.ended', place: 1, output: outputOf('interrupted'), cause });
    expect(fanOut.state).toBe('asking');
    fanOut.ends(2);
    expect(fanOut.state).toBe('closing');
  });

  test('a model that is out of time leaves off by itself, the others continue (fan-out 6)', () => {
    const fanOut = walk();
    fanOut.opened();
    fanOut.overdue(1);
    fanOut.overdue(1);
    expect(fanOut.sent).toEqual([{ to: 'model(1)', type: 'run.leave' }]);
    expect([fanOut.region(0), fanOut.region(1)]).toEqual([{ asking: 'working' }, { asking: 'leaving' }]);
    expect(fanOut.context.causes).toEqual({ 1: late });
  });

  test('the first cause of leaving stands (fan-out 6)', () => {
    const fanOut = walk();
    fanOut.opened();
    fanOut.overdue(1);
    fanOut.leave();
    fanOut.overdue(2);
    expect(fanOut.context.causes).toEqual({ 0: cause, 1: late, 2: cause });
  });

  test('only a model that is still at work long after that request is stopped (fan-out 6)', () => {
    const fanOut = walk();
    fanOut.opened();
    fanOut.send({ type: 'leave.overdue', place: 1 });
    expect(fanOut.sent).toEqual([]);
    fanOut.leave();
    fanOut.sent.length = 0;
    fanOut.send({ type: 'leave.overdue', place: 1 });
    expect(fanOut.sent).toEqual([{ to: 'model(1)', type: 'run.stop' }]);
    expect(fanOut.region(1)).toEqual({ asking: 'leaving' });
  });

  test('after the end of asking no model gets a request (fan-out 6)', () => {
    const fanOut = walk();
    fanOut.opened();
    for (const place of [0, 1, 2]) fanOut.ends(place);
    fanOut.leave();
    fanOut.overdue(1);
    expect([fanOut.state, fanOut.sent]).toEqual(['closing', []]);
  });
});

describe('judging', () => {
  test.for([
    ['two answers', ['ok', 'ok', 'error'], [], 'judging'],
    ['an answer of now and one of before', ['ok', undefined, 'error'], [1], 'judging'],
    ['one answer', ['ok', 'error', 'error'], [], 'closing'],
    ['none', ['error', 'error', 'error'], [], 'closing'],
    ['two answers and somebody who left by itself', ['ok', 'ok', 'interrupted'], [], 'closing'],
  ] as const)('with %s the judge is asked, or not (fan-out 1)', ([, statuses, answered, state]) => {
    const fanOut = walk({ hasJudge: true, answered });
    fanOut.opened();
    for (const [place, status] of statuses.entries()) if (status) fanOut.ends(place, status);
    expect(fanOut.state).toBe(state);
  });

  test('no judge is asked about a race that is not over: one has left off (fan-out 6)', () => {
    const fanOut = walk({ hasJudge: true });
    fanOut.opened();
    fanOut.overdue(2);
    fanOut.ends(0);
    fanOut.ends(1);
    fanOut.ends(2, 'interrupted');
    expect(fanOut.state).toBe('closing');
  });

  test('without a judge there is no judging (fan-out 1)', () => {
    const fanOut = walk();
    fanOut.opened();
    for (const place of [0, 1, 2]) fanOut.ends(place);
    expect(fanOut.state).toBe('closing');
  });

  test('who leaves while the judge ponders does not wait for the judge (fan-out 6)', () => {
    const fanOut = walk({ hasJudge: true });
    fanOut.opened();
    for (const place of [0, 1, 2]) fanOut.ends(place);
    expect(fanOut.children).toEqual(['judge']);
    fanOut.leave();
    expect([fanOut.state, fanOut.children]).toEqual(['closing', ['close']]);
  });
});

const place = fc.nat(3);
const stories = fc.record({
  hasJudge: fc.boolean(),
  answered: fc.subarray([0, 1, 2, 3]),
  isRefused: fc.nat(9).map((drawn) => drawn === 0),
  events: fc.array(
    fc.oneof(
      { weight: 3, arbitrary: fc.tuple(fc.constant('opened'), place) },
      { weight: 1, arbitrary: fc.tuple(fc.constant('leave'), place) },
      { weight: 2, arbitrary: fc.tuple(fc.constant('overdue'), place) },
      { weight: 2, arbitrary: fc.tuple(fc.constant('leave.overdue'), place) },
      { weight: 4, arbitrary: fc.tuple(fc.constantFrom('ok', 'error', 'interrupted', 'timeout'), place) },
      { weight: 1, arbitrary: fc.tuple(fc.constantFrom('judge', 'close'), place) },
    ),
    { minLength: 10, maxLength: 40, size: 'max' },
  ),
});

test('in any order of events a fan-out ends, asks no model twice and none that has answered, and keeps no dead run (fan-out 1, 5)', () => {
  const seen = { judged: 0, leftBefore: 0, left: 0, stopped: 0 };
  const property = fc.property(stories, ({ hasJudge, answered, isRefused, events }) => {
    const fanOut = walk({ count: 4, hasJudge, answered });
    /** What its actors may say: each answers once, and only while it is a child. */
    const say = (id: string, output?: unknown) => fanOut.children.includes(id) && fanOut.done(id, output);
    const open = () => {
      if (!fanOut.children.includes('open')) return;
      if (isRefused) fanOut.done('open', { error: cause });
      else fanOut.opened();
    };
    const check = () => {
      const [asked, ended] = [fanOut.of('model.asked'), fanOut.of('model.ended')];
      expect(new Set(asked).size, 'asked twice').toBe(asked.length);
      expect(asked.filter((each) => answered.includes(each))).toEqual([]);
      expect(new Set(ended).size, 'ended twice').toBe(ended.length);
      const atWork = asked.filter((each) => !ended.includes(each)).map((each) => `model(${each})`);
      expect(fanOut.children.filter((id) => id.startsWith('model'))).toEqual(atWork);
      const told = fanOut.sent.filter(({ type }) => type === 'run.leave').map(({ to }) => to);
      expect(new Set(told).size, 'told twice').toBe(told.length);
    };
    for (const [what, at] of events) {
      if (what === 'opened') open();
      else if (what === 'leave') fanOut.leave();
      else if (what === 'overdue') fanOut.overdue(at);
      else if (what === 'leave.overdue') fanOut.send({ type: 'leave.overdue', place: at });
      else if (what === 'judge' || what === 'close') say(what);
      else say(`model(${at})`, outputOf(what as RunOutput['status']));
      if (fanOut.state === 'judging') seen.judged += 1;
      check();
    }
    if (fanOut.context.cause && fanOut.of('model.asked').length === 0) seen.leftBefore += 1;
    seen.left += Object.keys(fanOut.context.causes).length;
    seen.stopped += fanOut.sent.filter(({ type }) => type === 'run.stop').length;
    // Whoever is still at something comes to an end.
    open();
    for (const each of [0, 1, 2, 3]) say(`model(${each})`, outputOf('ok'));
    say('judge');
    say('close');
    check();
    expect([fanOut.state, fanOut.children]).toEqual(['closed', []]);
  });
  fc.assert(property, { numRuns: 120 * torture });
  for (const [what, count] of Object.entries(seen)) expect(count, what).toBeGreaterThan(3);
});
