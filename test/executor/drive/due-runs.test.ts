import { createExecutor, createPalette, defineAgent, memoryStore } from 'pawl';
import { hang, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf } from '../../fixtures/host.ts';

async function withLeft(runIds: readonly string[]) {
  const clock = testClock(1_000_000);
  const store = memoryStore({ clock });
  const first = hostOf({ clock, store, script: runIds.map(() => hang()) });
  for (const runId of runIds) await first.start({ runId });
  await first.executor.shutdown();
  return { clock, store };
}

describe('executor.due', () => {
  test('lists the runs that are due, in pages, and none that a process works on', async () => {
    const { clock, store } = await withLeft(['a', 'b', 'c']);
    const { executor, start } = hostOf({ clock, store, script: [hang()] });
    const first = await executor.due({ limit: 2 });
    const [last] = first.runs.slice(-1);
    expect(first.runs.map(({ runId }) => runId)).toEqual(['a', 'b']);
    expect((await executor.due({ limit: 2, ...(last ? { after: last } : {}) })).runs).toMatchObject([{ runId: 'c' }]);
    await start({ runId: 'b' });
    expect((await executor.due()).runs.map(({ runId }) => runId)).toEqual(['a', 'c']);
    await executor.shutdown();
  });

  test('refuses options that cannot be, and stores without due runs', async () => {
    const models = { fast: scriptedModel([]) };
    await using none = createExecutor({ models });
    const { save, load, delete: remove, listInterrupted } = memoryStore();
    await using naive = createExecutor({ models, store: { save, load, delete: remove, listInterrupted } });
    await using executor = createExecutor({ models, store: memoryStore() });
    await expect(none.due()).rejects.toMatchObject({ code: 'NOT_DURABLE' });
    await expect(naive.due()).rejects.toMatchObject({ code: 'UNSUPPORTED' });
    await expect(executor.due({ limit: 0 })).rejects.toThrow('a whole number above 0');
    await expect(executor.due({ after: { runId: 'a' } as never })).rejects.toThrow('the last run of a page');
    await expect(executor.due({ most: 1 } as never)).rejects.toThrow(TypeError);
    expect(await executor.due()).toMatchObject({ runs: [] });
  });
});

test('executor.agent finds an agent by its id: of createExecutor, else of the palette', async () => {
  const [own, called] = ['own', 'called'].map((id) => defineAgent({ id, instructions: 'Answer.' }));
  if (!own || !called) throw new Error('two agents are defined');
  const palette = createPalette({ agents: [called] });
  await using executor = createExecutor({ models: { fast: scriptedModel([]) }, agents: [own], ports: { palette } });
  expect(executor.agent('own')).toBe(own);
  expect(executor.agent('called')?.id).toBe('called');
  expect(executor.agent('other')).toBeUndefined();
});
