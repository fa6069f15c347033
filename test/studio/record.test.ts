import { createBudget, createPalette, defineAgent, type Message, memoryStore } from 'pawl';
import { callTool, hang, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { RECORD_VERSION } from '../../src/record/checkpoint.ts';
import type { LoadPartOptions } from '../../src/store/journal-port.ts';
import { lastMessages } from '../../src/studio/page/run/record-timeline.ts';
import { CheckpointCorruptError } from '../../src/values/errors.ts';
import { answeringModel } from '../fixtures/answering-model.ts';
import { asking, askReviewer } from '../fixtures/family.ts';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { change, leftBehind } from '../fixtures/left-runs.ts';
import { plainStore, watchedStore } from '../fixtures/watched-store.ts';
import { mailTool } from '../http/web-host.ts';
import { studioHost } from './studio-host.ts';

const defaults = { waitLingerMs: 1 };

/** A run `r` of ada that rests until a person approves its mail. */
async function resting(options: Parameters<typeof studioHost>[0] = {}) {
  const script = [callTool('mail', { to: 'bob' })];
  const host = studioHost({ store: memoryStore(), script, tools: [mailTool], defaults, ...options });
  await host.start({ runId: 'r', callerId: 'ada', prompt: 'Write to bob.' });
  await until(() => host.executor.runs.get().length === 0);
  return host;
}

test('the page asks for messages in the form that the server takes (studio 5, 12)', async () => {
  const { ask } = await resting();
  const { body } = await ask('/runs/r/record');
  for (const messages of [0, 2, 5_000])
    expect(lastMessages({ record: { ...body.record, messages } })).toMatch(/^limit=100&after=(0|4900)$/);
  const { status, body: page } = await ask(`/runs/r/messages?${lastMessages(body)}`);
  expect({ status, total: page.total, items: page.items.length }).toEqual({ status: 200, total: 1, items: 1 });
});

describe('GET /runs/:runId/record', () => {
  test('says why a run is where it is, what continues it, and has the ledger of its open step (studio 2, 6, 7)', async () => {
    const { ask, executor } = await resting();
    const { status, body } = await ask('/runs/r/record');
    expect(status).toBe(200);
    const seen = await executor.explain('r');
    expect(body).toMatchObject({
      // The card of its wait says the same step.
      line: { runId: 'r', state: 'you', where: 'step 1', why: 'waits for an approval of mail' },
      rootRunId: 'r',
      waits: [{ kind: 'approval', tool: 'mail', input: { to: 'bob' } }],
      verdict: { verdict: 'waits', reason: seen?.reason, needsPerson: true },
      state: { name: 'running.waiting', isLive: false },
      record: {
        version: RECORD_VERSION,
        revision: seen?.record?.revision,
        messages: seen?.record?.messages.length,
        definition: { isSame: true },
        openStep: {
          step: 1,
          more: 0,
          calls: [{ name: 'mail', effect: 'once', state: 'waiting', attempt: 0, input: { value: { to: 'bob' } } }],
        },
        commands: [],
        raw: { value: { meta: { runId: 'r' } } },
      },
      children: [],
    });
    expect(body.record.openStep.calls[0].key).toMatch(/^[0-9a-f]{64}$/);
    expect(body.missing).toBeUndefined();
    expect(body.owner).toBeUndefined();
  });

  test('has the answer that the run has not read, and what continues it while no process holds it (studio 2, 9)', async () => {
    const resume = (runId: string) => (runId === 'r' ? `npx --no-install pawl resume ${runId}` : undefined);
    const { ask, executor, model } = await resting({ studio: { resume } });
    const before = (await ask('/runs/r/record')).body;
    expect(before.resume).toEqual({
      text: 'It continues when a process takes it up:',
      command: 'npx --no-install pawl resume r',
    });
    expect(model.calls).toHaveLength(1);
    await executor
      .control('r')
      .approve(before.waits[0].id, { by: { id: 'bob' } })
      .catch(() => {});
    const others = [await resting({ studio: { resume: () => undefined } }), await resting()];
    const texts = await Promise.all(others.map(async (each) => (await each.ask('/runs/r/record')).body.resume));
    expect(texts).toEqual([
      { text: 'A program began it: start that again, and its executor.recover() continues the run.' },
      { text: 'It continues when a process with its agent looks for work.' },
    ]);
    // Who does not see all runs is told of no process.
    expect((await others[1]?.ask('/runs/r/record', { as: 'ada' }))?.body.resume).toBeUndefined();
  });

  test("has no command where the host's own callback for it throws, rejects or returns no text (studio 13)", async () => {
    const callbacks = [
      () => {
        throw new Error('no');
      },
      () => Promise.reject(new Error('no')),
      () => ({ toString: () => 'rm' }),
    ];
    for (const resume of callbacks) {
      const { ask } = await resting({ studio: { resume: resume as never } });
      const { status, body } = await ask('/runs/r/record');
      expect({ status, command: body.resume?.command }).toEqual({ status: 200, command: undefined });
    }
  });

  test('names the process that works on the run, and the commands that it has not read (studio 2, 7)', async () => {
    const store = memoryStore();
    const other = hostOf({ store, script: [hang()], journal: { flushMs: 5 } });
    await other.start({ runId: 'r', callerId: 'ada' });
    const { ask } = studioHost({ store });
    await store.commands.send('r', { id: 'c', kind: 'steer', text: 'Be quick.' });
    const { body } = await ask('/runs/r/record');
    expect(body.line.state).toBe('run');
    expect(body.verdict).toEqual({
      verdict: 'live',
      reason: 'a process works on it',
      code: 'RUN_OWNED_ELSEWHERE',
      needsPerson: false,
    });
    expect(body.owner).toMatchObject({
      name: expect.stringContaining(`process ${process.pid} on this machine`),
      isHere: false,
    });
    expect(body.owner.leaseUntil).toBeGreaterThan(Date.now());
    expect(body.record.commands).toMatchObject([{ kind: 'steer' }]);
    await other.executor.shutdown();
  });

  test('has what changed in the definition of the agent, and the phases that are done (studio 7)', async () => {
    const store = await leftBehind(1);
    const phases = [
      { name: 'plan', instructions: 'Plan.' },
      { name: 'write', instructions: 'Write.' },
    ];
    await change(store, 'r0', (record) => ({ ...record, completedPhases: [{ name: 'plan', output: 'A plan.' }] }));
    const { ask } = studioHost({ store, agent: { phases, version: '2' } });
    const { body } = await ask('/runs/r0/record');
    expect(body.record.phases).toEqual([
      { name: 'plan', isDone: true },
      { name: 'write', isDone: false },
    ]);
    expect(body.state).toEqual({ name: 'between-phases', isLive: false });
    expect(body.record.definition).toMatchObject({ isSame: false, now: expect.stringMatching(/^2 .{16}$/) });
  });

  test('shows an ended run with its result; without a record it names retention.records (studio 12)', async () => {
    const store = memoryStore();
    await hostOf({ store, script: [reply('gone')] }).run({ runId: 'gone', callerId: 'ada' });
    await hostOf({ store, retention: { records: 60_000 }, script: [reply('kept')] }).run({ runId: 'kept' });
    const { ask } = studioHost({ store });
    const gone = (await ask('/runs/gone/record')).body;
    expect(gone).toMatchObject({ verdict: { verdict: 'ended' }, result: { status: 'ok', output: 'gone' } });
    expect([gone.record, gone.missing]).toEqual([
      undefined,
      expect.stringMatching(/export const retention = \{ records: .*retention: \{ records \}/),
    ]);
    const messages = (await ask('/runs/gone/messages')).body;
    expect(messages).toEqual({ items: [], total: 0, missing: gone.missing });
    const kept = (await ask('/runs/kept/record')).body;
    expect(kept).toMatchObject({ state: { name: 'settled' }, record: { messages: 2 }, result: { output: 'kept' } });
    expect((await ask('/runs/kept/messages')).body).toMatchObject({ total: 2 });
  });

  test('shows an unreadable record as one, and never as an error of the server (studio 13, 27)', async () => {
    const store = plainStore(await leftBehind(1));
    const damaged = { ...store, load: () => Promise.reject(new CheckpointCorruptError('its checksum is wrong')) };
    const { ask } = studioHost({ store: damaged });
    const { status, body } = await ask('/runs/r0/record');
    expect(status).toBe(200);
    expect(body).toMatchObject({
      line: { runId: 'r0', state: 'bad', code: 'CHECKPOINT_CORRUPT' },
      verdict: { verdict: 'unreadable', code: 'CHECKPOINT_CORRUPT', needsPerson: true },
      missing: expect.stringContaining('its checksum is wrong'),
    });
    expect((await ask('/runs/r0/messages')).body).toEqual({ items: [], total: 0, missing: body.missing });
    expect((await ask('/runs/r0/record', { as: 'ada' })).status).toBe(404);
  });

  test('has the runs below a run, each with its line (studio 1, 7)', async () => {
    const model = answeringModel(asking(askReviewer, () => callTool('mail', {})));
    const reviewer = defineAgent({ id: 'reviewer', instructions: 'Review.', tools: [mailTool] });
    const host = studioHost({
      models: { fast: model },
      agent: { subAgents: ['reviewer'] },
      ports: { palette: createPalette({ agents: [reviewer] }) },
      store: memoryStore(),
    });
    await host.start({ runId: 'r', callerId: 'ada' });
    await until(async () => (await host.executor.waiting({ kind: 'approval' })).length === 1);
    const { body } = await host.ask('/runs/r/record');
    expect(body.children).toMatchObject([
      { runId: expect.stringMatching(/^~/), callId: expect.any(String), line: { agentId: 'reviewer', state: 'you' } },
    ]);
    const child = (await host.ask(`/runs/${encodeURIComponent(body.children[0].runId)}/record`)).body;
    expect(child).toMatchObject({ rootRunId: 'r', parentRunId: 'r' });
  });

  test('has a row for each model that worked for the run, with its turns, tokens and cost, also after another process took over (studio 7)', async () => {
    const store = memoryStore();
    const prices = {
      'acme/a': { inputPerMillion: 100_000, outputPerMillion: 0 },
      'acme/b': { inputPerMillion: 0, outputPerMillion: 200_000 },
    };
    const ports = { budget: createBudget({ usd: 10, tokens: 100, prices }) };
    const host = (modelId: string, ...script: Parameters<typeof scriptedModel>[0]) => {
      const model = Object.assign(scriptedModel(script), { provider: 'acme', modelId });
      const retention = { records: Number.POSITIVE_INFINITY };
      return studioHost({ store, models: { fast: model }, tools: [mailTool], defaults, ports, retention });
    };
    const first = host('a', callTool('mail', { to: 'bob' }));
    await first.start({ runId: 'r', callerId: 'ada' });
    await until(() => first.executor.runs.get().length === 0);
    const turn = { turns: 1, inputTokens: 10, outputTokens: 5, cachedInputTokens: 0 };
    expect((await first.ask('/runs/r/record')).body).toMatchObject({
      // Its step is still open.
      usage: { models: [{ ...turn, turns: 0, model: 'acme/a', usd: 1 }] },
    });
    await first.executor.shutdown();
    const second = host('b', reply('Sent.'));
    const [wait] = (await second.executor.waiting({ kind: 'approval' })) ?? [];
    await second.executor.control('r').approve(wait?.id ?? '', { by: { id: 'ada' } });
    await second.executor.recover();
    await until(async () => (await store.outcomes.find('r')) !== null);
    const { body } = await second.ask('/runs/r/record');
    expect(body.usage).toMatchObject({
      ...{ inputTokens: 20, outputTokens: 10, usd: 2 },
      models: [
        { ...turn, model: 'acme/a', usd: 1 },
        { ...turn, model: 'acme/b', usd: 1 },
      ],
    });
    const amounts = [
      { kind: 'tokens', spent: 30, limit: 100 },
      { kind: 'usd', spent: 2, limit: 10 },
    ];
    expect(body.budget).toEqual({ windowMs: 7 * 86_400_000, amounts });
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('away');
      },
    ],
    ['rejects', () => Promise.reject(new Error('away'))],
    ['does not answer', () => new Promise(() => {})],
    ['answers with nothing', async () => undefined],
    [
      'answers with other things',
      async () => ({ spent: { usd: -1 }, limits: { usd: 'all', tokens: 5 }, windowMs: {} }),
    ],
  ])('shows no budget if the budget of the host %s (studio 7)', async (_, standing) => {
    const { budget } = { budget: { ...createBudget({ usd: 1, prices: {} }), standing } };
    const { ask } = studioHost({
      store: await leftBehind(1),
      ports: { budget: budget as never },
      defaults: { portMs: 20 },
    });
    const { status, body } = await ask('/runs/r0/record');
    expect(status).toBe(200);
    expect(body.budget).toBeUndefined();
  });

  test('of a long run is read in parts: each answer reads few of its messages, and none of them twice (studio 7, 33)', async () => {
    const store = watchedStore({}, await leftBehind(1));
    const record = await store.load('r0');
    if (!record) throw new Error('r0 has no record');
    const messages: Message[] = Array.from({ length: 750 }, (_, at) => {
      const call = { toolCallId: `c${at}`, toolName: at === 1 ? 'agent__clerk' : 'look' };
      const output = { type: 'text' as const, value: `seen ${at}` };
      return [
        { role: 'assistant' as const, content: [{ type: 'tool-call' as const, ...call, input: { at } }] },
        { role: 'tool' as const, content: [{ type: 'tool-result' as const, ...call, output }] },
      ];
    }).flat();
    await store.save({ ...record, messages, revision: record.revision + 1 });
    const { ask } = studioHost({ store });
    const partsOf = async (path: string) => {
      const before = store.log.length;
      const { body } = await ask(path);
      const calls = store.log.slice(before);
      expect(calls.filter(({ method, args }) => method === 'load' && args[1] === undefined)).toEqual([]);
      const parts = calls
        .filter(({ method }) => method === 'journal.loadPart')
        .map(({ args }) => args[1] as LoadPartOptions);
      return { body, parts: parts.filter(({ from, to }) => from < Math.min(to, messages.length)) };
    };
    const read: number[] = [];
    for (let i = 0; i < 8; i++) {
      const { body, parts } = await partsOf('/runs/r0/record');
      const indexes = parts.flatMap(({ from, to }) => Array.from({ length: to - from }, (_, at) => from + at));
      expect(indexes.length).toBeLessThanOrEqual(200);
      read.push(...indexes);
      expect(body.record.messages).toBe(1_500);
    }
    expect(read.toSorted((a, b) => a - b)).toEqual(messages.map((_, at) => at));
    const { body, parts } = await partsOf('/runs/r0/record');
    expect(parts).toEqual([]);
    expect(body.children).toMatchObject([{ callId: 'c1' }]);
    const bytes = messages.reduce((sum, message) => sum + JSON.stringify(message).length, 0);
    expect(body.record.bytes).toBeGreaterThan(bytes);
    expect(body.record.bytes).toBeLessThan(bytes + 2_000);

    const newest = await partsOf('/runs/r0/value?call=c749&part=output');
    expect(newest).toMatchObject({ body: { text: 'seen 749' }, parts: [{ from: 1_450, to: 1_500 }] });
    expect((await partsOf('/runs/r0/value?call=c0&part=output')).body).toMatchObject({ text: 'seen 0' });
    expect((await ask('/runs/r0/value?call=none&part=output')).status).toBe(404);
    const page = await partsOf('/runs/r0/messages?limit=100&after=1400');
    expect(page.parts).toEqual([expect.objectContaining({ from: 1_400, to: 1_500 })]);
    expect(page.body.items.map(({ index }: { index: number }) => index)).toEqual(
      messages.map((_, at) => at).slice(1_400),
    );
  });

  test('of another caller is as that of an unknown run; an own one has no texts of the host (studio 2)', async () => {
    const { ask, executor } = await resting();
    const unknown = await ask('/runs/unknown/record', { as: 'bob' });
    for (const what of ['record', 'messages', 'value?part=raw']) {
      const { status, body } = await ask(`/runs/r/${what}`, { as: 'bob' });
      expect([status, body]).toEqual([404, unknown.body]);
    }
    await executor.park('r', 'ask carla@example.org');
    const own = await ask('/runs/r/record', { as: 'ada' });
    expect(own.body.verdict).toMatchObject({ verdict: 'parked', reason: 'set aside by hand' });
    expect(JSON.stringify(own.body)).not.toContain('carla');
    expect(own.body.record.raw).toBeUndefined();
    expect((await ask('/runs/r/value?part=raw', { as: 'ada' })).status).toBe(404);
    expect((await ask('/runs/r/record')).body.verdict.reason).toBe('it is parked: ask carla@example.org');
  });
});

describe('GET /runs/:runId/messages', () => {
  test('has the conversation by pages, with calls and results (studio 7)', async () => {
    const look = toolOf('look', 'read', () => ({ found: 3 }));
    const { run, ask } = studioHost({
      tools: [look],
      script: [callTool('look', { at: 'it' }), reply('Three.')],
      retention: { records: 60_000 },
    });
    await run({ runId: 'r', prompt: 'How many?' });
    const first = (await ask('/runs/r/messages?limit=2')).body;
    expect(first).toMatchObject({ total: 4, next: '2' });
    const rest = (await ask(`/runs/r/messages?after=${first.next}`)).body;
    expect(rest.next).toBeUndefined();
    expect([...first.items, ...rest.items]).toMatchObject([
      { index: 0, role: 'user', texts: [{ text: 'How many?', bytes: 9 }] },
      { index: 1, role: 'assistant', calls: [{ name: 'look', input: { value: { at: 'it' } } }] },
      { index: 2, role: 'tool', results: [{ name: 'look', output: { value: { found: 3 } }, isError: false }] },
      { index: 3, role: 'assistant', texts: [{ text: 'Three.' }] },
    ]);
    expect((await ask('/runs/r/messages?after=x')).status).toBe(400);
  });

  test('sends no value beyond 64 KiB: it names the query that loads it, piece by piece (studio 6, 27)', async () => {
    const long = 'a'.repeat(300_000);
    const { run, ask } = studioHost({
      tools: [toolOf('look', 'read', () => ({ long }))],
      script: [callTool('look', { n: 1 }), reply(long)],
      retention: { records: 60_000 },
    });
    await run({ runId: 'r' });
    const { items } = (await ask('/runs/r/messages')).body;
    const { output } = items[2].results[0];
    expect(output).toEqual({ bytes: 300_011, at: 'message=2&part=0' });
    expect(items[3].texts[0]).toEqual({ text: long.slice(0, 16_384), bytes: 300_000, at: 'message=3&part=0' });
    let [whole, next]: [string, string | undefined] = ['', '0'];
    while (next !== undefined) {
      const piece: { readonly text: string; readonly next?: string } = (
        await ask(`/runs/r/value?${output.at}&from=${next}`)
      ).body;
      expect(piece.text.length).toBeLessThanOrEqual(262_144);
      whole += piece.text;
      next = piece.next;
    }
    expect(JSON.parse(whole)).toEqual({ long });
    expect((await ask(`/runs/r/value?message=3&part=0`)).body).toMatchObject({ kind: 'text', chars: 300_000 });
    expect((await ask('/runs/r/value?message=99&part=0')).status).toBe(404);
    expect((await ask('/runs/r/value')).status).toBe(404);
  });

  test('bounds what a hostile record makes it send: 20,000 calls in a message, values 200 deep (studio 27)', async () => {
    const store = await leftBehind(1);
    const deep = JSON.parse(`${'['.repeat(200)}${']'.repeat(200)}`);
    const content = Array.from({ length: 20_000 }, (_, i) => ({
      type: 'tool-call' as const,
      toolCallId: `c${i}`,
      toolName: 'look',
      input: i === 0 ? deep : { text: 'x'.repeat(1_000) },
    }));
    const { journal: _, ...whole } = store;
    const damaged = {
      ...whole,
      load: async (runId: string) => {
        const record = await store.load(runId);
        return record && { ...record, messages: [...record.messages, { role: 'assistant' as const, content }] };
      },
    };
    const { open } = studioHost({ store: damaged });
    const text = await (await open('/runs/r0/messages')).text();
    expect(text.length).toBeLessThan(600_000);
    const { items } = JSON.parse(text);
    const last = items.at(-1);
    expect([last.calls.length, last.more]).toEqual([200, 19_800]);
    expect(last.calls[0].input.value).toBeUndefined();
    expect(last.calls[0].input.at).toMatch(/^message=\d+&part=0$/);
    expect((await open('/runs/r0/record')).status).toBe(200);
  });
});
