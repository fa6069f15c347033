import {
  type CheckpointStore,
  memoryStore,
  type Run,
  type RunEvent,
  type RunResult,
  type Tool,
  type ToolContext,
} from 'pawl';
import type { Claim } from 'pawl/stores/kit';
import { callTool, callTools, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { wrapStore } from '../../src/store/read-only.ts';
import { ofType } from '../events/listening.ts';
import { type HostOptions, hostOf, toolOf, until } from '../fixtures/host.ts';

const DAY = 86_400_000;

/** A call that waits for a payment, by default of order 7. */
const paymentTool = (
  wait: (context: ToolContext) => Promise<unknown> = (context) => context.waitFor('paid', { key: '7' }),
) => toolOf('pay', 'idempotent', async (_, context) => JSON.stringify(await wait(context)));

function scene() {
  const clock = testClock(1_750_000_000_000);
  const store = memoryStore({ clock });
  const boot = (options: Partial<HostOptions> = {}, tool: Tool = paymentTool()) =>
    hostOf({ tools: [tool], store, clock, ...options });
  const waiting = (options: Partial<HostOptions> = {}, tool?: Tool) =>
    boot({ script: [callTool('pay', {}), reply('done')], ...options }, tool);
  return { clock, store, boot, waiting };
}

type Scene = ReturnType<typeof scene>;
type Host = ReturnType<typeof hostOf>;

function heardOf(run: Run): readonly RunEvent[] {
  const events: RunEvent[] = [];
  void (async () => {
    for await (const event of run.events()) events.push(event);
  })();
  return events;
}

/** Advances until a promise has settled. */
async function settled<T>({ clock }: Pick<Scene, 'clock'>, promise: Promise<T>): Promise<T> {
  let isOver = false;
  void promise.finally(() => {
    isOver = true;
  });
  await until(async () => {
    await clock.advance(250);
    return isOver;
  });
  return promise;
}

async function startAndRest(world: Scene, host: Host, runId = 'r'): Promise<RunResult> {
  const result = await settled(world, (await host.start({ runId })).result);
  expect(result.status).toBe('waiting');
  return result;
}

async function recoverIn(world: Scene, host: Host): Promise<void> {
  await settled(world, host.executor.recover());
}

/** What the model reads of the call that waited. */
const readBy = (host: Host): string => JSON.stringify(host.model.calls.at(-1)?.messages.at(-1));

const paid = (id: string, key = '7') => ({ key, id });

type Expect = ReturnType<typeof memoryStore>['waits']['expect'];

/** A store whose `expect` is watched. */
function watching(
  inner: ReturnType<typeof memoryStore>,
  watch: (expectEvent: () => Promise<void>, ...given: Parameters<Expect>) => Promise<void>,
): ReturnType<typeof memoryStore> {
  const expectEvent: Expect = (claim, wait) => watch(() => inner.waits.expect(claim, wait), claim, wait);
  return { ...inner, waits: { ...inner.waits, expect: expectEvent } };
}

const paying = { name: 'pay', input: {} };

/** A store without these methods. */
function without(store: object, ...names: string[]): CheckpointStore {
  return new Proxy(store, {
    get: (target, name) => (names.includes(String(name)) ? undefined : Reflect.get(target, name)),
  }) as never;
}

describe('a signal to a run that waits for it', () => {
  test('wakes a run that rests, in another process, and the call gets its value (waiting 12)', async () => {
    const world = scene();
    const first = world.waiting();
    await startAndRest(world, first);
    await settled(world, first.executor.shutdown());
    const second = world.boot();
    await recoverIn(world, second);
    const sender = world.boot();
    expect(await sender.executor.signal('paid', { cents: 5 }, paid('s1'))).toEqual({ to: 'r' });
    await world.clock.advance(5_000);
    expect(await world.store.outcomes.find('r')).toMatchObject({ status: 'ok' });
    expect(readBy(second)).toContain('cents');
    expect(sender.model.calls).toEqual([]);
  });

  test('reaches a run that is live here at once', async () => {
    const world = scene();
    const host = world.waiting();
    const run = await host.start({ runId: 'r' });
    const events = heardOf(run);
    await world.clock.advance(50);
    expect(await host.executor.signal('paid', 12, paid('s1'))).toEqual({ to: 'r' });
    await world.clock.advance(50);
    expect(ofType(events, 'wait.answered')).toMatchObject([{ kind: 'event', how: 'signal' }]);
    expect(await settled(world, run.result)).toMatchObject({ status: 'ok' });
  });

  test('goes to the oldest open wait of its name and key, and to one alone', async () => {
    const world = scene();
    const host = world.waiting({ script: [callTool('pay', {}), callTool('pay', {}), reply('done'), reply('done')] });
    for (const runId of ['a', 'b']) await startAndRest(world, host, runId);
    expect(await host.executor.signal('paid', 1, paid('other key', '8'))).toEqual({});
    expect(await host.executor.signal('shipped', 1, paid('other name'))).toEqual({});
    expect(await host.executor.signal('paid', 1, paid('s1'))).toEqual({ to: 'a' });
    await world.clock.advance(5_000);
    expect([await world.store.outcomes.find('a'), await world.store.outcomes.find('b')]).toMatchObject([
      { status: 'ok' },
      null,
    ]);
    expect(await host.executor.signal('paid', 2, paid('s2'))).toEqual({ to: 'b' });
  });

  test('counts once for each id', async () => {
    const world = scene();
    const host = world.waiting({ script: [callTool('pay', {}), callTool('pay', {}), reply('done')] });
    await startAndRest(world, host, 'a');
    await startAndRest(world, host, 'b');
    expect(await host.executor.signal('paid', 1, paid('s1'))).toEqual({ to: 'a' });
    expect(await host.executor.signal('paid', 1, paid('s1'))).toEqual({ to: 'a' });
    await world.clock.advance(5_000);
    expect(await host.executor.signal('paid', 1, paid('s1'))).toEqual({ to: 'a' });
    expect(await world.store.load('b')).not.toBeNull();
  });
});

describe('a signal that no run waits for', () => {
  test('is kept for the next wait of its event: event before wait, 200 of 200 (waiting 37)', async () => {
    const world = scene();
    const script = Array.from({ length: 200 }, () => [callTool('pay', {}), reply('done')]).flat();
    const tool = toolOf('pay', 'idempotent', async (_, context) =>
      JSON.stringify(await context.waitFor('paid', { key: context.runId })),
    );
    const host = world.waiting({ script }, tool);
    let ok = 0;
    for (let n = 0; n < 200; n++) {
      const runId = `run ${n}`;
      expect(await host.executor.signal('paid', n, { key: runId, id: `s${n}` })).toEqual({});
      const { status } = await settled(world, (await host.start({ runId })).result);
      if (status === 'ok' && readBy(host).includes(`"${n}"`)) ok += 1;
    }
    expect(ok).toBe(200);
  });

  test('is kept over a restart, in the order of sending', async () => {
    const world = scene();
    const sender = world.boot();
    for (const n of [1, 2]) await sender.executor.signal('paid', n, paid(`s${n}`));
    const both = paymentTool(async (context) => [
      await context.waitFor('paid', { key: '7' }),
      await context.waitFor('paid', { key: '7' }),
    ]);
    const host = world.waiting({}, both);
    expect(await settled(world, (await host.start({ runId: 'r' })).result)).toMatchObject({ status: 'ok' });
    expect(readBy(host)).toContain('[1,2]');
  });

  test('is kept for `retention.signals` and no longer', async () => {
    for (const [ms, status] of [
      [900, 'ok'],
      [1_100, 'waiting'],
    ] as const) {
      const world = scene();
      const host = world.waiting({ retention: { signals: 1_000 } });
      await host.executor.signal('paid', 1, paid('s1'));
      await world.clock.advance(ms);
      const run = await host.start({ runId: 'r' });
      expect(await settled(world, run.result)).toMatchObject({ status });
    }
  });
});

describe('a wait that has closed', () => {
  test('gives a signal that came after its time back, for another run (waiting 12)', async () => {
    const world = scene();
    const short = paymentTool((context) =>
      context.waitFor('paid', { key: '7', timeoutMs: 60_000 }).catch((error) => error.code),
    );
    const host = world.waiting({ defaults: { dueMs: DAY } }, short);
    await startAndRest(world, host, 'a');
    // No process takes the run up before the signal comes, too late.
    await world.clock.advance(61_000);
    const sender = world.boot();
    expect(await sender.executor.signal('paid', 5, paid('s1'))).toEqual({ to: 'a' });
    const second = world.boot({ script: [reply('done')] }, short);
    await recoverIn(world, second);
    await world.clock.advance(5_000);
    expect(await world.store.outcomes.find('a')).toMatchObject({ status: 'ok' });
    expect(readBy(second)).toContain('WAIT_EXPIRED');
    const third = world.waiting();
    expect(await settled(world, (await third.start({ runId: 'b' })).result)).toMatchObject({ status: 'ok' });
    expect(readBy(third)).toContain('5');
  });

  test.for([
    ['that rests', 1_000],
    ['that is live', DAY],
  ] as const)('by the cancel of its run gives an unread signal back: a run %s', async ([, waitLingerMs]) => {
    const world = scene();
    const host = world.waiting({ defaults: { waitLingerMs, controlMs: DAY, dueMs: DAY } });
    const run = await host.start({ runId: 'a' });
    await world.clock.advance(waitLingerMs === DAY ? 50 : 5_000);
    const sender = world.boot();
    expect(await sender.executor.signal('paid', 5, paid('s1'))).toEqual({ to: 'a' });
    await settled(world, host.executor.control('a').cancel());
    expect(await world.store.outcomes.find('a')).toMatchObject({ status: 'cancelled' });
    const third = world.waiting();
    expect(await settled(world, (await third.start({ runId: 'b' })).result)).toMatchObject({ status: 'ok' });
    expect(readBy(third)).toContain('5');
    expect((await run.result).status).toBe(waitLingerMs === DAY ? 'cancelled' : 'waiting');
  });

  test('is withdrawn from the store: a later signal is kept', async () => {
    const world = scene();
    const short = paymentTool((context) =>
      context.waitFor('paid', { key: '7', timeoutMs: 100 }).catch((error) => error.code),
    );
    const host = world.waiting({}, short);
    const run = await host.start({ runId: 'a' });
    await settled(world, run.result);
    expect(await host.executor.signal('paid', 5, paid('s1'))).toEqual({});
  });

  test('while its run works on, a later signal is kept as well', async () => {
    const world = scene();
    const short = paymentTool(async (context) => {
      const code = await context.waitFor('paid', { key: '7', timeoutMs: 100 }).catch((error) => error.code);
      await context.ask({ question: 'Go on?' });
      return code;
    });
    const host = world.waiting({ defaults: { waitLingerMs: DAY } }, short);
    await host.start({ runId: 'a' });
    await world.clock.advance(1_000);
    expect((await world.store.load('a'))?.waiting?.waits).toMatchObject([{ kind: 'question' }]);
    expect(await host.executor.signal('paid', 5, paid('s1'))).toEqual({});
  });
});

describe('a wait that has its signal', () => {
  /** A run that got the signal s1, and then asks something; the claim and the wait of its event. */
  async function served() {
    const world = scene();
    const seen: { claim?: Claim; waitId?: string; topic?: string | null } = {};
    const store = watching(world.store, async (expectEvent, claim, wait) => {
      if (wait.topic !== null) Object.assign(seen, { claim, ...wait });
      return expectEvent();
    });
    const tool = paymentTool(async (context) => {
      const value = await context.waitFor('paid', { key: '7' });
      await context.ask({ question: 'Well?' });
      return value;
    });
    const host = world.waiting({ store, defaults: { waitLingerMs: DAY } }, tool);
    const run = await host.start({ runId: 'r' });
    await world.clock.advance(50);
    await host.executor.signal('paid', 1, paid('s1'));
    await world.clock.advance(1_000);
    const events = heardOf(run);
    return { world, host, seen: seen as Required<typeof seen>, events };
  }

  test('gives a second one back: it is kept for another run (waiting 12)', async () => {
    const { world, host, seen } = await served();
    // An earlier attempt of this process arrives in its store only now.
    await world.store.waits.expect(seen.claim, seen);
    expect(await host.executor.signal('paid', 2, paid('s2'))).toEqual({ to: 'r' });
    await world.clock.advance(1_000);
    expect(await world.store.commands.inbox({ runId: 'r' })).toEqual([]);
    const other = world.waiting();
    expect(await settled(world, (await other.start({ runId: 'b' })).result)).toMatchObject({ status: 'ok' });
    expect(readBy(other)).toContain('2');
  });

  test('drops the same one if a store delivers it again', async () => {
    const { world, seen } = await served();
    const { waitId, topic } = seen;
    const signal = { id: 's1', topic: topic ?? '', untilMs: world.clock.now() + DAY };
    const answer = { how: 'signal', value: 1, signal } as const;
    await world.store.commands.send('r', { id: 'again', kind: 'answer', waitId, answer });
    await world.clock.advance(1_000);
    expect(await world.store.commands.inbox({ runId: 'r' })).toEqual([]);
    const other = world.waiting();
    expect(await settled(world, (await other.start({ runId: 'b' })).result)).toMatchObject({ status: 'waiting' });
  });
});

describe('a value that does not fit the schema of the wait', () => {
  const schema = z.object({ cents: z.number() });
  const typed = () => paymentTool((context) => context.waitFor('paid', { key: '7', schema }));

  test.for([
    ['in its store', (world: Scene) => world.waiting({ defaults: { waitLingerMs: DAY } }, typed())],
    [
      'without a store',
      ({ clock }: Scene) => hostOf({ tools: [typed()], clock, script: [callTool('pay', {}), reply('done')] }),
    ],
  ] as const)('is used up, and the run waits for the next signal: %s', async ([, boot]) => {
    const world = scene();
    const host = boot(world);
    const run = await host.start({ runId: 'r' });
    const events = heardOf(run);
    await world.clock.advance(100);
    expect(await host.executor.signal('paid', { cents: 'many' }, paid('s1'))).toEqual({ to: 'r' });
    await world.clock.advance(1_500);
    expect(ofType(events, 'wait.refused')).toMatchObject([{ code: 'ANSWER_REFUSED' }]);
    expect(await host.executor.signal('paid', { cents: 5 }, paid('s2'))).toEqual({ to: 'r' });
    expect(await settled(world, run.result)).toMatchObject({ status: 'ok' });
    expect(readBy(host)).toContain('cents');
  });
});

describe('the run tells its store which event it waits for', () => {
  test('before it rests; while the store does not know it, the run stays and tries again', async () => {
    const world = scene();
    let fails = 3;
    const store = watching(world.store, async (expectEvent) => {
      fails -= 1;
      if (fails >= 0) throw new Error('the store is away');
      return expectEvent();
    });
    const host = world.waiting({ store });
    const run = await host.start({ runId: 'r' });
    await world.clock.advance(1_500);
    expect(await world.store.due.countResting()).toBe(0);
    expect(await settled(world, run.result)).toMatchObject({ status: 'waiting' });
    expect(fails).toBe(-1);
    expect(host.warnings.filter((each) => each.includes('which event'))).toHaveLength(1);
    expect(await host.executor.signal('paid', 1, paid('s1'))).toEqual({ to: 'r' });
  });

  test('before it rests, also if its wait is recorded only while it reads its inbox for the last time (waiting 33)', async () => {
    const world = scene();
    const calls: string[] = [];
    let isRecording = false;
    const pause = (ms = 2_000) => new Promise<void>((resolve) => world.clock.setTimeout(resolve, ms));
    const slow = wrapStore(world.store, (name, call) => async (...given) => {
      const isWait = JSON.stringify(given).includes('"kind":"event"');
      if (name === 'append' && isWait) {
        isRecording = true;
        await pause();
        isRecording = false;
      }
      // It ends a little after the save.
      while (name === 'commands.inbox' && isRecording) await pause();
      if (name === 'waits.expect') await pause(20_000);
      if (name === 'waits.expect' || name === 'due.leave') calls.push(name);
      return call(...given);
    });
    const host = world.waiting({ store: slow });
    await startAndRest(world, host);
    expect(calls).toEqual(['waits.expect', 'due.leave']);
    expect(await host.executor.signal('paid', 1, paid('s1'))).toEqual({ to: 'r' });
  });

  test('while other calls of the message still run, a failed attempt is repeated', async () => {
    const world = scene();
    let fails = 2;
    const store = watching(world.store, async (expectEvent) => {
      fails -= 1;
      if (fails >= 0) throw new Error('the store is away');
      return expectEvent();
    });
    const hangs = toolOf('hang', 'read', () => new Promise(() => {}));
    const script = [callTools([paying, { name: 'hang', input: {} }] as never)];
    const host = hostOf({ tools: [paymentTool(), hangs], store, clock: world.clock, script });
    await host.start({ runId: 'r' });
    await world.clock.advance(900);
    expect(fails).toBe(1);
    await world.clock.advance(2_200);
    expect(fails).toBe(-1);
    expect(await host.executor.signal('paid', 1, paid('s1'))).toEqual({ to: 'r' });
  });

  test('and then looks for a signal that was kept: the call does not wait for the next look', async () => {
    const world = scene();
    const defaults = { controlMs: DAY, waitLingerMs: DAY };
    const host = world.waiting({ defaults });
    await host.executor.signal('paid', 5, paid('s1'));
    const run = await host.start({ runId: 'r' });
    await world.clock.advance(50);
    expect(await run.result).toMatchObject({ status: 'ok' });
  });

  test('again when it is taken up, although other calls of the message still have to end', async () => {
    const world = scene();
    const hangs = toolOf('hang', 'read', () => new Promise(() => {}));
    const tools = [paymentTool(), hangs];
    const script = [callTools([paying, { name: 'hang', input: {} }] as never)];
    const first = hostOf({ tools, store: world.store, clock: world.clock, script });
    await first.start({ runId: 'r' });
    await world.clock.advance(1_000);
    // The process has died before its store knew the event.
    const copy = memoryStore({ clock: world.clock });
    await copy.save((await world.store.load('r')) as never);
    const second = hostOf({ tools, store: copy, clock: world.clock });
    await recoverIn(world, second);
    await world.clock.advance(1_000);
    expect(await second.executor.signal('paid', 5, paid('s1'))).toEqual({ to: 'r' });
  });

  test('again when it is taken up: a process that died before that loses no signal', async () => {
    const world = scene();
    const deaf = watching(world.store, () => new Promise(() => {}));
    const first = world.waiting({ store: deaf });
    await first.start({ runId: 'r' });
    await world.clock.advance(100);
    // The process has died; its record is there, and no store knows the event.
    const copy = memoryStore({ clock: world.clock });
    await copy.save((await world.store.load('r')) as never);
    const second = world.boot({ store: copy });
    await recoverIn(world, second);
    await world.clock.advance(5_000);
    expect(await second.executor.signal('paid', 5, paid('s1'))).toEqual({ to: 'r' });
    await world.clock.advance(5_000);
    expect(await copy.outcomes.find('r')).toMatchObject({ status: 'ok' });
  });

  test.each([
    { sentMs: 59_000, others: 'no call', read: '5' },
    { sentMs: 59_000, others: 'a call', read: '5' },
    { sentMs: 61_000, others: 'no call', read: '"WAIT_EXPIRED"' },
    { sentMs: 61_000, others: 'a call', read: '"WAIT_EXPIRED"' },
  ])(
    'after the wait was due: beside $others that still has to end, a signal that was kept at $sentMs ms, while no process had the run, ends a wait until 60,000 ms as $read (waiting 11, 32)',
    async ({ sentMs, others, read }) => {
      const world = scene();
      const deaf = watching(world.store, () => new Promise(() => {}));
      const tools = (look: () => Promise<string>) => [
        paymentTool((context) =>
          context.waitFor('paid', { key: '7', timeoutMs: 60_000 }).catch((error: { code: string }) => error.code),
        ),
        toolOf('look', 'read', look),
      ];
      const calls = others === 'a call' ? [paying, { name: 'look', input: {} }] : [paying];
      const startedAt = world.clock.now();
      await hostOf({
        tools: tools(() => new Promise(() => {})),
        store: deaf,
        clock: world.clock,
        script: [callTools(calls as never)],
      }).start({ runId: 'r' });
      await world.clock.advance(100);
      // The process has died; its record is there, and no store knows the event.
      const copy = memoryStore({ clock: world.clock });
      await copy.save((await world.store.load('r')) as never);
      const slow = watching(copy, async (expectEvent) => {
        await new Promise<void>((resolve) => world.clock.setTimeout(resolve, 1_000));
        return expectEvent();
      });
      const second = hostOf({
        tools: tools(async () => 'seen'),
        store: slow,
        clock: world.clock,
        script: [reply('done')],
      });
      await world.clock.advance(startedAt + sentMs - world.clock.now());
      expect(await second.executor.signal('paid', 5, paid('s1'))).toEqual({});
      await world.clock.advance(10_000);
      await recoverIn(world, second);
      await world.clock.advance(5_000);
      expect(readBy(second)).toContain(`"value":${JSON.stringify(read)}`);
      expect(await copy.outcomes.find('r')).toMatchObject({ status: 'ok' });
    },
  );

  test('a signal that was kept meanwhile is delivered then', async () => {
    const world = scene();
    const first = world.waiting();
    await startAndRest(world, first);
    const record = await world.store.load('r');
    const copy = memoryStore({ clock: world.clock });
    const sender = world.boot({ store: copy });
    expect(await sender.executor.signal('paid', 5, paid('s1'))).toEqual({});
    await copy.save(record as never);
    const second = world.boot({ store: copy });
    await recoverIn(world, second);
    await world.clock.advance(5_000);
    expect(await copy.outcomes.find('r')).toMatchObject({ status: 'ok' });
  });
});

describe('without a store that carries signals', () => {
  test.for([
    ['without a store', {}],
    ['in a store without waits', 'events'],
    ['in a store of four methods', 'four'],
  ] as const)('a signal reaches the runs of this process, also if it came before: %s', async ([, kind]) => {
    const world = scene();
    const four = ['append', 'claim', 'renew', 'release', 'commands', 'due'];
    const names = kind === 'four' ? [...four, 'outcomes'] : [];
    const store = without(world.store, 'waits', ...names);
    const host = hostOf({
      tools: [paymentTool(), toolOf('rest', 'read', (_, context) => context.ask({ question: 'Well?' }))],
      clock: world.clock,
      ...(typeof kind === 'string' ? { store } : {}),
      script: [callTool('pay', {}), reply('done'), callTool('pay', {}), reply('done'), callTool('pay', {})],
    });
    const a = await host.start({ runId: 'a' });
    await world.clock.advance(10_000);
    expect(await host.executor.signal('paid', 1, paid('s1'))).toEqual({ to: 'a' });
    expect(await host.executor.signal('paid', 1, paid('s1'))).toEqual({ to: 'a' });
    expect(await host.executor.signal('paid', 2, paid('s2'))).toEqual({});
    expect(await host.executor.signal('paid', 2, paid('s2'))).toEqual({});
    const b = await host.start({ runId: 'b' });
    expect(await settled(world, Promise.all([a.result, b.result]))).toMatchObject([{ status: 'ok' }, { status: 'ok' }]);
    const c = await host.start({ runId: 'c' });
    const heard = heardOf(c);
    await world.clock.advance(1_000);
    expect(ofType(heard, 'wait.opened')).toHaveLength(1);
    expect(ofType(heard, 'wait.answered')).toEqual([]);
  });

  test('a run that waits for an event stays in its process: a signal could not reach it elsewhere', async () => {
    const world = scene();
    const host = world.waiting({ store: without(world.store, 'waits') });
    await host.start({ runId: 'r' });
    await world.clock.advance(60_000);
    expect(host.executor.runs.get()).toHaveLength(1);
  });

  test('a process without a live run refuses the signal, and says what to do', async () => {
    const world = scene();
    const host = world.boot({ store: without(world.store, 'waits') });
    const sent = host.executor.signal('paid', 1, paid('s1'));
    await expect(sent).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      message: expect.stringContaining('send the signal in the process of the run'),
    });
  });

  test('1,000 signals of an event are kept, and 10,000 in all', async () => {
    const host = hostOf({ clock: testClock() });
    const send = (n: number, key: string) => host.executor.signal('paid', n, { key, id: `s${n}` });
    for (let n = 0; n < 1_000; n++) await send(n, 'a');
    await expect(send(1_000, 'a')).rejects.toMatchObject({ code: 'UNDELIVERED' });
    for (let n = 0; n < 9_000; n++) await send(n, `b${n}`);
    await expect(send(0, 'c')).rejects.toMatchObject({ code: 'UNDELIVERED' });
  });

  test('kept signals whose time is over make room', async () => {
    const clock = testClock();
    const host = hostOf({ clock, retention: { signals: 1_000 } });
    const send = (n: number) => host.executor.signal('paid', n, { key: `k${n}`, id: `s${n}` });
    for (let n = 0; n < 10_000; n++) await send(n);
    await clock.advance(1_000);
    expect(await send(10_000)).toEqual({});
  });

  test('a run without a record gets signals beside runs in a store', async () => {
    const world = scene();
    const host = world.waiting({
      ports: { checkpointer: { begin: async () => null, store: world.store } } as never,
      store: undefined as never,
    });
    const run = await host.start({ runId: 'r' });
    await world.clock.advance(1_000);
    expect(await host.executor.signal('paid', 1, paid('s1'))).toEqual({ to: 'r' });
    expect(await settled(world, run.result)).toMatchObject({ status: 'ok', durable: false });
  });
});

describe('a signal that cannot be sent is refused at its sender', () => {
  const hostile = (value: unknown) => [value] as never;
  test.for([
    ['a value that redaction would change', ['paid', 'card 4711', { id: 's' }], { code: 'ANSWER_REDACTED' }],
    ['a value that is no JSON', ['paid', hostile(1n), { id: 's' }], { code: 'NOT_JSON' }],
    ['no value', ['paid', undefined as never, { id: 's' }], { code: 'NOT_JSON' }],
    ['a value of 2 MB', ['paid', 'x'.repeat(2_000_000), { id: 's' }], { code: 'UNDELIVERED' }],
    ['no id', ['paid', 1, {} as never], { name: 'TypeError', message: expect.stringContaining('id') }],
    ['a long id', ['paid', 1, { id: 'x'.repeat(129) }], { name: 'TypeError' }],
    ['no keys', ['paid', 1, undefined as never], { name: 'TypeError' }],
    ['an unknown key', ['paid', 1, { id: 's', keys: 'x' } as never], { name: 'TypeError' }],
    ['no name', ['', 1, { id: 's' }], { name: 'TypeError' }],
    ['a name that is not Unicode', ['\udc00', 1, { id: 's' }], { name: 'TypeError' }],
    ['a key that is no text', ['paid', 1, { id: 's', key: 7 as never }], { name: 'TypeError' }],
  ] as const)('%s (waiting 13)', async ([, [name, value, keys], error]) => {
    const world = scene();
    const host = world.boot({ redact: (text) => text.replaceAll('4711', '***') });
    await expect(host.executor.signal(name, value as never, keys)).rejects.toMatchObject(error);
  });

  test.for([[0], [-1], ['a day'], [Number.NaN], [Number.POSITIVE_INFINITY]] as const)(
    '`retention.signals` must be a number above 0: %s',
    ([keepSignalsMs]) => {
      expect(() => hostOf({ retention: { signals: keepSignalsMs as never } })).toThrow(
        /retention.signals must be ms above 0/,
      );
    },
  );
});
