import { APICallError } from '@ai-sdk/provider';
import {
  type CheckpointStore,
  createCompactor,
  createCritic,
  createEscalator,
  createPalette,
  defineAgent,
  memoryStore,
  type RunEvent,
  type RunOutcome,
} from 'pawl';
import {
  callTool,
  callTools,
  fail,
  reply,
  type ScriptedEntry,
  scriptedModel,
  type TestClock,
  testClock,
} from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { torture } from '../crash/random.ts';
import { listen, ofType } from '../events/listening.ts';
import { type HostOptions, hostOf, settle, toolOf } from '../fixtures/host.ts';
import { notingAudit, notingBudget } from '../fixtures/noting-ports.ts';
import { plainStore, watchedStore } from '../fixtures/watched-store.ts';

const [SECOND, MINUTE, HOUR] = [1_000, 60_000, 3_600_000];
const status = (statusCode: number, responseHeaders: Record<string, string> = {}) =>
  fail(
    new APICallError({
      message: `status ${statusCode}`,
      url: 'http://x',
      requestBodyValues: {},
      statusCode,
      responseHeaders,
    }),
  );
const away = status(503);
const look = callTool('look');

type Memory = ReturnType<typeof memoryStore>;

/** A durable host on a test clock, with the outcomes of its runs. Its executor sweeps the due runs of its store. */
function deskOf(
  script: readonly ScriptedEntry[],
  { store: given, ...options }: HostOptions & { clock?: TestClock } = {},
) {
  const clock = options.clock ?? testClock(Date.UTC(2026, 0, 1, 12));
  const store = (given ?? memoryStore({ clock })) as Memory;
  const outcomes: RunOutcome[] = [];
  const host = hostOf({
    ...{ script, clock, store, tools: [toolOf('look')], random: () => 0.5 },
    onOutcome: (outcome) => void outcomes.push(outcome),
    ...options,
  });
  const { start } = host;
  /** Starts a run, and gives it a moment to come to rest. */
  const begin = async (prompt = 'Go.') => {
    const run = await start({ runId: 'r', prompt });
    await clock.advance(20 * SECOND);
    return run;
  };
  const waits = async () => (await store.load('r'))?.waiting?.waits ?? [];
  return { ...host, clock, store, outcomes, begin, waits };
}

const times = <T>(count: number, value: T): T[] => Array(count).fill(value);

describe('a model that is away', () => {
  test('does not end a run: after three 503 in two seconds it waits in its process, after five it rests, and ends ok (waiting 29)', async () => {
    const { begin, clock, outcomes, model, waits, store } = deskOf([look, ...times(6, away), look, reply('done')]);
    const run = await begin();
    expect(await run.result).toMatchObject({
      status: 'waiting',
      waits: [{ kind: 'retry', step: 2, failures: 1, needsPerson: false, error: { code: 'MODEL' } }],
      error: { code: 'RUN_WAITS' },
    });
    expect(model.calls).toHaveLength(6);
    expect(await store.claim('r', 'another', 1)).not.toBeNull();
    const [first] = await waits();
    await clock.advance(35 * SECOND);
    expect(model.calls).toHaveLength(7);
    const [second] = await waits();
    expect(second).toMatchObject({ failures: 2, since: (first as { since: number }).since });
    expect(second?.id).not.toBe(first?.id);
    await clock.advance(2 * MINUTE);
    expect(outcomes).toMatchObject([{ status: 'ok', output: 'done', iterations: 3 }]);
    expect(model.calls).toHaveLength(9);
  });

  test('three 503 in two seconds are retried in the process, after an hour of work too (waiting 28, 29)', async () => {
    const clock = testClock();
    const slow = toolOf('look', 'read', () => new Promise((resolve) => clock.setTimeout(() => resolve('seen'), HOUR)), {
      timeoutMs: 2 * HOUR,
    });
    const options = { clock, tools: [slow], agent: { maxRuntimeMs: 2 * HOUR } };
    const { start, outcomes } = deskOf([look, ...times(3, away), reply('done')], options);
    await start({ runId: 'r' });
    await clock.advance(HOUR + 10 * SECOND);
    expect(outcomes).toMatchObject([{ status: 'ok' }]);
  });

  test('is asked with waits of 30 s, doubled up to 15 min, one request at each wake (waiting 29)', async () => {
    const { begin, clock, model } = deskOf([look, ...times(99, away)]);
    await begin();
    const seen: number[] = [];
    for (let minutes = 0; minutes < 60; minutes++) {
      const before = model.calls.length;
      await clock.advance(MINUTE);
      if (model.calls.length > before) seen.push(model.calls.length - before);
    }
    // 30 s, 1, 2, 4, 8, 15, 15 min: the seventh is after 45.5 min.
    expect(seen).toEqual(times(7, 1));
  });

  test('the wait is not over before the time that the provider asks for (waiting 29)', async () => {
    const { begin, clock, model, outcomes } = deskOf([look, status(429, { 'retry-after': '600' }), reply('done')]);
    await begin();
    await clock.advance(9.5 * MINUTE);
    expect(model.calls).toHaveLength(2);
    await clock.advance(30 * SECOND);
    expect(outcomes).toMatchObject([{ status: 'ok' }]);
  });

  test('an answer ends the outage: the next one counts from its own beginning (waiting 29)', async () => {
    const script = [look, ...times(7, away), look, ...times(5, away), reply('done')];
    const { begin, clock, waits, store } = deskOf(script);
    await begin();
    await clock.advance(215 * SECOND);
    const [wait] = await waits();
    expect(wait).toMatchObject({ step: 3, failures: 1 });
    expect((await store.load('r'))?.waiting?.waits).toHaveLength(1);
    await clock.advance(MINUTE);
    expect(await store.load('r')).toBeNull();
  });

  test('the events of a run say that it waits, for what, and that it works again (waiting 29)', async () => {
    const store = plainStore();
    const { start, clock } = deskOf([look, ...times(6, away), reply('done')], { store: store as Memory });
    const run = await start({ runId: 'r' });
    const events = listen(run);
    await clock.advance(5 * MINUTE);
    const told = (await events).filter(({ type }) => /^(wait|run)\.(?!status)/.test(type));
    expect(told.map(({ type }) => type)).toEqual([
      'run.started',
      ...['wait.opened', 'run.waiting', 'wait.answered', 'run.woken'],
      ...['wait.opened', 'run.waiting', 'wait.answered', 'run.woken'],
      'run.ended',
    ]);
    expect(ofType(told, 'wait.answered')).toMatchObject([
      { kind: 'retry', how: 'expire' },
      { kind: 'retry', how: 'expire' },
    ]);
  });

  test('a message that comes meanwhile reaches the model with the next request (waiting 29)', async () => {
    for (const isPlain of [false, true]) {
      const clock = testClock();
      const store = (isPlain ? plainStore() : memoryStore({ clock })) as Memory;
      const { begin, executor, outcomes, model } = deskOf([look, ...times(5, away), reply('done')], {
        clock,
        store,
      });
      await begin();
      await executor.control('r').steer('Be quick.');
      await clock.advance(2 * MINUTE);
      expect(outcomes).toMatchObject([{ status: 'ok', undelivered: [] }]);
      expect(JSON.stringify(model.calls.at(-1)?.messages)).toContain('Be quick.');
    }
  });

  test('a message that the model did not answer is asked again after the wait, once (waiting 29)', async () => {
    const { begin, clock, executor, outcomes, model } = deskOf([look, ...times(7, away), reply('done')]);
    await begin();
    await executor.control('r').steer('Be quick.');
    await clock.advance(5 * MINUTE);
    expect(outcomes).toMatchObject([{ status: 'ok' }]);
    expect(JSON.stringify(model.calls.at(-1)?.messages).split('Be quick.')).toHaveLength(2);
  });

  test('a cancel ends the run at once, also while it rests (waiting 29)', async () => {
    for (const isPlain of [false, true]) {
      const clock = testClock();
      const checkpoints = (isPlain ? plainStore() : memoryStore({ clock })) as Memory;
      const { begin, executor, outcomes, store } = deskOf([look, ...times(9, away)], { clock, store: checkpoints });
      await begin();
      expect(await executor.control('r').cancel('enough')).toBe('ended');
      expect(outcomes).toMatchObject([{ status: 'cancelled' }]);
      expect(await store.load('r')).toBeNull();
    }
  });

  test('wake asks it at once, here and in the store (waiting 31)', async () => {
    for (const isPlain of [false, true]) {
      const clock = testClock();
      const store = (isPlain ? plainStore() : memoryStore({ clock })) as Memory;
      const { begin, executor, outcomes } = deskOf([look, ...times(5, away), reply('done')], { clock, store });
      await begin();
      expect(await executor.control('r').wake()).toBe(isPlain ? 'recorded' : 'sent');
      await settle();
      await clock.advance(2 * SECOND);
      expect(outcomes).toMatchObject([{ status: 'ok' }]);
    }
  });
});

describe('a process that ends during an outage', () => {
  /** A model that calls a tool twice; so many requests for the second turn fail. */
  function surveyor(failures: number): ScriptedEntry[] {
    let left = failures;
    return times(50, ({ messages }) => {
      const turn = messages.filter(({ role }) => role === 'assistant').length;
      if (turn === 1 && left-- > 0) return away;
      return turn === 2 ? reply('done') : callTool('look', { turn });
    });
  }

  /** A process that dies after so many writes of its store, and the process after it. */
  async function diedAfter(writes: number) {
    const clock = testClock();
    const inner = memoryStore({ clock });
    const seen: unknown[] = [];
    const tools = [toolOf('look', 'once', ({ turn }) => seen.push(turn))];
    let count = 0;
    const isDead = () => count >= writes;
    const dead = () => (isDead() ? new Promise(() => {}) : undefined);
    const counted = ['save', 'append', 'claim', 'due.leave', 'release', 'commands.acknowledge'];
    const after = ({ method }: { method: string }) => {
      if (counted.includes(method)) count += 1;
      return dead();
    };
    const first = deskOf(surveyor(7), { clock, store: watchedStore({ before: dead, after }, inner), tools });
    void first.start({ runId: 'r' });
    for (let minutes = 0; minutes < 5 && !isDead(); minutes++) await clock.advance(MINUTE);
    const record = await inner.load('r');
    const events: string[] = [];
    const observers = [{ onEvent: ({ type }: RunEvent) => void events.push(type) }];
    const second = deskOf(surveyor(2), { clock, store: inner, tools, observers });
    // The claim of a dead process holds for a while.
    await clock.advance(MINUTE);
    const { failed, parked } = await second.executor.recover();
    for (let minutes = 0; minutes < 15; minutes++) await clock.advance(MINUTE);
    const outcomes = isDead() ? second.outcomes : first.outcomes;
    return {
      isDead: isDead(),
      record,
      outcomes,
      seen,
      events,
      refused: [...failed, ...parked],
      left: await inner.load('r'),
    };
  }

  test('leaves its run to the next, whichever two writes it died between (waiting 20, 29)', async () => {
    const moments = new Set<string>();
    // Write 1 is the claim, and write 2 the first record.
    for (let [writes, isOver] = [2, false]; !isOver; writes++) {
      const { isDead, record, outcomes, seen, events, refused, left } = await diedAfter(writes);
      isOver = !isDead;
      const [wait] = record?.waiting?.waits ?? [];
      // An attempt that was cut off is made again at once: the run does not say that it waits.
      const isCut = isDead && wait && wait.dueAt === undefined;
      if (isCut) expect.soft(events.indexOf('run.waiting')).toBeGreaterThan(events.indexOf('step.started'));
      if (isDead) moments.add(wait ? `${(wait as { failures: number }).failures} ${wait.dueAt === undefined}` : 'none');
      expect
        .soft([writes, outcomes.map((outcome) => outcome.status), left, refused])
        .toEqual([writes, ['ok'], null, []]);
      expect.soft([writes, new Set(seen).size]).toEqual([writes, seen.length]);
    }
    // Before and after the outage, in each of its three waits, and in each attempt that ended one.
    expect([...moments].sort()).toEqual(['1 false', '1 true', '2 false', '2 true', '3 false', '3 true', 'none']);
  });
});

describe('a run that rests for its model', () => {
  test('is not worked on by a start that comes too early: no attempt, no audit, no budget, no request (waiting 20)', async () => {
    const [audit, budget] = [notingAudit(), notingBudget()];
    const { begin, start, clock, store, model } = deskOf([look, ...times(5, away), reply('done')], {
      ports: { audit, budget },
    });
    await begin();
    await clock.advance(5 * SECOND);
    const before = [audit.runs.length, budget.log.length, model.calls.length];
    for (let i = 0; i < 5; i++) {
      const again = await start({ runId: 'r', prompt: 'Go.' });
      expect(again.accepted).toBe('resumed');
      expect(await again.result).toMatchObject({ status: 'waiting', waits: [{ kind: 'retry' }] });
    }
    expect([audit.runs.length, budget.log.length, model.calls.length]).toEqual(before);
    expect(await store.claim('r', 'another', 1)).toMatchObject({ attempts: 1 });
  });

  test('closes its audit with waiting, and begins another part at its next start (waiting 21)', async () => {
    const [audit, budget] = [notingAudit(), notingBudget()];
    const { begin, clock } = deskOf([look, ...times(5, away), reply('done')], { ports: { audit, budget } });
    await begin();
    expect(audit.runs[0]?.told.close).toMatchObject([['waiting', '', { code: 'RUN_WAITS' }, { iterations: 1 }]]);
    expect(budget.open.size).toBe(0);
    await clock.advance(2 * MINUTE);
    expect(audit.runs.map(({ told }) => told.close.map(([ended]) => ended))).toEqual([['waiting'], ['ok']]);
    const elapsed = audit.runs.map(({ told }) => told.close[0]?.[3].elapsedMs);
    expect(elapsed[1]).toBeLessThan(20 * SECOND);
  });
});

/** The outcome of an outage of 24 h, or as long as the executor says. */
describe('a model that stays away', () => {
  const script = [look, ...times(500, away)];
  const minutes = async (clock: TestClock, count: number) => {
    for (let minute = 0; minute < count; minute++) await clock.advance(MINUTE);
  };

  test('parks the run after modelOutageMs; recover leaves it, and after unpark it asks as if for the first time (waiting 30)', async () => {
    const defaults = { modelOutageMs: HOUR };
    const { begin, clock, executor, outcomes, store, model } = deskOf(script, { defaults });
    await begin();
    await minutes(clock, 61);
    expect((await store.load('r'))?.parked).toMatchObject({ code: 'MODEL_OUTAGE' });
    expect((await store.load('r'))?.waiting?.waits ?? []).toEqual([]);
    expect((await executor.recover()).parked).toMatchObject([
      { runId: 'r', reason: expect.stringContaining('MODEL_OUTAGE') },
    ]);
    await minutes(clock, 10);
    const before = model.calls.length;
    await executor.unpark('r');
    await clock.advance(20 * SECOND);
    expect(model.calls.length - before).toBe(5);
    expect((await store.load('r'))?.waiting?.waits).toMatchObject([{ kind: 'retry', failures: 1 }]);
    expect(outcomes).toEqual([]);
  });

  test('a run that a person parked while it rested asks at once after unpark (waiting 30)', async () => {
    const { begin, clock, executor, waits, model } = deskOf(script);
    await begin();
    await executor.park('r', 'later');
    await minutes(clock, 5);
    const before = model.calls.length;
    await executor.unpark('r');
    await clock.advance(10 * SECOND);
    expect(model.calls.length - before).toBe(5);
    expect(await waits()).toMatchObject([{ failures: 1 }]);
  });

  test('the run that parks says so in its events and its result (waiting 30)', async () => {
    const defaults = { modelOutageMs: 5 * MINUTE };
    const { start, clock, store } = deskOf(script, { defaults, store: plainStore() as Memory });
    const run = await start({ runId: 'r' });
    const events = listen(run);
    await minutes(clock, 6);
    expect(await run.result).toMatchObject({
      status: 'interrupted',
      error: { code: 'RUN_PARKED', cause: { code: 'MODEL_OUTAGE' } },
    });
    const ends = (await events).filter(({ type }) => type !== 'run.status').slice(-1) as RunEvent[];
    expect(ends).toMatchObject([{ type: 'run.parked', code: 'MODEL_OUTAGE' }]);
    expect((await store.load('r'))?.parked).toMatchObject({ code: 'MODEL_OUTAGE' });
  });

  test("fails the run with onModelOutage: 'fail' (waiting 30)", async () => {
    const { begin, clock, outcomes, store } = deskOf(script, {
      defaults: { modelOutageMs: HOUR },
      onModelOutage: 'fail',
    });
    await begin();
    await minutes(clock, 61);
    expect(outcomes).toMatchObject([{ status: 'error', error: { code: 'MODEL_OUTAGE', cause: { code: 'MODEL' } } }]);
    expect(await store.load('r')).toBeNull();
  });

  test('ends the run at once with modelOutageMs: 0, and without a store (waiting 30)', async () => {
    for (const options of [{ defaults: { modelOutageMs: 0 } }, { store: undefined as never }]) {
      const clock = testClock();
      const host = hostOf({ script, clock, store: memoryStore({ clock }), tools: [toolOf('look')], ...options });
      const run = await host.start({ runId: 'r' });
      await clock.advance(20 * SECOND);
      expect(await run.result).toMatchObject({ status: 'error', error: { code: 'MODEL' } });
    }
  });

  test('a run of a store that cannot let it rest waits in its process, and is not parked by that (waiting 26, 29)', async () => {
    const { start, clock, outcomes } = deskOf([look, ...times(9, away), reply('done')], {
      store: plainStore() as Memory,
    });
    const run = await start({ runId: 'r' });
    await minutes(clock, 20);
    expect(await run.result).toMatchObject({ status: 'ok' });
    expect(outcomes).toMatchObject([{ status: 'ok' }]);
  });
});

describe('a model that refuses the account (401 to 404)', () => {
  test('ends a run that has recorded no turn (waiting 31)', async () => {
    const { begin, model } = deskOf([status(401), reply('done')]);
    const run = await begin();
    expect(await run.result).toMatchObject({ status: 'error', error: { code: 'MODEL' } });
    expect(model.calls).toHaveLength(1);
  });

  test('makes a run that has recorded a turn wait for a person, a quarter of an hour at a time; wake tries at once (waiting 31)', async () => {
    const { begin, clock, executor, waits, model, outcomes } = deskOf([look, ...times(3, status(401)), reply('done')]);
    await begin();
    expect(await waits()).toMatchObject([{ kind: 'retry', needsPerson: true, failures: 1 }]);
    expect(await executor.waiting({ kind: 'retry' })).toMatchObject([
      { runId: 'r', needsPerson: true, error: { message: 'the model call failed: status 401' } },
    ]);
    expect(await executor.list({ status: 'waiting' })).toMatchObject([{ runId: 'r' }]);
    await clock.advance(14 * MINUTE);
    expect(model.calls).toHaveLength(2);
    await clock.advance(MINUTE);
    expect(model.calls).toHaveLength(3);
    await executor.control('r').wake();
    await settle();
    await clock.advance(2 * SECOND);
    expect(await waits()).toMatchObject([{ needsPerson: true, failures: 3 }]);
    await executor.control('r').wake();
    await settle();
    await clock.advance(2 * SECOND);
    expect(outcomes).toMatchObject([{ status: 'ok' }]);
  });
});

test('wake counts each time, also twice in one millisecond, and each wait has an id of its own (waiting 31)', async () => {
  const script = [look, ...times(3, status(401)), reply('done')];
  const ids: string[] = [];
  const observers = [{ onEvent: (event: RunEvent) => event.type === 'wait.opened' && ids.push(event.wait.id) }];
  const options = { store: plainStore() as Memory, observers };
  const { begin, executor, outcomes, model } = deskOf(script, options);
  await begin();
  for (let requests = 3; requests <= 5; requests++) {
    await executor.control('r').wake();
    await settle();
    expect(model.calls).toHaveLength(requests);
  }
  expect(new Set(ids).size).toBe(3);
  expect(outcomes).toMatchObject([{ status: 'ok' }]);
});

describe('the parts of a run that can do without a model', () => {
  test('an optional phase has the retries, and is passed then; the phase after it waits (waiting 31)', async () => {
    const phases = [
      { name: 'try', instructions: 'Try.', optional: true, fallback: 'none' },
      { name: 'do', instructions: 'Do.' },
    ];
    const { begin, clock, waits, outcomes, model } = deskOf([...times(10, away), reply('done')], { agent: { phases } });
    await begin();
    expect(model.calls).toHaveLength(10);
    expect(await waits()).toMatchObject([{ kind: 'retry', failures: 1 }]);
    await clock.advance(MINUTE);
    expect(outcomes).toMatchObject([{ status: 'ok', phases: [{ name: 'try', output: 'none' }, { name: 'do' }] }]);
  });

  test('a compactor or an escalator whose own model is away lets the run continue without it (waiting 31)', async () => {
    const clock = testClock();
    const cheap = scriptedModel(times(99, away));
    const page = 'A page with many words on it. '.repeat(20);
    const { start, waits, outcomes } = deskOf(
      [...[0, 1, 2, 3, 4, 5].map((n) => callTool('look', { n })), reply('done')],
      {
        ...{ clock, tools: [toolOf('look', 'read', async ({ n }) => `${n}: ${page}`)], contextTokens: { fast: 1_000 } },
        compactor: createCompactor({ model: cheap, keepLast: 2, clock }),
        ports: { critic: createCritic({ escalator: createEscalator({ model: cheap }), idleMs: SECOND }) },
        agent: { maxRuntimeMs: SECOND },
      },
    );
    await start({ runId: 'r' });
    for (let minute = 0; minute < 10; minute++) {
      expect(await waits()).toEqual([]);
      await clock.advance(MINUTE);
    }
    expect(outcomes).toMatchObject([{ status: 'ok', output: 'done' }]);
    expect(cheap.calls.length).toBeGreaterThanOrEqual(5);
  });

  test("a phase with recovery: 'boundary' continues at its step after the wait (waiting 25, 29)", async () => {
    const seen: unknown[] = [];
    const phases = [{ name: 'do', instructions: 'Do.', recovery: 'boundary' as const, tools: ['look'] }];
    const tools = [toolOf('look', 'read', () => seen.push('look'))];
    const { begin, clock, outcomes } = deskOf([look, ...times(6, away), reply('done')], { agent: { phases }, tools });
    await begin();
    await clock.advance(3 * MINUTE);
    expect(outcomes).toMatchObject([{ status: 'ok', output: 'done' }]);
    expect(seen).toEqual(['look']);
  });
});

describe('a child run whose model is away', () => {
  test.for([false, true])(
    'does not end its parent: both wait, and end ok (resting: %j) (waiting 23, 29)',
    async (rests) => {
      const clock = testClock();
      const store = (rests ? memoryStore({ clock }) : plainStore()) as Memory;
      let isAway = true;
      const models = {
        fast: scriptedModel([callTool('agent__helper', { prompt: 'Help.' }), reply('done')]),
        cheap: scriptedModel(times(99, () => (isAway ? away : reply('helped')))),
      };
      const helper = defineAgent({ id: 'helper', instructions: 'Help.', model: 'cheap', description: 'Helps.' });
      const agent = { subAgents: ['helper'], maxRuntimeMs: 2 * MINUTE };
      const palette = createPalette({ agents: [helper] });
      const { start, outcomes, waits } = deskOf([], { clock, store, models, agent, ports: { palette } });
      await start({ runId: 'r' });
      for (let minute = 0; minute < 30; minute++) await clock.advance(MINUTE);
      expect(outcomes).toEqual([]);
      if (rests) expect(await waits()).toMatchObject([{ kind: 'child' }]);
      isAway = false;
      for (let minute = 0; minute < 20; minute++) await clock.advance(MINUTE);
      expect(outcomes).toMatchObject([
        { status: 'ok', output: 'helped' },
        { status: 'ok', output: 'done' },
      ]);
    },
  );
});

describe('a parent whose child waits in the same process', () => {
  test.for([
    [90 * SECOND, 'ok'],
    [3 * MINUTE, 'timeout'],
  ] as const)(
    'works only as long as another call of it runs: %i ms of 95 s, then %s (waiting 21)',
    async ([ms, status]) => {
      const clock = testClock();
      let isAway = true;
      const both = callTools([
        { name: 'agent__helper', input: { prompt: 'Help.' } },
        { name: 'look', input: {} },
      ]);
      const models = {
        fast: scriptedModel([both, reply('done')]),
        cheap: scriptedModel(times(99, () => (isAway ? away : reply('helped')))),
      };
      const helper = defineAgent({ id: 'helper', instructions: 'Help.', model: 'cheap', description: 'Helps.' });
      const slow = toolOf('look', 'read', () => new Promise((resolve) => clock.setTimeout(() => resolve('seen'), ms)), {
        timeoutMs: HOUR,
      });
      const agent = { subAgents: ['helper'], maxRuntimeMs: 95 * SECOND, tools: [slow] };
      const ports = { palette: createPalette({ agents: [helper] }) };
      const { start } = deskOf([], { clock, store: plainStore() as Memory, models, agent, ports });
      const run = await start({ runId: 'r' });
      for (let minute = 0; minute < 30; minute++) await clock.advance(MINUTE);
      isAway = false;
      for (let minute = 0; minute < 20; minute++) await clock.advance(MINUTE);
      expect(await run.result).toMatchObject({ status });
    },
  );
});

describe('a provider that is away for two hours', () => {
  const runs = torture > 1 ? 100 : 25;
  test(`ends none of ${runs} runs: all are ok, no recorded step is asked again, and no process is needed (waiting 37)`, async () => {
    const clock = testClock();
    const [from, to] = [90 * SECOND, 90 * SECOND + 2 * HOUR];
    const answered = new Map<string, number>();
    let requests = 0;
    const play: ScriptedEntry = ({ messages }) => {
      requests += 1;
      if (clock.monotonic() >= from && clock.monotonic() < to) return away;
      const turn = messages.filter(({ role }) => role === 'assistant').length;
      const step = `${JSON.stringify(messages[0])} ${turn}`;
      answered.set(step, (answered.get(step) ?? 0) + 1);
      return turn === 4 ? reply('done') : callTool('look', { turn });
    };
    let looks = 0;
    const slow = toolOf('look', 'once', () => {
      looks += 1;
      return new Promise((resolve) => clock.setTimeout(() => resolve('seen'), 30 * SECOND));
    });
    const options = { clock, tools: [slow], random: Math.random };
    const { start, outcomes, executor, store } = deskOf(times(20_000, play), options);
    for (let n = 0; n < runs; n++) void start({ runId: `r${n}`, prompt: `Survey ${n}.` });
    let most = 0;
    for (let now = 0; now < to + 30 * MINUTE; now += 10 * SECOND) {
      await clock.advance(10 * SECOND);
      // All rest: the sweep is the only timer of the process, and no run lives in it.
      if (now > from + HOUR && executor.runs.get().length === 0) most = Math.max(most, clock.pending);
    }
    expect(outcomes.map((outcome) => outcome.status)).toEqual(times(runs, 'ok'));
    expect([answered.size, [...answered.values()].every((count) => count === 1), looks]).toEqual([
      5 * runs,
      true,
      4 * runs,
    ]);
    expect(most).toBeGreaterThan(0);
    // The sweeps of the executor and of its store.
    expect(most).toBeLessThanOrEqual(3);
    expect(requests).toBeLessThan(5 * runs + runs * 20);
    expect(await (store as CheckpointStore).listInterrupted()).toEqual([]);
  }, 180_000);
});
