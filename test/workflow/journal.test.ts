import { ask, createExecutor, defineWorkflow, memoryStore, type RunEvent, step } from 'pawl';
import { describe, expect, test } from 'vitest';
import { setup } from 'xstate';
import { until } from '../fixtures/host.ts';
import { noted } from './world.ts';

/** The events of a run in the journal of a store, read by another process. */
async function journalOf(store: ReturnType<typeof memoryStore>, runId: string) {
  const reader = createExecutor({ store, journal: true });
  const read: RunEvent[] = [];
  const events = reader.events(runId)[Symbol.asyncIterator]();
  for (;;) {
    const next = await Promise.race([
      events.next(),
      new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), 100)),
    ]);
    if (!next || next.done) break;
    read.push(next.value as RunEvent);
  }
  await reader.shutdown();
  return read;
}

const of = (events: readonly RunEvent[], ...types: RunEvent['type'][]) =>
  events.filter(({ type }) => types.includes(type));

describe('the journal of a workflow', () => {
  test('has the start of a call that must not be repeated, with its input, the question, and each vote with its person (workflow 1, 7, 11)', async () => {
    const pay = noted('pay', 'once', () => new Promise<never>(() => {}));
    const machine = setup({
      actors: { pay: step(pay.tool), boss: ask({ question: 'Well?', options: ['yes', 'no'], quorum: 3 }) },
    }).createMachine({
      invoke: [
        { id: 'pay', src: 'pay', input: { cents: 7 } },
        { id: 'boss', src: 'boss', input: { why: 'large' } as never },
      ],
    });
    const flow = defineWorkflow({ id: 'flow', machine });
    const store = memoryStore();
    const executor = createExecutor({ store, workflows: [flow], journal: true });
    await executor.start(flow, { runId: 'r', input: undefined });
    await until(async () => (await executor.waiting({ kind: 'question' })).length === 1);
    const [wait] = await executor.waiting({ kind: 'question' });
    const answer = (value: string, id: string) => executor.control('r').answer(wait?.id ?? '', value, { by: { id } });
    await answer('no', 'ada');
    await answer('yes', 'bob');
    // The last answer of a person counts.
    await answer('yes', 'ada');
    const events = await journalOf(store, 'r');
    // Of a `read` the start passes: the journal may have it later.
    expect(of(events, 'tool.started')[0]).toMatchObject({
      ...{ callId: '1.1', name: 'pay', effect: 'once', input: { cents: 7 } },
    });
    expect(of(events, 'wait.opened')).toMatchObject([
      { wait: { kind: 'question', question: 'Well?' }, input: { why: 'large' } },
    ]);
    expect(of(events, 'wait.answered')).toMatchObject([
      { how: 'answer', by: { id: 'ada' }, votes: 1 },
      { how: 'answer', by: { id: 'bob' }, votes: 2 },
      { how: 'answer', by: { id: 'ada' }, votes: 2 },
    ]);
    await executor.shutdown();
  });

  test('says once that it waits for machine events alone, and that it works again (workflow 1)', async () => {
    const flow = defineWorkflow({
      id: 'flow',
      machine: setup({ types: { events: {} as { type: 'go' } } }).createMachine({
        initial: 'a',
        states: { a: { on: { go: 'b' } }, b: { type: 'final' } },
      }),
    });
    const store = memoryStore();
    const defaults = { waitLingerMs: 1 };
    const executor = createExecutor({ store, workflows: [flow], journal: true, defaults });
    expect((await (await executor.start(flow, { runId: 'r' })).result).status).toBe('waiting');
    const said = async () => (await journalOf(store, 'r')).map(({ type }) => type);
    expect((await said()).filter((type) => type === 'run.waiting' || type === 'run.woken')).toEqual(['run.waiting']);
    await executor.control('r').send({ type: 'go' });
    await until(async () => (await said()).includes('run.ended'));
    expect((await said()).filter((type) => type === 'run.waiting')).toHaveLength(1);
    await executor.shutdown();
  });
});
