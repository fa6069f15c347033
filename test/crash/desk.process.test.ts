import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createExecutor, type Wait } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { scriptedModel } from 'pawl/testing';
import { expect, test } from 'vitest';
import { Bank } from '../../docs/examples/refund-desk/bank.ts';
import { packageFlags } from '../toolchain/programs.ts';
import type { DeskJob } from './desk-worker.ts';
import { randomFrom, seed, torture } from './random.ts';

const worker = fileURLToPath(new URL('./desk-worker.ts', import.meta.url));
const PROCESSES = 3;
const KILLS = torture > 1 ? 200 : 4;

/** Processes that are killed again and again, each at a random moment of its life, and begun again. */
class Desk {
  readonly #job: DeskJob;
  readonly #random: () => number;
  #isOver = false;
  kills = 0;

  constructor(job: DeskJob, random: () => number) {
    this.#job = job;
    this.#random = random;
  }

  /** @returns when its processes are gone, after `end` */
  async run(processes: number): Promise<void> {
    await Promise.all(Array.from({ length: processes }, () => this.#live()));
  }

  end(): void {
    this.#isOver = true;
  }

  async #live(): Promise<void> {
    while (!this.#isOver) {
      const child = spawn(process.execPath, [...packageFlags, worker, JSON.stringify(this.#job)], {
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      await started(child);
      const lives = 20 + this.#random() * 500;
      for (let left = lives; left > 0 && !this.#isOver; left -= 20) await sleep(20);
      // The last ones live until everything has come to its end.
      while (this.kills >= KILLS && !this.#isOver) await sleep(20);
      child.kill('SIGKILL');
      this.kills += 1;
      await new Promise((resolve) => child.once('close', resolve));
    }
  }
}

function started(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.stdout?.once('data', () => resolve());
    child.once('error', reject);
    child.once('exit', () => resolve());
  });
}

/** What a person may be answered whose answer comes twice, late, or after another one. */
const expected = new Set(['WAIT_GONE', 'ALREADY_ANSWERED', 'RUN_NOT_FOUND', 'STORE_UNAVAILABLE']);

type Plan = 'approved' | 'denied' | 'expired';

const planOf = (runId: string): Plan => {
  if (runId.startsWith('denied')) return 'denied';
  return runId.startsWith('late') ? 'expired' : 'approved';
};

test(
  `money moves once for each approval and never for a denial, in ${PROCESSES} processes that are killed ${KILLS} times (waiting 32)`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-desk-'));
    const cases = Array.from({ length: 12 }, (_, i) => `${['approved', 'denied', 'approvedtoo'][i % 3]}${i}`);
    const late = ['late0', 'late1'];
    const random = randomFrom(seed);
    const store = sqliteStore({ path: join(folder, 'runs.db') });
    const person = createExecutor({
      models: { fast: scriptedModel([]) },
      store,
      logger: { warn: () => {} },
    });
    const desk = new Desk({ folder, agentId: 'desk', cases, expiresInMs: 3_600_000 }, random);
    const hurried = new Desk({ folder, agentId: 'hurried', cases: late, expiresInMs: 1 }, random);
    const bank = new Bank(join(folder, 'bank.jsonl'));
    const codes = new Set<string>();

    const say = async (answer: () => Promise<unknown>) => {
      await answer().catch((error: { readonly code?: string }) => codes.add(error.code ?? String(error)));
    };
    const waitOf = async (runId: string): Promise<Wait | undefined> =>
      (await store.load(runId).catch(() => null))?.waiting?.waits[0];
    const decide = async (runId: string) => {
      const isOver = async () => (await store.outcomes.find(runId)) !== null;
      while (!(await isOver())) {
        const wait = await waitOf(runId);
        if (wait) {
          const { id } = wait;
          const run = person.control(runId);
          if (planOf(runId) === 'denied') {
            for (let i = 0; i < 2; i++) await say(() => run.deny(id, { by: { id: 'ada' }, reason: 'too old' }));
            await say(() => run.approve(id, { by: { id: 'ben' } }));
          } else {
            for (const by of ['ada', 'ada', 'ben', 'ben']) await say(() => run.approve(id, { by: { id: by } }));
            await say(() => run.deny(id, { by: { id: 'cleo' } }));
          }
        }
        await sleep(random() * 120);
      }
    };

    const lives = [desk.run(PROCESSES), hurried.run(torture > 1 ? PROCESSES : 1)];
    await Promise.all([...cases, ...late].map(decide));
    while (desk.kills < KILLS) await sleep(20);
    desk.end();
    hurried.end();
    await Promise.all(lives);
    // A kill may strike each payment on its way: one case has processes that nothing kills.
    const calm = new Desk({ folder, agentId: 'desk', cases: ['approvedlast'], expiresInMs: 3_600_000 }, random);
    calm.kills = KILLS;
    const living = calm.run(1);
    await decide('approvedlast');
    calm.end();
    await living;

    const paid = Map.groupBy(bank.transfers, ({ order }) => order);
    for (const runId of [...cases, ...late]) {
      const outcome = await store.outcomes.find(runId);
      expect(outcome, `${runId}, seed ${seed}`).toMatchObject({ status: 'ok' });
      const times = paid.get(runId)?.length ?? 0;
      // A process that dies between the record of the start and the transfer leaves the bank's answer unknown: never twice.
      const isUnknown = outcome?.output.includes('Outcome unknown') === true;
      if (planOf(runId) !== 'approved') expect(times, `${runId}, seed ${seed}`).toBe(0);
      else if (isUnknown) expect(times, `${runId}, seed ${seed}`).toBeLessThanOrEqual(1);
      else expect(times, `${runId}, seed ${seed}: ${outcome?.output}`).toBe(1);
    }
    expect(paid.get('approvedlast')).toHaveLength(1);
    expect([...codes].filter((code) => !expected.has(code))).toEqual([]);
    expect(await store.due.countResting()).toBe(0);
    await person.shutdown();
    await store.close();
  },
  120_000 * torture,
);
