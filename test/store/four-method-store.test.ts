import { createExecutor, memoryStore } from 'pawl';
import { describe, expect, test } from 'vitest';
import type { RunCheckpoint } from '../../src/record/checkpoint.ts';
import { interruptedRun } from '../../src/record/interrupted.ts';
import { checkRunId } from '../../src/run/identity.ts';
import type { CheckpointStore } from '../../src/store/port.ts';
import { checkpointStoreContract } from '../../src/testing/store-contract/store-contract.ts';
import { frozenJson } from '../../src/values/json.ts';

/** The least that a host has to write. */
function fourMethodStore(): CheckpointStore {
  const records = new Map<string, string>();
  return {
    async save(record, { signal } = {}) {
      signal?.throwIfAborted();
      const text = JSON.stringify(frozenJson(record, 'record'));
      records.set(checkRunId(record.meta.runId), text);
    },
    async load(runId, { signal } = {}) {
      signal?.throwIfAborted();
      return JSON.parse(records.get(checkRunId(runId)) ?? 'null');
    },
    async delete(runId, { signal } = {}) {
      signal?.throwIfAborted();
      records.delete(checkRunId(runId));
    },
    async listInterrupted({ after, limit, signal } = {}) {
      signal?.throwIfAborted();
      const listed = [...records.values()]
        .map((text) => JSON.parse(text) as RunCheckpoint)
        .map((record) => ({ record, key: [record.updatedAt, record.meta.runId] as const }))
        .filter(({ key }) => !after || isBefore([after.updatedAt, after.runId], key))
        .sort((a, b) => (isBefore(a.key, b.key) ? -1 : 1));
      return listed.slice(0, limit).map(({ record }) => {
        const { status: _, attempts: __, ...line } = interruptedRun(record) as { status: unknown; attempts: unknown };
        return line as never;
      });
    },
  };
}

const isBefore = (a: readonly [number, string], b: readonly [number, string]) =>
  a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]);

describe('a store of the four methods alone', () => {
  for (const { title, run } of checkpointStoreContract({ create: async () => fourMethodStore() })) test(title, run);
});

describe('the groups of a store', () => {
  const executorOn = (store: object) => () => createExecutor({ store: store as never });

  test('one that is not whole is refused, and the error says what it lacks', () => {
    const { schedules, ...rest } = memoryStore();
    const half = { ...rest, schedules: { list: schedules.list } };
    expect(executorOn(half)).toThrow(/its group schedules has no note; a group is whole, or absent/);
    expect(executorOn(half)).toThrow(TypeError);
  });

  test.for([
    ['takeTurns', 'limits'],
    ['acknowledge', 'commands'],
    ['expect', 'waits'],
    ['keepOutcome', 'outcomes'],
    ['takeUndelivered', 'deliveries'],
  ] as const)('%s at the store itself is refused, and the error names the group %s', ([method, group]) => {
    const { [group]: _, ...rest } = memoryStore();
    const old = { ...rest, [method]: async () => {} };
    expect(executorOn(old)).toThrow(new RegExp(`has ${method} at its top.*the group ${group}`));
    expect(executorOn(old)).toThrow(TypeError);
  });

  test('one that is absent is no error', () => {
    const { limits: _, schedules: __, ...rest } = memoryStore();
    expect(executorOn({ ...rest, limits: undefined })).not.toThrow();
  });
});
