import { type Driven, type DriveOptions, memoryStore, type Tool } from 'pawl';
import { callTool, callTools, hang, reply, type ScriptedEntry, type ScriptedStep, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, settle, toolOf } from '../../fixtures/host.ts';

type Clock = ReturnType<typeof testClock>;

/** A model call, or a tool, that takes this long on the test clock. */
const sleepOf = (clock: Clock, ms: number) => new Promise<void>((resolve) => clock.setTimeout(resolve, ms));
const taking = (clock: Clock, ms: number, step: ScriptedStep) => async () => {
  await sleepOf(clock, ms);
  return step;
};

type Store = ReturnType<typeof memoryStore>;

/** A store whose records take longer to load than a short budget lasts. */
const slow = (store: Store, clock: Clock): Store => ({
  ...store,
  load: async (...args) => {
    await sleepOf(clock, 50);
    return store.load(...args);
  },
});

interface Slicing {
  readonly through?: (store: Store, clock: Clock) => Store;
  readonly clock?: Clock;
  readonly script: (clock: Clock) => readonly ScriptedEntry[];
  readonly tools?: (clock: Clock) => readonly Tool[];
}

/** A stored run that an earlier process left, and a host that drives it. */
async function left({ clock = testClock(1_000_000), script, tools = () => [], through = (store) => store }: Slicing) {
  const store = memoryStore({ clock });
  const options = { clock, store, tools: tools(clock) };
  const first = hostOf({ ...options, script: [hang()] });
  await first.start({ runId: 'r' });
  await first.executor.shutdown();
  const host = hostOf({
    ...options,
    store: through(store, clock),
    script: script(clock),
    agent: { tools: tools(clock) },
  });
  const drive = async (limits: DriveOptions): Promise<Driven> => {
    const driving = host.executor.drive('r', limits);
    let driven: Driven | undefined;
    void driving.then((end) => {
      driven = end;
    });
    for (let ms = 0; ms < 600_000 && !driven; ms += 25) {
      await clock.advance(25);
      await settle();
    }
    return driving;
  };
  return { ...host, store, clock, drive };
}

describe('a slice', () => {
  test('begins no call after its budget, lets the call under way end, and leaves the run due (engine 2, 6)', async () => {
    const { drive, model, store } = await left({
      script: (clock) => [
        taking(clock, 400, callTool('look')),
        taking(clock, 400, callTool('look')),
        taking(clock, 400, reply('found')),
      ],
      tools: (clock) => [toolOf('look', 'read', () => sleepOf(clock, 100))],
    });
    expect(await drive({ budgetMs: 300, graceMs: 1_000 })).toMatchObject({ runId: 'r', state: 'more' });
    expect(model.calls).toHaveLength(1);
    const record = await store.load('r');
    expect(record).toMatchObject({ attempts: 0, openStep: { calls: [{ name: 'look', state: 'planned' }] } });
    expect(await drive({ budgetMs: 450, graceMs: 1_000 })).toMatchObject({ state: 'more' });
    expect(model.calls).toHaveLength(2);
    expect(await drive({ budgetMs: 100, graceMs: 1_000 })).toMatchObject({ state: 'more' });
    expect(await drive({ budgetMs: 100, graceMs: 1_000 })).toEqual({ runId: 'r', state: 'ended', boundaries: 0 });
    expect(model.calls).toHaveLength(3);
    expect(await drive({ budgetMs: 100 })).toEqual({ runId: 'r', state: 'ended', boundaries: 0 });
  });

  test('too short for one model call parks the run after three paid calls, and says so (engine 5, 42)', async () => {
    const { drive, model, store } = await left({
      script: (clock) => [400, 400, 400].map((ms) => taking(clock, ms, reply('done'))),
    });
    expect(await drive({ budgetMs: 300, graceMs: 0 })).toMatchObject({ state: 'more' });
    expect(await drive({ budgetMs: 300, graceMs: 0 })).toMatchObject({ state: 'more' });
    expect(await drive({ budgetMs: 300, graceMs: 0 })).toMatchObject({ state: 'waiting', code: 'SLICE_TOO_SHORT' });
    expect(model.calls).toHaveLength(3);
    const [listed] = await store.listInterrupted();
    expect(listed).toMatchObject({ status: 'parked', code: 'SLICE_TOO_SHORT' });
    expect(listed && 'reason' in listed && listed.reason).toContain('300 ms');
    expect(await drive({ budgetMs: 300 })).toEqual({
      runId: 'r',
      state: 'waiting',
      code: 'SLICE_TOO_SHORT',
      boundaries: 0,
    });
  });

  test('with a grace for its calls asks the model as often as without slices (engine 42)', async () => {
    const { drive, model } = await left({ script: (clock) => [taking(clock, 400, reply('done'))] });
    expect(await drive({ budgetMs: 300, graceMs: 500 })).toMatchObject({ state: 'ended' });
    expect(model.calls).toHaveLength(1);
  });

  test('waits for a run that this process keeps live without a budget, and says then who has it (engine 7)', async () => {
    const clock = testClock(1_000_000);
    const host = hostOf({ clock, store: memoryStore({ clock }), script: [taking(clock, 5_000, reply('done'))] });
    await host.start({ runId: 'r' });
    const short = host.executor.drive('r', { budgetMs: 1_000 });
    const joined = host.executor.drive('r');
    await clock.advance(6_000);
    expect(await short).toEqual({ runId: 'r', state: 'owned-elsewhere', wakeAt: 1_031_000, boundaries: 0 });
    expect(await joined).toBe(await short);
    expect(await host.executor.drive('r')).toEqual({ runId: 'r', state: 'ended', boundaries: 0 });
    expect(host.model.calls).toHaveLength(1);
  });

  test('leaves at once when its last call has ended, however long the grace is (engine 2)', async () => {
    const { drive, clock } = await left({
      script: (at) => [taking(at, 400, callTool('look'))],
      tools: () => [toolOf('look')],
    });
    const since = clock.monotonic();
    expect(await drive({ budgetMs: 300, graceMs: 60_000 })).toMatchObject({ state: 'more' });
    expect(clock.monotonic() - since).toBeLessThanOrEqual(425);
  });

  test('begins one call, however short its budget is: a run gets on with a budget of 0 (engine 2)', async () => {
    const { drive, model } = await left({
      through: slow,
      script: (clock) => [taking(clock, 400, callTool('look')), taking(clock, 400, reply('found'))],
      tools: (clock) => [toolOf('look', 'read', () => sleepOf(clock, 50))],
    });
    const states: string[] = [];
    for (let i = 0; i < 5 && states.at(-1) !== 'ended'; i++)
      states.push((await drive({ budgetMs: 0, graceMs: 1_000 })).state);
    expect(states).toEqual(['more', 'more', 'ended']);
    expect(model.calls).toHaveLength(2);
  });

  test('that recorded a reply, and cut only its call, is no failed start; the next ones are (engine 5)', async () => {
    const { drive, store } = await left({
      script: (clock) => [taking(clock, 100, callTool('look'))],
      tools: (clock) => [toolOf('look', 'read', () => sleepOf(clock, 5_000))],
    });
    const codes: (string | undefined)[] = [];
    const attempts: (number | undefined)[] = [];
    for (let i = 0; i < 4; i++) {
      codes.push((await drive({ budgetMs: 200, graceMs: 100 })).code);
      attempts.push((await store.load('r'))?.attempts);
    }
    expect(attempts).toEqual([0, 1, 2, 3]);
    expect(codes).toEqual([undefined, undefined, undefined, 'SLICE_TOO_SHORT']);
  });

  test('ends at once when its signal is aborted: its call has the grace, and no start is counted (engine 4)', async () => {
    const abort = new AbortController();
    const { drive, model, store, clock } = await left({
      script: (at) => [taking(at, 2_000, reply('late')), taking(at, 400, callTool('look'))],
      tools: () => [toolOf('look')],
    });
    clock.setTimeout(() => abort.abort(), 100);
    expect(await drive({ budgetMs: 60_000, graceMs: 400, signal: abort.signal })).toMatchObject({ state: 'more' });
    expect(model.calls[0]?.signal?.aborted).toBe(true);
    expect((await store.load('r'))?.attempts).toBe(0);
    expect(await drive({ signal: AbortSignal.abort() })).toEqual({ runId: 'r', state: 'more', boundaries: 0 });
    expect(model.calls).toHaveLength(1);
  });

  test('ends at once at a shutdown: drainMs is the grace of its calls (engine 4, 20)', async () => {
    const { drive, model, executor, clock, store } = await left({
      script: (at) => [taking(at, 400, callTool('look'))],
      tools: () => [toolOf('look')],
    });
    clock.setTimeout(() => void executor.shutdown({ drainMs: 1_000 }), 100);
    expect(await drive({})).toMatchObject({ state: 'more' });
    expect(model.calls[0]?.signal?.aborted).toBe(false);
    expect(await store.load('r')).toMatchObject({ attempts: 0, openStep: { calls: [{ state: 'planned' }] } });
  });

  test.for([
    { effect: 'read', ms: 800, state: 'started' },
    { effect: 'read', ms: 600, state: 'done' },
    { effect: 'once', ms: 800, state: 'done' },
    { effect: 'once', ms: 950, state: 'started' },
  ] as const)(
    'of 100 ms and 1 s of grace leaves a $effect call of $ms ms $state: effects have nearly the whole grace (engine 3)',
    async ({ effect, ms, state }) => {
      const { drive, store } = await left({
        script: () => [callTools([{ name: 'work', input: {} }]), reply('never')],
        tools: (clock) => [toolOf('work', effect, () => sleepOf(clock, 100 + ms))],
      });
      expect(await drive({ budgetMs: 100, graceMs: 1_000 })).toMatchObject({ state: 'more' });
      const record = await store.load('r');
      expect(record?.openStep?.calls[0]?.state ?? 'done').toBe(state);
      expect(record?.messages.length).toBe(state === 'done' ? 3 : 1);
    },
  );
});
