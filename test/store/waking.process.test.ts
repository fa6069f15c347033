import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Claim, EventStore } from '../../src/store/port.ts';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';
import { randomFrom, seed, torture } from '../crash/random.ts';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { passOnErrors } from '../fixtures/processes.ts';
import { packageFlags } from '../toolchain/programs.ts';
import { freshPath } from './sqlite/files.ts';
import { openAt, type Place, type Task } from './waker.ts';

const server = postgresServer(['fsync=off']);
const ROUNDS = torture === 1 ? 15 : 1_500;
const LONG = 600_000;
const topic = 'c7'.repeat(32);

/** The other process. */
class Waker {
  readonly #process: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  constructor(place: Place) {
    const program = fileURLToPath(new URL('./waker.ts', import.meta.url));
    const args = [...packageFlags, program, 'work', ...place.filter((each) => each !== undefined)];
    this.#process = passOnErrors(spawn(process.execPath, args));
    this.#answers = createInterface({ input: this.#process.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  }

  async tell(task: Task): Promise<void> {
    this.#process.stdin?.write(`${JSON.stringify(task)}\n`);
    expect((await this.#answers.next()).value).toBe('done');
  }

  async kill(): Promise<void> {
    const isGone = this.#process.exitCode !== null || this.#process.signalCode !== null;
    this.#process.kill('SIGKILL');
    if (!isGone) await once(this.#process, 'exit');
  }
}

async function ownedRun(store: EventStore, runId: string): Promise<Claim> {
  const claim = (await store.claim(runId, 'me', LONG)) as Claim;
  const timer = { id: 'w', kind: 'timer', createdAt: 1, step: 1 } as const;
  await store.save(sampleRecord(runId, { waiting: { waits: [timer], settled: [] } }), { claim });
  return claim;
}

const dueOf = async (store: EventStore) => (await store.due.list({ limit: 100 })).runs.map(({ runId }) => runId);

const places: readonly (readonly [name: Place[0], make: () => Place])[] = [
  ['SQLite', () => ['SQLite', freshPath()]],
  ['PostgreSQL', () => ['PostgreSQL', server.url, server.freshSchema()]],
];

describe.for(places)('two processes on one %s store', ([kind, make]) => {
  const isSkipped = kind === 'PostgreSQL' && whyNoPostgres !== undefined;
  let store: ReturnType<typeof openAt>;
  let waker: Waker;

  beforeAll(async () => {
    if (isSkipped) return;
    const place = make();
    store = openAt(place, kind === 'PostgreSQL' ? server.pool() : undefined);
    await store.due.list({ limit: 1 });
    waker = new Waker(place);
  });
  afterAll(async () => {
    await waker?.kill();
    await store?.close();
  });

  /** Both processes act at about the same time, and in some rounds surely one after the other. */
  async function race(
    does: Task['does'],
    act: (claim: Claim) => Promise<boolean>,
  ): Promise<[woken: number, stayed: number]> {
    const random = randomFrom(seed);
    const counts: [number, number] = [0, 0];
    for (let round = 0; round < ROUNDS; round++) {
      const runId = `run-${round}`;
      const claim = await ownedRun(store, runId);
      const pause = () => (random() < 0.2 ? 15 : random() * 2);
      const telling = waker.tell({ does, runId, topic, afterMs: pause() });
      await sleep(pause());
      const hasLeft = await act(claim);
      await telling;
      const inbox = await store.commands.inbox({ runId });
      expect(inbox, `round ${round}, seed ${seed}`).toHaveLength(1);
      expect(await dueOf(store), `round ${round}, seed ${seed}`).toEqual(hasLeft ? [runId] : []);
      counts[hasLeft ? 0 : 1] += 1;
      await store.delete(runId, hasLeft ? {} : { claim });
    }
    return counts;
  }

  test.skipIf(isSkipped)(
    'a run that leaves while the other one sends has read the command, or is due (waiting 33)',
    { timeout: 120_000 * torture },
    async () => {
      const [woken, stayed] = await race('send', (claim) => store.due.leave(claim, { readUpTo: 0 }));
      expect([woken > 0, stayed > 0]).toEqual([true, true]);
    },
  );

  test.skipIf(isSkipped)(
    'a run that expects a signal and leaves, while the other one signals, has the signal once, and is due (waiting 33)',
    { timeout: 120_000 * torture },
    async () => {
      const [woken, stayed] = await race('signal', async (claim) => {
        await store.waits.expect(claim, { waitId: 'w', topic });
        return store.due.leave(claim, { readUpTo: 0 });
      });
      expect([woken > 0, stayed > 0]).toEqual([true, true]);
    },
  );

  test.skipIf(isSkipped)('a run whose process is killed is due at once (waiting 18)', async () => {
    await waker.tell({ does: 'hold', runId: 'held', topic, afterMs: 0 });
    expect(await dueOf(store)).toEqual([]);
    await waker.kill();
    expect(await dueOf(store)).toEqual(['held']);
    expect(await store.claim('held', 'me', LONG)).toMatchObject({ attempts: 2 });
  });
});
