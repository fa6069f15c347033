import { createPalette, type Driven, defineAgent, memoryStore, type RunOutcome } from 'pawl';
import { callTool, reply, type ScriptedRequest, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { answeringModel, resultsOf, turnsOf } from '../../fixtures/answering-model.ts';
import { childId } from '../../fixtures/child-id.ts';
import { type Execute, type HostOptions, hostOf, settle, toolOf } from '../../fixtures/host.ts';
import { onClock, sleepOn } from '../../fixtures/on-clock.ts';

const later = { drive: 'later' } as const;
const START = 1_000_000;
const ids = { parent: 'p', child: childId('p', 'to-child') };
const MODEL_MS = 20;

/** A parent whose one call is a run of a child, which works with one tool. */
function family({ work = async () => 'worked' }: { readonly work?: Execute } = {}) {
  const clock = testClock(START);
  const store = memoryStore({ clock });
  const turns: string[] = [];
  const worked: string[] = [];
  const outcomes: RunOutcome[] = [];
  const hints: string[] = [];
  const tool = toolOf('work', 'once', (input, context) => {
    worked.push(context.callId);
    return work(input, context);
  });
  const child = defineAgent({ id: 'child', instructions: 'child', tools: [tool] });
  const answer = async (request: ScriptedRequest) => {
    const { system } = request;
    turns.push(`${system} ${turnsOf(request)}`);
    await sleepOn(clock, MODEL_MS);
    if (turnsOf(request) > 0) return reply(`${system}(${resultsOf(request).join()})`);
    return system === 'parent'
      ? callTool('agent__child', { prompt: 'Do it.' }, 'to-child')
      : callTool('work', {}, 'work-1');
  };
  const host = (more: HostOptions = {}) =>
    hostOf({
      ...{ clock, store, models: { fast: answeringModel(answer) }, random: () => 0.5 },
      agent: { id: 'parent', instructions: 'parent', subAgents: ['child'] },
      ports: { palette: createPalette({ agents: [child] }) },
      onOutcome: (outcome) => void outcomes.push(outcome),
      onDue: (runId) => void hints.push(runId),
      ...more,
    });
  const drive = (runId: string, budgetMs = 60_000, { executor } = host()): Promise<Driven> =>
    onClock(clock, executor.drive(runId, { budgetMs, graceMs: 1_000 }), { everyMs: 10 });
  return { clock, store, turns, worked, outcomes, hints, host, drive };
}

const wholeTurns = ['parent 0', 'child 0', 'child 1', 'parent 1'];
const wholeOutput = 'parent(child(worked))';

describe('slices of a run that calls another run', () => {
  test.each([0, 10, 30, 50])(
    'of %i ms end the child with it: nothing is asked or done twice (engine 1, 2)',
    async (budgetMs) => {
      const { host, drive, turns, worked, outcomes, store } = family();
      await host().start({ runId: ids.parent }, later);
      let slices = 0;
      for (let state: Driven['state'] = 'more'; state === 'more' && slices < 30; slices++) {
        ({ state } = await drive(ids.parent, budgetMs));
        const left = await Promise.all(Object.values(ids).map((runId) => store.claim(runId, 'other', 1)));
        expect(left.every((claim) => claim !== null)).toBe(true);
        for (const claim of left) if (claim) await store.release(claim, { attempts: 0 });
      }
      expect(slices).toBeGreaterThan(1);
      expect(turns).toEqual(wholeTurns);
      expect(worked).toEqual(['work-1']);
      expect(outcomes.map(({ runId, output }) => [runId, output])).toEqual([
        [ids.child, 'child(worked)'],
        [ids.parent, wholeOutput],
      ]);
    },
  );

  test.each([0, 10, 50])(
    'of %i ms end in time although another process has the child (engine 2, 3)',
    async (budgetMs) => {
      const { host, clock, store, turns } = family();
      const { executor, agent } = host();
      await executor.start(agent, { runId: ids.parent, prompt: 'Go.' }, later);
      expect(await onClock(clock, executor.drive(ids.parent, { budgetMs: 0 }), { everyMs: 10 })).toMatchObject({
        state: 'more',
      });
      await store.claim(ids.child, 'another process', 600_000);
      const since = clock.now();
      const driving = host().executor.drive(ids.parent, { budgetMs, graceMs: 400 });
      expect(await onClock(clock, driving, { everyMs: 1 })).toMatchObject({ state: 'more' });
      expect(clock.now() - since).toBeLessThanOrEqual(budgetMs + 400);
      expect(turns).toEqual(['parent 0']);
    },
  );

  test('end the call of the child within the grace, and the next one makes it again (engine 3)', async () => {
    const { host, clock, turns, store } = family();
    const { executor } = host();
    await executor.start(host().agent, { runId: ids.parent, prompt: 'Go.' }, later);
    const driving = executor.drive(ids.parent, { budgetMs: 30, graceMs: 8 });
    expect(await onClock(clock, driving, { everyMs: 1 })).toMatchObject({ state: 'more' });
    expect(clock.now() - START).toBeLessThan(30 + MODEL_MS);
    expect(turns).toEqual(['parent 0', 'child 0']);
    const { executor: next } = host();
    expect(await onClock(clock, next.drive(ids.parent), { everyMs: 10 })).toMatchObject({ state: 'ended' });
    expect(turns).toEqual(['parent 0', 'child 0', 'child 0', 'child 1', 'parent 1']);
    expect(await store.listInterrupted()).toEqual([]);
  });
});

describe('a parent that rests until its child has ended', () => {
  test('continues when the child was driven by itself to its end, and each is reported (engine 6, 13)', async () => {
    const { host, drive, clock, turns, hints, worked } = family({
      work: async (_, context) => {
        await context.sleep(60_000);
        return 'worked';
      },
    });
    await host().start({ runId: ids.parent }, later);
    const rested = await drive(ids.parent);
    expect(rested).toMatchObject({ runId: ids.parent, state: 'waiting' });
    expect(rested.wakeAt).toBeUndefined();
    // The child has a time of its own, and no answer of drive says it.
    expect(hints).toEqual([ids.parent, ids.child]);
    expect(await drive(ids.child)).toMatchObject({ state: 'waiting', wakeAt: expect.any(Number) });
    await clock.advance(61_000);
    expect(await drive(ids.parent)).toMatchObject({ state: 'waiting' });
    expect(await drive(ids.child)).toMatchObject({ runId: ids.child, state: 'ended' });
    expect(hints.at(-1)).toBe(ids.parent);
    expect(await drive(ids.parent)).toMatchObject({ state: 'ended' });
    expect(turns).toEqual(wholeTurns);
    expect(worked).toEqual(['work-1', 'work-1']);
  });

  test('is found by the list of due runs, as its child is (engine 10, 14)', async () => {
    const { host, clock, outcomes, turns } = family({
      work: async (_, context) => {
        await context.sleep(60_000);
        return 'worked';
      },
    });
    await host({ onDue: () => {} }).start({ runId: ids.parent }, later);
    const { executor } = host();
    let state = '';
    for (let calls = 0; state !== 'ended' && calls < 10; calls++) {
      const driven = await onClock(clock, executor.drive('due', { budgetMs: 5_000 }), { everyMs: 10 });
      state = driven.state;
      if (driven.wakeAt) await clock.advance(driven.wakeAt - clock.now() + 1);
    }
    expect(outcomes.map(({ runId }) => runId)).toEqual([ids.child, ids.parent]);
    expect(turns).toEqual(wholeTurns);
  });
});

describe('a child that is driven by its id', () => {
  test('is left to its parent as long as that continues it (engine 8)', async () => {
    const { host, drive, turns, outcomes } = family();
    await host().start({ runId: ids.parent }, later);
    expect(await drive(ids.parent, 30)).toMatchObject({ state: 'more' });
    expect(await drive(ids.child)).toMatchObject({ runId: ids.child, state: 'waiting', code: 'RUN_OWNED_ELSEWHERE' });
    expect(turns).toEqual(['parent 0', 'child 0']);
    expect(await drive(ids.parent)).toMatchObject({ state: 'ended' });
    expect(outcomes.at(-1)?.output).toBe(wholeOutput);
  });

  test('is ended without a model call when the run that began it is gone (engine 6)', async () => {
    const { host, drive, turns, store, outcomes } = family();
    await host().start({ runId: ids.parent }, later);
    expect(await drive(ids.parent, 30)).toMatchObject({ state: 'more' });
    await settle();
    // The parent's record is lost: no cancel reached the child.
    await store.delete(ids.parent);
    const before = turns.length;
    expect(await drive(ids.child)).toMatchObject({ runId: ids.child, state: 'ended', code: 'CANCELLED' });
    expect(turns).toHaveLength(before);
    expect(outcomes).toMatchObject([{ runId: ids.child, status: 'cancelled' }]);
    expect(await store.listInterrupted()).toEqual([]);
  });
});
