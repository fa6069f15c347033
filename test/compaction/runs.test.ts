import { createCompactor, memoryStore } from 'pawl';
import { callTool, fail, hang, reply, type ScriptedEntry, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, hostOf, toolOf, until } from '../fixtures/host.ts';
import { faultOf } from './histories.ts';

const page = 'A page with many words on it. '.repeat(20); // 150 tokens
const look = toolOf('look', 'read', async ({ n }) => `${n}: ${page}`);
const calls = (count: number) => Array.from({ length: count }, (_, n) => callTool('look', { n }));
const contextTokens = { fast: 1_000 };

/** A cheap model, and a compactor that asks it. */
function summarising(script: readonly ScriptedEntry[]) {
  const model = scriptedModel(script);
  return { model, compactor: createCompactor({ model, keepLast: 2, clock: testClock() }) };
}

describe('a run whose history outgrows the window of its model', () => {
  test('is shown a summary of the middle, and its stored transcript stays whole (executor 19)', async () => {
    const { compactor, model } = summarising([reply('Pages 0 to 3 are dull.')]);
    const store = memoryStore();
    const host = hostOf({
      script: [...calls(6), reply('Read.')],
      tools: [look],
      store,
      compactor,
      contextTokens,
    });
    const result = await host.run({ runId: 'r' });
    expect(result).toMatchObject({ status: 'ok', output: 'Read.', iterations: 7 });
    expect(model.calls).toHaveLength(1);

    const lengths = host.model.calls.map(({ messages }) => messages.length);
    expect(lengths).toEqual([1, 3, 5, 7, 9, 4, 6]);
    for (const { messages } of host.model.calls) expect(faultOf(messages)).toBeUndefined();
    expect(JSON.stringify(host.model.calls[5]?.messages)).toContain('Pages 0 to 3 are dull.');
    expect(result.messages).toHaveLength(1 + 6 * 2 + 1);
    expect(JSON.stringify(result.messages?.map(({ content }) => content))).not.toContain('dull');
    expect(host.warnings).toEqual([]);
  });

  test('what is steered comes before the compaction, and reaches the model word for word (executor 10)', async () => {
    const { compactor } = summarising([reply('Dull pages.')]);
    const turned = gate();
    const last = toolOf('last', 'read', () => turned.pass().then(() => page));
    const script = [...calls(4), callTool('last', {}), reply('Read.')];
    const host = hostOf({ script, tools: [look, last], compactor, contextTokens });
    const run = await host.start();
    await turned.reached;
    await run.steer('Mind the footnotes.');
    turned.open();
    await run.result;
    const { messages } = host.model.calls[5] ?? { messages: [] };
    expect(JSON.stringify(messages[1])).toContain('Dull pages.');
    expect(messages.at(-1)).toMatchObject({ role: 'user', content: [{ type: 'text', text: 'Mind the footnotes.' }] });
  });

  test('continues with the whole history when the compactor fails, and says so once (executor 19)', async () => {
    const down = fail(Object.assign(new Error('the cheap model is down'), { isRetryable: false }));
    const { compactor } = summarising([down, down, down]);
    const host = hostOf({ script: [...calls(7), reply('Read.')], tools: [look], compactor, contextTokens });
    expect(await host.run()).toMatchObject({ status: 'ok', output: 'Read.' });
    expect(host.model.calls.map(({ messages }) => messages.length)).toEqual([1, 3, 5, 7, 9, 11, 13, 15]);
    expect(host.warnings).toEqual(['run: the history could not be compacted; it is sent as it is']);
    expect(JSON.stringify(host.warned)).toContain('the cheap model is down');
  });

  test('is not compacted where its tier has no known window (executor 19)', async () => {
    const { compactor, model } = summarising([]);
    const host = hostOf({
      script: [...calls(6), reply('Read.')],
      tools: [look],
      compactor,
      contextTokens: { deep: 10 },
    });
    expect((await host.run()).status).toBe('ok');
    expect(model.calls).toEqual([]);
  });

  test('is compacted again by the process that resumes it, from the whole transcript (executor 19, faults 30)', async () => {
    const store = memoryStore();
    const options = { tools: [look], store, contextTokens };
    const one = summarising([reply('First summary.')]);
    const first = hostOf({ ...options, compactor: one.compactor, script: [...calls(5), hang()] });
    await first.start({ runId: 'r' });
    await until(() => first.model.calls.length === 6, 'the sixth turn');
    await first.executor.shutdown();
    expect((await store.load('r'))?.messages).toHaveLength(11);

    const two = summarising([reply('Second summary.')]);
    const second = hostOf({ ...options, compactor: two.compactor, script: [reply('Read.')] });
    const result = await second.run({ runId: 'r' });
    expect(result.messages).toHaveLength(12);
    expect(two.model.calls).toHaveLength(1);
    expect(JSON.stringify(two.model.calls)).not.toContain('First summary.');
    expect(JSON.stringify(second.model.calls[0]?.messages[1])).toContain('Second summary.');
  });

  test('a cancelled run asks neither the compactor nor the model again (executor 5)', async () => {
    const { compactor, model } = summarising([hang()]);
    const host = hostOf({ script: [...calls(5), reply('never')], tools: [look], compactor, contextTokens });
    const run = await host.start();
    await until(() => model.calls.length === 1, 'the compaction');
    expect((await run.cancel()).status).toBe('cancelled');
    expect([host.model.calls.length, model.calls.length]).toEqual([5, 1]);
    expect(model.calls[0]?.signal?.aborted).toBe(true);
  });
});
