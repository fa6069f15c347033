import { memoryStore, type Phase, type RunResult } from 'pawl';
import { callTool, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, type HostOptions, hostOf, toolOf } from '../fixtures/host.ts';
import { look, tell } from '../fixtures/phases.ts';
import { standard } from '../fixtures/standard-schema.ts';
import { onlyRecord } from '../fixtures/watched-store.ts';

const validate = (value: unknown) =>
  (value as { n?: unknown }).n === 1 ? { value } : { issues: [{ message: 'n is not 1' }] };
const good = '{"n":1}';
const bad = '{"n":2}';
const told = ({ durable: _, ...rest }: RunResult) => rest;

const said = (text: string) => ({ role: 'user' as const, content: [{ type: 'text' as const, text }] });

/** A run whose process is told to stop while it holds the answer against the schema. */
async function leftWhileChecking({ agent, ...options }: HostOptions, steered?: string) {
  const store = memoryStore();
  const checking = gate();
  const output = standard((value) => checking.pass().then(() => validate(value)));
  const host = hostOf({ ...options, agent: { ...agent, output } as never, store });
  const run = await host.start({ runId: 'r' });
  await checking.reached;
  if (steered) await run.steer(steered);
  await host.executor.shutdown();
  expect((await run.result).status).toBe('interrupted');
  return store;
}

describe.for([
  ['a single loop', {}, []],
  ['the last phase of a pipeline', { phases: [look, tell] satisfies Phase[] }, [reply('one')]],
] as const)('an answer of %s that was left while it was checked', ([, loops, before]) => {
  const agent = { ...loops, output: standard(validate) } as never;

  test('is checked by the next process, which asks no model for it (executor 12)', async () => {
    const store = await leftWhileChecking({ agent: loops, script: [...before, reply(good)] });
    expect((await onlyRecord(store)).messages.at(-1)).toMatchObject({ role: 'assistant' });
    const next = hostOf({ agent, store, script: [] });
    const result = await next.run({ runId: 'r' });
    expect(next.model.calls).toEqual([]);
    const whole = await hostOf({ agent, script: [...before, reply(good)] }).run({ runId: 'r' });
    expect(told(result)).toEqual(told(whole));
  });

  test('gets its turn of repair there, when it does not fit', async () => {
    const store = await leftWhileChecking({ agent: loops, script: [...before, reply(bad)] });
    const next = hostOf({ agent, store, script: [reply(good)] });
    const result = await next.run({ runId: 'r' });
    expect(next.model.calls).toHaveLength(1);
    expect(JSON.stringify(next.model.calls[0]?.messages.at(-1))).toContain('n is not 1');
    const whole = await hostOf({ agent, script: [...before, reply(bad), reply(good)] }).run({ runId: 'r' });
    expect(told(result)).toEqual(told(whole));
  });

  test('is the answer all the same, when what was said to the run meanwhile still waits', async () => {
    const store = await leftWhileChecking({ agent: loops, script: [...before, reply(good)] }, 'Also look.');
    const next = hostOf({ agent, store, script: [] });
    const result = await next.run({ runId: 'r' });
    expect(result).toMatchObject({ status: 'ok', data: { n: 1 }, undelivered: [said('Also look.')] });
  });
});

test('an answer that was left while it was checked is no step too many, when it was the last that is allowed', async () => {
  const script = [callTool('look', {}), reply(good)];
  const rest = { tools: [toolOf('look')] };
  const store = await leftWhileChecking({ ...rest, agent: { maxSteps: 2 }, script });
  const agent = { maxSteps: 2, output: standard(validate) } as never;
  const next = hostOf({ ...rest, agent, store, script: [] });
  expect(await next.run({ runId: 'r' })).toMatchObject({ status: 'ok', data: { n: 1 }, iterations: 2 });
});

describe('a history that a host gives, and that ends with an answer', () => {
  const answer = { role: 'assistant' as const, content: [{ type: 'text' as const, text: good }] };
  const history = [said('One?'), answer];

  test('is continued: that is not the answer of this run (executor 12)', async () => {
    const host = hostOf({ agent: { output: standard(validate) } as never, script: [reply(good)] });
    const result = await host.run({}, { resume: { history } });
    expect(host.model.calls).toHaveLength(1);
    expect(result).toMatchObject({ status: 'ok', iterations: 1 });
  });

  test('is continued by an agent whose answers need no form, from any agent', async () => {
    const host = hostOf({ script: [reply('two')] });
    const result = await host.run({}, { resume: { history, iteration: 1, undelivered: [said('And now?')] } });
    expect(host.model.calls[0]?.messages).toEqual([...history, said('And now?')]);
    expect(result).toMatchObject({ output: 'two', iterations: 2 });
  });
});
