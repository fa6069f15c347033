import { diagnose, memoryStore, type RunCheckpoint, type RunDiagnosis } from 'pawl';
import type { Claim } from 'pawl/stores/kit';
import { reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { torture } from '../../crash/random.ts';
import { hostOf, settle, until } from '../../fixtures/host.ts';
import { deskOf, START, type Store } from '../../fixtures/resting-runs.ts';
import { plainStore } from '../../fixtures/watched-store.ts';

const WEEK = 604_800_000;
const AT_ONCE = torture > 1 ? 1_000 : 300;
const empty = { resumed: [], parked: [], skipped: [], failed: [] };

/** A store in which this many runs rest, each for an approval. */
async function restingStore(count: number) {
  const time = testClock(START);
  const desk = deskOf({ time });
  for (let i = 0; i < count; i++) await desk.start({ runId: `r${i}` });
  await time.advance(2_000);
  const waits = await desk.executor.waiting({ limit: 1_000 });
  await desk.executor.shutdown();
  return { time, store: desk.store, waits };
}

/** Lets so many runs rest beside the run `r0`, as it rests. */
async function copyResting(store: Store, count: number): Promise<void> {
  const record = (await store.load('r0')) as RunCheckpoint;
  const { wakeAt } = record.waiting as NonNullable<RunCheckpoint['waiting']>;
  for (let i = 1; i < count; i++) {
    const runId = `r${i}`;
    await store.save({ ...record, meta: { ...record.meta, runId } });
    const claim = (await store.claim(runId, 'elsewhere|1', 60_000)) as Claim;
    await store.due.leave(claim, { ...(wakeAt === undefined ? {} : { dueAt: wakeAt }), readUpTo: 0, attempts: 0 });
  }
}

async function diagnosed(store: Parameters<typeof diagnose>[0], options: Parameters<typeof diagnose>[1] = {}) {
  const found: RunDiagnosis[] = [];
  for await (const each of diagnose(store, options)) found.push(each);
  return found;
}

describe('recover and the runs that rest', () => {
  test('does not start them, and reports how many there are (waiting 20)', async () => {
    const { store, time } = await restingStore(3);
    const desk = deskOf({ store, time });
    expect(await desk.executor.recover()).toEqual({ ...empty, waiting: 3 });
    expect(desk.executor.runs.get()).toEqual([]);
    await desk.executor.shutdown();
    const without = hostOf();
    expect(await without.executor.recover()).toEqual({ ...empty, waiting: 0 });
  });

  test('takes up one whose time has come, and one that an answer waits for (waiting 20)', async () => {
    const { store, time, waits } = await restingStore(3);
    const sender = deskOf({ store, time });
    expect(await sender.executor.control('r1').approve(waits.find(({ runId }) => runId === 'r1')?.id ?? '')).toBe(
      'sent',
    );
    const desk = deskOf({ store, time });
    const report = await desk.executor.recover();
    expect(report).toEqual({ ...empty, resumed: [{ runId: 'r1' }], waiting: 2 });
    await time.advance(2_000);
    expect([desk.paid, await store.outcomes.find('r1')]).toMatchObject([[700], { status: 'ok' }]);
    time.wallJump(WEEK);
    const last = deskOf({ store, time });
    expect((await last.executor.recover()).resumed.toSorted((a, b) => (a.runId < b.runId ? -1 : 1))).toEqual([
      { runId: 'r0' },
      { runId: 'r2' },
    ]);
    await time.advance(2_000);
    expect([last.paid, await store.outcomes.find('r0')]).toMatchObject([[], { status: 'ok' }]);
    for (const { executor } of [sender, desk, last]) await executor.shutdown();
  });

  test('counts a run that its process left while it waited: it rests again, and no attempt is counted (waiting 20)', async () => {
    const time = testClock(START);
    const desk = deskOf({ time });
    await desk.start({ runId: 'r' });
    await until(async () => (await desk.executor.waiting()).length === 1);
    const store = memoryStore({ clock: time });
    const left = (await desk.store.load('r')) as RunCheckpoint;
    await store.save(left);
    for (let boot = 0; boot < 5; boot++) {
      const next = deskOf({ store, time });
      expect(await next.executor.recover()).toEqual({ ...empty, waiting: 1 });
      await next.executor.shutdown();
    }
    const { attempts, waiting } = left;
    expect(await store.load('r')).toMatchObject({ attempts, waiting });
    await desk.executor.shutdown();
  });

  test('continues it, where a store cannot let it rest: it waits in the process (waiting 26)', async () => {
    const { store, time, waits } = await restingStore(1);
    const listed = {
      ...plainStore(store),
      listInterrupted: async () => store.listInterrupted({ status: 'waiting' }),
    };
    expect(await diagnosed(listed, { clock: time })).toMatchObject([{ runId: 'r0', verdict: 'resumes' }]);
    const host = deskOf({ time, store: listed as unknown as Store });
    expect(await host.executor.recover()).toEqual({ ...empty, resumed: [{ runId: 'r0' }], waiting: 0 });
    expect(await host.executor.control('r0').approve(waits[0]?.id ?? '')).toBe('recorded');
    await time.advance(2_000);
    expect(host.paid).toEqual([700]);
    await host.executor.shutdown();
  });

  test('with `follow` resolves at the shutdown, and takes up what becomes due until then (waiting 19)', async () => {
    const { store, time, waits } = await restingStore(1);
    const desk = deskOf({ store, time });
    let isOver = false;
    const followed = desk.executor.recover({ follow: true }).finally(() => {
      isOver = true;
    });
    await time.advance(5_000);
    expect(isOver).toBe(false);
    const sender = deskOf({ store, time });
    await sender.executor.control('r0').approve(waits[0]?.id ?? '');
    await time.advance(3_000);
    expect([desk.paid, isOver]).toEqual([[700], false]);
    await desk.executor.shutdown();
    expect(await followed).toEqual({ ...empty, waiting: 1 });
    await sender.executor.shutdown();
  });

  test('with `follow` ends at its signal, and rejects if the list cannot be read (waiting 19)', async () => {
    const desk = deskOf();
    const controller = new AbortController();
    const followed = desk.executor.recover({ follow: true, signal: controller.signal });
    await settle();
    controller.abort();
    expect(await followed).toEqual({ ...empty, waiting: 0 });
    await desk.executor.shutdown();
    const listInterrupted = async () => {
      throw new Error('down');
    };
    const broken = deskOf({ store: { ...memoryStore(), listInterrupted } });
    await expect(broken.executor.recover({ follow: true })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await broken.executor.shutdown();
    await expect(desk.executor.recover({ follow: 1 as never })).rejects.toThrow(
      'recover: follow must be true or false, not the number 1',
    );
  });

  test('an executor that called neither recover nor had a run that rested takes up none (waiting 19)', async () => {
    const { store, time, waits } = await restingStore(2);
    const idle = deskOf({ store, time });
    const wait = (runId: string) => waits.find((each) => each.runId === runId)?.id ?? '';
    expect(await idle.executor.control('r0').approve(wait('r0'))).toBe('sent');
    await time.advance(60_000);
    expect([idle.paid, idle.executor.runs.get()]).toEqual([[], []]);
    // A run of its own rests: from then on it looks for all.
    await idle.rested('own');
    await time.advance(5_000);
    expect(idle.paid).toEqual([700]);
    await idle.executor.shutdown();
  });

  test(`${AT_ONCE} runs that are due at once have 64 places, shared with recover, and each is taken up once (waiting 19)`, async () => {
    const { store, time } = await restingStore(1);
    await copyResting(store, AT_ONCE);
    time.wallJump(WEEK);
    let most = 0;
    const desk = deskOf({
      store,
      time,
      script: Array.from({ length: AT_ONCE }, () => async () => {
        most = Math.max(most, desk.executor.runs.get().length);
        await settle(1);
        return reply('done');
      }),
    });
    const recovered = desk.executor.recover();
    for (let second = 0; second < 60 && (await store.listInterrupted()).length > 0; second++) await time.advance(1_000);
    expect((await recovered).resumed.length).toBeGreaterThan(0);
    expect(await store.listInterrupted()).toEqual([]);
    expect([desk.model.calls.length, desk.paid]).toEqual([AT_ONCE, []]);
    expect(most).toBeLessThanOrEqual(64);
    await desk.executor.shutdown();
  }, 180_000);
});

describe('a due run that got no further', () => {
  test('without its agent stays as it is, and is looked at no more than its pauses allow (waiting 19)', async () => {
    const { store, time, waits } = await restingStore(1);
    const claims: string[] = [];
    const claim: (typeof store)['claim'] = async (runId, ...rest) => {
      claims.push(runId);
      return store.claim(runId, ...rest);
    };
    const stranger = hostOf({
      store: { ...store, claim } as typeof store,
      clock: time,
      agent: { id: 'stranger' },
    });
    await stranger.executor.recover();
    await deskOf({ store, time })
      .executor.control('r0')
      .approve(waits[0]?.id ?? '');
    await time.advance(600_000);
    expect(claims).toEqual([]);
    expect(await store.load('r0')).toMatchObject({ attempts: 0 });
    await stranger.executor.shutdown();
  });

  test('because its store fails is tried again after 30 s (waiting 19)', async () => {
    const { store, time, waits } = await restingStore(1);
    const loads: number[] = [];
    const load: typeof store.load = async () => {
      loads.push(time.monotonic());
      throw new Error('down');
    };
    const desk = deskOf({ time, store: { ...store, load } });
    await desk.executor.recover();
    await deskOf({ store, time })
      .executor.control('r0')
      .approve(waits[0]?.id ?? '');
    await time.advance(200_000);
    const starts = loads.filter((at, i) => i === 0 || at - (loads[i - 1] ?? 0) > 5_000);
    const pauses = starts.slice(1).map((at, i) => Math.round((at - (starts[i] ?? 0)) / 10_000));
    expect(pauses).toEqual([3, 6]);
    await desk.executor.shutdown();
  });
});

describe('diagnose and the runs that rest', () => {
  test('says what each waits for, since when, and whether a person must act (waiting 22)', async () => {
    const { store, time } = await restingStore(1);
    const options = { clock: time };
    const [found] = await diagnosed(store, options);
    expect(found).toMatchObject({
      runId: 'r0',
      verdict: 'waits',
      reason: `it waits for an approval, until ${new Date(START + WEEK).toISOString()} at the latest`,
      needsPerson: true,
      record: { waits: [{ kind: 'approval', input: { cents: 700 }, prompt: 'Pay 700 cents?' }] },
    });
    time.wallJump(WEEK);
    expect(await diagnosed(store, options)).toMatchObject([{ verdict: 'resumes' }]);
  });

  test('says that one with an answer continues (waiting 22)', async () => {
    const { store, time, waits } = await restingStore(1);
    await deskOf({ store, time })
      .executor.control('r0')
      .approve(waits[0]?.id ?? '');
    expect(await diagnosed(store, { clock: time })).toMatchObject([
      { runId: 'r0', verdict: 'resumes', needsPerson: false },
    ]);
  });
});
