import { type Driven, type DriveOptions, memoryStore, type Tool } from 'pawl';
import { callTool, hang, reply, type ScriptedEntry, type ScriptedStep, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, settle, toolOf } from '../../fixtures/host.ts';

type Clock = ReturnType<typeof testClock>;

/** A model call, or a tool, that takes this long on the test clock. */
const sleepOf = (clock: Clock, ms: number) => new Promise<void>((resolve) => clock.setTimeout(resolve, ms));
const taking = (clock: Clock, ms: number, step: ScriptedStep) => async () => {
  await sleepOf(clock, ms);
  return step;
};

interface Slicing {
  readonly clock?: Clock;
  readonly script: (clock: Clock) => readonly ScriptedEntry[];
  readonly tools?: (clock: Clock) => readonly Tool[];
}

/** A stored run that an earlier process left, and a host that drives it. */
async function left({ clock = testClock(1_000_000), script, tools = () => [] }: Slicing) {
  const store = memoryStore({ clock });
  const options = { clock, checkpoints: store, tools: tools(clock) };
  const first = hostOf({ ...options, script: [hang()] });
  await first.start({ runId: 'r' });
  await first.executor.shutdown();
  const host = hostOf({ ...options, script: script(clock), agent: { tools: tools(clock) } });
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
});
