import { type Migrate, memoryStore, type RunCheckpoint } from 'pawl';
import { migrateRecord } from 'pawl/stores/kit';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { isRewritten } from '../../src/record/upcast.ts';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { recordOf, requestIn } from '../fixtures/records.ts';
import { plainStore, watchedStore } from '../fixtures/watched-store.ts';

/** A deploy has renamed the tool `note` to `write_note`. */
const renamed = (record: RunCheckpoint): RunCheckpoint => {
  const { openStep } = record;
  if (!openStep?.calls.some(({ name }) => name === 'note')) return record;
  const calls = openStep.calls.map((call) => (call.name === 'note' ? { ...call, name: 'write_note' } : call));
  const content = openStep.message.content.map((part) =>
    typeof part === 'object' && part.type === 'tool-call' && part.toolName === 'note'
      ? { ...part, toolName: 'write_note' }
      : part,
  );
  return { ...record, openStep: { message: { ...openStep.message, content } as never, calls } };
};

const seen: string[] = [];
const tools = (['look', 'send', 'write_note'] as const).map((name) =>
  toolOf(name, name === 'send' ? 'once' : 'idempotent', (_, { callId }) => {
    seen.push(`${name} ${callId}`);
    return 'done';
  }),
);

const holding = async (name: 'open-step' | 'first' | 'parked', inner = memoryStore()) => {
  await inner.save(recordOf(name));
  return watchedStore({}, inner);
};

describe('migrate (recovery 8)', () => {
  test('changes a record before its run continues: a renamed tool is called by its new name', async () => {
    seen.length = 0;
    const store = await holding('open-step');
    const host = hostOf({ script: [reply('end')], tools, store, migrate: renamed });
    expect(await host.run(requestIn(recordOf('open-step')))).toMatchObject({ status: 'ok', output: 'end' });
    expect(seen).toEqual(['write_note call-4', 'write_note call-5']);
  });

  test('is followed by a whole record: nothing is appended to what was stored before', async () => {
    const store = await holding('open-step');
    const mark: Migrate = (record) =>
      record.messages.length > 3 ? record : { ...renamed(record), messages: [...record.messages.slice(0, 1)] };
    const host = hostOf({ script: [hang()], tools, store, migrate: mark });
    await host.start(requestIn(recordOf('open-step')));
    await until(() => host.model.calls.length === 1);
    const writes = store.methods.filter((method) => method === 'save' || method === 'append');
    expect(writes[0]).toBe('save');
    expect(writes.slice(1)).not.toContain('save');
    expect((await store.load('run-1'))?.messages.length).toBe(3);
  });

  test('that gives the record back as it was costs no write', async () => {
    const store = await holding('first');
    const host = hostOf({ script: [hang()], tools, store, migrate: (record) => record });
    await host.start(requestIn(recordOf('first')));
    await until(() => host.model.calls.length === 1);
    expect(store.methods).not.toContain('save');
    expect(store.methods).not.toContain('append');
  });

  test('works with a store of four methods', async () => {
    seen.length = 0;
    const store = plainStore(await holding('open-step'));
    const host = hostOf({ script: [reply('end')], tools, store, migrate: renamed });
    expect(await host.run(requestIn(recordOf('open-step')))).toMatchObject({ status: 'ok' });
    expect(seen).toEqual(['write_note call-4', 'write_note call-5']);
  });

  const bad: readonly (readonly [string, Migrate])[] = [
    [
      'throws',
      () => {
        throw new Error('no such field');
      },
    ],
    ['gives a promise', (async (record: RunCheckpoint) => record) as never],
    [
      'gives a promise that rejects',
      (async () => {
        throw new Error('late');
      }) as never,
    ],
    ['gives null', () => null as never],
    [
      'changes the record and gives another one',
      (record) => {
        record.iteration = 9;
        return { ...recordOf('first'), elapsedMs: 5 };
      },
    ],
    ['takes the run id away', (record) => void Object.assign(record.meta, { runId: 'other' })],
    ['deletes what is needed', (record) => void delete (record as { iteration?: number }).iteration],
    ['puts in what JSON cannot hold', (record) => void Object.assign(record, { inputs: { at: new Date(0) } })],
    ['gives a record that lacks something', ({ iteration: _, ...record }) => record as never],
    ['gives what JSON cannot hold', (record) => ({ ...record, inputs: { at: new Date(0) as never } })],
    ['gives the record of another run', (record) => ({ ...record, meta: { ...record.meta, runId: 'other' } })],
  ];

  test.for(bad)(
    'one that %s refuses the run with MIGRATION; the record stays, and the start does not count',
    async ([, migrate]) => {
      const store = await holding('first');
      const before = await store.load('run-1');
      const host = hostOf({ tools, store, migrate });
      for (let start = 0; start < 5; start++) {
        const { error, durable } = await host.run(requestIn(recordOf('first')));
        expect([error?.code, durable]).toEqual(['MIGRATION', false]);
      }
      const { revision: _, ...after } = (await store.load('run-1')) as RunCheckpoint;
      const { revision: __, ...expected } = before as RunCheckpoint;
      expect(after).toEqual(expected);
      expect((await host.executor.recover()).failed).toMatchObject([{ runId: 'run-1', reason: /^MIGRATION/ }]);

      const mended = hostOf({ script: [reply('end')], tools, store });
      expect(await mended.run(requestIn(recordOf('first')))).toMatchObject({ status: 'ok' });
    },
  );

  test('cannot change what counts the saves and starts of a run', () => {
    const record = recordOf('first');
    const changed = migrateRecord(record, (given) => ({
      ...given,
      revision: 99,
      attempts: 99,
      version: 1 as never,
      elapsedMs: 5,
    }));
    expect(changed).toMatchObject({ ...record, elapsedMs: 5 });
    expect(isRewritten(changed)).toBe(true);
  });

  test('may change the draft that it gets instead of returning a record: both come to the same run', async () => {
    const inPlace: Migrate = ({ openStep }) => {
      const message = openStep?.message;
      for (const call of openStep?.calls ?? []) if (call.name === 'note') call.name = 'write_note';
      if (openStep && message) openStep.message = renamed(recordOf('open-step')).openStep?.message ?? message;
    };
    const record = recordOf('open-step');
    expect(migrateRecord(record, inPlace)).toEqual(migrateRecord(record, renamed));
    seen.length = 0;
    const store = await holding('open-step');
    const host = hostOf({ script: [reply('end')], tools, store, migrate: inPlace });
    expect(await host.run(requestIn(recordOf('open-step')))).toMatchObject({ status: 'ok', output: 'end' });
    expect(seen).toEqual(['write_note call-4', 'write_note call-5']);
  });

  test('changes neither the record that was loaded nor the stored one, with any change to its draft', async () => {
    const store = await holding('open-step');
    const loaded = (await store.load('run-1')) as RunCheckpoint;
    const before = structuredClone(loaded);
    const changed = migrateRecord(loaded, (record) => {
      record.meta.guildId = 'moved';
      record.messages = record.messages.slice(0, 1);
      delete record.openStep;
    });
    expect(changed).toMatchObject({ meta: { guildId: 'moved' }, messages: { length: 1 } });
    expect(changed).not.toHaveProperty('openStep');
    expect(loaded).toEqual(before);
    expect(await store.load('run-1')).toEqual(before);
  });

  test('enters the messages that a draft has changed, as it enters those of a returned record', async () => {
    const store = await holding('open-step');
    const louder: Migrate = (record) => {
      record.messages = record.messages.map((message) => ({ ...message, providerOptions: { host: { old: true } } }));
    };
    const script = [callTool('look'), reply('end')];
    const host = hostOf({ script, tools: [...tools, toolOf('note')], store, migrate: louder });
    await host.run(requestIn(recordOf('open-step')));
    const [first, second] = host.model.calls[0]?.messages ?? [];
    expect([first?.providerOptions, second?.providerOptions]).toEqual([
      { host: { old: true } },
      { host: { old: true } },
    ]);
    expect(Object.isFrozen(first)).toBe(true);
  });

  test('says what it did wrong where it changed the draft and returned another record as well', async () => {
    const both: Migrate = (record) => {
      record.iteration = 9;
      return { ...recordOf('first') };
    };
    expect(() => migrateRecord(recordOf('first'), both)).toThrow(
      expect.objectContaining({
        code: 'MIGRATION',
        cause: expect.objectContaining({ message: expect.stringContaining('not both') }),
      }),
    );
  });

  test('without one, or with nothing to do, the very record is given back', () => {
    const record = recordOf('first');
    expect(migrateRecord(record, undefined)).toBe(record);
    expect(migrateRecord(record, (given) => given)).toBe(record);
    expect(migrateRecord(record, () => {})).toBe(record);
  });

  test('a parked run stays parked', async () => {
    const store = await holding('parked');
    const host = hostOf({ tools, store, migrate: (record) => ({ ...record, elapsedMs: 1 }) });
    expect(await host.run(requestIn(recordOf('parked')))).toMatchObject({ error: { code: 'RUN_PARKED' } });
  });

  test('a call in the model’s history may be changed as well', async () => {
    const store = await holding('open-step');
    const shorter: Migrate = (record) => ({ ...renamed(record), messages: record.messages.slice(0, 1) });
    const host = hostOf({ script: [callTool('look'), reply('end')], tools, store, migrate: shorter });
    await host.run(requestIn(recordOf('open-step')));
    expect(host.model.calls[0]?.messages.length).toBe(3);
  });
});
