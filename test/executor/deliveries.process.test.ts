import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sqliteStore } from 'pawl/stores/sqlite';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/values/clock.ts';
import { hostOf, until } from '../fixtures/host.ts';
import { startChild } from '../store/child-process.ts';

const script = '../executor/deliveries-child.ts';

/** A store, and the lines that its hosts have heard. */
function place() {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-test-'));
  const [path, log] = [join(folder, 'runs.db'), join(folder, 'log')];
  writeFileSync(log, '');
  const heard = () => readFileSync(log, 'utf8').split('\n').slice(0, -1);
  const killed = async (dies: string) => startChild({ role: path, path: log, argument: dies, script }).exited;
  /** A process that lives a minute later: the leases of the others are over. */
  const next = async () => {
    const clock = { ...systemClock, now: () => Date.now() + 60_000 };
    const store = sqliteStore({ path, clock });
    const own: string[] = [];
    const host = hostOf({ store, onOutcome: ({ outcomeId }) => void own.push(outcomeId) });
    await host.executor.recover();
    return { own, store, close: () => host.executor.shutdown().then(() => store.close()) };
  };
  return { path, heard, killed, next };
}

test.each([
  ['before the delivery', 0],
  ['after the delivery', 1],
] as const)(
  'an end whose process was killed %s is delivered by the next, under the same id (edges 16)',
  async (dies, before) => {
    const { heard, killed, next } = place();
    await killed(dies);
    expect(heard()).toHaveLength(before);
    const { own, store, close } = await next();
    await until(() => own.length > 0);
    expect(new Set([...heard(), ...own]).size).toBe(1);
    await until(async () => (await store.listInterrupted()).length === 0);
    await close();
  },
);

test.each([
  ['before the delivery', 0],
  ['after the delivery', 1],
  ['before the mark', 1],
] as const)(
  'the end of another process, whose deliverer was killed %s, is delivered by the next (edges 16)',
  async (dies, before) => {
    const { path, heard, killed, next } = place();
    const store = sqliteStore({ path });
    const host = hostOf({ store });
    await host.run({ runId: 'r' });
    const outcomeId = (await store.outcomes.find('r'))?.outcomeId;
    await host.executor.shutdown();
    await store.close();
    await killed(dies);
    expect(heard()).toEqual(Array.from({ length: before }, () => outcomeId));
    const { own, store: opened, close } = await next();
    await until(() => own.length > 0);
    expect(own).toEqual([outcomeId]);
    await until(
      async () => (await opened.deliveries.take({ agentIds: ['worker'], limit: 1, leaseMs: 0 })).length === 0,
    );
    await close();
  },
);
