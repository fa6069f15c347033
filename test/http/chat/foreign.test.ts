import { memoryStore } from 'pawl';
import { callTool, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { until } from '../../fixtures/host.ts';
import { mailTool, webHost } from '../web-host.ts';

const SECRET = 'the secret of ada';

/** A chat of ada that waits for an approval, and all ids that another caller could have learnt. */
async function chatOfAda() {
  const script = [callTool('mail', { to: SECRET }, 'call-ada'), ...Array.from({ length: 12 }, () => reply('Hello.'))];
  const host = webHost({ store: memoryStore(), tools: [mailTool], script, journal: { flushMs: 1 } });
  const thread = host.executor.thread('chat-ada', { agent: host.agent, callerId: 'ada' });
  const { runId } = await thread.send({ id: 'm-ada', text: SECRET });
  await until(async () => (await host.executor.waiting({ runId })).length === 1, 'the approval');
  const [wait] = await host.executor.waiting({ runId });
  if (!wait) throw new Error('there is no wait');
  const untouched = async () => {
    expect(await host.executor.waiting({ runId })).toMatchObject([{ id: wait.id, votes: [] }]);
    expect(await thread.turns()).toHaveLength(1);
    expect((await thread.messages()).map(({ id }) => id)).toEqual(['m-ada']);
  };
  return { host, runId, wait, untouched };
}

const user = (id: string) => ({ id, role: 'user', parts: [{ type: 'text', text: 'Hi.' }] });

describe('a caller with all ids of the chat of another one', () => {
  test.for(['chat-ada', 'chat-eve'])(
    'learns nothing and changes nothing with any body of POST /chat for %s (web 19, 25, 39)',
    async (id) => {
      const { host, runId, wait, untouched } = await chatOfAda();
      const approval = { id: wait.id, approved: true, descriptor: 'digest' in wait ? { digest: wait.digest } : {} };
      const call = { type: 'tool-mail', toolCallId: 'call-ada', state: 'approval-responded', input: {}, approval };
      const answered = { id: `${runId}:m`, role: 'assistant', parts: [{ type: 'step-start' }, call] };
      const bodies = [
        { id, messages: [user('m-ada')] },
        { id, messages: [user('m-ada'), answered] },
        { id, messages: [answered], messageId: `${runId}:m` },
        { id, messages: [answered, user('m-eve')] },
        { id, messages: [user('m-ada')], trigger: 'regenerate-message', messageId: `${runId}:m` },
        { id, messages: [user('m-ada')], messageId: 'm-ada' },
        { id, message: answered, messageId: `${runId}:m` },
      ];
      for (const body of bodies) {
        const { status, body: seen } = await host.ask('/chat', { as: 'eve', body });
        expect([200, 400, 404, 409]).toContain(status);
        expect(String(JSON.stringify(seen))).not.toContain(SECRET);
        expect(String(JSON.stringify(seen))).not.toContain(wait.id);
      }
      await untouched();
    },
  );

  test('learns nothing with any place of a stream, and stops nothing (web 19, 31, 39)', async () => {
    const { host, runId, wait, untouched } = await chatOfAda();
    const unknown = await host.ask('/chat/chat-x/stream', { as: 'eve', headers: { 'last-event-id': 'unknown/1' } });
    for (const chat of ['chat-ada', 'chat-eve'])
      for (const place of [`${runId}/1`, `${runId}/0`, `${runId}/end`, `${encodeURIComponent(runId)}/1`]) {
        const seen = await host.ask(`/chat/${chat}/stream`, { as: 'eve', headers: { 'last-event-id': place } });
        expect([seen.status, seen.body]).toEqual([unknown.status, unknown.body]);
      }
    for (const chat of ['chat-ada', 'chat-eve']) {
      expect((await host.ask(`/chat/${chat}/stream`, { as: 'eve' })).status).toBe(204);
      for (const body of [{}, { messageId: `${runId}:m` }, { messageId: 'm-ada' }])
        expect((await host.ask(`/chat/${chat}/stop`, { as: 'eve', body })).body).toEqual({ state: 'ended' });
    }
    expect(wait.id).not.toBe('');
    await untouched();
  });

  test('answers nothing through a run or a thread of its own (web 17, 19, 39)', async () => {
    const { host, runId, wait, untouched } = await chatOfAda();
    const own = await host.ask('/runs', { as: 'eve', body: { agent: 'worker', prompt: 'Hi.' } });
    const paths = [`/runs/${own.body.runId}`, `/runs/${runId}`, '/runs/unknown'];
    const answers = [];
    for (const path of paths)
      for (const body of [{ how: 'approve' }, { how: 'deny' }, { how: 'answer', value: 1 }, { how: 'wake' }]) {
        const { status, body: seen } = await host.ask(`${path}/answers/${wait.id}`, { as: 'eve', body });
        answers.push(status);
        expect(JSON.stringify(seen)).not.toContain(SECRET);
      }
    expect(new Set(answers)).toEqual(new Set([410, 404]));
    for (const messageId of ['m-ada', `${runId}:m`, `${runId}:1`])
      for (const what of ['rewind', 'fork'])
        expect(
          (
            await host.ask(`/threads/chat-ada/${what}`, {
              as: 'eve',
              body: { messageId, ...(what === 'fork' ? { newId: 'n' } : {}) },
            })
          ).status,
        ).toBe(404);
    expect((await host.ask('/threads/chat-ada/messages?caller=ada', { as: 'eve' })).status).toBe(404);
    expect((await host.ask(`/waiting?runId=${runId}`, { as: 'eve' })).body.items).toEqual([]);
    await untouched();
  });
});
