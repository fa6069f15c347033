import fc from 'fast-check';
import { memoryStore, type RunCheckpoint } from 'pawl';
import { parseCheckpoint } from 'pawl/stores/kit';
import { reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { RECORD_VERSION } from '../../src/record/checkpoint.ts';
import { torture } from '../crash/random.ts';
import { hostOf, toolOf } from '../fixtures/host.ts';
import { pinned, recordOf, requestIn } from '../fixtures/records.ts';

const corrupt = (field: string) =>
  expect.objectContaining({ code: 'CHECKPOINT_CORRUPT', message: expect.stringContaining(field) });
type Loose = Record<string, unknown> & {
  meta: Record<string, unknown>;
  openStep: { calls: Record<string, unknown>[] };
};
const damaged = (change: (record: Loose) => void) => {
  const record = recordOf('open-step') as unknown as Loose;
  change(record);
  return record;
};
const errorOf = (value: unknown) => {
  try {
    return parseCheckpoint(value) && undefined;
  } catch (error) {
    return error;
  }
};

describe('a damaged record is refused, with the name of the field', () => {
  test.for([undefined, null, 7, 'text', [], true])('%j is no record (checkpoint 7)', (value) => {
    expect(errorOf(value)).toEqual(corrupt('record'));
  });

  const required = ['version', 'meta', 'messages', 'iteration', 'completedPhases', 'updatedAt'];
  test.for(required)('without %s (checkpoint 7)', (field) => {
    expect(errorOf(damaged((record) => delete record[field]))).toEqual(corrupt(field));
  });

  const metaFields = Object.keys(recordOf('open-step').meta);
  test.for(metaFields)('without meta.%s, or with one that is no string (checkpoint 7)', (field) => {
    expect(errorOf(damaged(({ meta }) => delete meta[field]))).toEqual(corrupt(`meta.${field}`));
    expect(errorOf(damaged(({ meta }) => Object.assign(meta, { [field]: 7 })))).toEqual(corrupt(`meta.${field}`));
  });

  const wrong: [string, string, unknown][] = [
    ['version', 'version', '1'],
    ['version', 'version', 0],
    ['version', 'version', 1.5],
    ['messages', 'messages', {}],
    ['messages', 'messages', [{ role: 'user', content: 'text' }]],
    ['messages', 'messages', [{ role: 'nobody', content: [] }]],
    ['messages', 'messages', [{ role: 'user', content: ['text'] }]],
    ['messages', 'messages', [null]],
    ['iteration', 'iteration', -1],
    ['iteration', 'iteration', 1.5],
    ['iteration', 'iteration', '1'],
    ['completedPhases', 'completedPhases', [{ name: 'x' }]],
    ['updatedAt', 'updatedAt', 'now'],
    ['revision', 'revision', -1],
    ['attempts', 'attempts', 'x'],
    ['usage', 'usage', []],
    ['usage', 'usage', { inputTokens: 'x' }],
    ['counters', 'counters', 7],
    ['counters', 'counters', {}],
    ['counters', 'counters', { failedSteps: 'x', repeats: {} }],
    ['counters', 'counters', { failedSteps: 0, repeats: { a: 'x' } }],
    ['openStep', 'openStep', {}],
    ['openStep', 'openStep', null],
    ['openStep', 'openStep', { message: { role: 'assistant', content: [] }, calls: [{}] }],
    ['outcome', 'outcome', 'ok'],
    ['outcome', 'outcome', {}],
    ['outcome', 'outcome', { ...recordOf('outcome').outcome, status: 'x' }],
    ['parked', 'parked', true],
    ['parked', 'parked', {}],
    ['parked', 'parked', { code: 'PARKED', reason: 'by hand', by: { id: 1 } }],
    ['parked', 'parked', { code: 'PARKED', reason: 'by hand', by: 'ada' }],
    ['elapsedMs', 'elapsedMs', 'x'],
    ['elapsedMs', 'elapsedMs', -1],
    ['undelivered', 'undelivered', 'x'],
    ['inputs', 'inputs', 'x'],
    ['images', 'images', 'x'],
    ['definition', 'definition', 'x'],
    ['labels', 'labels', { team: 7 }],
    ['labels', 'labels', ['team']],
    ['thread', 'thread', { id: 't' }],
    ['hosted', 'hosted', false],
    ['waiting', 'waiting', { waits: [] }],
    ['waiting', 'waiting', { waits: [{ id: 'w', kind: 'timer', createdAt: 1 }], settled: [] }],
    ['waiting', 'waiting', { waits: [{ id: 'w', kind: 'nap', createdAt: 1, step: 1 }], settled: [] }],
    ['waiting', 'waiting', { waits: [{ id: 'w', kind: 'child', createdAt: 1, step: 1 }], settled: [] }],
    ['waiting', 'waiting', { waits: [], settled: [{ id: 'w', kind: 'timer', at: 1 }] }],
    ['waiting', 'waiting', { waits: [], settled: [], wakeAt: 'soon' }],
  ];
  test.for(wrong)('with the wrong %s (checkpoint 7)', ([name, field, value]) => {
    expect(errorOf(damaged((record) => Object.assign(record, { [field]: value })))).toEqual(corrupt(name));
  });

  test.for(['callId', 'name', 'effect', 'state', 'attempt'])(
    'with a ledger line without %s (checkpoint 7)',
    (field) => {
      expect(errorOf(damaged(({ openStep }) => delete openStep.calls[1]?.[field]))).toEqual(corrupt('openStep'));
    },
  );

  test.for([
    ['state', 'asleep'],
    ['allowed', 'policy'],
    ['allowed', { by: [{}], at: 1, digest: 'd' }],
    ['answers', {}],
  ])('with a ledger line whose %s is %j (checkpoint 7)', ([field, value]) => {
    const change = ({ openStep }: Loose) => Object.assign(openStep.calls[1] ?? {}, { [field as string]: value });
    expect(errorOf(damaged(change))).toEqual(corrupt('openStep'));
  });

  test('with a ledger line that is done without a result (checkpoint 7)', () => {
    expect(errorOf(damaged(({ openStep }) => delete openStep.calls[0]?.result))).toEqual(corrupt('openStep'));
  });
});

describe('a record of another version', () => {
  test.for([RECORD_VERSION + 1, 99])(
    'newer (%i) is refused with CHECKPOINT_TOO_NEW, which says to upgrade (checkpoint 6)',
    (version) => {
      const error = errorOf({ ...recordOf('first'), version });
      expect(error).toMatchObject({ code: 'CHECKPOINT_TOO_NEW', message: expect.stringMatching(/upgrade/) });
    },
  );

  test('is refused for its version, even with other unreadable parts (checkpoint 6)', () => {
    expect(errorOf({ version: RECORD_VERSION + 1, somethingElse: true })).toMatchObject({ code: 'CHECKPOINT_TOO_NEW' });
  });
});

test('only what is required: a record of the required fields is read, and a run continues from it (checkpoint 7)', async () => {
  const { version, meta, messages, iteration, completedPhases, updatedAt } = recordOf('parked');
  const record = { version, meta, messages, iteration, completedPhases, updatedAt } as RunCheckpoint;
  expect(parseCheckpoint(record)).toEqual({ ...record, version: RECORD_VERSION });
  const store = memoryStore();
  const bare = {
    save: store.save,
    load: async () => record,
    delete: store.delete,
    listInterrupted: store.listInterrupted,
  };
  const host = hostOf({ script: [reply('end')], store: bare });
  expect(await host.run(requestIn(record))).toMatchObject({ status: 'ok', iterations: 2 });
});

/** Every place in a record, as a path. */
function placesOf(value: unknown, path: (string | number)[] = []): (string | number)[][] {
  if (typeof value !== 'object' || value === null) return [path];
  return [
    path,
    ...Object.entries(value).flatMap(([key, item]) =>
      placesOf(item, [...path, Array.isArray(value) ? Number(key) : key]),
    ),
  ];
}

function replaced(record: unknown, path: readonly (string | number)[], value: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  const copy = (Array.isArray(record) ? [...record] : { ...(record as object) }) as Record<string | number, unknown>;
  const inner = replaced(copy[key], rest, value);
  if (inner === undefined && Array.isArray(copy)) copy.splice(Number(key), 1);
  else if (inner === undefined) delete copy[key];
  else copy[key] = inner;
  return copy;
}

test('a record with damage in any one place is refused by a typed error or the run continues in good order (checkpoint 7)', async () => {
  const places = pinned.flatMap((name) => placesOf(recordOf(name)).map((path) => ({ name, path })));
  const values = fc.constantFrom(undefined, null, 0, -1, 1.5, '', 'x', true, [], {}, [null], [[]], { x: 1 }, 1e300);
  let refused = 0;
  let wentOn = 0;
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...places), values, async ({ name, path }, value) => {
      const record = replaced(recordOf(name), path, value);
      const error = errorOf(record);
      if (error) {
        expect((error as { code: string }).code).toMatch(/^CHECKPOINT_(CORRUPT|TOO_NEW)$/);
        refused += 1;
        return;
      }
      const store = memoryStore();
      const checkpoints = {
        save: store.save,
        load: async () => parseCheckpoint(record),
        delete: store.delete,
        listInterrupted: store.listInterrupted,
      };
      const tools = [toolOf('look'), toolOf('note', 'idempotent'), toolOf('send', 'once')];
      // A message that no request can be made of is a failure that may pass with the next deployment: the run would wait for it.
      const defaults = { modelAttempts: 1, modelOutageMs: 0 };
      const host = hostOf({ script: [reply('end'), reply('end')], tools, store: checkpoints, defaults });
      const result = await host.run(requestIn(recordOf(name)));
      expect(result.error?.code).not.toBe('RUN_PANIC');
      for (const count of Object.values(result.usage)) expect(Number.isFinite(count)).toBe(true);
      expect(['ok', 'error', 'timeout']).toContain(result.status);
      wentOn += 1;
    }),
    { numRuns: torture > 1 ? 5_000 : 200 },
  );
  expect(Math.min(refused, wentOn)).toBeGreaterThan(40);
}, 180_000);
