import { createEscalator, type EscalatorOptions, type EscalatorState, type Message } from 'pawl';
import { describe, expect, test } from 'vitest';
import { usage, watched } from './supervised-run.ts';

const { signal } = new AbortController();

function stateOf(over: Partial<EscalatorState> = {}): EscalatorState {
  return {
    runId: 'r',
    reason: 'idle',
    iterations: 4,
    maxIterations: 20,
    lastActivityAt: 0,
    idleMs: 61_000,
    elapsedMs: 900_000,
    lastTool: 'look',
    usage,
    tail: [],
    alarms: 1,
    alarmsInStep: 1,
    nudges: 0,
    raisedSteps: 0,
    failures: 0,
    ...over,
  };
}

const decided = (over: Partial<EscalatorState>, options: EscalatorOptions = {}) =>
  createEscalator(options)(stateOf(over), signal);

/** One turn: the model says and calls something, the tool answers. */
function turn(text: string, input: unknown, answer: string, name = 'look'): Message[] {
  const output = { type: 'text' as const, value: answer };
  return [
    {
      role: 'assistant',
      content: [
        { type: 'text', text },
        { type: 'tool-call', toolCallId: 'c', toolName: name, input },
      ],
    },
    { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', toolName: name, output }] },
  ];
}

const turns = (count: number, make: (i: number) => Message[]) =>
  Array.from({ length: count }, (_, i) => make(i)).flat();
const varied = turns(5, (i) => turn(`t${i}`, { i }, `a${i}`));

describe('the idle rule', () => {
  test('nudges a silent run first, and kills it when it stays silent (supervision 1)', () => {
    expect(decided({ alarmsInStep: 1 })).toMatchObject({ nudge: expect.any(String), extendByMs: 60_000 });
    expect(decided({ alarmsInStep: 2 })).toMatchObject({ nudge: expect.any(String), extendByMs: 60_000 });
    expect(decided({ alarmsInStep: 3 })).toEqual({
      kill: true,
      reason: 'no sign of life for 61000 ms, at alarm 3 of this step',
    });
  });

  test('counts the alarms of one step, not of the whole run (supervision 1)', () => {
    expect(decided({ alarms: 40, alarmsInStep: 1 })).not.toHaveProperty('kill');
  });

  test('says nothing more when its nudges are used up, but looks again (supervision 1)', () => {
    const options = { idleNudges: 1, killAfterAlarms: 9, lookAgainMs: 5_000 };
    expect(decided({ alarmsInStep: 2 }, options)).toEqual({ extendByMs: 5_000 });
  });

  test('says what the host wants said (supervision 1)', () => {
    expect(decided({}, { nudge: 'Hurry up.' })).toMatchObject({ nudge: 'Hurry up.' });
    const nudge = ({ lastTool }: EscalatorState) => `Is ${lastTool} stuck?`;
    expect(decided({}, { nudge })).toMatchObject({ nudge: 'Is look stuck?' });
  });

  test.for([
    () => {
      throw new Error('no');
    },
    () => 42 as never,
    () => '',
    () => Promise.reject(new Error('no')) as never,
  ])(
    'a text of the host’s that cannot be had is replaced: the rest of the decision stands (%#) (supervision 3)',
    (nudge) => {
      expect(decided({}, { nudge })).toMatchObject({ nudge: expect.stringContaining('answer'), extendByMs: 60_000 });
    },
  );

  test('at work, it lets a run that recovers live and ends one that does not (supervision 1)', async () => {
    const escalator = createEscalator({ lookAgainMs: 30 });
    const { run, handle } = watched(() => null, { options: { escalator } });
    await run.clock.advance(140);
    expect(run.done).toHaveLength(1);
    run.iteration = 1;
    handle.onActivity({ type: 'step', step: 1, tools: ['look'] });
    await run.clock.advance(79);
    expect(run.done.filter((line) => line.startsWith('kill'))).toEqual([]);
    await run.clock.advance(1);
    expect(run.done.at(-1)).toBe('kill: no sign of life for 80 ms, at alarm 3 of this step');
  });
});

describe('the no-progress rule', () => {
  const options = { noProgress: { steps: 3 } };
  const alike = {
    'the same text': turns(3, (i) => turn('Let me look again.', { i }, `a${i}`)),
    'the same calls': turns(3, (i) => turn(`t${i}`, { q: 1 }, `a${i}`)),
    'the same tool with the same results': turns(3, (i) => turn(`t${i}`, { i }, 'not found')),
  };

  test.for(Object.entries(alike))('three turns with %s are nudged once (supervision 1)', ([, tail]) => {
    expect(decided({ tail: [...varied, ...tail] }, options)).toMatchObject({
      nudge: expect.stringContaining('3 turns were alike'),
      extendByMs: 60_000,
    });
  });

  test.for(Object.entries(alike))('three more turns with %s end the run (supervision 1)', ([, tail]) => {
    const state = { tail, iterations: 9, nudges: 1 };
    expect(decided({ ...state, nudgedAtStep: 7 }, options)).toEqual({ extendByMs: 60_000 });
    expect(decided({ ...state, nudgedAtStep: 6 }, options)).toMatchObject({
      kill: true,
      reason: 'no progress: the last 3 turns were alike, in spite of a nudge',
    });
  });

  test.for(
    Object.entries({
      'turns that differ': varied,
      'too few turns': turns(2, () => turn('t', {}, 'a')),
      'one turn that differs in between': [
        ...turns(2, () => turn('t', {}, 'a')),
        ...varied.slice(0, 2),
        ...turns(1, () => turn('t', {}, 'a')),
      ],
      'the same results of different tools': turns(3, (i) => turn(`t${i}`, { i }, 'ok', `tool${i}`)),
      'turns without any text or call': turns(3, () => [{ role: 'assistant', content: [] }]),
      'the run being asked the same': turns(3, () => [{ role: 'user', content: [{ type: 'text', text: 'Go on.' }] }]),
    }),
  )('%s are progress (supervision 1)', ([, tail]) => {
    const told = decided({ tail: tail as Message[], nudgedAtStep: 0 }, options);
    expect(told).not.toHaveProperty('kill');
    expect(JSON.stringify(told)).not.toContain('alike');
  });

  test('what differs only in the order of its fields is the same call (supervision 1)', () => {
    const tail = [
      ...turn('a', { x: 1, y: 2 }, '1'),
      ...turn('b', { y: 2, x: 1 }, '2'),
      ...turn('c', { x: 1, y: 2 }, '3'),
    ];
    expect(decided({ tail }, options)).toHaveProperty('nudge', expect.stringContaining('alike'));
  });

  test('is off where the host does not ask for it (supervision 1)', () => {
    expect(JSON.stringify(decided({ tail: alike['the same text'] }))).not.toContain('alike');
  });

  test('a run out of steps gets room for the nudge, and no more (supervision 2)', () => {
    const state = { reason: 'steps', tail: alike['the same text'], iterations: 9 } as const;
    expect(decided(state, { ...options, raiseStepsBy: 10 })).toEqual({
      nudge: expect.stringContaining('alike'),
      raiseStepsBy: 3,
    });
    expect(decided({ ...state, nudgedAtStep: 6 }, { ...options, raiseStepsBy: 10 })).toHaveProperty('kill', true);
  });
});

describe('the step rule', () => {
  test('raises nothing where the host does not say by how much (supervision 2)', () => {
    expect(decided({ reason: 'steps' })).toEqual({});
  });

  test('gives a healthy run more steps, up to a ceiling (supervision 2)', () => {
    const options = { raiseStepsBy: 10, maxRaisedSteps: 25 };
    const raised = [0, 10, 20, 25].map((raisedSteps) =>
      decided({ reason: 'steps', raisedSteps, tail: varied }, options),
    );
    expect(raised).toEqual([{ raiseStepsBy: 10 }, { raiseStepsBy: 10 }, { raiseStepsBy: 5 }, {}]);
  });

  test('the ceiling is ten times the raise where the host names none (supervision 2)', () => {
    expect(decided({ reason: 'steps', raisedSteps: 99 }, { raiseStepsBy: 10 })).toEqual({ raiseStepsBy: 1 });
    expect(decided({ reason: 'steps', raisedSteps: 100 }, { raiseStepsBy: 10 })).toEqual({});
  });
});

describe('createEscalator', () => {
  test.for<[string, object]>([
    ['a negative count', { idleNudges: -1 }],
    ['an alarm before the first', { killAfterAlarms: 0 }],
    ['a time that is no number', { lookAgainMs: '5' }],
    ['one turn without progress', { noProgress: { steps: 1 } }],
    ['more turns than can be seen', { noProgress: { steps: 11 } }],
    ['a raise by NaN', { raiseStepsBy: Number.NaN }],
    ['a nudge that is no text', { nudge: 42 }],
    ['a model that is none', { model: {} }],
    ['a deadline of zero', { modelTimeoutMs: 0 }],
  ])('refuses %s', ([, options]) => {
    expect(() => createEscalator(options as EscalatorOptions)).toThrow();
  });

  test('decides the same for the same state', () => {
    const escalator = createEscalator({ noProgress: { steps: 3 } });
    const state = Object.freeze(stateOf({ tail: varied }));
    expect(escalator(state, signal)).toEqual(escalator(state, signal));
  });
});
