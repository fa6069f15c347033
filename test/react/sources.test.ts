import { callTool, reply } from 'pawl/testing';
import { expect, test } from 'vitest';
import { createClient } from '../../src/client/index.ts';
import { sourcesOf } from '../../src/react/sources.ts';
import { eventually } from '../fixtures/eventually.ts';
import { chatHost, mailTool } from '../http/chat/chat-host.ts';

/** A client of a real handler, and its sources, as the hooks use them. */
function pageOf(script: Parameters<typeof chatHost>[0]) {
  const host = chatHost(script);
  const fetch = async (path: unknown, init?: RequestInit) => host.handler(new Request(`http://pawl.test${path}`, init));
  const headers = { authorization: 'Bearer ada' };
  const client = createClient({ url: '', headers, fetch: fetch as typeof globalThis.fetch });
  return { client, sources: sourcesOf(client) };
}

test('useThread shows a conversation with the real handler: question, answer as it comes, both as recorded (web 33)', async () => {
  const { client, sources } = pageOf({ script: [reply('One.'), reply('Two.')] });
  const { threads } = sources;
  const leave = threads.subscribe('t', () => undefined);
  const state = () => threads.read('t');
  const roles = () => state().messages.map(({ message }) => message.role);
  await eventually(() => expect(state()).toMatchObject({ status: 'ready', messages: [] }));
  for (const [text, count] of [
    ['Hi', 2],
    ['And?', 4],
  ] as const) {
    await client.thread('t').send({ text });
    threads.nudge('t');
    await eventually(() => expect(state()).toMatchObject({ status: 'ready', pending: [] }));
    await eventually(() => expect(roles()).toHaveLength(count));
  }
  expect(roles()).toEqual(['user', 'assistant', 'user', 'assistant']);
  expect(state().live).toBeUndefined();
  await client
    .thread('t')
    .rewind('unknown')
    .catch(() => undefined);
  await client.thread('t').rewind(state().messages[0]?.id ?? '');
  threads.nudge('t');
  await eventually(() => expect(roles()).toEqual(['user', 'assistant']));
  leave();
});

test('useRun and useWaiting show an approval of the real handler, and its end (web 33)', async () => {
  const { client, sources } = pageOf({
    tools: [mailTool()],
    script: [callTool('mail', { to: 'ada' }, 'k'), reply('Sent.')],
  });
  const { runId } = await client.start({ agent: 'worker', prompt: 'Send it.' });
  const filter = JSON.stringify({ kind: 'approval' });
  const leaves = [sources.runs.subscribe(runId, () => undefined)];
  const run = () => sources.runs.read(runId);
  await eventually(() => expect(run().waits).toMatchObject([{ kind: 'approval', tool: 'mail', input: { to: 'ada' } }]));
  leaves.push(sources.waits.subscribe(filter, () => undefined));
  const waits = () => sources.waits.read(filter);
  await eventually(() => expect(waits()).toMatchObject({ status: 'ready', waits: [{ runId, tool: 'mail' }] }));
  await client.run(runId).approve(run().waits[0]?.id ?? '');
  await eventually(() => expect(run()).toMatchObject({ status: 'ended', connection: 'closed', waits: [] }));
  expect(run().steps.map(({ parts }) => parts.map(({ type }) => type))).toEqual([['call'], ['text']]);
  expect(run().steps[0]?.parts[0]).toMatchObject({ state: 'done', output: { type: 'text', value: 'sent' } });
  sources.waits.nudge(filter);
  await eventually(() => expect(waits().waits).toEqual([]));
  for (const leave of leaves) leave();
});
