import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CheckpointStore, memoryStore } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply, testClock } from 'pawl/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { yieldToEventLoop } from '../../../src/values/event-loop.ts';
import { answeringModel, turnsOf } from '../../fixtures/answering-model.ts';
import { pay } from '../../fixtures/broken-setups.ts';
import { hostOf, toolOf, until } from '../../fixtures/host.ts';

/** Whatever it takes until a timer is heard: a run that keeps the event loop to itself comes to the end of these first. */
const STEPS = 5_000;
const script = Array.from({ length: STEPS }, (_, i) => callTool('look', { i }));
const tools = [toolOf('look')];

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'pawl-event-loop-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  return dir;
}

describe('a run that waits for nothing outside its process', () => {
  const stores: Readonly<Record<string, () => CheckpointStore | undefined>> = {
    'without a store': () => undefined,
    'with a store in memory': memoryStore,
    'with a file that is not synced': () => sqliteStore({ path: join(folder(), 'runs.db'), durability: 'process' }),
  };
  test.for(Object.entries(stores))('%s leaves room for a timer, which may cancel it', async ([, storeOf]) => {
    const store = storeOf();
    const host = hostOf({ script, tools, agent: { maxSteps: STEPS }, ...(store ? { store } : {}) });
    const run = await host.start();
    setTimeout(() => run.cancel(), 30);
    const result = await run.result;
    expect(result.status).toBe('cancelled');
    expect(result.iterations).toBeLessThan(STEPS);
  });

  test('makes no turn of the event loop out of a clock that its host brings', async () => {
    const host = hostOf({ script: script.slice(0, 200), tools, agent: { maxSteps: 200 }, clock: testClock() });
    let isHeard = false;
    setImmediate(() => {
      isHeard = true;
    });
    const run = host.run();
    for (let turns = 0; turns < 200_000 && host.model.calls.length < 200; turns++) await undefined;
    expect(host.model.calls).toHaveLength(200);
    expect(isHeard).toBe(false);
    await run;
  });
});

const CALLERS = 40;

/** Holds the event loop, by default until callers must wait for a turn of it. */
function holdLoop(ms = 25): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

/** A turn in which all has run that was ready. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('hundreds of callers that wait for a turn of the event loop', () => {
  test('continue one after the other, in their order, for 20 ms of each turn (edges 21)', async () => {
    await turn();
    holdLoop();
    const continued: number[] = [];
    for (let i = 0; i < CALLERS; i++) {
      void yieldToEventLoop()?.then(() => {
        continued.push(i);
        holdLoop(10);
      });
    }
    for (let turns = 0, before = 0; turns < 1_000 && before < CALLERS; turns++) {
      await turn();
      expect(continued.length - before).toBeLessThanOrEqual(2);
      before = continued.length;
    }
    expect(continued).toEqual(Array.from({ length: CALLERS }, (_, i) => i));
  });

  test('take turns: one that asks again waits behind the others, and so does one that comes later (edges 21)', async () => {
    await turn();
    holdLoop();
    const continued: string[] = [];
    const call = async (name: string, times: number) => {
      for (let i = 0; i < times; i++) {
        await yieldToEventLoop();
        continued.push(name);
      }
    };
    const first = call('a', 3).then(() => call('late', 1));
    await Promise.all([first, call('b', 4), call('c', 4)]);
    expect(continued).toEqual(['a', 'b', 'c', 'a', 'b', 'c', 'a', 'b', 'c', 'late', 'b', 'c']);
  });

  test('all continue where the answers to forty runs come at once (edges 21)', async () => {
    const store = memoryStore();
    const host = hostOf({
      tools: [pay],
      models: { fast: answeringModel((request) => (turnsOf(request) === 0 ? callTool('pay', {}) : reply('done'))) },
      store,
      defaults: { waitLingerMs: 1, dueMs: 5 },
    });
    const ids = Array.from({ length: CALLERS }, (_, i) => `r${i}`);
    await Promise.all(ids.map((runId) => host.run({ runId })));
    for (const { runId, id } of await host.executor.waiting({ limit: CALLERS }))
      await host.executor.control(runId).approve(id);
    const outcomes = () => Promise.all(ids.map((id) => store.outcomes.find(id)));
    await until(async () => (await outcomes()).every((outcome) => outcome?.status === 'ok'));
    await host.executor.shutdown();
  });
});
