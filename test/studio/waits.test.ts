import { defineTool, type JsonValue, memoryStore, type Tool } from 'pawl';
import { httpHandler } from 'pawl/http';
import { callTool } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { toolOf, until } from '../fixtures/host.ts';
import { byToken, read, requestTo } from '../http/web-host.ts';
import { type StudioHostOptions, studioHost } from './studio-host.ts';

const KIB = 1_024;
const input = { type: 'object', properties: { to: { type: 'string' }, text: { type: 'string' } }, required: ['to'] };

function mailTool(more: object = {}, schema: unknown = input): Tool {
  return defineTool({
    name: 'mail',
    description: 'Sends mail.',
    input: schema as { readonly type: 'object' },
    needsApproval: true,
    approval: { editable: true, ...more },
    execute: () => 'sent',
  }) as unknown as Tool;
}

/** A run `r` that waits in a call of its tool. */
async function waitingIn(tool: Tool, given: object, options: StudioHostOptions = {}) {
  const script = [callTool(tool.name, given as never)];
  const host = studioHost({ script, tools: [tool], defaults: { waitLingerMs: 1 }, ...options });
  await host.start({ runId: 'r', callerId: 'ada' });
  await until(() => host.executor.runs.get().length === 0);
  return host;
}
type Host = Awaited<ReturnType<typeof waitingIn>>;

/** Reads a long part, as the page does. */
async function loaded({ ask }: Host, at: string): Promise<{ readonly text: string; readonly pieces: number }> {
  let [text, next, pieces]: [string, string | undefined, number] = ['', '0', 0];
  for (; next !== undefined; pieces++) {
    const { body }: { readonly body: { readonly text: string; readonly next?: string } } = await ask(
      `/runs/r/value?${at}&from=${next}`,
    );
    text += body.text;
    next = body.next;
  }
  return { text, pieces };
}

/** The wait of `r` in each answer of Studio that has it. */
async function everywhere({ ask }: Host) {
  const answers = await Promise.all(['/waiting', '/runs/r', '/runs/r/record'].map((path) => ask(path)));
  return answers.map(({ body }) => (body.items ?? body.waits)[0]);
}

describe('the long parts of a wait (studio 27)', () => {
  test('are not in the answers of Studio: its input of more than 64 KiB has a beginning, and is loaded in pieces', async () => {
    const long = { to: 'bob', text: 'é"x'.repeat(100_000) };
    const host = await waitingIn(mailTool(), long);
    const { executor } = host;
    for (const wait of await everywhere(host)) {
      const json = JSON.stringify(long);
      expect(wait.input).toBeUndefined();
      expect(wait.long).toEqual({
        input: { text: json.slice(0, 16_384), bytes: Buffer.byteLength(json), at: `wait=${wait.id}&part=input` },
      });
      expect(JSON.stringify(wait).length).toBeLessThan(64 * KIB);
      const { text, pieces } = await loaded(host, wait.long.input.at);
      expect([JSON.parse(text), pieces]).toEqual([long, 2]);
    }
    const [wait] = await executor.waiting();
    expect(wait?.input).toEqual(long);
  });

  test('stay in the answers of `pawl/http`, whose clients know no other form', async () => {
    const long = { to: 'bob', text: 'x'.repeat(100_000) };
    const { executor, agent } = await waitingIn(mailTool(), long);
    const handler = httpHandler(executor, { authorize: byToken, agents: { worker: agent } });
    const { body } = await read(await handler(requestTo('/waiting')));
    expect(body.items[0]).toMatchObject({ input: long });
    expect(body.items[0].long).toBeUndefined();
  });

  test('are the details of an approval as well; a short wait is sent as it is', async () => {
    // The executor bounds them in characters: of these each has two bytes.
    const detail = ['é'.repeat(60_000)];
    const host = await waitingIn(mailTool({ detail: () => detail }), { to: 'bob' });
    for (const wait of await everywhere(host)) {
      expect(wait.input).toEqual({ to: 'bob' });
      expect([wait.detail, Object.keys(wait.long)]).toEqual([undefined, ['detail']]);
    }
    const [{ long }] = await everywhere(host);
    expect(JSON.parse((await loaded(host, long.detail.at)).text)).toEqual(detail);
    const short = await waitingIn(mailTool(), { to: 'eve' });
    for (const wait of await everywhere(short)) expect([wait.input, wait.long]).toEqual([{ to: 'eve' }, undefined]);
  });

  test('are the options of a question, its schema and its text', async () => {
    const long = 'é'.repeat(50_000);
    const schema = { type: 'string', description: long };
    const host = await waitingIn(
      toolOf('ask', 'read', (_, context) => context.ask({ question: long, options: [long], schema })),
      {},
    );
    for (const wait of await everywhere(host)) {
      expect([wait.question, wait.options, wait.schema]).toEqual([long.slice(0, 16_384), undefined, undefined]);
      const { question, options, schema: form } = wait.long;
      expect((await loaded(host, question.at)).text).toBe(long);
      expect(JSON.parse((await loaded(host, options.at)).text)).toEqual([long]);
      expect(JSON.parse((await loaded(host, form.at)).text)).toEqual(schema);
    }
  });

  test('are values that are nested deeper than 64 levels, and all that a page has no room for', async () => {
    const deep: JsonValue = JSON.parse(`${'['.repeat(100)}${']'.repeat(100)}`);
    const host = await waitingIn(mailTool(), { to: 'bob', deep });
    const [wait] = await everywhere(host);
    expect(wait.long.input.text).toContain('[[[[');
    const store = memoryStore();
    const given = { to: 'x'.repeat(60_000) };
    const many = studioHost({
      store,
      script: Array.from({ length: 30 }, () => callTool('mail', given)),
      tools: [mailTool()],
      defaults: { waitLingerMs: 1 },
    });
    for (let at = 0; at < 30; at++) await many.start({ runId: `r${at}`, callerId: 'ada' });
    await until(() => many.executor.runs.get().length === 0);
    const text = await (await many.open('/waiting')).text();
    expect(text.length).toBeLessThan(1.2 * 2 ** 20);
    const { items } = JSON.parse(text);
    expect(items).toHaveLength(30);
    for (const each of items) expect(each.input ?? each.long.input.bytes).toBeTruthy();
  });

  test('are found for the wait alone that has them, and for those who may read the run', async () => {
    const { ask } = await waitingIn(mailTool(), { to: 'bob' });
    const [{ id }] = (await ask('/waiting')).body.items;
    expect((await ask(`/runs/r/value?wait=${id}&part=input`)).body).toMatchObject({ kind: 'json' });
    for (const query of [`wait=${id}`, `wait=${id}&part=id`, `wait=${id}&part=__proto__`, 'wait=x&part=input'])
      expect([query, (await ask(`/runs/r/value?${query}`)).status]).toEqual([query, 404]);
    expect((await ask(`/runs/r/value?wait=${id}&part=input`, { as: 'bob' })).status).toBe(404);
  });
});

describe('the forms of edited inputs (studio 8)', () => {
  const formIn = async ({ ask }: Pick<Host, 'ask'>) => Object.values((await ask('/runs/r/record')).body.forms ?? {});

  test('are the schemas of the tools, for open approvals whose input a person may change', async () => {
    const host = await waitingIn(mailTool(), { to: 'bob' });
    const { body } = await host.ask('/runs/r/record');
    expect(body.forms).toEqual({ [body.waits[0].id]: input });
    expect(await formIn(await waitingIn(mailTool({ editable: false }), { to: 'bob' }))).toEqual([]);
  });

  test('come from an agent of the Studio, of the executor, and from a tool that the agent names', async () => {
    expect(await formIn(await waitingIn(mailTool(), { to: 'bob' }, { studio: { agents: {} } }))).toEqual([input]);
    const store = memoryStore();
    const mail = mailTool();
    await waitingIn(mail, { to: 'bob' }, { store });
    const named = { store, agent: { tools: ['mail'] } };
    expect(await formIn(studioHost({ ...named, studio: { tools: [mail] } }))).toEqual([input]);
    expect(await formIn(studioHost(named))).toEqual([]);
    const record = { store, agent: { tools: { mail: { inputSchema: input, execute: () => 0 } } } };
    expect(await formIn(studioHost(record))).toEqual([input]);
  });

  test('are absent for an agent that is not known here, and for a schema that is too long', async () => {
    const store = memoryStore();
    await waitingIn(mailTool(), { to: 'bob' }, { store });
    const other = studioHost({ store, agent: { id: 'other' }, studio: { agents: {} } });
    expect((await other.ask('/runs/r/record')).body.waits).toHaveLength(1);
    expect(await formIn(other)).toEqual([]);
    const properties = { to: { type: 'string', description: 'x'.repeat(70_000) } };
    const long = await waitingIn(mailTool({}, { type: 'object', properties }), { to: 'bob' });
    expect(await formIn(long)).toEqual([]);
  });
});

describe('the answers that no process has read (studio 9)', () => {
  test('are in the record of their run: who decided, with which input, and whether another answer counts', async () => {
    const store = memoryStore();
    const first = await waitingIn(mailTool(), { to: 'bob', text: 'hi' }, { store });
    await first.executor.shutdown();
    // It continues no run: nothing has asked it to.
    const { executor, ask } = studioHost({ store });
    const [wait] = await executor.waiting();
    const answers = async () => (await ask('/runs/r/record')).body.answers?.[wait?.id ?? ''];
    expect(await answers()).toBeUndefined();
    const edited = { to: 'bob', text: 'hello' };
    await executor.control('r').approve(wait?.id ?? '', { by: { id: 'ada' }, input: edited, note: 'I rang.' });
    const said = { note: 'I rang.', input: { value: edited, bytes: 27 } };
    const approved = { how: 'approve', by: { id: 'ada' }, at: expect.any(Number), ...said };
    // The run may refuse a changed input.
    expect(await answers()).toEqual([approved]);
    await executor.control('r').deny(wait?.id ?? '', { by: { id: 'bob' } });
    expect(await answers()).toEqual([approved, { how: 'deny', by: { id: 'bob' }, at: expect.any(Number) }]);
  });

  test('say that no other one counts, and at most 8 are sent: one that is too long is not', async () => {
    const store = memoryStore();
    const first = await waitingIn(mailTool({ approvers: () => true }), { to: 'bob' }, { store });
    await first.executor.shutdown();
    const { executor, ask } = studioHost({ store });
    const [wait] = await executor.waiting();
    const input = { to: 'x'.repeat(70_000) };
    const note = 'n'.repeat(4_096);
    for (let person = 0; person < 10; person++)
      await executor.control('r').approve(wait?.id ?? '', { by: { id: `p${person}` }, input, note });
    const { body } = await ask('/runs/r/record');
    expect(body.answers[wait?.id ?? '']).toHaveLength(8);
    expect(JSON.stringify(body).length).toBeLessThan(64 * KIB);
    expect(body.answers[wait?.id ?? ''][0].input.value).toBeUndefined();
    expect(body.answers[wait?.id ?? ''][0].note).toHaveLength(500);
  });

  test('that ends its wait is marked: the page offers no other one', async () => {
    const store = memoryStore();
    const first = await waitingIn(mailTool(), { to: 'bob' }, { store });
    await first.executor.shutdown();
    const { executor, ask } = studioHost({ store });
    const [wait] = await executor.waiting();
    await executor.control('r').deny(wait?.id ?? '', { by: { id: 'ada' } });
    const { body } = await ask('/runs/r/record');
    expect(body.answers[wait?.id ?? '']).toMatchObject([{ how: 'deny', by: { id: 'ada' }, isLast: true }]);
  });

  test('are in the list of waits, without their values, and the run counts as one that waits for a process (studio 1, 9)', async () => {
    const checkpoints = memoryStore();
    const first = await waitingIn(mailTool(), { to: 'bob' }, { store: checkpoints });
    await first.executor.shutdown();
    const { executor, ask } = studioHost({ store: checkpoints });
    const [wait] = await executor.waiting();
    const seen = async () => {
      const [list, runs, store] = [await ask('/waiting'), await ask('/runs'), await ask('/store')];
      const { answers, isAnswered } = list.body.items[0];
      const { state, why } = runs.body.items[0];
      return { answers, isAnswered, state, why, you: store.body.counts.you ?? 0 };
    };
    expect(await seen()).toEqual({ state: 'you', why: 'waits for an approval of mail', you: 1 });
    await executor.control('r').steer('be kind');
    // A message makes it due as well: it still asks.
    expect(await seen()).toMatchObject({ state: 'you', you: 1 });
    await executor
      .control('r')
      .approve(wait?.id ?? '', { by: { id: 'ada' }, input: { to: 'bob', text: 'x'.repeat(9_000) } });
    expect(await seen()).toEqual({
      answers: [{ how: 'approve', by: { id: 'ada' }, at: expect.any(Number) }],
      isAnswered: true,
      state: 'wait',
      why: 'answered: waits for a process',
      you: 0,
    });
  });

  test('of one person do not answer for two (studio 8, 9)', async () => {
    const store = memoryStore();
    const first = await waitingIn(mailTool({ quorum: 2 }), { to: 'bob' }, { store });
    await first.executor.shutdown();
    const { executor, ask } = studioHost({ store });
    const [wait] = await executor.waiting();
    const stateAfter = async (id: string) => {
      await executor.control('r').approve(wait?.id ?? '', { by: { id } });
      return (await ask('/runs')).body.items[0].state;
    };
    expect([await stateAfter('ada'), await stateAfter('bob')]).toEqual(['you', 'wait']);
  });
});
