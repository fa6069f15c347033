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
function parcelOf({ isOdd = (): boolean => false } = {}) {
  const clerk = defineAgent({ id: 'clerk', instructions: 'Write.', tools: [toolOf('note', 'idempotent')] });
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
    limit: torture > 1 ? 1_000 : 24,
    doubleCrashes: torture > 1 ? 200 : 4,
    ...rest,
  });

test('histories in which only the output differs are one violation, which says how many there are (workflow 26)', async () => {
  let drawn = 0;
  const machine = setup({}).createMachine({
    context: () => ({ drawn: ++drawn }),
    initial: 'a',
    states: { a: { after: { [HOUR]: 'b' } }, b: { type: 'final' } },
    output: ({ context }) => context,
  });
  const { violations, runs } = await crashTest({
    workflow: defineWorkflow({ id: 'lot', machine }),
    limit: 12,
    doubleCrashes: 3,
  });
  const detail = expect.stringMatching(
    /^the result differs .*data is \{"drawn":2\} .*; the output differs in (\d+) more histories: /,
  );
  expect(violations).toEqual([{ promise: 'a', crashAt: expect.any(String), detail }]);
  const [, more] = /in (\d+) more/.exec(violations[0]?.detail ?? '') ?? [];
  expect(Number(more)).toBeGreaterThan(5);
  expect(Number(more)).toBeLessThan(runs);
});

/** A workflow whose only call has no `onError`. */
function invoicing(effect: 'read' | 'once', execute = (): number => 1, executor: CrashTestOptions['executor'] = {}) {
  const invoice = defineTool({ name: 'invoice', description: '', effect, input: { type: 'object' }, execute });
  const machine = setup({ actors: { invoice: step(invoice) } }).createMachine({
    initial: 'a',
    states: { a: { invoke: { src: 'invoice', input: {}, onDone: 'b' } }, b: { type: 'final' } },
  });
  const workflow = defineWorkflow({ id: 'invoice', machine });
  return crashTest({ workflow, executor, limit: 20, doubleCrashes: 0 });
}

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
    const data = { ticks: 12, said: 'Written.' };
    expect(report.undisturbed).toEqual({ status: 'ok', output: '', data, state: 'done' });
    expect(report.crashes).toBeGreaterThan(24);
  });

  test('is quiet on one that ends with an error that no state takes, with and without a crash', async () => {
    const report = await invoicing('read', () => {
      throw new Error('the shop is closed');
    });
    expect(report.undisturbed.status).toBe('error');
    expect(report.violations).toEqual([]);
  });

  test('reports a `once` call whose unknown outcome no state takes, with two ways out: a', async () => {
    const report = await invoicing('once');
    expect(report.undisturbed.status).toBe('ok');
    expect(promisesOf(report)).toEqual(new Set(['a']));
    const inCall = report.violations.find(({ crashAt }) => crashAt === 'after tool invoice 1');
    expect(inCall?.detail).toMatch(
      /^the crash ended the workflow: .*no onError takes it: .*give its invoke an onError, or set executor: \{ onUnknownOutcome: 'park' \}\)$/,
    );
    const parks = await invoicing('once', undefined, { onUnknownOutcome: 'park' });
    expect(parks.violations).toEqual([]);
    expect(parks.parked).toBeGreaterThan(0);
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
    const clerk = defineAgent({ id: 'clerk', instructions: 'Write.', tools: [note] });
    const machine = setup({ actors: { clerk: step(clerk) } }).createMachine({
      initial: 'a',
      states: { a: { invoke: { src: 'clerk', input: { prompt: 'Write.' }, onDone: 'b' } }, b: { type: 'final' } },
    });
    const workflow = defineWorkflow({ id: 'letter', machine });
    const report = await testing({ workflow, events: () => undefined, doubleCrashes: 0, limit: 1_000 });
    const failed = report.violations.filter(({ promise }) => promise === 'c');
    expect(failed.map(({ crashAt }) => crashAt)).toContain('after tool note 1');
    expect(failed[0]?.detail).toContain('duplicate key');
  });

  test('reports an event that a store hands out twice, under another id: w1', async () => {
    const store = memoryStore();
    const inbox: typeof store.commands.inbox = async (...args) => {
      const found = await store.commands.inbox(...args);
      return found.flatMap((each) =>
        each.command.kind === 'event' && each.command.id === 'event 1'
          ? [each, { ...each, command: { ...each.command, id: 'twice' } }]
          : [each],
      );
    };
    const twice = Object.assign(Object.create(store) as typeof store, { commands: { ...store.commands, inbox } });
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
    const report = await testing({ store: () => store, limit: 4, doubleCrashes: 0 });
    expect(detailsOf(report, 'w2')[0]).toContain('was lost: it has neither fired, nor did its machine cancel it');
  });

  test('reports a timer that fired before its time, and one that fired twice: w2', () => {
    const story = new MachineStory();
    const timer: Effect = { kind: 'timer', timer: { event: { type: 'xstate.after.9.a' }, delayMs: 9 } };
    const states = ['a', 'b', 'c'].map((value) => ({ status: 'active', value }));
    const effects = [[timer], [], []];
    const give = () => ({ snapshot: states.shift() ?? {}, effects: effects.shift() ?? [], isTaken: true, took: [] });
    const kernel = story.watch(
      { begin: give, take: give, restore: () => expect.unreachable(), settle: give },
      {
        life: 0,
        isOver: () => false,
        now: () => 5,
        hasSenders: false,
      },
    );
    const record = (value: string, iteration: number, timers: object[] = []) =>
      story.onRecorded({ iteration, workflow: { snapshot: { status: 'active', value }, timers } } as never);
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
    const report = await testing({ store: () => store, limit: 4, doubleCrashes: 0 });
    expect(detailsOf(report, 'w3')[0]).toContain('does not follow from that of transition');
  });

  test('reports a machine that goes another way after a crash, with what it took: w3', async () => {
    let asked = 0;
    const report = await testing({
      workflow: parcelOf({ isOdd: () => asked++ % 3 === 2 }),
      limit: 6,
      doubleCrashes: 0,
    });
    expect(detailsOf(report, 'w3').some((detail) => detail.includes('without a crash'))).toBe(true);
  });

  test('is quiet on a call and a question that a crash cuts off at once, and on the answer in a later transition', async () => {
    const actors = {
      note: step(toolOf('note', 'idempotent')),
      manager: ask({ question: 'Send it?', options: ['yes', 'no'] }),
    };
    const region = <Src extends string>(src: Src) => ({
      initial: 'a',
      states: { a: { invoke: { src, input: {}, onDone: 'b' } }, b: { type: 'final' as const } },
    });
    const machine = setup({ actors }).createMachine({
      initial: 'both',
      states: {
        both: { type: 'parallel', states: { note: region('note'), person: region('manager') }, onDone: 'done' },
        done: { type: 'final' },
      },
    });
    const report = await testing({ workflow: defineWorkflow({ id: 'both', machine }), events: () => undefined });
    expect(report.violations).toEqual([]);
  });

  test('reports a workflow that waits for a machine event which no one sends, and names its state', async () => {
    const report = await testing({ events: () => undefined, limit: 1, doubleCrashes: 0 });
    expect(promisesOf(report)).toEqual(new Set(['a']));
    expect(detailsOf(report, 'a')[0]).toContain(
      'the workflow waits in state "open" for a machine event: give `events`',
    );
  });

  test('ends after `lifeMs` where a workflow has an endless loop, and names its state: a', async () => {
    const machine = setup({ actors: { note: step(toolOf('note', 'read')) } }).createMachine({
      initial: 'a',
      states: {
        a: { invoke: { src: 'note', input: {}, onDone: 'b' } },
        b: { invoke: { src: 'note', input: {}, onDone: 'a' } },
      },
    });
    const report = await crashTest({ workflow: defineWorkflow({ id: 'loop', machine }), lifeMs: 100 });
    expect(detailsOf(report, 'a')).toEqual([
      expect.stringMatching(/within 100 ms \(after \d+ transitions it is in state [ab]\)$/),
    ]);
    expect(report.undisturbed.status).toBe('error');
  });

  test('refuses events without a workflow, and a store without an inbox', async () => {
    const agent = defineAgent({ id: 'a', instructions: '' });
    const events = () => undefined;
    const ofAgent = crashTest({ agent, prompt: 'Hi', model: () => scriptedModel([]), events });
    await expect(ofAgent).rejects.toThrow('events must be a function, beside a workflow');
    const storage = memoryStore();
    await expect(testing({ store: () => plainStore(storage) })).rejects.toThrow(
      'events needs a store with the group commands',
    );
  });
});
