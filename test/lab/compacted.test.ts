import { createCompactor, memoryStore } from 'pawl';
import { readRun, replay } from 'pawl/lab';
import { callTool, fail, hang, reply, type ScriptedEntry, scriptedModel, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { markOf } from '../../src/values/message-mark.ts';
import { type HostOptions, hostOf, toolOf, until } from '../fixtures/host.ts';
import { allSame, retention } from './recorded.ts';

const page = 'A page with many words on it. '.repeat(20); // 150 tokens
const look = toolOf('look', 'read', async ({ n }) => `${n}: ${page}`);
const calls = (count: number, from = 0) => Array.from({ length: count }, (_, n) => callTool('look', { n: n + from }));

/** A host whose model has room for few pages, and the cheap model that sums up. */
function reader(script: readonly ScriptedEntry[], options: HostOptions = {}) {
  const summaries = scriptedModel([
    reply('Pages 0 to 3 are dull.'),
    reply('So are the next ones.'),
    reply('And more.'),
  ]);
  const compactor = createCompactor({ model: summaries, keepLast: 2, clock: testClock() });
  const contextTokens = { fast: 1_000 };
  const host = hostOf({ store: memoryStore(), retention, script, tools: [look], compactor, contextTokens, ...options });
  return { ...host, summaries };
}

const sent = ({ calls: made }: { readonly calls: readonly { readonly messages: readonly unknown[] }[] }) =>
  made.map(({ messages }) => messages);

test('the model of a replay gets what the recorded one got, compactions too, and no compactor is asked (lab 16)', async () => {
  const host = reader([...calls(11), reply('Read.')]);
  await host.run({ runId: 'r' });
  const run = await readRun(host.executor, 'r');
  expect(host.summaries.calls).toHaveLength(2);
  const model = scriptedModel([...calls(11), reply('Read.')]);
  const report = await replay(run, { agent: host.agent, model });
  expect(report).toMatchObject({ status: 'ok', missed: [], drift: [] });
  expect(sent(model)).toStrictEqual(sent(host.model));
  expect(host.summaries.calls).toHaveLength(2);
  expect(report.steps.map(({ message }) => markOf(message)?.compacted)).toStrictEqual(
    run.steps.map(({ message }) => markOf(message)?.compacted),
  );
  expect(await replay(run, { agent: host.agent })).toStrictEqual({ ...run, ...allSame });
});

test('a compaction is recorded once, with its place and what the compactor wrote: its answer has it (lab 16)', async () => {
  const host = reader([...calls(11), reply('Read.')]);
  await host.run({ runId: 'r' });
  const marks = (await readRun(host.executor, 'r')).steps.map(({ message }) => markOf(message)?.compacted);
  const summary = (text: string) => ({
    role: 'user',
    content: [{ type: 'text', text: expect.stringContaining(text) }],
  });
  expect(marks.flatMap((made, i) => (made ? [[i + 1, made]] : []))).toStrictEqual([
    [6, { upTo: 11, parts: [[0, 1], summary('Pages 0 to 3'), [9, 11]] }],
    [10, { upTo: 19, parts: [[0, 1], summary('So are the next'), [17, 19]] }],
  ]);
  expect(JSON.stringify(marks).length).toBeLessThan(600);
});

test('a process that resumes a run continues with its recorded compaction, and asks no compactor again (lab 16)', async () => {
  const store = memoryStore();
  const first = reader([...calls(6), hang()], { store });
  await first.start({ runId: 'r' });
  await until(() => first.model.calls.length === 7, 'the seventh turn');
  await first.executor.shutdown();
  const second = reader([reply('Read.')], { store });
  expect((await second.run({ runId: 'r' })).status).toBe('ok');
  expect(second.summaries.calls).toStrictEqual([]);
  expect(sent(second.model)[0]).toStrictEqual(sent(first.model)[6]);
});

test('a turn of a thread begins with the compacted history of the turn before, and is replayed with it (lab 16)', async () => {
  const host = reader([...calls(8), reply('Read.'), reply('Again.')]);
  const thread = host.executor.thread('t', { agent: host.agent, callerId: 'ada' });
  let runId = '';
  for (const id of ['m1', 'm2']) {
    ({ runId } = await thread.send({ id, text: 'Read.' }));
    await until(async () => (await thread.turn({ runId }))?.state === 'ended');
  }
  const asked = sent(host.model).at(-1);
  expect(asked).toHaveLength(4 + 7 + 1);
  expect(JSON.stringify(asked).split('Pages 0 to 3 are dull.')).toHaveLength(2);
  const run = await readRun(host.executor, runId);
  const model = scriptedModel([reply('Again.')]);
  await replay(run, { agent: host.agent, model });
  expect(sent(model).at(-1)).toStrictEqual(asked);
});

test('a compaction of a failed turn is recorded with the answer that comes after it (lab 16)', async () => {
  const down = fail(Object.assign(new Error('overloaded'), { isRetryable: true }));
  const host = reader([...calls(5), down, callTool('look', { n: 9 }), reply('Read.')]);
  const result = await host.run({ runId: 'r' });
  expect(result.status).toBe('ok');
  const marks = (await readRun(host.executor, 'r')).steps.map(({ message }) => markOf(message)?.compacted?.upTo);
  expect(marks).toStrictEqual([undefined, undefined, undefined, undefined, undefined, 11, undefined]);
});

test('what a compactor wrote is redacted in the record (lab 16)', async () => {
  const redact = (text: string) => text.replaceAll('dull', '***');
  const host = reader([...calls(6), reply('Read.')], { redact });
  await host.run({ runId: 'r' });
  const run = JSON.stringify(await readRun(host.executor, 'r'));
  expect(run).toContain('Pages 0 to 3 are ***.');
  expect(run).not.toContain('dull');
});
