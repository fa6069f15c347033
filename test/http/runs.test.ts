import { createBudget, memoryStore } from 'pawl';
import { callTool, fail, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { until } from '../fixtures/host.ts';
import { change } from '../fixtures/left-runs.ts';
import { collecting } from '../otel/spans.ts';
import { askTool, mailTool, webHost } from './web-host.ts';

const startOf = (prompt = 'Go.') => ({ agent: 'worker', prompt });

test('a grant without a person decides about no call, also of a tool that anyone may approve (edges 32)', async () => {
  const sent: unknown[] = [];
  const tool = { ...mailTool, execute: async () => sent.push('sent') } as never;
  const host = webHost({
    ...{ script: [callTool('mail', { to: 'Bo' }), reply('Done.')], tools: [tool] },
    http: { authorize: () => ({ callerId: 'ada' }) },
  });
  await host.start({ runId: 'r', callerId: 'ada' });
  await until(async () => (await host.executor.waiting()).length === 1);
  const [wait] = await host.executor.waiting();
  for (const how of ['approve', 'deny']) {
    const { status, body } = await host.ask(`/runs/r/answers/${wait?.id}`, { body: { how } });
    expect([status, body.code]).toEqual([403, 'PERSON_REQUIRED']);
  }
  expect([sent, await host.executor.waiting()]).toEqual([[], [expect.objectContaining({ votes: [] })]]);
});

describe('POST /runs', () => {
  test('starts a run of the caller, with labels of the grant, and says 202 once it is recorded (web 17, 19)', async () => {
    const host = webHost({
      script: [hang()],
      http: { authorize: () => ({ callerId: 'ada', labels: { team: 'x' } }) },
    });
    const { status, body, headers } = await host.ask('/runs', { body: { ...startOf(), inputs: { n: 1 } } });
    expect({ status, accepted: body.accepted }).toEqual({ status: 202, accepted: 'started' });
    expect(headers.get('location')).toBe(`/runs/${body.runId}`);
    expect(await host.executor.find(body.runId)).toMatchObject({ meta: { callerId: 'ada' }, labels: { team: 'x' } });
  });

  test('starts only the agents that are listed (web 19)', async () => {
    const host = webHost();
    const { status, body } = await host.ask('/runs', { body: { agent: 'other', prompt: 'Go.' } });
    expect([status, body.code]).toEqual([400, 'BAD_REQUEST']);
    const { status: inherited } = await host.ask('/runs', { body: { agent: 'toString', prompt: 'Go.' } });
    expect(inherited).toBe(400);
    expect(host.model.calls).toHaveLength(0);
  });

  test.for(['callerId', 'runId', 'labels', 'by', 'parentRunId', 'history', 'resume'])(
    'takes no %s from the body (web 19)',
    async (field) => {
      const host = webHost();
      const { status, body } = await host.ask('/runs', { body: { ...startOf(), [field]: 'x' } });
      expect([status, body.code]).toEqual([400, 'BAD_REQUEST']);
      expect(await host.executor.list()).toEqual([]);
    },
  );

  test('says of a `runId` in the body that it is unknown, and which header a client wants (web 22)', async () => {
    const { body } = await webHost().ask('/runs', { body: { ...startOf(), runId: 'x' } });
    const hint = 'the header idempotency-key makes a repeated request find its run';
    expect(body.detail).toBe(`body.runId is not valid: unknown field; ${hint}`);
  });

  test('with an Idempotency-Key finds its run again, also after the end; other content is 409; another caller has another run (web 20)', async () => {
    const host = webHost({ script: [reply('one'), reply('two')] });
    const headers = { 'idempotency-key': 'k' };
    const first = await host.ask('/runs', { body: startOf(), headers });
    expect(first.status).toBe(202);
    await host.executor.get(first.body.runId)?.result;
    const again = await host.ask('/runs', { body: startOf(), headers });
    expect(again).toMatchObject({
      status: 200,
      body: { runId: first.body.runId, accepted: 'ended', result: { status: 'ok', output: 'one' } },
    });
    const other = await host.ask('/runs', { body: startOf('Else.'), headers });
    expect(other).toMatchObject({ status: 409, body: { code: 'RUN_ID_CONFLICT', type: 'urn:pawl:RUN_ID_CONFLICT' } });
    const bob = await host.ask('/runs', { body: startOf(), headers, as: 'bob' });
    expect(bob.status).toBe(202);
    expect(bob.body.runId).not.toBe(first.body.runId);
    await until(() => host.model.calls.length === 2);
  });

  test.for([
    [{ agent: 'worker' }, 'prompt'],
    [{ agent: 'worker', prompt: '  ' }, 'prompt'],
    [{ agent: 'worker', prompt: 7 }, 'body.prompt'],
    [{ agent: 'worker', prompt: 'Go.', inputs: [] }, 'body.inputs'],
    [{ agent: 'worker', prompt: 'Go.', inputs: { 'pawl.x': 1 } }, 'inputs'],
    [{ agent: 'worker', prompt: 'Go.', images: [{ mediaType: 'image/png', data: 'file:///etc/passwd' }] }, 'base64'],
    [
      { agent: 'worker', prompt: 'Go.', images: [{ mediaType: 'image/png', data: 'http://169.254.169.254/' }] },
      'base64',
    ],
    ['[]', 'object'],
    ['{', 'JSON'],
    [`{"agent":"worker","prompt":"Go.","inputs":${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}}`, ''],
  ] as const)('refuses the body %j with 400, and says where it is wrong (web 22)', async ([body, says]) => {
    const host = webHost();
    const answer = await host.ask('/runs', { body });
    expect([answer.status, answer.body.code]).toEqual([400, 'BAD_REQUEST']);
    expect(answer.body.detail).toContain(says);
    expect(answer.headers.get('content-type')).toBe('application/problem+json');
  });

  test('says 503 with retry-after while the host is shutting down (web 22)', async () => {
    const host = webHost();
    await host.executor.shutdown();
    const { status, body, headers } = await host.ask('/runs', { body: startOf() });
    expect([status, body.code, headers.get('retry-after')]).toEqual([503, 'ERR_SHUTDOWN', '5']);
  });

  test('says 429 with retry-after when the budget refuses the run (web 22)', async () => {
    const host = webHost({ ports: { budget: createBudget({ tokens: 1, windowMs: 60_000 }) } });
    await host.ask('/runs', { body: startOf() });
    await until(() => host.executor.runs.get().length === 0);
    const { status, body, headers } = await host.ask('/runs', { body: startOf() });
    expect([status, body.code, headers.get('retry-after')]).toEqual([429, 'BUDGET_EXCEEDED', '5']);
  });
});

describe('GET /runs/:runId', () => {
  test('shows a run that works, one that waits for a person, and how one ended (web 17)', async () => {
    const host = webHost({ script: [callTool('ask', {}), reply('done')], tools: [askTool] });
    const { runId } = (await host.ask('/runs', { body: startOf() })).body;
    await until(() => host.executor.run$(runId)?.get().state === 'running.waiting');
    const waiting = (await host.ask(`/runs/${runId}`)).body;
    expect(waiting).toMatchObject({
      runId,
      agentId: 'worker',
      agentName: 'Worker',
      prompt: 'Go.',
      state: 'you',
      why: 'waits for an answer',
      rootRunId: runId,
      waits: [{ kind: 'question', question: 'Which one?', input: {} }],
    });
    expect(waiting).not.toHaveProperty('owner');
    const wait = waiting.waits[0];
    const answered = await host.ask(`/runs/${runId}/answers/${wait.id}`, { body: { how: 'answer', value: 'this' } });
    expect(answered).toMatchObject({ status: 200, body: { runId, waitId: wait.id, state: 'recorded' } });
    await host.executor.get(runId)?.result;
    const root = await host.ask(`/runs/${runId}`, { as: 'root:boss' });
    expect(root.body).toMatchObject({ state: 'ok', where: 'ended: ok', result: { status: 'ok', output: 'done' } });
  });

  test('shows the code of a failed run, and nothing of the message of a host or a provider (web 22)', async () => {
    const host = webHost({
      script: [() => Promise.reject(Object.assign(new Error('key sk-123'), { code: 'SECRET_CODE' }))],
    });
    const { runId } = (await host.ask('/runs', { body: startOf() })).body;
    await host.executor.get(runId)?.result;
    const { body } = await host.ask(`/runs/${runId}`, { as: 'root:boss' });
    expect(body).toMatchObject({ state: 'fail', result: { status: 'error', error: { message: expect.any(String) } } });
    expect(JSON.stringify(body)).not.toMatch(/sk-123|SECRET_CODE/);
  });

  test('shows why a run was set aside without the message of its provider, which only a caller who sees everything reads (web 22)', async () => {
    const store = memoryStore();
    const host = webHost({ store, script: [hang()] });
    await host.start({ runId: 'r', callerId: 'ada' });
    await until(() => host.model.calls.length === 1);
    await host.executor.shutdown();
    const parked = { code: 'MODEL_OUTAGE', reason: '401 key sk-123 refused' };
    await change(store, 'r', (record) => ({ ...record, parked }));
    const other = webHost({ store });
    for (const path of ['/runs/r', '/runs']) {
      const { body } = await other.ask(path);
      expect(JSON.stringify(body)).not.toContain('sk-123');
      expect(body.items?.[0] ?? body).toMatchObject({
        state: 'park',
        code: 'MODEL_OUTAGE',
        why: 'its model was away for too long',
      });
      const all = await other.ask(path, { as: 'root:boss' });
      expect(all.body.items?.[0] ?? all.body).toMatchObject({ why: parked.reason });
    }
  });

  test('an id is decoded once: a run may have any id (web 17)', async () => {
    const host = webHost({ script: [hang(), hang()] });
    for (const runId of ['a/b %2F?#', '%41']) {
      await host.start({ runId, callerId: 'ada' });
      expect((await host.ask(`/runs/${encodeURIComponent(runId)}`)).body.runId).toBe(runId);
    }
    expect((await host.ask('/runs/A')).status).toBe(404);
    expect((await host.ask('/runs/%E0%A4%A')).status).toBe(404);
  });
});

describe('POST /runs/:runId/cancel, steer and answers', () => {
  test('cancel ends a run, again too, and says so (web 17)', async () => {
    const host = webHost({ script: [hang()] });
    await host.start({ runId: 'r', callerId: 'ada' });
    await until(() => host.model.calls.length === 1);
    expect(await host.ask('/runs/r/cancel', { body: { reason: 'enough' } })).toMatchObject({
      status: 200,
      body: { runId: 'r', state: 'ended' },
    });
    const other = await host.ask('/runs/r/cancel', { as: 'root:boss', body: {} });
    expect(other).toMatchObject({ status: 200, body: { state: 'ended' } });
  });

  test('steer sends a message; to a run that is over it is 409 (web 17)', async () => {
    const host = webHost({ script: [hang()] });
    await host.start({ runId: 'r', callerId: 'ada' });
    await until(() => host.model.calls.length === 1);
    expect(await host.ask('/runs/r/steer', { body: { text: 'also X' } })).toMatchObject({
      status: 202,
      body: { runId: 'r', state: 'durable' },
    });
    expect((await host.ask('/runs/r/steer', { body: { text: ' ' } })).status).toBe(400);
    await host.executor.control('r').cancel();
    expect(await host.ask('/runs/r/steer', { as: 'root:boss', body: { text: 'more' } })).toMatchObject({
      status: 409,
      body: { code: 'UNDELIVERED' },
    });
  });

  test('an approval takes the person from the grant; the second answer is 409 and says who was first; a closed wait is 410 (web 19, 22)', async () => {
    const host = webHost({ script: [callTool('mail', { to: 'a' }), hang()], tools: [mailTool] });
    await host.start({ runId: 'r', callerId: 'ada' });
    await until(() => host.executor.run$('r')?.get().state === 'running.waiting');
    const [wait] = (await host.ask('/waiting')).body.items;
    expect(wait).toMatchObject({ runId: 'r', kind: 'approval', tool: 'mail', input: { to: 'a' }, callerId: 'ada' });
    const path = `/runs/r/answers/${wait.id}`;
    const wrong = await host.ask(path, { body: { how: 'approve', digest: 'another' } });
    expect(wrong).toMatchObject({ status: 422, body: { code: 'ANSWER_REFUSED' } });
    expect((await host.ask(path, { body: { how: 'approve', by: { id: 'boss' } } })).status).toBe(400);
    const body = { how: 'approve', digest: wait.digest, note: 'fine' };
    expect((await host.ask(path, { body })).status).toBe(200);
    const second = await host.ask(path, { body: { how: 'deny' }, as: 'root:bob' });
    expect(second).toMatchObject({
      status: 409,
      body: { code: 'ALREADY_ANSWERED', answered: { how: 'approve', by: { id: 'ada' } } },
    });
    expect((await host.ask(`/runs/r/answers/${'x'.repeat(200)}`, { body })).status).toBe(410);
    expect(await host.ask('/runs/r/answers/other', { body })).toMatchObject({
      status: 410,
      body: { code: 'WAIT_GONE' },
    });
  });

  test('an approval that needs a person is 403 if the grant names none (web 19)', async () => {
    const host = webHost({
      script: [callTool('mail', {})],
      tools: [{ ...mailTool, approval: { quorum: 2 } } as never],
      http: { authorize: () => ({ callerId: 'ada' }) },
    });
    await host.start({ runId: 'r', callerId: 'ada' });
    await until(() => host.executor.run$('r')?.get().state === 'running.waiting');
    const [wait] = (await host.ask('/waiting')).body.items;
    const answer = await host.ask(`/runs/r/answers/${wait.id}`, { body: { how: 'approve' } });
    expect([answer.status, answer.body.code]).toEqual([403, 'PERSON_REQUIRED']);
  });
});

describe('GET /runs', () => {
  test("lists the caller's runs by pages, without the runs below them, by state, text and label (web 17)", async () => {
    const host = webHost({ script: Array.from({ length: 12 }, () => hang()) });
    for (let i = 0; i < 5; i++)
      await host.start({ runId: `a${i}`, callerId: 'ada', prompt: `Task ${i}`, labels: { n: `${i % 2}` } });
    await host.start({ runId: 'b', callerId: 'bob' });
    const ids = async (query: string, as = 'ada') => {
      const found: string[][] = [];
      for (let after = ''; ; ) {
        const { status, body } = await host.ask(`/runs?${query}${after && `&after=${after}`}`, { as });
        expect(status).toBe(200);
        found.push(body.items.map(({ runId }: { runId: string }) => runId));
        if (!body.next) return found;
        after = body.next;
      }
    };
    expect(await ids('limit=2')).toEqual([['a0', 'a1'], ['a2', 'a3'], ['a4']]);
    expect((await ids('', 'bob')).flat()).toEqual(['b']);
    expect((await ids('', 'root:boss')).flat()).toEqual(['a0', 'a1', 'a2', 'a3', 'a4', 'b']);
    expect((await ids('q=TASK%203')).flat()).toEqual(['a3']);
    expect((await ids('label=n%3D1')).flat()).toEqual(['a1', 'a3']);
    expect((await ids('state=run')).flat()).toHaveLength(5);
    expect((await ids('state=you&state=park')).flat()).toEqual([]);
  });

  test('has the id of its trace in the line of a run, open and ended, and in its view (otel 2)', async () => {
    const collected = collecting();
    const host = webHost({
      ...{ script: [callTool('ask', {}), reply('done')], tools: [askTool], tracing: collected.process() },
      retention: { records: Number.POSITIVE_INFINITY },
    });
    const { runId } = (await host.ask('/runs', { body: startOf() })).body;
    await until(() => host.executor.run$(runId)?.get().state === 'running.waiting');
    const { traceId } = (await host.executor.explain(runId)) ?? {};
    const seen = async () => [
      (await host.ask('/runs')).body.items[0].traceId,
      (await host.ask(`/runs/${runId}`)).body.traceId,
    ];
    expect(await seen()).toEqual([traceId, traceId]);
    const { waits } = (await host.ask(`/runs/${runId}`)).body;
    await host.ask(`/runs/${runId}/answers/${waits[0].id}`, { body: { how: 'answer', value: 'this' } });
    await host.executor.get(runId)?.result;
    expect(await seen()).toEqual([traceId, traceId]);
    expect(collected.spans()[0]?.spanContext().traceId).toBe(traceId);
    const untraced = webHost();
    await (await untraced.start({ runId: 'plain', callerId: 'ada' })).result;
    expect((await untraced.ask('/runs/plain')).body).not.toHaveProperty('traceId');
  });

  test('says 400 to labels that no run can have (web 17, 22)', async () => {
    const host = webHost();
    const query = Array.from({ length: 8 }, (_, i) => `label=k${i}%3D${encodeURIComponent('é'.repeat(190))}`).join('&');
    const { status, body } = await host.ask(`/runs?${query}`);
    expect([status, body.code]).toEqual([400, 'BAD_REQUEST']);
    expect(host.httpWarned).toEqual([]);
  });

  test('lists runs that ended after the open ones, the newest end first, as long as their records are kept, and by the time of their end (web 16, 17, operations 45)', async () => {
    const host = webHost({
      script: [reply('a'), fail(Object.assign(new Error('no'), { statusCode: 400 })), hang(), hang(), hang()],
    });
    await (await host.start({ runId: 'ok', callerId: 'ada', labels: { n: '1' } })).result;
    await (await host.start({ runId: 'fail', callerId: 'ada' })).result;
    await host.start({ runId: 'cut', callerId: 'ada' });
    await host.executor.control('cut').cancel();
    await host.start({ runId: 'open', callerId: 'ada' });
    await host.start({ runId: 'other', callerId: 'bob' });
    await host.executor.control('other').cancel();
    const list = async (query: string) => {
      const found: { runId: string; state: string }[] = [];
      for (let after = ''; ; ) {
        const { body } = await host.ask(`/runs?${query}${after && `&after=${after}`}`);
        found.push(...body.items);
        if (!body.next) return found.map(({ runId, state }) => [runId, state]);
        after = body.next;
      }
    };
    const all = [
      ['open', 'run'],
      ['cut', 'cut'],
      ['fail', 'fail'],
      ['ok', 'ok'],
    ];
    const ended = (found: string[][]) => found.filter(([runId]) => runId !== 'open').toSorted();
    for (const limit of [1, 2, 3, 4, 50]) {
      const found = await list(`limit=${limit}`);
      expect(found[0]).toEqual(all[0]);
      expect(found).toHaveLength(4);
      expect(ended(found)).toEqual(ended(all));
    }
    expect(await list('state=ok')).toEqual([['ok', 'ok']]);
    expect(await list('state=run')).toEqual([['open', 'run']]);
    expect(await list('label=n%3D1')).toEqual([['ok', 'ok']]);
    const times = (await host.executor.history()).map(({ endedAt }) => endedAt);
    expect(ended(await list(`since=${Math.min(...times)}&limit=1`))).toEqual(ended(all));
    expect(await list(`since=${Math.max(...times) + 1}`)).toEqual([]);
    expect(await list(`until=${new Date(Math.min(...times)).toISOString()}`)).toEqual([]);
    expect((await host.ask('/runs/ok')).body).toMatchObject({
      state: 'ok',
      result: { output: 'a' },
      labels: { n: '1' },
    });
    expect((await host.ask('/runs/other')).status).toBe(404);
    const events = await host.ask('/runs/ok/events');
    expect(events.body).toContain('"type":"run.ended"');
    const last = /id: (.*)\n.*run\.ended/.exec(events.body)?.[1] ?? '';
    expect((await host.ask('/runs/ok/events', { headers: { 'last-event-id': last } })).status).toBe(204);
  });

  test.for([
    'limit=0',
    'limit=101',
    'limit=x',
    'state=any',
    'after=x',
    'after=e30',
    'label=x',
    'since=soon',
    'until=',
    'callerId=bob',
    'q=a&q=b',
  ])('refuses the query %s with 400 (web 22)', async (query) => {
    expect((await webHost().ask(`/runs?${query}`)).status).toBe(400);
  });
});
