import { memoryStore } from 'pawl';
import { callTool, callTools, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { createActor, type InspectionEvent } from 'xstate';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { hostMachine, outputOf } from '../fixtures/host-machine.ts';
import { type Client, startClient } from './client.ts';

const tools = [toolOf('look'), toolOf('send', 'once')];
const twoTools = callTools([
  { name: 'look', input: {} },
  { name: 'send', input: {} },
]);
const script = [twoTools, reply('done')];
const actorsOfScript = ['run:r', 'resolve', 'model.1', 'tool.1.0', 'tool.1.1', 'model.2', 'settle'];

/** What the receiver got of an actor: the types of its events, and its snapshots. */
function of(client: Client, actor: { sessionId: string }) {
  const ours = client.received.filter(({ sessionId }) => sessionId === actor.sessionId);
  return {
    events: ours.flatMap((frame) => (frame.type === '@xstate.event' ? [frame.event.type] : [])),
    snapshots: ours.flatMap((frame) => (frame.type === '@xstate.snapshot' ? [frame.snapshot as never] : [])) as {
      readonly value?: unknown;
      readonly status: string;
      readonly output?: unknown;
      readonly context?: { readonly progress: { readonly iteration: number; readonly transcript: unknown } };
    }[],
  };
}

describe('the client of the Stately inspector', () => {
  test.for(['executor', 'run'])(
    'given to the %s tells its receiver of the actors, by the names of what they do (architecture 9)',
    async (where) => {
      const client = await startClient();
      const host = hostOf({ script, tools, ...(where === 'executor' ? { inspect: client.inspect } : {}) });
      await host.run({ runId: 'r' }, where === 'run' ? { inspect: client.inspect } : {});
      await client.arrived();
      expect(client.actors).toEqual(actorsOfScript);
      const run = client.actor('run:r');
      for (const name of actorsOfScript.slice(1)) {
        expect(client.actor(name)).toMatchObject({ parentId: run.sessionId, rootId: run.sessionId });
      }
      expect(host.warned).toEqual([]);
    },
  );

  test('tells of the events of a run and of those of its actors (architecture 9)', async () => {
    const client = await startClient();
    await hostOf({ script, tools, store: memoryStore(), inspect: client.inspect }).run({ runId: 'r' });
    await client.arrived();
    const { events } = of(client, client.actor('run:r'));
    expect(events.filter((type) => type !== 'boundary.persisted')).toEqual([
      'xstate.init',
      ...actorsOfScript.slice(1).map((name) => `xstate.done.actor.${name}`),
    ]);
    // The intent of `send` has landed before it was called: its end comes later.
    expect(events.indexOf('boundary.persisted')).toBeGreaterThan(events.indexOf('xstate.done.actor.model.1'));
    expect(events.indexOf('boundary.persisted')).toBeLessThan(events.indexOf('xstate.done.actor.tool.1.1'));
    for (const name of actorsOfScript.slice(1)) {
      expect(of(client, client.actor(name)).events).toEqual(['xstate.init', 'task.done']);
    }
  });

  test('tells of the states that a run goes through, its result, and its chart with all descriptions', async () => {
    const client = await startClient();
    await hostOf({ script, tools, inspect: client.inspect }).run({ runId: 'r' });
    await client.arrived();
    const run = client.actor('run:r');
    const { snapshots } = of(client, run);
    expect(new Set(snapshots.map(({ value }) => JSON.stringify(value)))).toEqual(
      new Set([
        '"resolving"',
        '{"running":"calling-model"}',
        '{"running":"calling-tools"}',
        '"completing"',
        '"settled"',
      ]),
    );
    expect(snapshots.at(-1)).toMatchObject({ status: 'done', output: { runId: 'r', status: 'ok', output: 'done' } });
    const chart = JSON.parse(run.definition ?? '{}');
    expect(Object.keys(chart.states)).toContain('leaving-running');
    for (const { description } of Object.values<{ description?: string }>(chart.states))
      expect(description).toMatch(/\.$/);
    expect(of(client, client.actor('tool.1.0')).snapshots.at(-1)).toMatchObject({
      status: 'done',
      output: { result: { value: 'look ok' } },
    });
  });

  test('tells of a run that is left, and of its resume by another executor, numbered as before (architecture 9)', async () => {
    const [client, store] = [await startClient(), memoryStore()];
    const first = hostOf({ script: [twoTools, hang()], tools, store, inspect: client.inspect });
    const left = await first.start({ runId: 'r' });
    await until(async () => first.model.calls.length === 2 && (await store.load('r'))?.iteration === 1);
    await first.executor.shutdown();
    expect(await left.result).toMatchObject({ status: 'interrupted' });
    const rest = [callTool('look'), reply('done')];
    const next = hostOf({ script: rest, tools, store, inspect: client.inspect });
    expect(await next.run({ runId: 'r' })).toMatchObject({ status: 'ok' });
    await client.arrived();
    const actorsOfResume = ['run:r', 'resolve', 'model.2', 'tool.2.0', 'model.3', 'settle'];
    expect(client.actors).toEqual([...actorsOfScript, ...actorsOfResume]);
    const [before, after] = [of(client, client.actor('run:r', 0)), of(client, client.actor('run:r', 1))];
    expect(before.snapshots.map(({ value }) => value)).toContain('leaving-running');
    expect(before.events).toContain('run.leave');
    expect(after.snapshots.find(({ value }) => value !== 'resolving')).toMatchObject({
      value: { running: 'calling-model' },
      context: { progress: { iteration: 1, transcript: { messages: 3 } } },
    });
    expect(after.events).toContain('xstate.done.actor.tool.2.0');
    expect(after.snapshots.at(-1)).toMatchObject({ status: 'done', output: { status: 'ok', output: 'done' } });
  });

  test("of a host's own machine tells of the run under the id that the host gave it, and of its resume (architecture 8)", async () => {
    const [client, store] = [await startClient(), memoryStore()];
    const first = hostOf({ script: [callTool('look'), hang()], tools, store });
    const options = { id: 'ticket', inspect: client.inspect };
    const host = createActor(hostMachine(first.executor, first.agent), options).start();
    await until(async () => first.model.calls.length === 2 && (await store.load('r'))?.iteration === 1);
    const snapshot = JSON.parse(JSON.stringify(host.getPersistedSnapshot()));
    host.stop();
    await first.executor.shutdown();
    const next = hostOf({ script: [reply('done')], tools, store });
    const machine = hostMachine(next.executor, next.agent);
    const restored = createActor(machine, { snapshot, ...options }).start();
    expect(await outputOf(restored)).toMatchObject({ status: 'ok', iterations: 2 });
    await client.arrived();
    const [before, after] = [
      ['run', 'resolve', 'model.1', 'tool.1.0', 'model.2'],
      ['run', 'resolve', 'model.2', 'settle'],
    ];
    expect(client.actors).toEqual(['ticket', ...before, 'ticket', ...after]);
    for (const position of [0, 1]) {
      expect(client.actor('run', position).parentId).toBe(client.actor('ticket', position).sessionId);
      expect(client.actor('resolve', position).parentId).toBe(client.actor('run', position).sessionId);
    }
  });

  test('beside a callback of the run leaves that one all events', async () => {
    const client = await startClient();
    const heard: InspectionEvent[] = [];
    const host = hostOf({ script, tools, inspect: client.inspect });
    await host.run({}, { inspect: (event) => void heard.push(event) });
    await client.arrived();
    const kinds = ['@xstate.actor', '@xstate.event', '@xstate.snapshot'];
    const told = heard.filter(({ type }) => kinds.includes(type));
    expect(told.length).toBeGreaterThan(20);
    expect(client.received.map(({ type }) => type)).toEqual(told.map(({ type }) => type));
  });
});
