import { describe, expect, test } from 'vitest';
import { ToldState } from '../../../src/executor/run/journal/told-state.ts';
import type { RunEvent, RunEventBody } from '../../../src/run/events/body.ts';
import { stepOf } from '../../../src/run/open-step.ts';
import type { Progress } from '../../../src/run/progress.ts';
import type { SettledWait, Wait } from '../../../src/run/waits/wait.ts';

type State = Parameters<ToldState['news']>[0];
type Call = NonNullable<Progress['openStep']>['calls'][number];

const ada = { id: 'ada' };
const approval = (id: string, more: object = {}): Wait =>
  ({ id, kind: 'approval', step: 1, callId: `c-${id}`, createdAt: 1, quorum: 2, votes: [], ...more }) as never;
const timer = (id: string): Wait => ({ id, kind: 'timer', step: 1, callId: `c-${id}`, createdAt: 1 }) as never;
const retry = (id: string): Wait => ({ id, kind: 'retry', step: 1, createdAt: 1, dueAt: 9 }) as never;
const call = (id: string, more: Partial<Call> = {}): Call =>
  ({
    callId: `c-${id}`,
    name: 'look',
    input: { of: id },
    effect: 'once',
    state: 'waiting',
    attempt: 0,
    ...more,
  }) as Call;
const settled = (id: string, how: SettledWait['how'], kind: Wait['kind'] = 'approval'): SettledWait =>
  ({ id, kind, how, at: 2, by: ada }) as SettledWait;

/** A state with these waits, calls, and ends of waits. */
const stateOf = (waits: readonly Wait[], calls: readonly Call[], ends: readonly SettledWait[] = []): State => ({
  waiting: { waits, settled: ends },
  ...(calls.length > 0 ? { openStep: stepOf({ role: 'assistant', content: [] }, calls) } : {}),
});

/** What the saves of states say, one after the other. */
function said(...states: readonly State[]): RunEventBody[][] {
  const told = new ToldState(undefined);
  return states.map((state) => {
    const { first, last } = told.news(state);
    told.onLanded(state);
    return [...first, ...last].map(({ body }) => body);
  });
}
const typesOf = (bodies: readonly RunEventBody[] = []) => bodies.map(({ type }) => type);
const open = stateOf([approval('w')], [call('w')]);

describe('A save says', () => {
  test('that a wait is open, with the input of its call, and that the run waits (web 1, 35)', () => {
    const [bodies = []] = said(open);
    expect(bodies).toEqual([
      { type: 'wait.opened', wait: approval('w'), input: { of: 'w' } },
      { type: 'run.waiting', waits: 1 },
    ]);
  });

  test('nothing of a wait that is open beside a call that works, but that it is open', () => {
    expect(typesOf(said(stateOf([approval('w')], [call('w'), call('x', { state: 'started' })]))[0])).toEqual([
      'wait.opened',
    ]);
  });

  test('who answered a wait, and that the run works again', () => {
    const [, bodies] = said(open, stateOf([], [call('w', { state: 'planned' })], [settled('w', 'approve')]));
    expect(bodies).toEqual([
      { type: 'wait.answered', waitId: 'w', kind: 'approval', callId: 'c-w', how: 'approve', by: ada },
      { type: 'run.woken' },
    ]);
  });

  test('each vote while others are needed', () => {
    const vote = approval('w', { votes: [{ by: ada, at: 3, note: 'seen' }] });
    const [, bodies, again] = said(open, stateOf([vote], [call('w')]), stateOf([vote], [call('w')]));
    expect(bodies).toEqual([
      {
        type: 'wait.answered',
        waitId: 'w',
        kind: 'approval',
        callId: 'c-w',
        how: 'approve',
        by: ada,
        note: 'seen',
        votes: 1,
      },
    ]);
    expect(again).toEqual([]);
  });

  test('that no person decided in time, but that a timer was answered', () => {
    const both = stateOf([approval('w'), timer('t')], [call('w'), call('t')]);
    const ends = [settled('w', 'expire'), settled('t', 'expire', 'timer')];
    const [, bodies] = said(both, stateOf([], [call('w', { state: 'done' }), call('t', { state: 'planned' })], ends));
    expect(typesOf(bodies)).toEqual(['wait.expired', 'wait.answered', 'run.woken']);
  });

  test('how thousands of waits ended at once, of which the record names the last few', () => {
    const ids = Array.from({ length: 2_000 }, (_, i) => `w${i}`);
    const denied = { type: 'execution-denied', reason: 'No person decided in time.' } as const;
    const after = ids.map((id, i) =>
      call(id, { state: 'done', result: i === 0 ? { ...denied, reason: 'no' } : denied }),
    );
    const opened = stateOf(
      ids.map((id) => approval(id)),
      ids.map((id) => call(id)),
    );
    const [, bodies = []] = said(opened, stateOf([], after));
    expect(bodies[0]).toMatchObject({ type: 'wait.answered', waitId: 'w0', how: 'deny' });
    expect(bodies.slice(1, -1).every(({ type }) => type === 'wait.expired')).toBe(true);
    expect(bodies).toHaveLength(2_001);
  });

  test('that a wait was withdrawn: another one asks, or the run ended', () => {
    const [, again] = said(open, stateOf([approval('v', { callId: 'c-w' })], [call('w')]));
    expect(typesOf(again)).toEqual(['wait.withdrawn', 'wait.opened']);
    const outcome = { status: 'cancelled', output: '' } as State['outcome'];
    const [, end] = said(open, { ...stateOf([], [call('w')]), ...(outcome ? { outcome } : {}) });
    expect(typesOf(end)).toEqual(['wait.withdrawn', 'run.ended']);
  });

  test('nothing of the end of a wait for a model: the run says that itself', () => {
    expect(said(stateOf([retry('r')], []), stateOf([], [])).map(typesOf)).toEqual([
      ['wait.opened', 'run.waiting'],
      ['run.woken'],
    ]);
  });

  test('that a run is parked, once, and not that it works again', () => {
    const parked = { ...open, parked: { code: 'X', reason: 'by hand' } };
    expect(said(open, parked, parked).map(typesOf).slice(1)).toEqual([['run.parked'], []]);
  });

  test('the same again until it is stored', () => {
    const told = new ToldState(undefined);
    expect(told.news(open)).toEqual(told.news(open));
  });

  test('nothing that the record of the run has said before', () => {
    expect(new ToldState(open).news(open)).toEqual({ first: [], last: [] });
  });
});

describe('An event that the run publishes', () => {
  const event = (body: RunEventBody): RunEvent => ({ ...body, runId: 'r', seq: 1, at: 1 });
  const waiting = event({ type: 'run.waiting', waits: 1 });
  const woken = event({ type: 'run.woken' });

  test('is left to the save that says the same', () => {
    const told = new ToldState(undefined);
    told.onLanded(open);
    expect(told.take(waiting)).toBe(true);
    expect(told.take(event({ type: 'wait.opened', wait: approval('w') }))).toBe(true);
    expect(told.take(event({ type: 'wait.answered', waitId: 'r', kind: 'retry', how: 'wake' }))).toBe(false);
  });

  test('that no save says is passed on, once: calls that end change no record', () => {
    const told = new ToldState(undefined);
    expect([told.take(waiting), told.take(waiting), told.take(woken), told.take(woken)]).toEqual([
      false,
      true,
      false,
      true,
    ]);
    expect(told.news(stateOf([], []))).toEqual({ first: [], last: [] });
  });

  test('of a run that continues makes it work: it says again that it waits', () => {
    const told = new ToldState(open);
    expect(told.take(event({ type: 'run.resumed', iteration: 0, attempts: 1 }))).toBe(false);
    expect(told.news(open).last).toEqual([]);
    expect(told.take(waiting)).toBe(false);
    expect(told.take(waiting)).toBe(true);
  });

  test('of a run that continues for an answer says that it works, and not before that it waits', () => {
    const told = new ToldState(open);
    told.take(event({ type: 'run.resumed', iteration: 0, attempts: 1 }));
    told.onLanded(open);
    expect(told.take(woken)).toBe(false);
    expect(told.take(woken)).toBe(true);
  });
});
