import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { until } from '../fixtures/host.ts';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { startChild } from '../store/child-process.ts';

const server = postgresServer(['fsync=off']);
const PROCESSES = 4;
const RUNS = 20;
const requestsPerMinute = 480;

test.skipIf(whyNoPostgres)(
  'four processes on one PostgreSQL, of which one is killed, send no more than the limit and two seconds\u2019 worth in any span; each run ends, and a request costs at most one write (failover 17, 19, 24, 27)',
  async () => {
    const schema = server.freshSchema();
    const log = join(mkdtempSync(join(tmpdir(), 'pawl-test-')), 'log');
    writeFileSync(log, '');
    const lines = () => readFileSync(log, 'utf8').split('\n').slice(0, -1);
    const start = (runIds: readonly string[]) => {
      const argument = JSON.stringify({ schema, requestsPerMinute, runIds });
      return startChild({ role: server.url, path: log, argument, script: '../limits/child.ts' });
    };
    const idsOf = (place: number) => Array.from({ length: RUNS }, (_, i) => `run-${place}-${i}`);
    const children = Array.from({ length: PROCESSES }, (_, place) => start(idsOf(place)));
    const ended = () => new Set(lines().flatMap((line) => / ended (\S+) ok$/.exec(line)?.[1] ?? []));
    // All runs of the first one are stored, and many have no turn yet.
    await until(() => ended().size >= PROCESSES * 5);
    await children[0]?.kill();
    children[0] = start(idsOf(0));
    await until(() => ended().size === PROCESSES * RUNS);
    for (const child of children) await child.kill();

    const at = (what: string) =>
      lines()
        .filter((line) => line.includes(what))
        .map((line) => Number.parseInt(line, 10));
    const times = at(' request').sort((a, b) => a - b);
    const rate = requestsPerMinute / 60_000;
    for (const [first, from] of times.entries()) {
      for (let last = first; last < times.length; last++) {
        const span = (times[last] ?? 0) - from;
        expect(last - first + 1, `requests in ${span} ms`).toBeLessThanOrEqual(span * rate + 2_000 * rate + 1);
      }
    }
    const taken = lines().flatMap((line) => / take (\d+)$/.exec(line)?.[1] ?? []);
    expect(taken.length).toBeLessThanOrEqual(taken.reduce((sum, count) => sum + Number(count), 0));
    // A killed process loses the requests that it has sent, and the turns that it held.
    expect(times.length).toBeLessThan(PROCESSES * RUNS * 1.5);
  },
  120_000,
);
