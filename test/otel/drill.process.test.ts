import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createExecutor, defineAgent, type FoundRun } from 'pawl';
import { postgresStore } from 'pawl/stores/postgres';
import { scriptedModel } from 'pawl/testing';
import { expect, onTestFinished, test } from 'vitest';
import { torture } from '../crash/random.ts';
import { freePort } from '../fixtures/free-port.ts';
import { until } from '../fixtures/host.ts';
import { postgresServer, whyNoOwnPostgres } from '../fixtures/postgres-server.ts';
import { bin, packageFlags } from '../toolchain/programs.ts';
import type { WorkerJob } from './drill-worker.ts';

const server = postgresServer(['fsync=off', 'max_connections=100']);
const { execPath } = process;
const env = { ...process.env, PATH: `${dirname(execPath)}:${process.env.PATH}` };
const isThere = (program: string) => spawnSync(program, ['--version'], { env }).status === 0;
const whyNot = whyNoOwnPostgres ?? ['prometheus', 'npm'].find((program) => !isThere(program));
const program = fileURLToPath(new URL('drill-worker.ts', import.meta.url));
const rules = readFileSync(new URL('../../docs/deploy/pawl.rules.yml', import.meta.url), 'utf8');
/** How many runs are there from the beginning, and how long it takes until there is one more, ms. */
const [FIRST_RUNS, NEXT_RUN_MS] = torture > 1 ? [200, 50] : [20, 200];
/** Longer than a busy machine stands still. */
const LEASE_MS = 10_000;
const AWAY_MS = torture > 1 ? 60_000 : 2_000;

/** A process of the drill, and what it has said: a program of its own, or `pawl work` behind `npm run`. */
class Drilled {
  readonly child: ChildProcess;
  /** Its code, once all that it started has ended too. */
  readonly ended: Promise<number | null>;
  said = '';

  constructor(job: WorkerJob, cwd: string) {
    const argv = job.isCommand ? ['npm', 'run', '--silent', 'work'] : [execPath, ...packageFlags, program];
    const [file = '', ...args] = argv;
    this.child = spawn(file, args, { cwd, env: { ...env, DRILL_JOB: JSON.stringify(job) }, detached: true });
    this.child.stdout?.on('data', (chunk) => (this.said += chunk));
    this.child.stderr?.on('data', (chunk) => (this.said += chunk));
    this.ended = new Promise((resolve) => this.child.once('close', resolve));
  }

  get port(): number {
    return Number(/port (\d+)/.exec(this.said)?.[1] ?? 0);
  }

  get isAlive(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** The status of an answer to a probe; undefined = none came, which is so where it has just ended. */
  async probed(path: '/healthz' | '/readyz'): Promise<number | undefined> {
    const address = /health at (http:\S+)\/healthz/.exec(this.said)?.[1] ?? `http://127.0.0.1:${this.port}`;
    return fetch(`${address}${path}`).then(
      ({ status }) => status,
      () => undefined,
    );
  }

  /** Ends all that it started. */
  kill(): void {
    try {
      if (this.child.pid !== undefined) process.kill(-this.child.pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
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
  const child = spawn('prometheus', [...flags, `--web.listen-address=127.0.0.1:${port}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (chunk) => (said += chunk));
  const address = `http://127.0.0.1:${port}`;
  const ask = async (query: string): Promise<readonly { metric: { [label: string]: string } }[]> => {
    const url = `${address}/api/v1/query?query=${encodeURIComponent(query)}`;
    const answer = (await (await fetch(url)).json()) as { data?: { result?: [] } };
    return answer.data?.result ?? [];
  };
  return {
    child,
    ask,
    /** It listens some time after its process is there, and answers no query before it is ready. */
    isReady: async () => {
      expect(child.exitCode, said).toBeNull();
      return fetch(`${address}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    },
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
  'a drill of processes: over a deploy, a rollback, a SIGKILL, a SIGTERM to npm, a database that stops, a clock that is ahead and a worker without its key, Prometheus fires the alerts for these and no other, each run ends well, no once call is made twice, each that was not made is of unknown outcome, and no probe asks for a restart (operations 5, 40)',
  { timeout: 240_000 + AWAY_MS * 2 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-drill-'));
    const schema = server.freshSchema();
    const ledger = join(folder, 'ledger');
    const all: Drilled[] = [];
    const watched = await prometheus(folder);
    onTestFinished(() => {
      for (const worker of all) worker.kill();
      watched.child.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    });
    const living = () => all.filter(({ isAlive }) => isAlive);
    const flags = `--store '${server.url}?schema=${schema}' --concurrency 8 --deployment 1 --drain 2s --health 0 --json`;
    const script = `'${execPath}' ${packageFlags.join(' ')} '${bin}' work '${program}' ${flags}`;
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, scripts: { work: script } }));
    const begin = async (job: Pick<WorkerJob, 'deployment' | 'isBad' | 'skewMs' | 'isCommand'>) => {
      const worker = new Drilled({ url: server.url, schema, ledger, leaseMs: LEASE_MS, ...job }, folder);
      all.push(worker);
      await until(() => worker.port > 0 || !worker.isAlive, 'a worker begins');
      expect(worker.port, worker.said).toBeGreaterThan(0);
      watched.watch(living());
      return worker;
    };
    const paid = () => (existsSync(ledger) ? readFileSync(ledger, 'utf8').trim().split('\n') : []);

    const agent = defineAgent({ id: 'payer', instructions: 'Pay.', model: 'fast' });
    const executor = createExecutor({
      models: { fast: scriptedModel([]) },
      store: postgresStore({ pool: server.pool(), schema }),
      logger: { warn: () => {} },
    });
    await until(watched.isReady, 'Prometheus is ready');
    await until(async () => (await watched.fired()).has('PawlNoProcess'), 'PawlNoProcess fires while there is none');
    const first = await begin({ deployment: 1 });
    const second = await begin({ deployment: 1, skewMs: 3_600_000, isCommand: true });
    const bad = await begin({ deployment: 1, isBad: true });
    const admittedAt = performance.now();
    const runIds: string[] = [];
    const admit = async () => {
      const runId = `r${runIds.length}`;
      await executor.start(agent, { runId, prompt: 'Pay.' }, { drive: 'later' });
      runIds.push(runId);
    };
    for (let i = 0; i < FIRST_RUNS; i++) await admit();
    let isOver = false;
    let isClosed = false;
    /** However fast the workers are, each stage of the drill has runs to pay. One that the store did not take is begun again. */
    const customers = (async () => {
      for (; !isClosed; await sleep(NEXT_RUN_MS)) await admit().catch(() => {});
    })();
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

    const answers = { '/healthz': [] as (number | undefined)[], '/readyz': [] as (number | undefined)[] };
    /** What a kubelet would see. */
    const kubelet = (async () => {
      for (; !isOver; await sleep(1_000))
        for (const path of ['/healthz', '/readyz'] as const)
          answers[path].push(...(await Promise.all(all.map((worker) => worker.probed(path)))));
    })();

    await until(() => first.said.includes('paying'), 'the first worker pays');
    const isFiring = async () =>
      (await watched.ask('ALERTS{alertname="PawlNoProcess",alertstate="firing"}')).length > 0;
    await until(async () => !(await isFiring()), 'PawlNoProcess is over');
    await until(async () => (await watched.fired()).has('PawlSetup'), 'PawlSetup fires');
    bad.child.kill('SIGTERM');
    const before = first.said.length;
    await until(() => first.said.length > before, 'the first worker pays again');
    first.child.kill('SIGKILL');
    await begin({ deployment: 2 });
    // npm ends at once; what it started is drained.
    second.child.kill('SIGTERM');
    await second.ended;
    expect(second.said).toMatch(/"type":"work.ended".*"live":0/);
    // A rollback is a release, too: it has a higher number.
    await begin({ deployment: 3 });
    const paidBefore = paid().length;
    await until(() => paid().length > paidBefore + 4, 'the workers of the releases pay');
    const awayFrom = performance.now();
    await server.kill();
    await sleep(AWAY_MS);
    await until(async () => (await watched.fired()).has('PawlStoreAway'), 'PawlStoreAway fires');
    await server.start();
    const isReady = async () =>
      (await Promise.all(living().map((worker) => worker.probed('/readyz')))).every((status) => status === 200);
    await until(isReady, 'each worker is ready again');
    const awayMs = performance.now() - awayFrom;
    isClosed = true;
    await customers;

    const statuses = async () => Promise.all(runIds.map((runId) => executor.find(runId)));
    const isOk = (found: FoundRun | null | undefined) => found?.status === 'ended' && found.outcome.status === 'ok';
    const left = async () => (await statuses().catch(() => [undefined])).filter((found) => !isOk(found));
    for (const latest = performance.now() + 150_000; (await left()).length > 0; await sleep(500))
      expect(performance.now(), JSON.stringify(await left()).slice(0, 500)).toBeLessThan(latest);
    isOver = true;
    await Promise.all([person, kubelet]);
    await executor.shutdown();

    expect(paid().filter((runId, i, lines) => lines.indexOf(runId) !== i)).toEqual([]);
    // Of the calls of the killed worker some were recorded as begun, and were not: a worker says of each that its outcome is unknown.
    const unpaid = runIds.filter((runId) => !paid().includes(runId));
    const unknown = new Set(
      all.flatMap(({ said }) => [...said.matchAll(/^unknown (\S+)$/gm)].map(([, runId]) => runId)),
    );
    expect(unpaid.filter((runId) => !unknown.has(runId))).toEqual([]);
    expect(new Set(answers['/healthz'])).toEqual(new Set([200, undefined]));
    if (AWAY_MS > 10_000) expect(answers['/readyz']).toContain(503);
    const fired = await watched.fired();
    for (const alert of ['PawlNoProcess', 'PawlSetup', 'PawlStoreAway']) expect(fired).toContain(alert);
    // A call was cut by the SIGKILL only if it was under way in that moment; saves failed only if runs were.
    for (const alert of ['PawlNoProcess', 'PawlSetup', 'PawlStoreAway', 'PawlUnknownOutcome', 'PawlSavesFail'])
      fired.delete(alert);
    // No answer of a person arrives while the store is away: in a minute the questions grow old.
    if (AWAY_MS > 10_000) fired.delete('PawlWaitsForPeople');
    // A lease runs out while the store is away, and another worker may have the run then.
    if (awayMs > LEASE_MS) fired.delete('PawlLeasesLost');
    // Runs are due for so long only where the machine needs minutes for all of them.
    const dueMs = performance.now() - admittedAt;
    if (dueMs > 120_000) fired.delete('PawlNoWorker');
    if (dueMs > 300_000) fired.delete('PawlDueRunsPileUp');
    expect(fired).toEqual(new Set());
  },
);
