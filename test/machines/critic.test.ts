import fc from 'fast-check';
import {
  type CriticContext,
  type CriticDecision,
  type CriticEmitted,
  type CriticEvent,
  criticMachine,
} from 'pawl/machines';
import { expect, test } from 'vitest';
import { initialTransition, transition } from 'xstate';
import { torture } from '../crash/random.ts';

const [softLimitMs, idleMs, backstopMs] = [100, 20, 2_000];
const fresh: CriticContext = {
  softLimitMs,
  idleMs,
  backstopMs,
  lastActivityMs: 0,
  isAlarmGiven: false,
  alarms: 0,
  alarmsInStep: 0,
  nudges: 0,
  extendedToMs: 0,
  raisedSteps: 0,
  failures: 0,
  isOutOfSteps: false,
};

/** The machine, walked by hand; the answers of its escalator are given by the test. */
function walk(input: CriticContext = fresh) {
  let [snapshot] = initialTransition(criticMachine, input);
  const emitted: CriticEmitted[] = [];
  return {
    emitted,
    get state() {
      return snapshot.value as string;
    },
    get context() {
      return snapshot.context;
    },
    send(event: CriticEvent) {
      const [next, actions] = transition(criticMachine, snapshot, event);
      snapshot = next;
      for (const { type, params } of actions as readonly { type: string; params: unknown }[]) {
        if (type === 'xstate.emit') emitted.push((params as { event: CriticEmitted }).event);
      }
    },
    answer(at: number, decision: CriticDecision, hasFailed = false) {
      const output = { at, step: 0, decision, hasFailed };
      this.send({ type: 'xstate.done.actor.ask', actorId: 'ask', output } as never);
    },
  };
}

const seen = (at: number, hasStepped = false) => ({ type: 'activity.seen', at, hasStepped }) as const;
const time = (at: number) => ({ type: 'time.passed', at }) as const;

test('watching, alarmed, watching again, killed: the way of a run that stays silent (supervision 1)', () => {
  const critic = walk();
  critic.send(time(99));
  expect(critic.state).toBe('watching');
  critic.send(time(100));
  expect(critic.state).toBe('alarmed');
  critic.answer(101, { nudge: 'Go on.' });
  expect([critic.state, critic.emitted]).toEqual(['watching', [{ type: 'nudge.given', text: 'Go on.' }]]);
  critic.send(time(1_000));
  expect(critic.state).toBe('watching');
  critic.send(seen(1_000));
  critic.send(time(1_020));
  critic.answer(1_021, { kill: 'enough' });
  expect(critic.state).toBe('killed');
  expect(critic.emitted.slice(1)).toEqual([{ type: 'kill.decided', reason: 'enough' }]);
});

test.for(['watching', 'alarmed', 'out-of-steps'])('the backstop ends a run in %s (supervision 1)', (state) => {
  const critic = walk();
  if (state === 'alarmed') critic.send(time(100));
  if (state === 'out-of-steps') critic.send({ type: 'steps.exhausted' });
  expect(critic.state).toBe(state);
  critic.send(time(1_999));
  critic.send(seen(1_999));
  expect(critic.state).not.toBe('killed');
  critic.send(time(2_000));
  expect(critic.state).toBe('killed');
});

test.for(['watching', 'alarmed', 'out-of-steps'])('the end of the run ends %s (supervision 3)', (state) => {
  const critic = walk();
  if (state === 'alarmed') critic.send(time(100));
  if (state === 'out-of-steps') critic.send({ type: 'steps.exhausted' });
  critic.send({ type: 'run.ended' });
  critic.send(time(5_000));
  expect([critic.state, critic.emitted]).toEqual(['stopped', []]);
});

test('a question about steps that comes while another is open is asked next (supervision 2)', () => {
  const critic = walk();
  critic.send(time(100));
  critic.send({ type: 'steps.exhausted' });
  expect(critic.state).toBe('alarmed');
  critic.answer(101, {});
  expect(critic.state).toBe('out-of-steps');
  critic.answer(102, { raiseStepsBy: 3 });
  expect(critic.emitted).toEqual([{ type: 'steps.raised', by: 3 }, { type: 'steps.settled' }]);
  expect([critic.state, critic.context.raisedSteps]).toEqual(['watching', 3]);
});

type Stimulus =
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'activity'; readonly hasStepped: boolean }
  | { readonly kind: 'steps' }
  | { readonly kind: 'answer'; readonly decision: CriticDecision; readonly hasFailed: boolean };

const decision = fc.oneof(
  { weight: 9, arbitrary: fc.record({ extendByMs: fc.integer({ min: 1, max: 300 }) }, { requiredKeys: [] }) },
  { weight: 4, arbitrary: fc.record({ nudge: fc.constant('Go on.'), raiseStepsBy: fc.integer({ min: 1, max: 9 }) }) },
  { weight: 1, arbitrary: fc.constant({ kill: 'enough' }) },
) as fc.Arbitrary<CriticDecision>;
const stimulus: fc.Arbitrary<Stimulus> = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 90 }).map((ms): Stimulus => ({ kind: 'wait', ms })) },
  { weight: 3, arbitrary: fc.boolean().map((hasStepped): Stimulus => ({ kind: 'activity', hasStepped })) },
  { weight: 1, arbitrary: fc.constant<Stimulus>({ kind: 'steps' }) },
  {
    weight: 4,
    arbitrary: fc.tuple(decision, fc.boolean()).map(([decision, hasFailed]): Stimulus => {
      return { kind: 'answer', decision, hasFailed };
    }),
  },
);

test('in any story there is at most one alarm per idle period, and only past the soft limit (supervision 1)', () => {
  const counted = { alarms: 0, kills: 0, extensions: 0 };
  const property = fc.property(fc.array(stimulus, { minLength: 20, maxLength: 120, size: 'max' }), (story) => {
    const critic = walk();
    // What a reader of the contract would keep: the time, the last sign of life, the limit, and whether it was alarmed.
    let [now, lastActivity, limit, isAlarmed] = [0, 0, softLimitMs, false];
    for (const each of story) {
      const before = { state: critic.state, ...critic.context };
      const isAsked = before.state === 'alarmed' || before.state === 'out-of-steps';
      if (each.kind === 'wait') {
        now += each.ms;
        critic.send(time(now));
      } else if (each.kind === 'activity') {
        critic.send(seen(now, each.hasStepped));
        if (before.state !== 'killed') [lastActivity, isAlarmed] = [now, false];
      } else if (each.kind === 'steps') {
        critic.send({ type: 'steps.exhausted' });
      } else if (isAsked) {
        critic.answer(now, each.decision, each.hasFailed);
        const { extendByMs = 0, kill } = each.decision;
        if (kill === undefined && extendByMs > 0 && now + extendByMs > limit) {
          [limit, isAlarmed] = [now + extendByMs, false];
          counted.extensions += 1;
        }
      }

      const { state, context } = critic;
      expect(context.softLimitMs).toBe(limit);
      if (context.alarms > before.alarms) {
        expect(isAlarmed, 'a second alarm in one idle period').toBe(false);
        expect(now).toBeGreaterThanOrEqual(limit);
        expect(now - lastActivity).toBeGreaterThanOrEqual(idleMs);
        expect(context.alarms).toBe(before.alarms + 1);
        isAlarmed = true;
        counted.alarms += 1;
      }
      if (each.kind === 'wait') {
        // The other way round: whoever is silent for that long, past the limit, is not overlooked.
        if (before.state === 'watching' && state === 'watching')
          expect(isAlarmed || now < limit || now - lastActivity < idleMs).toBe(true);
        if (now >= backstopMs) expect(state).toBe('killed');
      }
      if (before.state === 'killed') expect({ state, ...context }).toEqual(before);
    }
    const kills = critic.emitted.filter(({ type }) => type === 'kill.decided').length;
    expect(kills).toBe(critic.state === 'killed' ? 1 : 0);
    if (kills > 0) expect(critic.emitted.at(-1)?.type).toBe('kill.decided');
    counted.kills += kills;
  });
  fc.assert(property, { numRuns: 100 * torture });
  // A generator that never gets there would prove nothing.
  for (const [what, count] of Object.entries(counted)) expect(count, what).toBeGreaterThan(10);
});

test('each state of the critic says what it is', () => {
  for (const [name, { description }] of Object.entries(criticMachine.states)) expect(description, name).toBeTruthy();
});
