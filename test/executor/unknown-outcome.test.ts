import { defineWorkflow, type Executor, memoryStore, type Notice, type RunEvent, step } from 'pawl';
import { callTool, callTools, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { assign, setup } from 'xstate';
import { gate, type HostOptions, hostOf, settle, toolOf, until } from '../fixtures/host.ts';

const reset = () => Object.assign(new Error('it broke'), { code: 'ECONNRESET' });
const broken = (effect: 'once' | 'idempotent' = 'once') => toolOf('pay', effect, async () => Promise.reject(reset()));

function parkingHost(options: HostOptions = {}) {
  const store = memoryStore();
  const host = hostOf({ store, onUnknownOutcome: 'park', tools: [broken()], ...options });
  return { ...host, store };
}

const resultsIn = (messages: readonly { role: string; content: unknown }[] = []) =>
  messages.flatMap(({ role, content }) =>
    role === 'tool' ? (content as { output: { value: unknown } }[]).map(({ output }) => output.value) : [],
  );

describe("a once call whose connection breaks, with onUnknownOutcome: 'park'", () => {
  test('parks its run as a crash does; after the unpark the model reads that it is unknown, and no call is made (edges 11)', async () => {
    const { run, executor, store, model, warned } = parkingHost({ script: [callTool('pay'), reply('I will ask.')] });
    expect(await run({ runId: 'r' })).toMatchObject({ status: 'interrupted', error: { code: 'RUN_PARKED' } });
    expect(await store.load('r')).toMatchObject({
      attempts: 0,
      parked: { code: 'OUTCOME_UNKNOWN', reason: expect.stringContaining('pay: it broke') },
      openStep: { calls: [{ state: 'started', effect: 'once' }] },
    });
    expect(warned.filter(({ message }) => message === 'run: parked')).toHaveLength(1);
    expect(await run({ runId: 'r' })).toMatchObject({ error: { code: 'RUN_PARKED' } });

    await executor.unpark('r');
    const result = await run({ runId: 'r' });
    expect(result).toMatchObject({ status: 'ok', output: 'I will ask.' });
    expect(resultsIn(result.messages)).toEqual([expect.stringContaining('or no answer came')]);
    expect(model.calls).toHaveLength(2);
  });

  test('leaves no secret of the error in the store, a list, an event, a log or a notice (edges 11, 19)', async () => {
    const notices: unknown[] = [];
    const events: unknown[] = [];
    const told = parkingHost({
      ...{ script: [callTool('pay')], journal: true },
      notify: (notice) => void notices.push(notice),
      observers: [{ onEvent: (event) => void events.push(event) }],
      redact: (text: string) => text.replaceAll('it broke', '[hidden]'),
    });
    const { run, executor, store, warned } = told;
    await run({ runId: 'r' });
    expect(await store.load('r')).toMatchObject({ parked: { reason: expect.stringContaining('pay: [hidden]') } });
    const shown: unknown[] = [
      await store.load('r'),
      await executor.list(),
      await executor.explain('r'),
      notices,
      events,
      warned,
    ];
    for (const each of shown) expect(JSON.stringify(each)).toContain('pay: [hidden]');
    shown.push(await store.journal.read('r', { after: -1, limit: 100 }));
    expect(JSON.stringify(shown)).not.toContain('it broke');
    await executor.shutdown();
    // Another process has the redacted reason, and its model the sentence without it.
    const next = parkingHost({ store, script: [reply('So.')] });
    await next.executor.unpark('r');
    expect((await next.run({ runId: 'r' })).status).toBe('ok');
    expect(JSON.stringify(next.model.calls)).not.toContain('it broke');
  });

  test('waits for the other calls with effects, whose results are recorded, and begins none (edges 11)', async () => {
    const mailing = gate<string>();
    const made: string[] = [];
    const mail = toolOf('mail', 'once', () => mailing.pass());
    const late = toolOf('late', 'once', async () => void made.push('late'));
    const script = [callTools(['mail', 'pay', 'late'].map((name) => ({ name, input: {} }))), reply('So.')];
    const { start, executor, store } = parkingHost({
      ...{ script, tools: [mail, broken(), late] },
      defaults: { toolConcurrency: 2 },
    });
    const run = await start({ runId: 'r' });
    await mailing.reached;
    await until(() => executor.get('r')?.actor?.getSnapshot().context.cause !== undefined, 'the stop');
    mailing.open('mailed');
    expect(await run.result).toMatchObject({ status: 'interrupted', error: { code: 'RUN_PARKED' } });
    expect((await store.load('r'))?.openStep?.calls.map(({ state }) => state)).toEqual(['done', 'started', 'planned']);
    expect(made).toEqual([]);
    await executor.unpark('r');
    const { messages } = await (await start({ runId: 'r' })).result;
    expect(resultsIn(messages).slice(0, 2)).toEqual(['mailed', expect.stringMatching(/^Outcome unknown/)]);
    expect(made).toEqual(['late']);
  });

  test('is only told to the model without a store, with `tell`, and for a call that may be repeated (edges 11)', async () => {
    const script = () => [callTool('pay'), reply('So.')];
    const hosts = [
      hostOf({ script: script(), tools: [broken()], onUnknownOutcome: 'park' }),
      parkingHost({ script: script(), onUnknownOutcome: 'tell' }),
      parkingHost({ script: script(), tools: [broken('idempotent')] }),
    ];
    for (const { run } of hosts) expect(await run()).toMatchObject({ status: 'ok', output: 'So.' });
  });
});

/** How a call that began gets no answer. */
const silences: readonly (readonly [string, (late: Promise<string>) => Promise<string>, string])[] = [
  ['by a connection that breaks', () => Promise.reject(reset()), 'it broke'],
  ['within its timeoutMs', (late) => late, 'tool "pay" did not answer within 300 ms'],
  [
    'within the AbortSignal.timeout of its own request',
    () => Promise.reject(new TypeError('it failed', { cause: new DOMException('too slow', 'TimeoutError') })),
    'it failed',
  ],
];

/** A machine that pays, and keeps how that ended. */
const paying = (pay: ReturnType<typeof toolOf>) =>
  defineWorkflow({
    id: 'paying',
    machine: setup({ types: { context: {} as { error?: unknown } }, actors: { pay: step(pay) } }).createMachine({
      context: {},
      initial: 'a',
      states: {
        a: {
          invoke: {
            ...{ src: 'pay', input: {}, onDone: 'b' },
            onError: { target: 'b', actions: assign({ error: ({ event }) => event.error }) },
          },
        },
        b: { type: 'final' },
      },
      output: ({ context }) => context,
    }),
  });

/** A host whose tool `pay` gets no answer; `run` makes its call, in an agent or in a workflow, and lets its time pass. */
function silentWorld(
  way: 'agent' | 'workflow',
  silence: (typeof silences)[number],
  options: HostOptions = {},
  { timeoutMs = 300 } = {},
) {
  const clock = testClock(1_000);
  const store = memoryStore({ clock });
  const late = Promise.withResolvers<string>();
  const notices: Notice[] = [];
  const live: RunEvent[] = [];
  let calls = 0;
  const tool = toolOf('pay', 'once', () => [calls++, silence[1](late.promise)][1], { timeoutMs });
  const workflow = paying(tool);
  const host = hostOf({
    ...{ clock, store, journal: true, tools: [tool], script: [callTool('pay'), reply('So.'), reply('So.')] },
    ...{ workflows: [workflow], notify: (notice) => void notices.push(notice) },
    observers: [{ onEvent: (event) => void live.push(event) }],
    ...options,
  });
  const begin = () => (way === 'agent' ? host.start({ runId: 'r' }) : host.executor.start(workflow, { runId: 'r' }));
  const run = async () => {
    const { result } = await begin();
    await settle();
    await clock.advance(300);
    return result;
  };
  return { ...host, store, run, late, notices, live, begin, clock, calls: () => calls };
}

async function eventsOf(executor: Executor, ...types: readonly string[]): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const event of executor.events('r')) if (types.includes(event.type)) found.push(event);
  return found;
}

describe.each(silences)('a once call that gets no answer %s', (...silence) => {
  const why = silence[2];

  test.each(['agent', 'workflow'] as const)(
    'has an unknown outcome: its %s reads that; an event, a log line and a notice say it (edges 11, operations 10)',
    async (way) => {
      const world = silentWorld(way, silence);
      const result = await world.run();
      const text = `Outcome unknown: no answer came after this call was sent (${why}). It may or may not have taken effect; find that out before you call again.`;
      if (way === 'agent') expect(resultsIn(result.messages)).toEqual([text]);
      else expect(result.data).toMatchObject({ error: { code: 'OUTCOME_UNKNOWN', message: text } });
      expect(result.status).toBe('ok');
      expect(await eventsOf(world.executor, 'tool.started', 'call.unknown', 'tool.done')).toMatchObject([
        { type: 'tool.started', name: 'pay' },
        { type: 'call.unknown', name: 'pay', attempt: 1 },
        { type: 'tool.done', output: { value: text } },
      ]);
      const lines = world.warned.filter(({ fields }) => fields.event === 'call.unknown');
      expect(lines).toMatchObject([{ fields: { level: 'error', runId: 'r', tool: 'pay' } }]);
      expect(world.notices).toMatchObject([{ kind: 'unknown-outcome', runId: 'r', tool: 'pay' }]);
      expect(world.calls()).toBe(1);
    },
  );

  test.each(['agent', 'workflow'] as const)(
    "parks its %s with onUnknownOutcome: 'park'; after the unpark it reads that it is unknown, and no call is made (edges 11)",
    async (way) => {
      const world = silentWorld(way, silence, { onUnknownOutcome: 'park' });
      expect(await world.run()).toMatchObject({ status: 'interrupted', error: { code: 'RUN_PARKED' } });
      expect(await world.store.load('r')).toMatchObject({
        parked: { code: 'OUTCOME_UNKNOWN', reason: expect.stringContaining(`pay: ${why}`) },
        openStep: { calls: [{ state: 'started', effect: 'once' }] },
      });
      await world.executor.unpark('r');
      const { status, data, messages } = await (await world.begin()).result;
      expect(status).toBe('ok');
      if (way === 'agent') expect(resultsIn(messages)).toEqual([expect.stringMatching(/^Outcome unknown: /)]);
      else expect(data).toMatchObject({ error: { code: 'OUTCOME_UNKNOWN' } });
      expect(await eventsOf(world.executor, 'call.unknown')).toHaveLength(1);
      expect(world.calls()).toBe(1);
    },
  );
});

test('an answer after the time limit of a once call is said to be late, and changes nothing (edges 11, executor 7)', async () => {
  const answering = gate<void>();
  const silence = silences[1] as (typeof silences)[number];
  const world = silentWorld('agent', silence, {
    script: [callTool('pay'), () => answering.pass().then(() => reply('So.'))] as never,
  });
  const result = world.run();
  await answering.reached;
  world.late.resolve('paid');
  await settle();
  answering.open();
  expect(resultsIn((await result).messages)).toEqual([expect.stringMatching(/^Outcome unknown: /)]);
  const done = world.live.filter(({ type }) => type === 'tool.done');
  expect(done).toMatchObject([{ output: { type: 'error-text' } }, { output: { value: 'paid' }, isLate: true }]);
  expect(await eventsOf(world.executor, 'tool.done')).toHaveLength(1);
  expect(world.calls()).toBe(1);
});

describe.each(['agent', 'workflow'] as const)('a once call under way at the end of its %s', (way) => {
  const silence = silences[1] as (typeof silences)[number];
  const hour = { timeoutMs: 3_600_000 };
  type World = ReturnType<typeof silentWorld>;
  const cancels = ['a cancel', {}, ({ executor }: World) => executor.control('r').cancel()] as const;
  const lasts = [
    'maxRuntimeMs',
    { defaults: { maxRuntimeMs: 200 } },
    ({ clock }: World) => clock.advance(200),
  ] as const;
  const ends = way === 'agent' ? [cancels, lasts] : [cancels];

  test.each(ends)(
    'by %s says that its outcome is unknown: an event, a log line and a notice (edges 11, operations 10)',
    async (_, options, end) => {
      const world = silentWorld(way, silence, options, hour);
      const { result } = await world.begin();
      await settle();
      await end(world);
      expect((await result).status).toMatch(/^(cancelled|timeout)$/);
      const [started, unknown, ended] = await eventsOf(world.executor, 'tool.started', 'call.unknown', 'run.ended');
      const { step, callId } = started as { step: number; callId: string };
      expect(unknown).toMatchObject({ type: 'call.unknown', step, callId, name: 'pay', attempt: 1 });
      expect(ended).toMatchObject({ type: 'run.ended' });
      expect(world.warned.filter(({ fields }) => fields.event === 'call.unknown')).toHaveLength(1);
      expect(world.notices).toMatchObject([{ kind: 'unknown-outcome', runId: 'r', tool: 'pay' }]);
    },
  );

  test('by a shutdown is said once, by the process that continues it (edges 11)', async () => {
    const world = silentWorld(way, silence, {}, hour);
    const { result } = await world.begin();
    await settle();
    const leaving = world.executor.shutdown();
    await world.clock.advance(60_000);
    await leaving;
    expect((await result).status).toBe('interrupted');
    expect(world.notices).toEqual([]);
    const next = silentWorld(way, silence, { store: world.store, script: [reply('So.')] }, hour);
    expect((await (await next.begin()).result).status).toBe('ok');
    expect(await eventsOf(next.executor, 'call.unknown')).toHaveLength(1);
  });
});
