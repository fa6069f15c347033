import { defineAgent, memoryStore } from 'pawl';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, settle, toolOf, until } from '../fixtures/host.ts';
import { askTool, webHost } from './web-host.ts';

describe('POST /threads/:threadId/messages', () => {
  test('begins a run of the caller; the same message again is 200 with its run, other content 409 (web 10, 17)', async () => {
    const host = webHost({
      script: [reply('hello')],
      http: { authorize: () => ({ callerId: 'ada', labels: { team: 'x' } }) },
    });
    const send = (text: string) => host.ask('/threads/t/messages', { body: { id: 'm1', text } });
    const first = await send('Hi.');
    expect(first).toMatchObject({ status: 202, body: { state: 'started' } });
    const { runId } = first.body;
    await host.executor.get(runId)?.result;
    expect(await send('Hi.')).toMatchObject({ status: 200, body: { runId, state: 'known' } });
    expect(await send('Else.')).toMatchObject({ status: 409, body: { code: 'THREAD_MESSAGE_CONFLICT' } });
    const [line] = (await host.ask('/threads')).body.items;
    expect(line).toMatchObject({ id: 't', callerId: 'ada', turns: 1 });
    expect(line).not.toHaveProperty('cursor');
    const thread = host.executor.thread('t', { agent: host.agent, callerId: 'ada' });
    expect((await thread.turns()).map((turn) => turn.runId)).toEqual([runId]);
    expect(host.model.calls).toHaveLength(1);
  });

  test('behind a run that waits says queued, and for what that run waits (web 12)', async () => {
    const host = webHost({ script: [callTool('ask', {})], tools: [askTool] });
    const { runId } = (await host.ask('/threads/t/messages', { body: { id: 'm1', text: 'Hi.' } })).body;
    await until(() => host.executor.run$(runId)?.get().state === 'running.waiting');
    const second = await host.ask('/threads/t/messages', { body: { id: 'm2', text: 'And?' } });
    expect(second).toMatchObject({
      status: 202,
      body: { state: 'queued', waits: [{ kind: 'question', question: 'Which one?' }] },
    });
    const third = await host.ask('/threads/t/messages', { body: { id: 'm3', text: 'Now.', onBusy: 'reject' } });
    expect(third).toMatchObject({ status: 409, body: { code: 'THREAD_BUSY' } });
  });

  test('answers the message behind a parked turn; until then GET shows that it is parked (edges 31)', async () => {
    const host = webHost({
      ...{ script: [callTool('ask', {}), reply('Two.')], tools: [askTool], store: memoryStore() },
      defaults: { waitLingerMs: 1 },
    });
    const send = (id: string) => host.ask('/threads/t/messages', { body: { id, text: 'Hi.' } });
    const status = async () => (await host.ask('/threads/t')).body.status;
    const { runId } = (await send('m1')).body;
    await until(async () => (await status()) === 'waiting', 'the question');
    await host.executor.park(runId, 'looking into it');
    expect(await host.ask('/threads/t')).toMatchObject({ body: { live: runId, status: 'parked' } });
    const second = await send('m2');
    expect(second).toMatchObject({ status: 202, body: { state: 'started' } });
    await until(async () => (await host.executor.find(second.body.runId))?.status === 'ended', 'the answer');
    expect((await host.ask('/threads/t')).body).not.toHaveProperty('live');
    expect((await host.ask('/threads/t')).body).not.toHaveProperty('status');
    expect((await host.ask(`/runs/${runId}`)).body).toMatchObject({ state: 'fail' });
    expect((await host.ask('/threads/t/messages')).body.items).toHaveLength(3);
  });

  test('gives the id of a run that is found while it waits for its turn, and followed into it (web 11, 17)', async () => {
    const { pass, open: release } = gate<string>();
    const script = [callTool('wait', {}), reply('one'), reply('two')];
    const host = webHost({ script, tools: [toolOf('wait', 'read', () => pass())] });
    await host.ask('/threads/t/messages', { body: { id: 'm1', text: 'Hi.' } });
    const sent = await host.ask('/threads/t/messages', { body: { id: 'm2', text: 'And?' } });
    expect(sent.body.state).toBe('queued');
    const path = `/runs/${sent.body.runId}`;
    const shown = { runId: sent.body.runId, state: 'wait', why: 'waits for its turn', prompt: 'And?', steps: 0 };
    expect(await host.ask(path)).toMatchObject({ status: 200, body: shown });
    expect(await host.ask(path, { as: 'bob' })).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
    for (const [rest, body] of [
      ['cancel', {}],
      ['steer', { text: 'Be short.' }],
    ] as const)
      expect(await host.ask(`${path}/${rest}`, { body })).toMatchObject({ status: 409, body: { code: 'RUN_WAITS' } });
    const events = host.ask(`${path}/events`);
    await settle();
    release('fine');
    const { status, body } = await events;
    expect([status, body.match(/"type":"run\.\w+"/g)]).toEqual([200, ['"type":"run.resumed"', '"type":"run.ended"']]);
    expect(body).toContain('two');
    expect((await host.ask(path)).body).toMatchObject({ state: 'ok', result: { output: 'two' } });
    expect(host.httpWarned).toEqual([]);
  });

  test('takes files, and refuses a message that is none (web 17, 22)', async () => {
    const host = webHost({ script: [hang()] });
    const file = { type: 'file', mediaType: 'image/png', data: 'aGk=' };
    const sent = await host.ask('/threads/t/messages', {
      body: { id: 'm', parts: [{ type: 'text', text: 'See' }, file] },
    });
    expect(sent.status).toBe(202);
    const wrong: readonly object[] = [
      { id: 'n' },
      { id: 'n', text: ' ' },
      { id: 'n', text: 'a', parts: [file] },
      { id: 'n', parts: [] },
      { id: 'n', parts: [{ ...file, data: 'file:///etc/passwd' }] },
      { id: 'n', parts: [{ ...file, data: 'https://intern.test/x.png' }] },
      { id: 'n', parts: [{ ...file, url: 'x' }] },
      { id: '', text: 'a' },
      { id: 'n', text: 'a', agent: 'other' },
      { id: 'n', text: 'a', callerId: 'bob' },
      { id: '\ud800', text: 'a' },
    ];
    for (const body of wrong) expect((await host.ask('/threads/t/messages', { body })).status).toBe(400);
  });

  test('needs the name of the agent if there are several (web 17)', async () => {
    const other = defineAgent({ id: 'other', instructions: 'Go.' });
    const host = webHost({ script: [hang()], agents: [other] });
    const two = webHost({ script: [hang()], http: { agents: { worker: host.agent, other } } });
    const send = (body: object) => two.ask('/threads/t/messages', { body: { id: 'm', text: 'a', ...body } });
    expect((await send({})).status).toBe(400);
    expect((await send({ agent: 'other' })).status).toBe(202);
  });
});

describe('GET /threads and /threads/:threadId', () => {
  test("list the caller's threads by pages, those of all for who sees everything, and show one with its turns (web 17)", async () => {
    const host = webHost({ script: Array.from({ length: 6 }, () => hang()) });
    for (const id of ['a', 'b', 'c']) await host.ask(`/threads/${id}/messages`, { body: { id: 'm', text: 'Hi.' } });
    await host.ask('/threads/d/messages', { as: 'bob', body: { id: 'm', text: 'Hi.' } });
    const ids: string[][] = [];
    for (let after = ''; ; ) {
      const { body } = await host.ask(`/threads?limit=2${after && `&after=${encodeURIComponent(after)}`}`);
      ids.push(body.items.map(({ id }: { id: string }) => id));
      if (!body.next) break;
      after = body.next;
    }
    expect(ids.flat().toSorted()).toEqual(['a', 'b', 'c']);
    expect(ids[0]).toHaveLength(2);
    expect((await host.ask('/threads', { as: 'root:boss' })).body.items).toHaveLength(4);
    expect((await host.ask('/threads?after=x')).status).toBe(400);
    const one = (await host.ask('/threads/a')).body;
    expect(one).toMatchObject({ id: 'a', live: expect.any(String), turns: [{ messageId: 'm', state: 'live' }] });
    expect((await host.ask('/threads/d')).status).toBe(404);
    expect((await host.ask('/threads/d?caller=bob')).status).toBe(404);
    expect((await host.ask('/threads/d?caller=bob', { as: 'root:boss' })).body).toMatchObject({ id: 'd' });
    expect((await host.ask(`/threads/${'x'.repeat(600)}`)).status).toBe(404);
  });

  test('messages come by pages, in order, and a page of large ones ends early (web 14, 17)', async () => {
    const large = 'x'.repeat(2_100_000);
    const host = webHost({ script: [reply(large), reply(large), reply('end')] });
    for (const id of ['m1', 'm2', 'm3']) {
      const { runId } = (await host.ask('/threads/t/messages', { body: { id, text: `Say ${id}.` } })).body;
      await host.executor.get(runId)?.result;
    }
    const page = async (query = '') => (await host.ask(`/threads/t/messages${query}`)).body;
    const first = await page();
    expect(first.items.map(({ id }: { id: string }) => id).slice(0, 1)).toEqual(['m1']);
    expect(first.items).toHaveLength(3);
    const rest = await page(`?after=${first.next}`);
    expect(rest.items.map(({ index }: { index: number }) => index)).toEqual([3, 4, 5]);
    expect(rest).not.toHaveProperty('next');
    expect((await page('?limit=1')).next).toBe('0');
    expect((await host.ask('/threads/t/messages?after=x')).status).toBe(400);
  });
});

describe('POST /threads/:threadId/cancel, rewind, fork and DELETE', () => {
  test('cancel ends the live run; rewind drops turns; fork shares them; DELETE removes all (web 11, 15, 17)', async () => {
    const host = webHost({ script: [reply('one'), hang()] });
    const send = async (id: string) =>
      (await host.ask('/threads/t/messages', { body: { id, text: `Say ${id}.` } })).body;
    const { runId: first } = await send('m1');
    await host.executor.get(first)?.result;
    const { runId: second } = await send('m2');
    await until(() => host.model.calls.length === 2);
    expect(await host.ask('/threads/t/rewind', { body: { messageId: 'm1' } })).toMatchObject({
      status: 409,
      body: { code: 'THREAD_BUSY' },
    });
    expect((await host.ask('/threads/t/cancel', { body: {} })).body).toEqual({ runId: second });
    await host.executor.get(second)?.result;
    expect((await host.ask('/threads/t/cancel', { body: {} })).body).toEqual({});
    expect((await host.ask('/threads/t/rewind', { body: { messageId: 'm1' } })).status).toBe(204);
    const ids = async (id: string) =>
      (await host.ask(`/threads/${id}/messages`)).body.items.map((item: { id: string }) => item.id);
    expect(await ids('t')).toEqual(['m1', `${first}:1`]);
    const forked = await host.ask('/threads/t/fork', { body: { messageId: `${first}:m`, newId: 'u' } });
    expect(forked).toMatchObject({ status: 201, body: { id: 'u' } });
    const again = await host.ask('/threads/t/fork', { body: { messageId: `${first}:m`, newId: 'u' } });
    expect(again).toMatchObject({ status: 409, body: { code: 'THREAD_EXISTS' } });
    expect((await host.ask('/threads/t/rewind', { body: { messageId: 'none' } })).status).toBe(404);
    expect((await host.ask('/threads/t', { method: 'DELETE' })).status).toBe(204);
    expect((await host.ask('/threads/t', { method: 'DELETE' })).status).toBe(404);
    expect(await ids('u')).toEqual(['m1', `${first}:1`]);
  });
});
