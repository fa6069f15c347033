import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { postgresStore } from 'pawl/stores/postgres';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { randomFrom, seed, torture } from '../../crash/random.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';
import { passOnErrors } from '../../fixtures/processes.ts';
import { packageFlags } from '../../toolchain/programs.ts';
import { faultsOf, leftSpans, statusOf } from '../spans.ts';
import type { WorkerJob } from './killed-worker.ts';
import { readSpans } from './sent-spans.ts';

/** What the collector has got, and the host that sent it. */
const received = new Map<ReadableSpan, string>();

const collector = createServer(async (request, response) => {
  for (const span of await readSpans(request)) received.set(span, String(request.headers['x-host']));
  response.setHeader('content-type', 'application/json').end('{}');
});

const folder = mkdtempSync(join(tmpdir(), 'pawl-otel-'));
const server = postgresServer(['fsync=off']);
/** Another name of the host is another machine to Pawl: only the lease says then whether a process lives. */
const whyNoHosts =
  whyNoPostgres ??
  (spawnSync('unshare', ['--uts', 'hostname', 'host-0']).status === 0
    ? undefined
    : 'no names of hosts can be given here');
let url = '';

beforeAll(async () => {
  await once(collector.listen(0, '127.0.0.1'), 'listening');
  url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
});

afterAll(() => {
  collector.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts a process. @param host the name of its host; absent = that of this one */
function start(job: Omit<WorkerJob, 'collector'>, host?: string) {
  const worker = [process.execPath, ...packageFlags, fileURLToPath(new URL('killed-worker.ts', import.meta.url))];
  const named = ['unshare', '--uts', 'sh', '-c', 'hostname "$1" && shift && exec "$@"', 'sh', host ?? ''];
  const [file = '', ...args] = host === undefined ? worker : [...named, ...worker];
  const env = { ...process.env, KILLED_JOB: JSON.stringify({ ...job, collector: url }) };
  const child = passOnErrors(spawn(file, args, { env, stdio: ['ignore', 'pipe', 'pipe'] }));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const exited = once(child, 'exit');
  onTestFinished(() => void child.kill('SIGKILL'));
  const says = async () => (await lines.next()).value;
  const kill = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  return { says, kill, exited };
}

/** The spans of a run, its sub-agents included. */
const spansOf = (rootId: string) =>
  [...received.keys()].filter(({ spanContext }, _, all) => {
    const root = all.find(({ attributes }) => attributes['pawl.root_id'] === rootId);
    return root?.spanContext().traceId === spanContext().traceId;
  });

test('a run whose process is killed with SIGKILL during a `once` call is one whole trace in a real collector (otel 4, 34)', async () => {
  const job = { store: { path: join(folder, 'runs.db') }, runId: 'order-1' } as const;
  const first = start({ ...job, dies: 'in pay' });
  expect(await first.says()).toBe('still');
  await first.kill();
  const names = () => [...received.keys()].map(({ name }) => name).sort();
  expect(names()).not.toContain('invoke_agent payer');

  const second = start(job);
  expect(await second.says()).toBe('ok');
  await second.exited;
  const spans = spansOf('order-1');
  expect(spans.length).toBe(received.size);
  const exporterOf = (span: ReadableSpan) => span;
  expect(faultsOf({ spans: () => spans, open: () => [], exporterOf })).toEqual([]);
  const lost = spans.filter((span) => statusOf(span).endsWith('lost')).map(({ name }) => name);
  expect(lost.sort()).toEqual(['execute_tool agent__helper', 'execute_tool pay', 'invoke_agent payer']);
});

/** Each process dies at one of these boundaries; the last one ends the run. */
const chains = [
  [5, 2, 9],
  [14, 1, 3],
];

/** In torture each boundary is one at which the first process dies. */
function drawnChains(): number[][] {
  const random = randomFrom(seed);
  const drawn = (most: number) => 1 + Math.floor(random() * most);
  return Array.from({ length: 40 }, (_, at) => [at + 1, ...Array.from({ length: drawn(2) }, () => drawn(12))]);
}

test.skipIf(whyNoHosts).for((torture > 1 ? drawnChains() : chains).map((boundaries) => ({ boundaries })))(
  'a run whose hosts die at the boundaries $boundaries is one whole trace: the successor on another host tells what died (otel 2, 4, 32, 33)',
  { timeout: 120_000 },
  async ({ boundaries }) => {
    const schema = server.freshSchema();
    const runId = `order-${boundaries.join('-')}`;
    const store = postgresStore({ pool: server.pool(), schema });
    const job = { store: { url: server.url, schema }, runId, leaseMs: 1_500 };
    const but = { ended: new Set<unknown>(), left: new Set<string>() };
    let deaths = 0;
    let host = start({ ...job, dies: boundaries[0] }, 'host-0');
    let said = await host.says();
    while (said === 'still') {
      deaths += 1;
      const next = start({ ...job, dies: boundaries[deaths] }, `host-${deaths}`);
      // The successor finds the run owned by a process that it cannot look at, unless this machine was too slow to renew the lease.
      const found = await next.says();
      await host.kill();
      const ids = new Set(spansOf(runId).flatMap(({ attributes }) => attributes['pawl.run.id'] ?? []));
      for (const id of [runId, ...ids].map(String)) {
        const record = await store.load(id);
        for (const left of record ? leftSpans(record) : []) but.left.add(left);
        if (record?.outcome ?? (await store.outcomes.find(id))) but.ended.add(id);
      }
      said = found === 'elsewhere' ? await next.says() : found;
      host = next;
    }
    expect(said).toBe('ok');
    await host.exited;
    const spans = spansOf(runId);
    const hosts = new Set(spans.map((span) => received.get(span)));
    const exporterOf = (span: ReadableSpan) => received.get(span);
    expect(faultsOf({ spans: () => spans, open: () => [], exporterOf }, but)).toEqual([]);
    const lost = spans.filter(({ attributes }) => attributes['pawl.attempt.lost'] === true);
    // A run may end before a boundary that was drawn.
    if (torture === 1) expect([deaths, lost.length > 0, hosts.size > 1]).toEqual([boundaries.length, true, true]);
    expect(lost.map((span) => received.get(span))).not.toContain('host-0');
  },
);
