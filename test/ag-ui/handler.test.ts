import { createPalette, defineAgent, defineTool, type Tool } from 'pawl';
import { callTool, hang, reply, type ScriptedRequest } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { agUiMessagesOf } from '../../src/ag-ui/messages.ts';
import { answeringModel, turnsOf } from '../fixtures/answering-model.ts';
import { asking as askingOnce, askReviewer } from '../fixtures/family.ts';
import { toolOf } from '../fixtures/host.ts';
import { notingBudget } from '../fixtures/noting-ports.ts';
import { type AgUiHostOptions, agUiHost, mailTool, Page, said } from './ag-ui-host.ts';

/** The conversation as the executor recorded it, as readers have it. */
async function recorded(host: ReturnType<typeof agUiHost>, threadId = 't', callerId = 'ada') {
  return agUiMessagesOf(
    await host.executor.thread(threadId, { agent: host.agent, callerId }).messages({ limit: 1_000 }),
  );
}

describe('a conversation over AG-UI', () => {
  test('of two turns with a tool call gives the real client the recorded messages (web 34)', async () => {
    const look = toolOf('look', 'read', async () => 'blue');
    const host = agUiHost({
      tools: [look],
      script: [callTool('look', { at: 'sky' }), reply('It is blue.'), reply('Really.')],
    });
    const page = new Page(host.handler);
    await page.post('What colour is the sky?');
    expect(said(page.agent.messages)).toEqual([
      ...['user: What colour is the sky?', 'assistant calls', 'tool: blue', 'assistant: It is blue.'],
    ]);
    await page.post('Really?');
    expect(said(page.agent.messages).slice(4)).toEqual(['user: Really?', 'assistant: Really.']);
    expect(page.agent.messages).toEqual(await recorded(host));
    expect(host.model.calls).toHaveLength(3);
    expect(host.model.calls[2]?.messages).toHaveLength(5);
  });

  test('that is posted again without news gets its messages and its end, and asks no model again (web 34)', async () => {
    const host = agUiHost();
    const page = new Page(host.handler);
    await page.post('Hi.');
    const before = structuredClone(page.agent.messages);
    await page.post();
    expect(page.agent.messages).toEqual(before);
    expect(page.types).toEqual(['RUN_STARTED', 'MESSAGES_SNAPSHOT', 'RUN_FINISHED']);
    const other = new Page(host.handler);
    await other.post();
    expect(other.agent.messages).toEqual(before);
    expect(host.model.calls).toHaveLength(1);
  });

  test('ignores the tools of the page (web 34)', async () => {
    const host = agUiHost();
    const page = new Page(host.handler);
    page.agent.addMessage({ id: 'm', role: 'user', content: 'Hi.' });
    await page.agent.runAgent({ tools: [{ name: 'rm', description: 'Removes all.', parameters: { type: 'object' } }] });
    expect(host.model.calls[0]?.tools).toEqual([]);
  });

  test('answers the message after a turn that is set aside (edges 31)', async () => {
    const refusals = [false, true];
    const host = agUiHost({
      ...{ tools: [toolOf('look')], script: [callTool('look', {}), reply('Here.')] },
      ports: { budget: notingBudget({ refuse: () => refusals.shift() ?? false }) },
    });
    const page = new Page(host.handler);
    await page.post('Look.').catch(() => {});
    expect(page.types.at(-1)).toBe('RUN_ERROR');
    await page.post('Anything?');
    expect(said(page.agent.messages).at(-1)).toBe('assistant: Here.');
    expect(page.types.at(-1)).toBe('RUN_FINISHED');
  });

  test('reports a failed run by its code (web 34)', async () => {
    const host = agUiHost({ script: [], defaults: { modelAttempts: 1 } });
    const page = new Page(host.handler);
    const errors: unknown[] = [];
    await page.post('Hi.', undefined, {
      onRunErrorEvent: ({ event }) => void errors.push([event.code, event.message]),
    });
    expect(errors).toEqual([['MODEL', 'The model failed']]);
  });
});

const asking = (more: AgUiHostOptions = {}) => {
  const sent: unknown[] = [];
  const host = agUiHost({
    tools: [mailTool(sent)],
    script: [callTool('mail', { to: 'Bob' }), reply('Done.'), reply('Next.')],
    ...more,
  });
  return { host, sent, page: new Page(host.handler) };
};

describe('an approval over AG-UI', () => {
  test('interrupts the run, and lets it continue once it is given (web 34)', async () => {
    const { host, sent, page } = asking();
    await page.post('Write to Bob.');
    expect(page.agent.pendingInterrupts).toEqual([
      expect.objectContaining({
        reason: 'tool_call',
        toolCallId: expect.stringContaining(':call:'),
        expiresAt: expect.any(String),
      }),
    ]);
    const call = page.agent.messages.at(-1);
    expect(call).toMatchObject({
      toolCalls: [{ id: page.agent.pendingInterrupts[0]?.toolCallId, function: { name: 'mail' } }],
    });
    expect(sent).toEqual([]);
    await page.answer({ approved: true });
    expect(sent).toEqual([{ to: 'Bob' }]);
    expect(page.types.filter((type) => type === 'TOOL_CALL_START')).toEqual([]);
    expect(said(page.agent.messages).slice(-2)).toEqual(['tool: sent to Bob', 'assistant: Done.']);
    expect(page.agent.pendingInterrupts).toEqual([]);
    expect(page.agent.messages).toEqual(await recorded(host));
  });

  test('with edited arguments runs the tool with those (web 34)', async () => {
    const { sent, page } = asking();
    await page.post('Write to Bob.');
    await page.answer({ approved: true, editedArgs: { to: 'Eve' }, note: 'Not Bob.' });
    expect(sent).toEqual([{ to: 'Eve' }]);
    expect(JSON.stringify(page.agent.messages)).toContain('sent to Eve');
  });

  test.for([
    ['refused', { approved: false, note: 'Too late.' }, 'Too late.'],
    ['cancelled', undefined, ''],
  ] as const)('that is %s never starts the tool, and the model reads so (web 34)', async ([, payload, note]) => {
    const { host, sent, page } = asking();
    await page.post('Write to Bob.');
    await page.answer(payload);
    expect(sent).toEqual([]);
    expect(page.agent.messages.find(({ role }) => role === 'tool')).toMatchObject({
      metadata: { pawl: { status: 'denied' } },
    });
    expect(JSON.stringify(page.agent.messages)).toContain(note);
    expect(page.agent.messages).toEqual(await recorded(host));
  });

  test('that another page has given is no error for this one (web 34)', async () => {
    const { host, sent, page } = asking();
    await page.post('Write to Bob.');
    const other = new Page(host.handler);
    await other.post();
    expect(other.agent.pendingInterrupts).toEqual(page.agent.pendingInterrupts);
    await other.answer({ approved: true });
    await page.answer({ approved: false });
    expect(sent).toEqual([{ to: 'Bob' }]);
    expect(page.agent.messages).toEqual(other.agent.messages);
  });

  test('that is named twice, not at all, or by a wrong id is 422, and nothing runs (web 34)', async () => {
    const { host, sent, page } = asking();
    await page.post('Write to Bob.');
    const [id = ''] = page.agent.pendingInterrupts.map((each) => each.id);
    const yes = (interruptId: string) => ({ interruptId, status: 'resolved' as const, payload: { approved: true } });
    for (const resume of [
      [yes(id), yes(id)],
      [yes('other')],
      [yes(id), yes('other')],
      [{ ...yes(id), payload: 'yes' }],
    ])
      expect(await status(host, { resume })).toEqual([422, 'RESUME_MISMATCH']);
    expect(await status(host, { messages: [{ id: 'new', role: 'user', content: 'And?' }] })).toEqual([
      422,
      'RESUME_MISMATCH',
    ]);
    expect(sent).toEqual([]);
  });

  test('comes with a question as well: its payload is the answer (web 34)', async () => {
    const ask = toolOf('ask', 'read', (_, context) => context.ask({ question: 'Which one?', options: ['a', 'b'] }));
    const { page } = asking({ tools: [ask], script: [callTool('ask'), reply('Good.')] });
    await page.post('Choose.');
    expect(page.agent.pendingInterrupts[0]).toMatchObject({
      reason: 'input_required',
      message: 'Which one?',
      responseSchema: { enum: ['a', 'b'] },
    });
    await page.answer('b');
    expect(JSON.stringify(page.agent.messages)).toContain('Good.');
  });
});

describe('a sub-agent over AG-UI', () => {
  test('asks for its approvals one after the other, each as an interrupt of the run above it (web 34)', async () => {
    const sent: unknown[] = [];
    const child = (request: ScriptedRequest) => {
      const turns = turnsOf(request);
      return turns < 2 ? callTool('mail', { to: `person ${turns}` }, `mail-${turns}`) : reply('Reviewed.');
    };
    const reviewer = defineAgent({ id: 'reviewer', instructions: 'Review.', tools: [mailTool(sent)] });
    const host = agUiHost({
      models: { fast: answeringModel(askingOnce(askReviewer, child)) },
      agent: { subAgents: ['reviewer'] },
      ports: { palette: createPalette({ agents: [reviewer] }) },
      defaults: { waitLingerMs: 1, dueMs: 20, controlMs: 20 },
    });
    await host.executor.recover();
    const page = new Page(host.handler);
    await page.post('Look at a.ts.');
    const [call] = page.agent.messages.filter(({ role }) => role === 'assistant');
    expect(page.agent.pendingInterrupts).toMatchObject([{ reason: 'tool_call', toolCallId: call?.id }]);
    await page.answer({ approved: true });
    expect(page.agent.pendingInterrupts).toMatchObject([{ reason: 'tool_call', toolCallId: call?.id }]);
    expect(sent).toEqual([{ to: 'person 0' }]);
    await page.answer({ approved: true });
    expect(sent).toEqual([{ to: 'person 0' }, { to: 'person 1' }]);
    expect(page.agent.pendingInterrupts).toEqual([]);
    expect(page.agent.messages).toEqual(await recorded(host));
  });
});

/** Posts by hand. */
async function status(
  host: ReturnType<typeof agUiHost>,
  body: object,
  {
    as = 'ada',
    path = '/',
    headers = {},
    method = 'POST',
  }: { as?: string; path?: string; headers?: object; method?: string } = {},
): Promise<[number, string | undefined]> {
  const authorization = as === '' ? {} : { authorization: `Bearer ${as}` };
  const response = await host.handler(
    new Request(`http://pawl.test${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...authorization, ...headers },
      ...(method === 'POST' ? { body: JSON.stringify({ threadId: 't', runId: 'r', messages: [], ...body }) } : {}),
    }),
  );
  const type = response.headers.get('content-type') ?? '';
  if (type.includes('problem')) return [response.status, ((await response.json()) as { code: string }).code];
  await response.body?.cancel();
  return [response.status, undefined];
}

/** A tool that two persons must approve. */
const quorumTool = defineTool({
  ...{ name: 'mail', description: 'Sends a mail.', effect: 'once', needsApproval: true, approval: { quorum: 2 } },
  ...{ input: { type: 'object' }, execute: () => 'sent' },
}) as unknown as Tool;

describe('the walls of AG-UI', () => {
  test('a conversation of another caller looks like an unknown one, with each of its ids (web 19, 34, 39)', async () => {
    const { host, sent, page } = asking();
    await page.post('Write to Bob.');
    const [{ id: interruptId } = { id: '' }] = page.agent.pendingInterrupts;
    const resume = [{ interruptId, status: 'resolved', payload: { approved: true } }];
    const eve = { as: 'eve' };
    expect(await status(host, {}, eve)).toEqual([404, 'NOT_FOUND']);
    expect(await status(host, { resume }, eve)).toEqual([404, 'NOT_FOUND']);
    expect(await status(host, { messages: page.agent.messages }, eve)).toEqual([404, 'NOT_FOUND']);
    expect(await status(host, { threadId: 'unknown' }, eve)).toEqual([404, 'NOT_FOUND']);
    // Under the same id this caller begins a conversation of its own, with the ids of the other one in it.
    const own = new Page(host.handler, { as: 'eve' });
    own.agent.setMessages(structuredClone(page.agent.messages));
    await own.post('Hello.');
    expect(JSON.stringify(own.agent.messages)).not.toContain('Bob');
    expect(await status(host, { resume }, eve)).toEqual([200, undefined]);
    expect(sent).toEqual([]);
    expect(said(await recorded(host))).toEqual(['user: Write to Bob.']);
    expect((await host.executor.waiting({ callerId: 'ada' })).length).toBe(1);
  });

  test('without a grant 401, another path 404, another method 405, another type 415, a foreign page 403 (web 18, 21, 39)', async () => {
    const host = agUiHost();
    const body = { messages: [{ id: 'm', role: 'user', content: 'Hi.' }] };
    expect(await status(host, body, { as: '' })).toEqual([401, 'UNAUTHORIZED']);
    for (const path of ['/other', '/worker/x', '/__proto__', '/%E0%A4%A'])
      expect(await status(host, body, { path })).toEqual([404, 'NOT_FOUND']);
    expect(await status(host, body, { method: 'GET' })).toEqual([405, 'METHOD_NOT_ALLOWED']);
    expect(await status(host, body, { headers: { 'content-type': 'text/plain' } })).toEqual([
      415,
      'WRONG_CONTENT_TYPE',
    ]);
    expect(await status(host, body, { headers: { origin: 'https://evil.example' } })).toEqual([403, 'FOREIGN_ORIGIN']);
    expect(await status(host, { threadId: 7 })).toEqual([400, 'BAD_REQUEST']);
    expect(host.model.calls).toHaveLength(0);
  });

  test('asks for each thing that a post does: read, start, answer (web 18)', async () => {
    const asked: string[] = [];
    const { page } = asking({
      agUi: {
        authorize: (_, { action, threadId, agentId }) => {
          asked.push(`${action} ${threadId} ${agentId}`);
          return { callerId: 'ada', by: { id: 'ada' } };
        },
      },
    });
    await page.post('Write to Bob.');
    await page.answer({ approved: true });
    const first = ['read undefined worker', 'read t worker'];
    expect(asked).toEqual([...first, 'start t worker', ...first, 'answer t worker']);
  });

  test('a grant without a person decides about no call (edges 32)', async () => {
    const { sent, page } = asking({ agUi: { authorize: () => ({ callerId: 'ada' }) } });
    await page.post('Write to Bob.');
    for (const approved of [true, false]) await expect(page.answer({ approved })).rejects.toThrow('PERSON_REQUIRED');
    expect(sent).toEqual([]);
  });

  test('without a grant nothing of a body is read (web 18)', async () => {
    const host = agUiHost();
    const pulled: string[] = [];
    const stalled = new ReadableStream<Uint8Array>({ pull: () => void pulled.push('pulled') }, { highWaterMark: 0 });
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: stalled, duplex: 'half' };
    const answer = await host.handler(new Request('http://pawl.test/', init as RequestInit));
    expect([answer.status, pulled, stalled.locked]).toEqual([401, [], false]);
  });

  test('refuses a message that no model gets, an id that is too long, and a decision that needs a person, with 4xx (web 22, 34)', async () => {
    const host = agUiHost();
    const message = (id: string, content: unknown) => ({ messages: [{ id, role: 'user', content }] });
    expect(await status(host, message('m', ''))).toEqual([400, 'BAD_REQUEST']);
    expect(await status(host, message('y'.repeat(1_000), 'Hi.'))).toEqual([400, 'INVALID_THREAD_ID']);
    expect(await status(host, { threadId: 'y'.repeat(1_000) })).toEqual([400, 'INVALID_THREAD_ID']);
    expect(host.warnings).toEqual([]);
    const {
      host: asked,
      page,
      sent,
    } = asking({ agUi: { authorize: () => ({ callerId: 'ada' }) }, tools: [quorumTool] });
    await page.post('Write to Bob.');
    const resume = page.agent.pendingInterrupts.map(({ id }) => ({
      interruptId: id,
      status: 'resolved',
      payload: { approved: true },
    }));
    expect(await status(asked, { resume })).toEqual([403, 'PERSON_REQUIRED']);
    expect(sent).toEqual([]);
  });

  test('may read and not start, and a caller who changes within a request is an error of the host (web 18, 19)', async () => {
    const body = { messages: [{ id: 'm', role: 'user', content: 'Hi.' }] };
    const reader = agUiHost({
      agUi: { authorize: (_, { action }) => (action === 'read' ? { callerId: 'ada' } : null) },
    });
    expect(await status(reader, body)).toEqual([401, 'UNAUTHORIZED']);
    const liar = agUiHost({ agUi: { authorize: (_, { action }) => ({ callerId: action }) } });
    expect(await status(liar, body)).toEqual([500, 'INTERNAL']);
    expect([reader.model.calls, liar.model.calls]).toEqual([[], []]);
  });

  test('a client that leaves frees its stream, and the run goes its way (web 34, 36)', async () => {
    const host = agUiHost({ script: [hang()], agUi: { maxStreams: 1 } });
    const body = { messages: [{ id: 'm', role: 'user', content: 'Hi.' }] };
    for (let i = 0; i < 3; i += 1) expect(await status(host, body)).toEqual([200, undefined]);
    expect(host.model.calls.length).toBeLessThanOrEqual(1);
  });

  test('a handler without authorize, agents or journal is a TypeError (web 18)', async () => {
    expect(() => agUiHost({ agUi: { authorize: undefined as never } })).toThrow(TypeError);
    expect(() => agUiHost({ agUi: { agents: {} } })).toThrow('at least one agent');
    expect(() => agUiHost({ journal: false })).toThrow('journal');
    expect(() => agUiHost({ agUi: { maxBodyByte: 1 } as never })).toThrow('maxBodyBytes');
  });
});
