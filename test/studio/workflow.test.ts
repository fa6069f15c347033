import { createExecutor, memoryStore } from 'pawl';
import { describe, expect, test } from 'vitest';
import { activePaths, afterTransition, stateWords, unmoved } from '../../src/studio/page/chart/machine-model.ts';
import type { JournalEvent } from '../../src/studio/wire.ts';
import parcel from '../cli/agents/parcel.ts';
import { until } from '../fixtures/host.ts';
import { studioHost } from './studio-host.ts';

/** A Studio on a live run of a workflow. */
async function deskOf(write: boolean) {
  const host = studioHost({ workflows: [parcel], studio: { write } });
  await host.executor.start(parcel, { runId: 'p', callerId: 'ada', input: undefined });
  await until(async () => (await host.executor.waiting({ kind: 'question' })).length === 1);
  return host;
}

describe('the page of a workflow', () => {
  test('gets the state, the states, timers and open calls of its machine (workflow 23)', async () => {
    const { ask } = await deskOf(false);
    const { body } = await ask('/runs/p/record');
    expect(body.workflow).toMatchObject({
      state: 'asking',
      takes: ['stop'],
      timers: [{ sendId: expect.stringContaining('aDay') }],
      calls: [{ name: 'manager', state: 'waiting' }],
      chart: expect.stringMatching(/^[\w-]{16}$/),
    });
    expect(body.workflow.meta).toBeUndefined();
  });

  test('draws its machine: states with their calls, arrows with what takes them, the mark of the beginning (workflow 23)', async () => {
    const { ask } = await deskOf(false);
    const { body, status } = await ask('/runs/p/chart');
    expect(status).toBe(200);
    expect(body.states).toMatchObject([
      { path: '', name: '(machine)', type: 'compound' },
      { path: 'asking', name: 'asking', lines: [{ text: 'calls manager' }] },
      { path: 'done', type: 'final' },
    ]);
    const lines = body.arrows[0].label.lines;
    expect(body.arrows[0]).toMatchObject({ from: 'asking', to: 'done' });
    expect(lines.map(({ text }: { readonly text: string }) => text)).toEqual(['stop', 'manager done', 'after aDay']);
    // The clock stands where the timer of the run is.
    const { workflow } = (await ask('/runs/p/record')).body;
    expect(lines[2].timer).toBe(workflow.timers[0].sendId);
    expect(body.dots).toHaveLength(1);
  });

  test('sends an event with --write, and has no route for it without (workflow 23)', async () => {
    const event = { event: { type: 'stop', by: 'ada' } };
    const reading = await deskOf(false);
    expect((await reading.ask('/runs/p/events', { body: event })).status).toBe(405);
    const writing = await deskOf(true);
    expect(await writing.ask('/runs/p/events', { body: event })).toMatchObject({ status: 200 });
    await until(async () => (await writing.executor.find('p'))?.status !== 'live');
  });

  test('shows what a stored workflow of an unknown definition has, without its states', async () => {
    const store = memoryStore();
    const executor = createExecutor({ store, workflows: [parcel], defaults: { waitLingerMs: 1 } });
    await executor.start(parcel, { runId: 'p', input: undefined });
    await until(async () => (await executor.waiting({ kind: 'question' })).length === 1);
    await executor.shutdown();
    const { ask: read } = studioHost({ store });
    const { body } = await read('/runs/p/record');
    expect(body.workflow).toMatchObject({ state: 'asking', calls: [{ name: 'manager' }] });
    expect(body.workflow.chart).toBeUndefined();
    expect((await read('/runs/p/chart')).body.states).toEqual([]);
  });

  test('counts how often each state was entered, and names the last transition (workflow 23)', () => {
    const went = (from: unknown, to: unknown, event: string) =>
      ({ type: 'workflow.transition', step: 1, from, to, event, took: [`${event}:0`] }) as unknown as JournalEvent;
    const facts = [
      went(null, { a: 'x' }, 'xstate.init'),
      went({ a: 'x' }, { a: 'y' }, 'next'),
      went({ a: 'y' }, 'b', 'out'),
      went('b', { a: 'x' }, 'back'),
    ].reduce(afterTransition, unmoved);
    expect(facts).toEqual({
      visits: { a: 2, 'a.x': 2, 'a.y': 1, b: 1 },
      at: { a: 'x' },
      last: { from: 'b', to: 'a.x', event: 'back', took: ['back:0'] },
    });
    expect(activePaths({ p: { l: 'a', r: 'b' } })).toEqual(['p', 'p.l', 'p.l.a', 'p.r', 'p.r.b']);
    expect(stateWords({ p: { l: 'a', r: 'b' } })).toBe('p.l.a, p.r.b');
  });
});
