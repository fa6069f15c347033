import { describe, test } from 'vitest';
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
