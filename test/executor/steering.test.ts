import { createExecutor, defineAgent, defineTool, type Message, memoryStore, type Run } from 'pawl';
import { callTool, hang, reply, type ScriptedStep, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';

const input = { type: 'object' };
const agent = (execute: () => unknown) =>
  defineAgent({
    id: 'worker',
    instructions: 'Work.',
    tools: [defineTool({ name: 'work', description: 'Works.', effect: 'read', input, execute })],
  });
const said = (messages: readonly Message[], text: string) =>
  messages.filter((message) => message.role === 'user' && JSON.stringify(message).includes(text)).length;

/** A run whose tool waits until the test lets it go, so that messages come in the middle of a step. */
async function runWithGate(script: readonly ScriptedStep[], store = memoryStore()) {
  const gate = Promise.withResolvers<void>();
  const entered = Promise.withResolvers<void>();
  const model = scriptedModel([...script]);
  const executor = createExecutor({ models: { fast: model }, store });
  const worker = agent(async () => {
    entered.resolve();
    await gate.promise;
    return 'worked';
  });
  const run: Run = await executor.start(worker, { runId: 'run-1', prompt: 'Go.' });
  await entered.promise;
  return { run, gate, model, store, executor, worker };
}

describe('a steered message', () => {
  test('is acknowledged when it is stored, and read by the model in the next turn (supervision 9)', async () => {
    const { run, gate, model, store } = await runWithGate([callTool('work', {}), reply('done')]);
    expect(await run.steer('Also check X.')).toBe('durable');
    expect((await store.load('run-1'))?.undelivered).toHaveLength(1);
    gate.resolve();
    const result = await run.result;
    expect(result.status).toBe('ok');
    expect(said(model.calls[0]?.messages ?? [], 'check X')).toBe(0);
    expect(said(model.calls[1]?.messages ?? [], 'check X')).toBe(1);
    expect(said(result.messages, 'check X')).toBe(1);
    expect(result.undelivered).toEqual([]);
  });

  test('comes after the results of the step it fell into, and several come in their order (executor 11)', async () => {
    const { run, gate } = await runWithGate([callTool('work', {}), reply('done')]);
    await Promise.all([run.steer('first'), run.steer('second')]);
    gate.resolve();
    const { messages } = await run.result;
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user', 'user', 'assistant']);
    expect(JSON.stringify(messages[3])).toContain('first');
  });

  test('carries the person who sent it into the transcript, and not to the eyes of the model (studio 7, 25)', async () => {
    const ada = { id: 'ada', name: 'Ada' };
    const { run, gate, model, executor } = await runWithGate([callTool('work', {}), reply('done')]);
    await run.steer('from the handle', { by: ada });
    await executor.control('run-1').steer('from the control', { by: ada });
    gate.resolve();
    const { messages } = await run.result;
    const senders = messages.flatMap(({ role, providerOptions }) => (role === 'user' && providerOptions?.pawl) || []);
    expect(senders).toEqual([{ by: ada }, { by: ada }]);
    const text = JSON.stringify(model.calls[1]?.messages.map(({ content }) => content));
    expect(text).toContain('from the control');
    expect(text).not.toContain('Ada');
  });

  test('from another process carries its person too (studio 7, 25)', async () => {
    const { run, gate, store } = await runWithGate([callTool('work', {}), reply('done')]);
    const other = createExecutor({ models: () => undefined, store });
    expect(await other.control('run-1').steer('from elsewhere', { by: { id: 'ben' } })).toBe('sent');
    const [sent] = await store.commands.inbox({ runId: 'run-1' });
    expect(sent?.command).toMatchObject({ kind: 'steer', by: { id: 'ben' } });
    gate.resolve();
    await run.result;
  });

  test('refuses a person who is none (studio 25)', async () => {
    const { run, gate, executor } = await runWithGate([callTool('work', {}), reply('done')]);
    for (const by of ['ada', {}, { id: 1 }, { id: 'x'.repeat(10_000) }, null]) {
      await expect(run.steer('hello', { by: by as never })).rejects.toThrow(TypeError);
      await expect(executor.control('run-1').steer('hello', { by: by as never })).rejects.toThrow(TypeError);
    }
    gate.resolve();
    expect((await run.result).undelivered).toEqual([]);
  });

  test('survives the death of the process, and is delivered exactly once (executor 11)', async () => {
    const { run, gate, store } = await runWithGate([callTool('work', {}), hang()]);
    await run.steer('Also check X.');
    const atCrash = await store.load('run-1');
    gate.resolve();
    await run.cancel();
    const after = memoryStore();
    if (atCrash) await after.save(atCrash);
    const model = scriptedModel([reply('done')]);
    const executor = createExecutor({ models: { fast: model }, store: after });
    const result = await executor.run(
      agent(() => 'worked'),
      { runId: 'run-1', prompt: 'Go.' },
    );
    expect(result.status).toBe('ok');
    expect(said(result.messages, 'check X')).toBe(1);
  });

  test('that came too late for a turn is in the result as undelivered (executor 11)', async () => {
    const { run, gate } = await runWithGate([callTool('work', {}), hang()]);
    await run.steer('Also check X.');
    await run.cancel();
    gate.resolve();
    expect(said((await run.result).undelivered, 'check X')).toBe(1);
  });

  test('after the end is refused with UNDELIVERED', async () => {
    const { run, gate } = await runWithGate([callTool('work', {}), reply('done')]);
    gate.resolve();
    await run.result;
    await expect(run.steer('too late')).rejects.toMatchObject({ code: 'UNDELIVERED' });
  });

  test('of a run without a store is queued, and delivered', async () => {
    const model = scriptedModel([callTool('work', {}), reply('done')]);
    const executor = createExecutor({ models: { fast: model } });
    const gate = Promise.withResolvers<void>();
    const run = await executor.start(
      agent(() => gate.promise),
      { prompt: 'Go.' },
    );
    expect(await run.steer('Also check X.')).toBe('queued');
    gate.resolve();
    expect(said((await run.result).messages, 'check X')).toBe(1);
  });

  test('while the store fails is queued in memory, and stored with the next save that succeeds', async () => {
    const store = memoryStore();
    const { append } = store;
    let isDown = false;
    const failing = {
      ...store,
      append: async (...args: Parameters<typeof append>) => {
        if (isDown) throw new Error('the store is down');
        return append(...args);
      },
    };
    const { run, gate } = await runWithGate([callTool('work', {}), reply('done')], failing);
    isDown = true;
    expect(await run.steer('Also check X.')).toBe('queued');
    isDown = false;
    gate.resolve();
    const result = await run.result;
    expect(result).toMatchObject({ status: 'ok', saveErrors: 1 });
    expect(said(result.messages, 'check X')).toBe(1);
  });

  test('that is empty is a TypeError', async () => {
    const { run, gate } = await runWithGate([callTool('work', {}), reply('done')]);
    await expect(run.steer(' ')).rejects.toBeInstanceOf(TypeError);
    gate.resolve();
    await run.result;
  });

  test('is announced when it is queued and when it is applied (executor 20)', async () => {
    const { run, gate } = await runWithGate([callTool('work', {}), reply('done')]);
    await run.steer('Also check X.');
    gate.resolve();
    const said: unknown[] = [];
    for await (const event of run.events()) if (event.type.startsWith('steer.')) said.push(event);
    expect(said).toMatchObject([
      { type: 'steer.queued' },
      { type: 'steer.applied', count: 1, texts: ['Also check X.'] },
    ]);
  });
});
