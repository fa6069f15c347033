import { type CheckpointStore, type JsonValue, memoryStore, type RunCheckpoint } from 'pawl';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { createActor } from 'xstate';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { onlyRecord, plainStore } from '../fixtures/watched-store.ts';

/** Arrays within arrays. A walk that calls itself for each of 100,000 overflows the stack. */
function nested(levels: number): JsonValue {
  let value: JsonValue = 1;
  for (let i = 0; i < levels; i++) value = [value];
  return value;
}

const DEEP = 100_000;
const tools = [toolOf('look')];
const message = (levels: number) => ({
  role: 'user',
  content: [{ type: 'text', text: 'x', providerOptions: { a: { b: nested(levels) } } }],
});
const call = { callId: 'c', name: 'look', input: {}, effect: 'read', attempt: 0, state: 'planned' };
const asking = (input: unknown) => ({
  role: 'assistant',
  content: [{ type: 'tool-call', toolCallId: 'c', toolName: 'look', input }],
});

/** A record of a run with one step, and the store that has it. */
async function left() {
  const store = memoryStore();
  const host = hostOf({ script: [callTool('look'), hang()], tools, store });
  await host.start({ runId: 'r', inputs: { a: 1 } });
  await until(async () => (await store.load('r'))?.iteration === 1);
  await host.executor.shutdown();
  return { store, record: await onlyRecord(store) };
}

/** What may be nested too deep in a record, by the name of its field. */
const fields: readonly (readonly [field: string, change: (record: RunCheckpoint) => object])[] = [
  ['messages', ({ messages }) => ({ messages: [messages[0], message(DEEP)] })],
  ['inputs', () => ({ inputs: { a: nested(DEEP) } })],
  ['inputs', () => ({ inputs: { a: nested(DEEP) }, fingerprint: undefined })],
  ['earlier', () => ({ earlier: [message(DEEP)] })],
  ['images', () => ({ images: [{ type: 'file', more: nested(DEEP) }] })],
  ['undelivered', () => ({ undelivered: [message(DEEP)] })],
  ['nudges', () => ({ nudges: [message(DEEP)] })],
  ['critic', () => ({ critic: { a: nested(DEEP) } })],
  ['completedPhases', () => ({ completedPhases: [{ name: 'a', output: 'b', data: nested(DEEP) }] })],
  ['openStep', () => ({ openStep: { message: asking(nested(DEEP)), calls: [call] } })],
  ['openStep', () => ({ openStep: { message: asking({}), calls: [{ ...call, input: nested(DEEP) }] } })],
  ['later', () => ({ later: nested(DEEP) })],
];

describe('a stored record that is nested too deep', () => {
  const damaged = (field: string) => ({
    code: 'CHECKPOINT_CORRUPT',
    message: `this record is damaged: its field ${field} is nested too deep`,
  });
  const storeWith = (store: CheckpointStore, record: object) => ({
    ...store,
    load: async () => record as RunCheckpoint,
  });

  test.for(fields)(
    'in its %s is CHECKPOINT_CORRUPT, with redaction, too; nothing is written',
    async ([field, change]) => {
      const { store, record } = await left();
      const checkpoints = storeWith(plainStore(store), { ...record, ...change(record) });
      for (const redact of [undefined, (text: string) => text]) {
        const host = hostOf({ tools, store: checkpoints, ...(redact ? { redact } : {}) });
        expect(await host.run({ runId: 'r', inputs: { a: 1 } })).toMatchObject({
          status: 'error',
          error: damaged(field),
        });
        expect(host.model.calls).toEqual([]);
      }
      expect(await onlyRecord(store)).toEqual(record);
    },
  );

  test.for(fields)(
    'in its %s is quarantined by recover, and refuses to be parked or cancelled',
    async ([field, change]) => {
      const { store, record } = await left();
      const checkpoints = storeWith(store, { ...record, ...change(record) });
      const host = hostOf({ tools, store: checkpoints });
      await expect(host.executor.park('r', 'by hand')).rejects.toMatchObject(damaged(field));
      await expect(host.executor.control('r').cancel()).rejects.toMatchObject(damaged(field));
      const { failed, skipped } = await host.executor.recover();
      expect([...failed, ...skipped]).toEqual([
        { runId: 'r', reason: expect.stringContaining(damaged(field).message) },
      ]);
      expect(await store.listInterrupted()).toMatchObject([{ runId: 'r', status: 'quarantined' }]);
    },
  );

  test.for(fields)("in its %s is refused as a host's snapshot", async ([, change]) => {
    const { record } = await left();
    const { executor, agent } = hostOf({ script: [], tools });
    const snapshot = { ...record, ...change(record), status: 'active' } as never;
    const actor = createActor(executor.logic(agent), { snapshot, input: undefined }).start();
    await until(() => actor.getSnapshot().status === 'done');
    expect(actor.getSnapshot().output?.error).toMatchObject({
      code: 'CHECKPOINT_CORRUPT',
      message: 'this snapshot of a run is nested too deep',
    });
  });
});

describe('input that is nested too deep', () => {
  test.for([
    ['inputs', { inputs: { a: nested(DEEP) } }, {}],
    ['history', { history: [message(DEEP)] }, {}],
    ['resume.history', {}, { resume: { history: [message(DEEP)] } }],
    ['resume.inputs', {}, { resume: { inputs: { a: nested(DEEP) } } }],
    ['resume.critic', {}, { resume: { critic: { a: nested(DEEP) } } }],
    ['resume.openStep', {}, { resume: { openStep: { message: asking(nested(DEEP)), calls: [call] } } }],
  ] as const)('as %s is NOT_JSON by its path', async ([path, invocation, options]) => {
    const host = hostOf({ script: [], tools, store: memoryStore() });
    const { error } = await host.run(invocation as never, options as never);
    expect(error?.code).toBe('NOT_JSON');
    expect(`resume.${error?.message}`).toContain(`${path.replace('resume.', '')}`);
  });

  test('by the model is an error result of that call, and the run continues', async () => {
    const store = memoryStore();
    const seen: unknown[] = [];
    const look = toolOf('look', 'read', (input) => seen.push(input));
    const host = hostOf({
      script: [callTool('look', { a: nested(1_000) }), reply('end')],
      tools: [look],
      store,
    });
    expect(await host.run()).toMatchObject({ status: 'ok', iterations: 2, saveErrors: 0 });
    const [asked, answered] = host.model.calls[1]?.messages.slice(1) ?? [];
    expect(asked?.content).toMatchObject([{ input: { omitted: 'the arguments were nested too deep' } }]);
    expect(answered?.content).toMatchObject([
      { output: { type: 'error-text', value: 'the arguments are nested deeper than 256 levels; send flatter ones' } },
    ]);
    expect(seen).toEqual([]);
  });
});

describe('what is as deep as may be (256 levels)', () => {
  test.for(['read', 'once'] as const)(
    'as the result of a %s tool is recorded with the message that holds it',
    async (effect) => {
      const store = memoryStore();
      const deep = toolOf('look', effect, async () => nested(256));
      const host = hostOf({ script: [callTool('look'), reply('end')], tools: [deep], store });
      expect(await host.run()).toMatchObject({ status: 'ok', iterations: 2, saveErrors: 0, durable: true });
      expect(host.model.calls[1]?.messages.at(-1)?.content).toMatchObject([{ output: { type: 'json' } }]);
    },
  );

  test('one level more is an error result', async () => {
    const host = hostOf({
      script: [callTool('look'), reply('end')],
      tools: [toolOf('look', 'read', async () => nested(257))],
    });
    expect((await host.run()).status).toBe('ok');
    expect(host.model.calls[1]?.messages.at(-1)?.content).toMatchObject([{ output: { type: 'error-text' } }]);
  });

  test('as inputs, in a history or as arguments leaves the run durable, and is taken up by another process', async () => {
    const store = memoryStore();
    const script = [callTool('look', { a: nested(255) }), hang()];
    const host = hostOf({ script, tools, store });
    await host.start({ runId: 'r', inputs: { a: nested(255) }, history: [message(255) as never] });
    await until(async () => (await store.load('r'))?.iteration === 1);
    await host.executor.shutdown();
    const next = hostOf({ tools, store });
    expect(await next.executor.recover()).toMatchObject({ resumed: [{ runId: 'r' }] });
    expect(await next.executor.get('r')?.result).toMatchObject({ status: 'ok', durable: true });
  });
});
