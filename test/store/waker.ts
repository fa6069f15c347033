/*
 * A process that wakes runs of another one: `node waker.ts <kind> <place>`. Each line of its input is a task. It answers each
 * with a line when it is done.
 */
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { postgresStore } from 'pawl/stores/postgres';
import { sqliteStore } from 'pawl/stores/sqlite';
import pg from 'pg';
import { newOwner } from '../../src/store/owner.ts';
import type { Claim, EventStore } from '../../src/store/port.ts';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';

/** What to do to a run, and how long to wait before, ms. */
export interface Task {
  readonly does: 'send' | 'signal' | 'hold';
  readonly runId: string;
  readonly topic: string;
  readonly afterMs: number;
}

/** Where a store is. For PostgreSQL: the address of the server, and a schema. */
export type Place = readonly [kind: 'SQLite' | 'PostgreSQL', place: string, schema?: string];

/** Opens a store, for both processes alike. @param given a pool that its owner ends */
export function openAt([kind, place, schema]: Place, given?: pg.Pool): EventStore & { close(): Promise<void> } {
  if (kind === 'SQLite') return sqliteStore({ path: place, durability: 'process' });
  return postgresStore({ pool: given ?? new pg.Pool({ connectionString: place, max: 3 }), schema });
}

/** Owns a run from now on. */
async function hold(store: EventStore, runId: string): Promise<void> {
  const claim = (await store.claim(runId, newOwner(), 600_000)) as Claim;
  await store.save(sampleRecord(runId), { claim });
}

/** Ends when its input ends. */
async function work(place: Place): Promise<void> {
  const store = openAt(place);
  for await (const line of createInterface({ input: process.stdin })) {
    const { does, runId, topic, afterMs } = JSON.parse(line) as Task;
    if (afterMs > 0) await sleep(afterMs);
    if (does === 'hold') await hold(store, runId);
    else if (does === 'send') await store.commands.send(runId, { id: 'wake', kind: 'steer', text: 'Wake up.' });
    else await store.waits.signal({ topic, id: runId, value: runId, untilMs: Date.now() + 600_000 });
    process.stdout.write('done\n');
  }
  process.exit(0);
}

if (process.argv[2] === 'work') await work(process.argv.slice(3) as unknown as Place);
