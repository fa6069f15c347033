import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createExecutor, defineAgent } from 'pawl';
import { postgresStore } from 'pawl/stores/postgres';
import { scriptedModel } from 'pawl/testing';
import { expect, onTestFinished, test } from 'vitest';
import { torture } from '../crash/random.ts';
import { freePort } from '../fixtures/free-port.ts';
import { until } from '../fixtures/host.ts';
import { postgresServer, whyNoOwnPostgres } from '../fixtures/postgres-server.ts';
import type { WorkerJob } from './drill-worker.ts';

const server = postgresServer(['fsync=off', 'max_connections=100']);
const whyNot = whyNoOwnPostgres ?? (spawnSync('prometheus', ['--version']).status === 0 ? undefined : 'no Prometheus');
const program = fileURLToPath(new URL('drill-worker.ts', import.meta.url));
const rules = readFileSync(new URL('../../docs/deploy/pawl.rules.yml', import.meta.url), 'utf8');
const RUNS = 200;
/** How many runs a worker works on at once. */
const PLACES = 8;
const AWAY_MS = torture > 1 ? 60_000 : 2_000;

/** A process of the drill, and what it has said. */
class Drilled {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  said = '';

  constructor(job: WorkerJob) {
    this.child = spawn(process.execPath, ['-C', 'pawl-source', program, JSON.stringify(job)]);
    this.child.stdout?.on('data', (chunk) => (this.said += chunk));
    this.child.stderr?.on('data', (chunk) => (this.said += chunk));
    this.ended = new Promise((resolve) => this.child.once('exit', resolve));
  }

  get port(): number {
    return Number(/port (\d+)/.exec(this.said)?.[1] ?? 0);
  }
}

/** Prometheus with the rules of Pawl, in which a minute is a second. */
async function prometheus(folder: string) {
  const port = await freePort();
  const targets = join(folder, 'targets.json');
  const quick = rules.replace(/\b1h\b/g, '60m').replace(/\b(\d+)m\b/g, '$1s');
  writeFileSync(join(folder, 'rules.yml'), quick);
  writeFileSync(targets, '[]');
  const files = { file_sd_configs: [{ files: [targets], refresh_interval: '1s' }] };
  // A worker whose store is away answers after a second.
  const times = { scrape_interval: '2s', scrape_timeout: '2s', evaluation_interval: '500ms' };
  const config = { global: times, rule_files: ['rules.yml'], scrape_configs: [{ job_name: 'pawl', ...files }] };
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config));
  const flags = [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`];
  const child = spawn('prometheus', [...flags, `--web.listen-address=127.0.0.1:${port}`], { stdio: 'ignore' });
  const ask = async (query: string): Promise<readonly { metric: { [label: string]: string } }[]> => {
    const url = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(query)}`;
    const answer = (await (await fetch(url)).json()) as { data?: { result?: [] } };
    return answer.data?.result ?? [];
  };
  return {
    child,
    ask,
    watch: (workers: readonly Drilled[]) =>
      writeFileSync(targets, JSON.stringify([{ targets: workers.map((worker) => `127.0.0.1:${worker.port}`) }])),
    /** The alerts that have fired. */
    fired: async () => {
      const found = await ask('max_over_time(ALERTS{alertstate="firing"}[1h])');
      return new Set(found.map(({ metric }) => metric.alertname));
    },
  };
}

test.skipIf(whyNot)(
  'a drill of processes: over a deploy, a rollback, a SIGKILL, a database that stops, a clock that is ahead and a worker without its key, Prometheus fires the alerts for these and no other, no run is lost, and no once call is made twice (operations 40)',
  { timeout: 240_000 + AWAY_MS * 2 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-drill-'));
    const schema = server.freshSchema();
    const ledger = join(folder, 'ledger');
    const all: Drilled[] = [];
    const watched = await prometheus(folder);
    onTestFinished(() => {
      for (const { child } of [...all, watched]) child.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    });
    const begin = async (job: Pick<WorkerJob, 'deployment' | 'isBad' | 'skewMs'>) => {
      const worker = new Drilled({ url: server.url, schema, ledger, ...job });
      all.push(worker);
      await until(() => worker.port > 0 || worker.child.exitCode !== null, 'a worker begins');
      expect(worker.port, worker.said).toBeGreaterThan(0);
      watched.watch(all.filter(({ child }) => child.exitCode === null && child.signalCode === null));
      return worker;
    };
    const paid = () => (existsSync(ledger) ? readFileSync(ledger, 'utf8').trim().split('\n') : []);

    const agent = defineAgent({ id: 'payer', instructions: 'Pay.', model: 'fast' });
    const executor = createExecutor({
      models: { fast: scriptedModel([]) },
      store: postgresStore({ pool: server.pool(), schema }),
      logger: { warn: () => {} },
    });
    const [first, second] = [await begin({ deployment: 1 }), await begin({ deployment: 1, skewMs: 3_600_000 })];
    const bad = await begin({ deployment: 1, isBad: true });
    for (let i = 0; i < RUNS; i++) await executor.start(agent, { runId: `r${i}`, prompt: 'Pay.' }, { drive: 'later' });
    let isOver = false;
    /** A person approves what is asked, as far as the store answers. */
    const person = (async () => {
      for (; !isOver; await sleep(50)) {
        const waits = await executor.waiting({ limit: 20 }).catch(() => []);
        for (const { runId, id } of waits)
          await executor
            .control(runId)
            .approve(id)
            .catch(() => {});
      }
    })();

    await until(() => first.said.includes('paying'), 'the first worker pays');
    await until(async () => (await watched.fired()).has('PawlSetup'), 'PawlSetup fires');
    bad.child.kill('SIGTERM');
    const before = first.said.length;
    await until(() => first.said.length > before, 'the first worker pays again');
    first.child.kill('SIGKILL');
    await begin({ deployment: 2 });
    second.child.kill('SIGTERM');
    expect(await second.ended).toBe(0);
    // A rollback is a release, too: it has a higher number.
    await begin({ deployment: 3 });
    await until(() => paid().length > RUNS / 4, 'a quarter is paid');
    await server.kill();
    await sleep(AWAY_MS);
    await until(async () => (await watched.fired()).has('PawlStoreAway'), 'PawlStoreAway fires');
    await server.start();

    const statuses = async () => Promise.all(Array.from({ length: RUNS }, (_, i) => executor.find(`r${i}`)));
    const left = async () => (await statuses().catch(() => [undefined])).filter((found) => found?.status !== 'ended');
    for (const latest = performance.now() + 150_000; (await left()).length > 0; await sleep(500))
      expect(performance.now(), JSON.stringify(await left()).slice(0, 500)).toBeLessThan(latest);
    isOver = true;
    await person;
    await executor.shutdown();

    expect(paid().filter((runId, i, lines) => lines.indexOf(runId) !== i)).toEqual([]);
    // Of the calls of the killed worker some were recorded as begun, and were not: their outcome is unknown, and none is made again.
    expect(RUNS - paid().length).toBeLessThanOrEqual(PLACES);
    const fired = await watched.fired();
    for (const alert of ['PawlSetup', 'PawlStoreAway']) expect(fired).toContain(alert);
    // A call was cut by the SIGKILL only if it was under way in that moment; saves failed only if runs were.
    for (const alert of ['PawlSetup', 'PawlStoreAway', 'PawlUnknownOutcome', 'PawlSavesFail']) fired.delete(alert);
    expect(fired).toEqual(new Set());
  },
);
