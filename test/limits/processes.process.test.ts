import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { torture } from '../crash/random.ts';
import { until } from '../fixtures/host.ts';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { startChild } from '../store/child-process.ts';

const server = postgresServer(['fsync=off']);
/** The whole of clause 27 lasts 17 minutes: it belongs to the torture tests. */
const [PROCESSES, RUNS, requestsPerMinute] = torture === 1 ? [4, 15, 480] : [8, 1_250, 600];

test.skipIf(whyNoPostgres)(
  `${PROCESSES} processes on one PostgreSQL, of which one is killed, send no more than the limit and two seconds' worth in any span; each run ends, and a request costs at most one write (failover 17, 19, 24, 27)`,
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
    const untilEnded = async (count: number) => {
      // Ten thousand runs take longer than `until` waits.
      for (let seen = ended().size; torture > 1 && seen < count; seen = ended().size) await pause(500);
      await until(() => ended().size >= count);
    };
    // All runs of the first one are stored, and many have no turn yet.
    await untilEnded(PROCESSES * 5);
    await children[0]?.kill();
    children[0] = start(idsOf(0));
    await untilEnded(PROCESSES * RUNS);
    for (const child of children) await child.kill();

    const at = (what: string) =>
      lines()
        .filter((line) => line.includes(what))
        .map((line) => Number.parseInt(line, 10));
    const times = at(' request').sort((a, b) => a - b);
    const taken = lines().flatMap((line) => / take (\d+)$/.exec(line)?.[1] ?? []);
    const minutes = ((times.at(-1) ?? 0) - (times[0] ?? 0)) / 60_000;
    const most = Math.max(...times.map((from, i) => times.findLastIndex((at) => at < from + 60_000) - i + 1));
    const used = ((times.length - 1) / (minutes * requestsPerMinute)) * 100;
    console.info(
      `${times.length} requests: ${used.toFixed(1)} % of the limit used, ${most} in a minute, ${taken.length} writes`,
    );
    // A short test has no minute, and what the killed process held is a large part of it.
    if (torture > 1) {
      expect(used).toBeGreaterThanOrEqual(95);
      expect(most).toBeLessThanOrEqual(requestsPerMinute / 30 + requestsPerMinute);
    }
    const rate = requestsPerMinute / 60_000;
    let [beyond, before] = [0, times[0] ?? 0];
    for (const [i, time] of times.entries()) {
      // The most requests of a span that ends here, beyond what the limit gives for it.
      beyond = Math.max(0, beyond - (time - before) * rate) + 1;
      before = time;
      expect(beyond, `request ${i}`).toBeLessThanOrEqual(2_000 * rate + 1);
    }
    expect(taken.length).toBeLessThanOrEqual(taken.reduce((sum, count) => sum + Number(count), 0));
    // A killed process loses the requests that it has sent, and the turns that it held.
    expect(times.length).toBeLessThan(PROCESSES * RUNS * 1.5);
  },
  torture === 1 ? 120_000 : 2_400_000,
);
