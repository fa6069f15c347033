import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createExecutor, defineAgent } from 'pawl';
import { postgresStore } from 'pawl/stores/postgres';
import { scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { passOnErrors } from '../fixtures/processes.ts';
import { packageFlags } from '../toolchain/programs.ts';
import type { HourJob } from './fleet-hour-worker.ts';
import { type HeapSample, heapGrowth } from './heap-growth.ts';
import { torture } from './random.ts';

/** With PAWL_HOURS=1 it lasts an hour, and takes as many runs as a machine that is busy otherwise can do beside. */
const hours = Number(process.env.PAWL_HOURS ?? 0);
const [minutes, runsPerSecond] = hours > 0 ? [60 * hours, 6] : [3, 40];
const durationMs = minutes * 60_000;
const [PROCESSES, STAYING] = hours > 0 ? [8, 2] : [3, 2];
/** A process that lives for an hour keeps less than this for 1,000 runs: 0.1 KB a run is less than one id in a map. */
const MOST_KB = 100;

const worker = fileURLToPath(new URL('./fleet-hour-worker.ts', import.meta.url));

class Hand {
  readonly process: ChildProcess;
  readonly samples: HeapSample[] = [];
  readonly ends: (readonly string[])[] = [];
  readonly began: Promise<void>;
  readonly gone: Promise<number | null>;
  cpuMs = 0;

  constructor(job: HourJob) {
    const args = ['--expose-gc', ...packageFlags, worker, JSON.stringify(job)];
    this.process = passOnErrors(spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] }));
    const began = Promise.withResolvers<void>();
    this.began = began.promise;
    createInterface({ input: this.process.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const [what, ...rest] = line.split(' ');
      if (what === 'began') began.resolve();
      if (what === 'heap') this.samples.push({ runs: Number(rest[0]), bytes: Number(rest[1]) });
      if (what === 'ended') this.ends.push(rest);
      if (what === 'cpu') this.cpuMs = Number(rest[0]) / 1_000;
    });
    this.gone = new Promise((resolve) => this.process.once('close', resolve));
  }

  leave(): Promise<number | null> {
    this.process.kill('SIGTERM');
    return this.gone;
  }
}

describe.skipIf(torture === 1 || whyNoPostgres)('a fleet that works for long', () => {
  const server = postgresServer(['fsync=off', 'max_connections=60']);

  test(`${PROCESSES} processes work for ${minutes} minutes, and one is replaced ${hours > 0 ? 'each minute' : 'every 10 s'}: each run ends once, and the heap of those that stay is flat (engine 45)`, {
    timeout: durationMs + 600_000,
  }, async () => {
    const schema = server.freshSchema();
    const pool = server.pool();
    const store = postgresStore({ pool, schema });
    const admitting = createExecutor({ models: { fast: scriptedModel([]) }, store, fairBy: 'tenant' });
    const agent = defineAgent({ id: 'worker', instructions: 'Work.' });
    const job: HourJob = { url: server.url, schema };
    const sampled: HourJob = { ...job, sampleMs: hours > 0 ? 10_000 : 2_500 };
    const staying = Array.from({ length: STAYING }, () => new Hand(sampled));
    const replaced = Array.from({ length: PROCESSES - STAYING }, () => new Hand(job));
    const all = [...staying, ...replaced];
    const codes: (number | null)[] = [];
    const startedAt = performance.now();
    const elapsedMs = () => performance.now() - startedAt;
    try {
      await Promise.all(all.map(({ began }) => began));
      let admitted = 0;
      const admission = async () => {
        for (; elapsedMs() < durationMs; await sleep(100)) {
          for (; admitted < (Math.min(elapsedMs(), durationMs) / 1_000) * runsPerSecond; admitted++) {
            const prompt = admitted % 4 === 0 ? 'One that rests.' : 'One that works.';
            const request = { runId: `run-${admitted}`, prompt, labels: { tenant: `tenant-${admitted % 7}` } };
            // The same request again admits nothing twice: a store of a busy machine may answer late.
            const admit = async () => (await admitting.start(agent, request, { drive: 'later' })).accepted;
            for (let tries = 1; (await admit()) === 'refused'; tries++)
              if (tries === 5) throw new Error('not admitted');
          }
        }
      };
      const replacement = async () => {
        for (;;) {
          await sleep(Math.min(durationMs, hours > 0 ? 60_000 : 10_000));
          if (elapsedMs() > durationMs) return;
          const next = new Hand(job);
          all.push(next);
          await next.began;
          replaced.push(next);
          codes.push((await replaced.shift()?.leave()) ?? null);
        }
      };
      await Promise.all([admission(), replacement()]);
      while ((await store.listInterrupted()).length > 0 || (await store.due.countResting()) > 0) await sleep(1_000);
      codes.push(...(await Promise.all([...staying, ...replaced].map((hand) => hand.leave()))));

      const ends = all.flatMap((hand) => hand.ends);
      expect(new Set(ends.map(([runId]) => runId)).size).toBe(admitted);
      expect(new Set(ends.map(([, outcomeId]) => outcomeId)).size).toBe(admitted);
      expect(ends.filter(([, , status]) => status !== 'ok')).toEqual([]);
      expect(codes.filter((code) => code !== 0)).toEqual([]);
      const grown = staying.map(({ samples }) => heapGrowth(samples));
      const cpuMs = all.reduce((sum, hand) => sum + hand.cpuMs, 0);
      const share = (100 * cpuMs) / elapsedMs();
      const texts = grown.map(
        ({ kbPerThousandRuns, runs, from, to }) =>
          `${kbPerThousandRuns.toFixed(1)} KB per 1,000 runs (${runs} runs, ${from.toFixed(0)} to ${to.toFixed(0)} KB)`,
      );
      console.log(
        `${admitted} runs, ${all.length} processes, ${Math.round(elapsedMs() / 1_000)} s, ${share.toFixed(1)} % of a core: ${texts.join('; ')}`,
      );
      for (const { runs } of grown) expect(runs, 'runs that count').toBeGreaterThan(500);
      for (const { kbPerThousandRuns } of grown) expect(kbPerThousandRuns).toBeLessThan(MOST_KB);
    } finally {
      for (const hand of all) hand.process.kill('SIGKILL');
      await admitting.shutdown();
      await store.close();
    }
  });
});
