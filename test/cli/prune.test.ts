import { type InterruptedRun, memoryStore } from 'pawl';
import { beforeEach, describe, expect, test } from 'vitest';
import { removed } from '../../src/cli/prune-command.ts';
import { interruptedRun } from './stored-runs.ts';

const parked = { code: 'PARKED', reason: 'a person looks' };
let store: ReturnType<typeof memoryStore>;
let entry: InterruptedRun;

describe('a record that `pawl prune` has chosen', () => {
  beforeEach(async () => {
    store = memoryStore();
    await store.save(interruptedRun({ parked }));
    [entry] = (await store.listInterrupted()) as [InterruptedRun];
  });

  test('goes', async () => {
    expect(await removed(store, entry)).toBeUndefined();
    expect(await store.load('r1')).toBeNull();
  });

  test('stays when a process has taken it up meanwhile', async () => {
    await store.claim('r1', 'somebody', 60_000);
    expect(await removed(store, entry)).toBe('a process works on it now');
    expect(await store.load('r1')).not.toBeNull();
  });

  test('stays, and is free for others with all its attempts, when it was unparked meanwhile', async () => {
    await store.save({ ...interruptedRun(), revision: 2, attempts: 0 });
    expect(await removed(store, entry)).toBe('it has changed meanwhile');
    expect(await store.claim('r1', 'somebody', 60_000)).toMatchObject({ attempts: 1 });
  });

  test('stays when it was unreadable for a moment only', async () => {
    const wasTorn: InterruptedRun = { runId: 'r1', status: 'quarantined', reason: 'CHECKPOINT_CORRUPT: torn' };
    await store.save({ ...interruptedRun(), revision: 2 });
    expect(await removed(store, wasTorn)).toBe('it has changed meanwhile');
    expect(await store.load('r1')).not.toBeNull();
  });
});
