import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createExecutor, type Executor } from 'pawl';
import { restateRuns } from 'pawl/restate';
import { describe, expect, test } from 'vitest';
import { orderDesk } from '../../docs/examples/restate/agent.ts';
import { Fleet } from '../../docs/examples/restate/fleet.ts';
import { readLedger, tallyOf } from '../../docs/examples/restate/tally.ts';
import { randomFrom, seed } from '../crash/random.ts';
import { inEngine, programOf, whyNo } from '../engines/engines.ts';
import { postgresServer, whyNoOwnPostgres } from '../fixtures/postgres-server.ts';
import { sharedStore } from './shared-store.ts';

const isTorture = process.env.PAWL_TORTURE === '1';
const program = fileURLToPath(new URL('./service-worker.ts', import.meta.url));

/** What is done to a fleet: a kill of a service, of Restate or of PostgreSQL, or a service that stands still for a while. */
type Blow = 'service' | 'stop' | 'restate' | 'postgres';

interface Trial {
  readonly runs: number;
  readonly steps: number;
  readonly modelMs: number;
  readonly blows: readonly Blow[];
  /** The longest pause before a blow, ms. */
  readonly pauseMs: number;
  readonly url?: string;
  /** Kills PostgreSQL, and starts it again. */
  readonly postgres?: () => Promise<void>;
}

/** Begins runs on two services, and deals the blows while they work. Resolves when all runs have ended. */
async function outlast({ runs, steps, modelMs, blows, pauseMs, url, postgres }: Trial) {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-restate-kills-'));
  const ledger = join(folder, 'ledger.jsonl');
  const desk = { steps, modelMs };
  const job = { ...desk, folder, url };
  await using fleet = new Fleet({ restateServer: programOf('restate-server'), services: 2, job, program });
  const { agent, model } = orderDesk({ ...desk, ledger });
  const store = sharedStore({ folder, url });
  const executor: Executor = createExecutor({
    models: { fast: model },
    store,
    retention: { records: 3_600_000 },
    logger: { warn: () => {} },
    onDue: (runId, at) => front.onDue(runId, at),
  });
  await fleet.start();
  const front = restateRuns(executor, { ingress: fleet.restate.ingress });
  const ids = Array.from({ length: runs }, (_, i) => `run-${i}`);
  const random = randomFrom(seed);
  const slow = { services: 0 };
  const deal = async (blow: Blow, n: number) => {
    if (blow === 'restate') {
      await fleet.restate.kill();
      await fleet.restate.start();
    } else if (blow === 'postgres') await postgres?.();
    else if (blow === 'stop') await fleet.holdService(n % 2, 3_000);
    else {
      slow.services += 1;
      await fleet.killService(n % 2);
      await fleet.startService(n % 2);
    }
  };
  const batch = Math.ceil(runs / blows.length);
  for (const [n, blow] of blows.entries()) {
    // The runs come one after another, so that each blow meets some at work.
    const next = ids.slice(n * batch, (n + 1) * batch);
    await Promise.all(next.map((runId) => executor.start(agent, { runId, prompt: runId }, { drive: 'later' })));
    await sleep(pauseMs * (0.5 + random() / 2));
    await deal(blow, n);
  }
  const left = new Set(ids);
  for (const limit = Date.now() + 300_000; left.size > 0 && Date.now() < limit; await sleep(100)) {
    for (const id of left) if ((await executor.find(id).catch(() => null))?.status === 'ended') left.delete(id);
  }
  const found = await Promise.all(ids.map((id) => executor.find(id)));
  const transcripts = await Promise.all(ids.map(async (id) => JSON.stringify(await executor.messages(id))));
  await executor.shutdown();
  await store.close();
  const lines = readLedger(ledger);
  rmSync(folder, { recursive: true, force: true });
  return {
    ok: found.filter((run) => run?.status === 'ended' && run.outcome.status === 'ok').length,
    serviceKills: slow.services,
    ...tallyOf(lines, transcripts),
  };
}

describe.skipIf(whyNo('restate-server'))(inEngine('restate-server', 'kills of everything around Restate'), () => {
  test('runs outlast kills of services and of Restate, and a service that stands still past its lease: each ends once, no call with effects is made twice, and only that service may ask its model again (engine 36)', async () => {
    const blows: Blow[] = ['service', 'restate', 'stop', 'service'];
    const tally = await outlast({ runs: 8, steps: 12, modelMs: 250, blows, pauseMs: 600 });
    expect(tally).toMatchObject({ ok: 8, repeatedEffects: 0 });
    // It may have begun the next model call of each of its runs before its save tells it that another one has the run.
    expect(tally.repeats).toBeLessThanOrEqual(8);
    expect(tally.modelCalls - tally.lost).toBe(8 * 12);
    expect(tally.lost).toBeLessThanOrEqual(8 * 3);
  }, 120_000);
});

describe.skipIf(!isTorture || whyNo('restate-server') || whyNoOwnPostgres)('a long fight', () => {
  const server = postgresServer();

  test('200 runs of 40 steps outlast 60 kills of services, 10 of Restate and 3 of PostgreSQL: 200 outcomes, no repeat (engine 36, 39)', async () => {
    const blows = Array.from(
      { length: 73 },
      (_, n): Blow => (n % 24 === 12 ? 'postgres' : n % 7 === 3 ? 'restate' : 'service'),
    );
    const postgres = async () => {
      await server.kill();
      await sleep(500);
      await server.start();
    };
    const tally = await outlast({
      runs: 200,
      steps: 40,
      modelMs: 200,
      blows,
      pauseMs: 2_500,
      url: server.url,
      postgres,
    });
    console.log('the long fight:', JSON.stringify(tally));
    expect(tally).toMatchObject({ ok: 200, repeats: 0 });
    expect(tally.modelCalls - tally.lost).toBe(200 * 40);
    expect(tally.lost).toBeLessThanOrEqual(tally.serviceKills * 200);
  }, 900_000);
});
