import { ask, defineWorkflow, step } from 'pawl';
import { describe, expect, test } from 'vitest';
import { assign, setup } from 'xstate';
import { gate } from '../fixtures/host.ts';
import { standard } from '../fixtures/standard-schema.ts';
import { noted, worldOf } from './world.ts';

/** A state that is left with the first result of its two calls. The first one that begins is not the first one that ends. */
function raceOf(first: ReturnType<typeof step>, second: ReturnType<typeof step>) {
  const machine = setup({
    types: { context: {} as { won: string }, output: {} as string },
    actors: { first, second },
  }).createMachine({
    context: { won: '' },
    initial: 'racing',
    states: {
      racing: {
        invoke: [
          { src: 'first', input: {}, onDone: { target: 'over', actions: assign({ won: 'the first to begin' }) } },
          { src: 'second', input: {}, onDone: { target: 'over', actions: assign({ won: 'the first to end' }) } },
        ],
      },
      over: { type: 'final' },
    },
    output: ({ context }) => context.won,
  });
  return defineWorkflow({ id: 'race', machine });
}

/** A schema of any value, whose check takes a while. */
const checkedBy = (check: Promise<void>) =>
  standard(async (value) => {
    await check;
    return { value };
  });

/** Two questions; a value of the second is checked for longer than one of the first. */
function questions(check: Promise<void>) {
  const first = ask({ question: 'First?' });
  const second = ask({ question: 'Second?', schema: checkedBy(check) });
  return raceOf(first as never, second as never);
}

describe('of two calls, the one that ends first', () => {
  test('is the one whose result the machine takes, also if both end before it looks (workflow 2)', async () => {
    const gates = { first: gate(), second: gate() };
    const toolOf = (name: 'first' | 'second') => step(noted(name, 'read', () => gates[name].pass()).tool);
    const flow = raceOf(toolOf('first') as never, toolOf('second') as never);
    const { boot } = worldOf([flow]);
    const executor = boot();
    const run = await executor.start(flow, { runId: 'r' });
    await Promise.all([gates.first.reached, gates.second.reached]);
    gates.second.open();
    gates.first.open();
    expect((await run.result).data).toBe('the first to end');
    await executor.shutdown();
  });

  test('is the one that was answered first, also if no process was there (workflow 2)', async () => {
    const check = gate();
    const flow = questions(check.pass());
    const { boot, pass, store } = worldOf([flow]);
    const first = boot();
    await first.start(flow, { runId: 'r' });
    await pass(4_000);
    await first.shutdown();
    const sender = boot(defineWorkflow({ id: 'other', machine: setup({}).createMachine({}) }));
    const waits = await sender.waiting({ kind: 'question' });
    for (const question of ['Second?', 'First?']) {
      const wait = waits.find((each) => 'question' in each && each.question === question);
      await sender.control('r').answer(wait?.id ?? '', { said: 'yes' });
      await pass(1_000);
    }
    await sender.shutdown();
    const last = boot();
    await last.recover();
    await pass(4_000);
    check.open();
    await pass(4_000);
    expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok', data: 'the first to end' });
    await last.shutdown();
  });

  test('is the one that was answered first, also if a process died with both answers in the record (workflow 2)', async () => {
    const check = gate();
    const flow = questions(check.pass());
    const { boot, pass, store } = worldOf([flow]);
    const first = boot();
    await first.start(flow, { runId: 'r' });
    await pass(4_000);
    await first.shutdown();
    const record = (await store.load('r')) as NonNullable<Awaited<ReturnType<typeof store.load>>>;
    const { openStep, waiting: _, ...rest } = record;
    const answered = openStep?.calls.map((call, i) => {
      const answer = { kind: 'question', how: 'answer', value: { said: 'yes' }, at: 20 - i } as const;
      return { ...call, state: 'planned' as const, answers: [answer] };
    });
    const revision = record.revision + 1;
    await store.save({ ...rest, revision, ...(openStep ? { openStep: { ...openStep, calls: answered ?? [] } } : {}) });
    const second = boot();
    await second.recover();
    await pass(4_000);
    check.open();
    await pass(4_000);
    expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok', data: 'the first to end' });
    await second.shutdown();
  });

  test('is the child workflow that ended first, while no process had its parent (workflow 2, 10)', async () => {
    const childOf = (id: string) => {
      const machine = setup({ types: { events: {} as { type: 'go' } } }).createMachine({
        initial: 'a',
        states: { a: { on: { go: 'b' } }, b: { type: 'final' } },
      });
      return defineWorkflow({ id, machine });
    };
    const [one, two] = [childOf('one'), childOf('two')];
    const flow = raceOf(step(one) as never, step(two) as never);
    const { boot, pass, store } = worldOf([flow, one, two]);
    const first = boot();
    await first.start(flow, { runId: 'r' });
    await pass(8_000);
    await first.shutdown();
    const ofChildren = boot(one, two);
    await ofChildren.recover();
    const runs = await store.listInterrupted({ status: 'waiting' });
    for (const id of ['two', 'one']) {
      const run = runs.find((each) => 'meta' in each && each.meta.agentId === id);
      await ofChildren.control(run?.runId ?? '').send({ type: 'go' });
      await pass(8_000);
    }
    await ofChildren.shutdown();
    expect(await store.commands.inbox({ runId: 'r' })).toHaveLength(2);
    const last = boot();
    await last.recover();
    await pass(8_000);
    expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok', data: 'the first to end' });
    await last.shutdown();
  });
});
