import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CheckpointStore, memoryStore } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, testClock } from 'pawl/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { hostOf, toolOf } from '../../fixtures/host.ts';

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
    const checkpoints = storeOf();
    const host = hostOf({ script, tools, agent: { maxIterations: STEPS }, ...(checkpoints ? { checkpoints } : {}) });
    const run = await host.start();
    setTimeout(() => run.cancel(), 30);
    const result = await run.result;
    expect(result.status).toBe('cancelled');
    expect(result.iterations).toBeLessThan(STEPS);
  });

  test('makes no turn of the event loop out of a clock that its host brings', async () => {
    const host = hostOf({ script: script.slice(0, 200), tools, agent: { maxIterations: 200 }, clock: testClock() });
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
