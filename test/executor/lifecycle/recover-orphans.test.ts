import { type CheckpointStore, createPalette, defineAgent, memoryStore } from 'pawl';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { CheckpointCorruptError } from '../../../src/values/errors.ts';
import { childId } from '../../fixtures/child-id.ts';
import { hostOf, settle, until } from '../../fixtures/host.ts';
import { watchedStore } from '../../fixtures/watched-store.ts';

const palette = createPalette({ agents: [defineAgent({ id: 'kid', instructions: 'kid' })] });

function hostOn(store: CheckpointStore, script: Parameters<typeof hostOf>[0] = {}) {
  const told: string[] = [];
  const host = hostOf({
    store,
    agent: { subAgents: ['kid'] },
    ports: { palette },
    onOutcome: ({ runId, status }) => void told.push(`${runId} ${status}`),
    ...script,
  });
  return { ...host, told };
}

/** A parent and its child, left in good order in the middle of the child's turn. */
async function leftIn(store: CheckpointStore) {
  const host = hostOn(store, { script: [callTool('agent__kid', { prompt: 'do' }, 'c'), hang()] });
  await host.start({ runId: 'parent' });
  await until(() => host.model.calls.length === 2);
  await host.executor.shutdown();
}

describe('a child whose parent cannot be read is no orphan: its record stays until a person mends that (supervision 7)', () => {
  test('in a store that leaves such a record out of its list, and asks once for the parent of several', async () => {
    const inner = memoryStore();
    await leftIn(inner);
    const child = await inner.load(childId('parent', 'c'));
    if (!child) throw new Error('no child');
    await inner.save({ ...child, meta: { ...child.meta, runId: childId('parent', 'd') } });
    const before = ({ method, args }: { method: string; args: readonly unknown[] }) => {
      if (method === 'load' && args[0] === 'parent') throw new Error('bad sector');
    };
    const watched = watchedStore({ before }, inner);
    const listInterrupted = async () => (await inner.listInterrupted()).filter(({ runId }) => runId !== 'parent');
    const { executor, told } = hostOn({ ...watched, listInterrupted });
    const report = await executor.recover();
    await settle();
    expect([report.resumed, told]).toEqual([[], []]);
    expect(report.skipped.map(({ reason }) => reason)).toEqual([
      expect.stringContaining('bad sector'),
      expect.stringContaining('bad sector'),
    ]);
    expect(watched.methods).toEqual(['load', 'due.countResting']);
  });

  test('in a store that lists it as quarantined under its own id', async () => {
    const inner = memoryStore();
    await leftIn(inner);
    const reason = 'CHECKPOINT_CORRUPT: bits have changed';
    const store: CheckpointStore = {
      ...inner,
      listInterrupted: async (list) =>
        (await inner.listInterrupted(list)).map((entry) =>
          entry.runId === 'parent' ? { runId: 'parent', status: 'quarantined', reason, updatedAt: 1 } : entry,
        ),
      load: (runId, read) =>
        runId === 'parent' ? Promise.reject(new CheckpointCorruptError('bits have changed')) : inner.load(runId, read),
    };
    const { executor, told } = hostOn(store);
    const { skipped } = await executor.recover();
    expect(skipped.find(({ runId }) => runId === childId('parent', 'c'))?.reason).toBe(
      'CHECKPOINT_CORRUPT: its parent run parent cannot be read: bits have changed',
    );
    expect(told).toEqual([]);
  });

  test('nor is one whose parent came too late for the list: the parent continues with it', async () => {
    const store = memoryStore();
    await leftIn(store);
    const listInterrupted = async () => (await store.listInterrupted()).filter(({ runId }) => runId !== 'parent');
    const { executor, told } = hostOn({ ...store, listInterrupted });
    expect(await executor.recover()).toMatchObject({
      resumed: [],
      skipped: [{ runId: childId('parent', 'c'), reason: 'its parent run parent continues it' }],
    });
    expect(told).toEqual([]);
  });
});

test('a child whose parent the store knows to be gone is ended, as before (supervision 7)', async () => {
  const store = memoryStore();
  await leftIn(store);
  await store.delete('parent');
  const { executor, told } = hostOn(store, { script: [reply('not asked')] });
  expect((await executor.recover()).resumed).toEqual([{ runId: childId('parent', 'c') }]);
  await until(() => told.length === 1);
  expect(told).toEqual([`${childId('parent', 'c')} cancelled`]);
});
