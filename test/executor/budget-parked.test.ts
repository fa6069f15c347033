import { createPalette, defineAgent, memoryStore, type RunEvent, type RunOutcome } from 'pawl';
import { callTool, recordingCheckpointer, reply, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type HostOptions, hostOf, toolOf, until } from '../fixtures/host.ts';
import { notingBudget } from '../fixtures/noting-ports.ts';

const tools = [toolOf('look')];

/** A budget that refuses every call from the nth on, until it is raised. */
function budgetOf(calls: number) {
  const limit = { calls };
  return { limit, budget: notingBudget({ refuse: () => limit.calls-- <= 0 }) };
}

function hostWith(calls: number, options: HostOptions = {}) {
  const { limit, budget } = budgetOf(calls);
  const store = memoryStore();
  const told: RunOutcome[] = [];
  const onOutcome = (outcome: RunOutcome) => void told.push(outcome);
  const { ports, ...rest } = options;
  const host = hostOf({ tools, store, onOutcome, ...rest, ports: { ...ports, budget } });
  return { ...host, limit, store, told };
}

describe('a run whose budget refuses its next call', () => {
  test('is parked with its steps, told with the way to continue it, and continues after its last step (edges 18, 19)', async () => {
    const script = [callTool('look', { n: 1 }), callTool('look', { n: 2 }), reply('done')];
    const { start, run, executor, limit, store, told, model, warned } = hostWith(2, { script });
    const events: RunEvent[] = [];
    const first = await start({ runId: 'r' });
    for await (const event of first.events()) events.push(event);
    expect(await first.result).toMatchObject({
      status: 'interrupted',
      iterations: 2,
      error: { code: 'BUDGET_EXCEEDED' },
    });
    expect(await store.load('r')).toMatchObject({ iteration: 2, attempts: 0, parked: { code: 'BUDGET_EXCEEDED' } });
    expect([told, await store.outcomes.find('r')]).toEqual([[], null]);
    expect(events.filter(({ type }) => type === 'run.parked')).toMatchObject([{ code: 'BUDGET_EXCEEDED' }]);
    expect(warned.find(({ message }) => message === 'run: parked')?.fields).toMatchObject({
      runId: 'r',
      code: 'BUDGET_EXCEEDED',
      how: expect.stringContaining('unpark'),
    });
    expect(await run({ runId: 'r' })).toMatchObject({ error: { code: 'RUN_PARKED' } });

    limit.calls = 9;
    await executor.unpark('r');
    expect(await run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'done', iterations: 3 });
    expect(model.calls).toHaveLength(3);
    expect(told).toMatchObject([{ status: 'ok' }]);
  });

  test('leaves the own handle of a host alone, with its newest state, and says so (edges 3)', async () => {
    const checkpointer = recordingCheckpointer();
    const { budget } = budgetOf(1);
    const { run } = hostOf({ tools, script: [callTool('look')], ports: { budget } });
    const result = await run({ runId: 'r' }, { checkpointer });
    expect(result).toMatchObject({ status: 'error', iterations: 1, error: { code: 'BUDGET_EXCEEDED' } });
    expect(result.error?.message).toContain('the checkpointer of this start is left as it is');
    expect([checkpointer.failed, checkpointer.completed]).toEqual([0, 0]);
    expect(checkpointer.states.at(-1)).toMatchObject({ iteration: 1 });
    expect(checkpointer.states.at(-1)).not.toHaveProperty('outcome');
  });

  test("ends with onBudgetExceeded: 'fail' (edges 18)", async () => {
    const { run, store, told } = hostWith(1, { script: [callTool('look')], onBudgetExceeded: 'fail' });
    expect(await run({ runId: 'r' })).toMatchObject({
      status: 'error',
      iterations: 1,
      error: { code: 'BUDGET_EXCEEDED' },
    });
    expect(await store.load('r')).toBeNull();
    expect(told).toMatchObject([{ error: { code: 'BUDGET_EXCEEDED' } }]);
  });

  test('ends at its first call, of which nothing is recorded, and without a record (edges 18)', async () => {
    const first = hostWith(0);
    expect(await first.run({ runId: 'r' })).toMatchObject({ status: 'error', error: { code: 'BUDGET_EXCEEDED' } });
    expect(await first.store.load('r')).toBeNull();
    const { budget } = budgetOf(1);
    const unstored = hostOf({ tools, script: [callTool('look')], ports: { budget } });
    expect(await unstored.run()).toMatchObject({ status: 'error', iterations: 1, error: { code: 'BUDGET_EXCEEDED' } });
  });

  test('is parked with the sub-agent that was refused, and continues with it (edges 18)', async () => {
    const helper = defineAgent({ id: 'helper', instructions: 'Help.', model: 'deep', tools });
    const palette = createPalette({ agents: [helper] });
    const deep = scriptedModel([callTool('look'), reply('helped')]);
    const fast = scriptedModel([callTool('agent__helper', { prompt: 'Help!' }), reply('end')]);
    const agent = { id: 'boss', subAgents: ['helper'] };
    const { run, executor, limit, store, told } = hostWith(2, { agent, models: { fast, deep }, ports: { palette } });
    expect(await run({ runId: 'r' })).toMatchObject({ status: 'interrupted', error: { code: 'BUDGET_EXCEEDED' } });
    const parked = (await store.listInterrupted()).map(({ runId, status }) => [runId === 'r', status]);
    expect(parked.toSorted()).toEqual([
      [false, 'interrupted'],
      [true, 'parked'],
    ]);
    limit.calls = 9;
    await executor.unpark('r');
    expect(await run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'end' });
    expect(told).toMatchObject([{ output: 'helped' }, { output: 'end' }]);
    expect(deep.calls).toHaveLength(2);
  });
});

const unreachable = async () => {
  throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
};

describe.each([
  ['hangs', () => new Promise<never>(() => {}), 'PORT_TIMEOUT'],
  ['cannot be reached', unreachable, 'ECONNREFUSED'],
])('a budget that %s', (_, fails, code) => {
  /** @param after the calls that it answers before */
  function hostAt(after: number) {
    const state = { after };
    const clock = testClock(1_000);
    const whole = notingBudget();
    const reserve: typeof whole.reserve = (...call) => (state.after-- > 0 ? whole.reserve(...call) : fails());
    const store = memoryStore({ clock });
    const told: RunOutcome[] = [];
    const host = hostOf({
      ...{ clock, tools, store, script: [callTool('look'), reply('done')] },
      ports: { budget: { ...whole, reserve } },
      onOutcome: (outcome) => void told.push(outcome),
    });
    return { ...host, clock, store, state, told };
  }

  test('ends no run that has recorded a step: it waits as for its model, and continues by itself (edges 18)', async () => {
    const { start, clock, store, state, told, model } = hostAt(1);
    const run = await start({ runId: 'r' });
    await clock.advance(31_000);
    expect(await run.result).toMatchObject({ status: 'waiting', iterations: 1 });
    const waits = (await store.load('r'))?.waiting?.waits;
    expect(waits).toMatchObject([{ kind: 'retry', failures: 1, error: { code } }]);
    state.after = 9;
    await clock.advance(60_000);
    await until(() => told.length > 0);
    expect(told).toMatchObject([{ status: 'ok', output: 'done', iterations: 2 }]);
    expect(model.calls).toHaveLength(2);
  });

  test('ends a first start, of which nothing is recorded, with its error (edges 18)', async () => {
    const { start, clock, store } = hostAt(0);
    const run = await start({ runId: 'r' });
    await clock.advance(31_000);
    expect(await run.result).toMatchObject({ status: 'error', error: { code } });
    expect(await store.load('r')).toBeNull();
  });
});
