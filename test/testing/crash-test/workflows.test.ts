import { ask, type CheckpointStore, defineAgent, defineTool, defineWorkflow, memoryStore, step } from 'pawl';
import { type CrashTestOptions, type CrashTestReport, callTool, crashTest, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { assign, enqueueActions, setup } from 'xstate';
import { MachineStory } from '../../../src/testing/crash-test/machine-story.ts';
import type { Effect } from '../../../src/workflow/kernel.ts';
import { torture } from '../../crash/random.ts';
import { plainStore } from '../../fixtures/watched-store.ts';

const HOUR = 3_600_000;
const toolOf = (name: string, effect: 'read' | 'idempotent' | 'once') =>
  defineTool({ name, description: '', effect, input: { type: 'object' }, execute: async () => `${name}!` });

/** It counts `tick`, asks a person, calls an agent, waits for an hour and pays; `go` brings it from its beginning on. */
function parcelOf({ isOdd = (): boolean => false, note = toolOf('note', 'idempotent') } = {}) {
  const clerk = defineAgent({ id: 'clerk', instructions: 'Write.', tools: [note] });
  return defineWorkflow({
    id: 'parcel',
    machine: setup({
      types: {
        context: {} as { ticks: number; said: string },
        events: {} as { type: 'tick' } | { type: 'go' } | { type: 'own' },
        output: {} as { ticks: number; said: string },
      },
      actors: {
        manager: ask({ question: 'Send it?', options: ['yes', 'no'] }),
        clerk: step(clerk),
        pay: step(toolOf('pay', 'once')),
      },
      guards: { isOdd },
      actions: { sendSelf: enqueueActions(({ enqueue, self }) => enqueue.sendTo(self, { type: 'own' })) },
    }).createMachine({
      context: { ticks: 0, said: '' },
      initial: 'open',
      states: {
        open: {
          on: { tick: { actions: assign({ ticks: ({ context }) => context.ticks + 1 }) }, go: 'asking' },
        },
        asking: {
          invoke: { src: 'manager', input: {}, onDone: { target: 'writing', actions: 'sendSelf' } },
          after: { [30 * HOUR]: 'done' },
        },
        writing: {
          on: { own: { actions: assign({ ticks: ({ context }) => context.ticks + 10 }) } },
          invoke: {
            src: 'clerk',
            input: { prompt: 'Write.' },
            onDone: [
              { guard: 'isOdd', target: 'done' },
              { target: 'resting', actions: assign({ said: ({ event }) => event.output.output }) },
            ],
          },
        },
        resting: { after: { [HOUR]: 'paying' } },
        paying: { invoke: { src: 'pay', input: {}, onDone: 'done', onError: 'done' } },
        done: { type: 'final' },
      },
      output: ({ context }) => context,
    }),
  });
}

const testing = (rest: Partial<CrashTestOptions> = {}) =>
  crashTest({
    workflow: parcelOf(),
    model: () => scriptedModel([callTool('note'), reply('Written.')]),
    answers: ({ kind }) => (kind === 'question' ? { how: 'answer', value: 'yes' } : undefined),
    events: ({ state, sent }) => (state !== 'open' ? undefined : sent < 2 ? { type: 'tick' } : { type: 'go' }),
    limit: torture > 1 ? 1_000 : 40,
    doubleCrashes: torture > 1 ? 200 : 8,
    ...rest,
  });

const promisesOf = ({ violations }: CrashTestReport) => new Set(violations.map(({ promise }) => promise));
const detailsOf = ({ violations }: CrashTestReport, of: string) =>
  violations.flatMap(({ promise, detail }) => (promise === of ? [detail] : []));

/** A store that hands records out otherwise than it was given them. */
function lyingStore(change: (record: NonNullable<Awaited<ReturnType<CheckpointStore['load']>>>) => unknown) {
  const store = memoryStore();
  const load: CheckpointStore['load'] = async (...args) => {
    const record = await store.load(...args);
    return record && (change(structuredClone(record)) as typeof record);
  };
  return { ...store, load };
}

describe('crashTest of a workflow (workflow 26)', () => {
  test('is quiet on one that keeps its promises, with machine events, a question, an agent, timers and a payment', async () => {
    const report = await testing();
    expect(report.violations).toEqual([]);
    expect(report.undisturbed).toEqual({ status: 'ok', output: '' });
    expect(report.crashes).toBeGreaterThan(40);
  });

  test('kills the agents that a workflow calls at the calls of their tools, too', async () => {
    const keys = new Set<string>();
    const note = defineTool({
      name: 'note',
      description: '',
      effect: 'idempotent',
      input: { type: 'object' },
      execute: async (_, { idempotencyKey }) => {
        if (keys.has(idempotencyKey)) throw new Error('duplicate key');
        keys.add(idempotencyKey);
        return 'noted';
      },
    });
    const report = await testing({ workflow: parcelOf({ note }), doubleCrashes: 0, limit: 1_000 });
    const failed = report.violations.filter(({ promise }) => promise === 'c');
    expect(failed.map(({ crashAt }) => crashAt)).toContain('after tool note 1');
    expect(failed[0]?.detail).toContain('duplicate key');
  });

  test('reports an event that a store hands out twice, under another id: w1', async () => {
    const store = memoryStore();
    const inbox: typeof store.inbox = async (...args) => {
      const found = await store.inbox(...args);
      return found.flatMap((each) =>
        each.command.kind === 'event' && each.command.id === 'event 1'
          ? [each, { ...each, command: { ...each.command, id: 'twice' } }]
          : [each],
      );
    };
    const twice = Object.assign(Object.create(store) as typeof store, { inbox });
    const report = await testing({ store: () => twice, limit: 2, doubleCrashes: 0 });
    expect(detailsOf(report, 'w1')[0]).toBe('2 events tick were sent, and the machine took 3');
  });

  test('reports a timer that a store lost: w2', async () => {
    const store = lyingStore((record) => {
      const { workflow, waiting } = record;
      if (workflow?.snapshot.value !== 'asking' || !waiting) return record;
      const waits = waiting.waits.filter(({ kind }) => kind !== 'timer');
      return { ...record, workflow: { ...workflow, timers: [] }, waiting: { ...waiting, waits } };
    });
    const report = await testing({ store: () => store, limit: 10, doubleCrashes: 0 });
    expect(detailsOf(report, 'w2')[0]).toContain('was lost: it has neither fired, nor did its machine cancel it');
  });

  test('reports a timer that fired before its time, and one that fired twice: w2', () => {
    const story = new MachineStory();
    const timer: Effect = { kind: 'timer', timer: { event: { type: 'xstate.after.9.a' }, delayMs: 9 } };
    const states = ['a', 'b', 'c'].map((value) => ({ status: 'active', value }));
    const effects = [[timer], [], []];
    const give = () => ({ snapshot: states.shift() ?? {}, effects: effects.shift() ?? [], isTaken: true, took: [] });
    const kernel = story.watch(
      { begin: give, take: give, restore: () => expect.unreachable() },
      {
        life: 0,
        isOver: () => false,
        now: () => 5,
        hasSenders: false,
      },
    );
    const record = (value: string, iteration: number, timers: object[] = []) =>
      story.recorded({ iteration, workflow: { snapshot: { status: 'active', value }, timers } } as never);
    kernel.begin(undefined);
    record('a', 1, [{ event: { type: 'xstate.after.9.a' }, dueAt: 9 }]);
    kernel.take({ status: 'active', value: 'a' }, { type: 'xstate.after.9.a' });
    record('b', 2);
    kernel.take({ status: 'active', value: 'b' }, { type: 'xstate.after.9.a' });
    record('c', 3);
    expect(story.complaints.map(({ promise, detail }) => `${promise}: ${detail}`)).toEqual([
      'w2: the timer xstate.after.9.a fired 4 ms before its time',
      'w2: the timer xstate.after.9.a was set 1 times, and fired 2 times',
    ]);
  });

  test('reports a state into which no transition led: w3', async () => {
    const store = lyingStore((record) => {
      const { workflow } = record;
      if (workflow?.snapshot.value !== 'resting') return record;
      return {
        ...record,
        workflow: { ...workflow, snapshot: { ...workflow.snapshot, context: { ticks: 7, said: '' } } },
      };
    });
    const report = await testing({ store: () => store, limit: 10, doubleCrashes: 0 });
    expect(detailsOf(report, 'w3')[0]).toContain('does not follow from that of transition');
  });

  test('reports a machine that goes another way after a crash, with what it took: w3', async () => {
    let asked = 0;
    const report = await testing({
      workflow: parcelOf({ isOdd: () => asked++ % 3 === 2 }),
      limit: 20,
      doubleCrashes: 0,
    });
    expect(detailsOf(report, 'w3').some((detail) => detail.includes('without a crash'))).toBe(true);
  });

  test('reports a workflow that waits for a machine event which no one sends, and names its state', async () => {
    const report = await testing({ events: () => undefined, limit: 1, doubleCrashes: 0 });
    expect(promisesOf(report)).toEqual(new Set(['a']));
    expect(detailsOf(report, 'a')[0]).toContain(
      'the workflow waits in state "open" for a machine event: give `events`',
    );
  });

  test('refuses events without a workflow, and a store without an inbox', async () => {
    const agent = defineAgent({ id: 'a', instructions: '' });
    const events = () => undefined;
    const ofAgent = crashTest({ agent, prompt: 'Hi', model: () => scriptedModel([]), events });
    await expect(ofAgent).rejects.toThrow('events must be a function, beside a workflow');
    const storage = memoryStore();
    await expect(testing({ store: () => plainStore(storage) })).rejects.toThrow('events needs a store with an inbox');
  });
});
