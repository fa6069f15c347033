import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { defineTool } from 'pawl';
import { callTool, checkpointStoreContract, hang, reply, scriptedModel, testClock } from 'pawl/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openJobs } from '../../docs/examples/jobs/job-table.ts';
import { countingModel, type JobsOptions, jobService } from '../../docs/examples/jobs/jobs.ts';
import { until } from '../fixtures/host.ts';
import { passOnErrors } from '../fixtures/processes.ts';

const script = fileURLToPath(new URL('../../docs/examples/jobs/jobs.ts', import.meta.url));
let folder: string;
let path: string;
const closing: (() => unknown)[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-jobs-'));
  path = join(folder, 'jobs.db');
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  rmSync(folder, { recursive: true, force: true });
});

const cap = { maxBytes: 1_000_000 };
const tableAt = (at = path) => {
  const table = openJobs(at, { cap });
  closing.push(() => table.db.close());
  return table;
};

describe('the store on a table of a host’s own', () => {
  let stores = 0;
  const contract = checkpointStoreContract({
    create: async () => {
      const at = join(folder, `${stores++}.db`);
      return Object.assign(tableAt(at).store, { at });
    },
    reopen: async ({ at }) => Object.assign(tableAt(at).store, { at }),
    damage: async ({ at }, runId, kind) => {
      const newer = `record = replace(record, '"version":3', '"version":99'), version = 99`;
      const change = kind === 'newer' ? newer : 'record = substr(record, 1, 40)';
      tableAt(at).db.prepare(`UPDATE jobs SET ${change} WHERE id = ?`).run(runId);
    },
  });
  for (const { title, run } of contract) test(title, run);
});

/** A tool whose answers have so many characters. */
const told = (length: number) =>
  defineTool({
    name: 'count',
    description: 'Counts one further.',
    effect: 'read',
    input: { type: 'object' },
    execute: async () => 'x'.repeat(length),
  }) as never;

const serviceOf = (options: Partial<JobsOptions> = {}) => {
  const service = jobService({
    path,
    model: countingModel(),
    tools: [told(10)],
    logger: { warn: () => {} },
    ...options,
  });
  let isStopped = false;
  const stop = async () => {
    if (!isStopped) await service.stop();
    isStopped = true;
  };
  closing.push(stop);
  return { ...service, stop };
};

describe('a job that is lazily durable', () => {
  test('that is over after a few steps costs no write, and says durable: false in its info and its result', async () => {
    const service = serviceOf();
    const seen: unknown[] = [];
    const run = await service.add('short', 'Count to 3.');
    expect(service.executor.run$('short')?.get().durable).toBe(false);
    for await (const { type } of run.events()) if (type === 'checkpoint.saved') seen.push(type);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'Counted to 3.', durable: false });
    expect(seen).toEqual([]);
    expect(service.table.jobs()).toMatchObject([{ id: 'short', status: 'ok', answer: 'Counted to 3.' }]);
  });

  test('is stored from its fifth step on, and says durable: true from then on', async () => {
    const model = scriptedModel([...[1, 2, 3, 4, 5].map((n) => callTool('count', { n })), hang()]);
    const service = serviceOf({ model });
    const run = await service.add('long', 'Count on.');
    await until(() => model.calls.length === 6);
    await until(async () => (await service.table.store.load('long'))?.iteration === 5);
    expect(service.executor.run$('long')?.get().durable).toBe(true);
    expect(await run.steer('Quick!')).toBe('durable');
    await service.stop();
    expect(await run.result).toMatchObject({ status: 'interrupted', durable: true });
  });

  test('is stored when it has worked for 30 seconds, after any steps', async () => {
    const clock = testClock();
    const model = scriptedModel([callTool('count', { n: 1 }), hang()]);
    const service = serviceOf({ model, clock });
    const run = await service.add('slow', 'Count slowly.');
    await until(() => model.calls.length === 2);
    expect(await run.steer('Quick!')).toBe('queued');
    await clock.advance(29_999);
    expect(await service.table.store.load('slow')).toBeNull();
    await clock.advance(1);
    await until(() => service.table.store.load('slow'));
    expect(await service.table.store.load('slow')).toMatchObject({ iteration: 1 });
    await until(() => service.executor.run$('slow')?.get().durable === true);
  });

  test('is stored by a shutdown, and continues at the next boot', async () => {
    const first = serviceOf({ model: scriptedModel([callTool('count', { n: 1 }), hang()]) });
    const run = await first.add('left', 'Count to 2.');
    await until(() => first.executor.run$('left')?.get().iteration === 1);
    await first.stop();
    expect((await run.result).status).toBe('interrupted');
    const second = serviceOf();
    expect((await second.boot()).resumed).toEqual([{ runId: 'left' }]);
    await until(() => second.table.jobs()[0]?.status === 'ok');
    expect(second.table.jobs()[0]?.answer).toBe('Counted to 2.');
  });
});

describe('a record that is larger than its column allows', () => {
  test('is shortened: the run ends well with its whole transcript, and the row has the beginning of each text', async () => {
    const sizes: number[] = [];
    const service = serviceOf({
      tools: [told(5_000)],
      cap: { maxBytes: 30_000 },
      onStep: () => sizes.push(String(service.table.db.prepare('SELECT record FROM jobs').get()?.record ?? '').length),
    });
    const run = await service.add('large', 'Count to 40.');
    const { status, output, durable, saveErrors, messages } = await run.result;
    expect({ status, output, durable, saveErrors }).toEqual({
      ...{ status: 'ok', output: 'Counted to 40.', durable: true, saveErrors: 0 },
    });
    expect(JSON.stringify(messages).length).toBeGreaterThan(200_000);
    expect(Math.max(...sizes)).toBeGreaterThan(10_000);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(30_000);
  });

  test('that cannot be shortened far enough is parked with what was stored last, and not failed; unparked with more room it ends well', async () => {
    const long = 'y'.repeat(3_000);
    const calls = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => callTool('count', { n, note: n > 6 ? long : '' }));
    const first = serviceOf({ model: scriptedModel([...calls, reply('done')]), cap: { maxBytes: 5_000 } });
    const run = await first.add('parked', 'Count on.');
    expect(await run.result).toMatchObject({ status: 'interrupted', error: { code: 'LEASE_LOST' } });
    expect(first.table.jobs()).toMatchObject([{ id: 'parked', status: 'open', answer: null }]);
    await first.stop();

    const second = serviceOf({ model: scriptedModel([...calls.slice(6), reply('done')]) });
    expect(await second.boot()).toMatchObject({ resumed: [], parked: [{ runId: 'parked' }] });
    const record = await second.table.store.load('parked');
    expect(record?.parked).toMatchObject({ code: 'RECORD_TOO_LARGE' });
    expect(record?.iteration).toBeGreaterThanOrEqual(5);
    await second.executor.unpark('parked');
    expect((await second.boot()).resumed).toEqual([{ runId: 'parked' }]);
    await until(() => second.table.jobs()[0]?.status === 'ok');
    expect(second.table.jobs()[0]?.answer).toBe('done');
  });
});

describe('the host as a process', () => {
  const begun = (prompts: readonly string[]) => {
    const env = { ...process.env, JOBS: path, COUNT_MS: '20' };
    const child = passOnErrors(
      spawn(process.execPath, [script, ...prompts], { env, stdio: ['ignore', 'pipe', 'pipe'] }),
    );
    closing.push(async () => {
      if (child.exitCode === null && child.signalCode === null && child.kill('SIGKILL')) await once(child, 'exit');
    });
    const lines: string[] = [];
    createInterface({ input: child.stdout as never }).on('line', (line) => lines.push(line));
    return { child, lines, ended: once(child, 'exit') as Promise<[number | null, string | null]> };
  };

  test('is killed before its job is stored, and again after: it begins the job again once, then continues where it was, and ends it', async () => {
    const table = tableAt();
    const killedAt = async (step: number, prompts: readonly string[]) => {
      const { child, lines, ended } = begun(prompts);
      await until(() => lines.some((line) => line.startsWith(`job-1: step ${step},`)), `step ${step}`);
      child.kill('SIGKILL');
      expect(await ended).toEqual([null, 'SIGKILL']);
      return { lines, stored: await table.store.load('job-1') };
    };
    const first = await killedAt(2, ['Count to 40.']);
    expect(first.stored).toBeNull();
    expect(first.lines).toContain('job-1: step 2, durable: false');
    const second = await killedAt(12, []);
    expect(second.lines).not.toContain('job-1: continues');
    expect(second.lines).toContain('job-1: step 12, durable: true');
    const done = second.stored?.iteration ?? 0;
    expect(done).toBeGreaterThanOrEqual(5);

    const third = begun([]);
    expect(await third.ended).toEqual([0, null]);
    expect(third.lines).toContain('job-1: continues');
    expect(third.lines).toContain('job-1: Counted to 40. durable: true');
    expect(table.jobs()).toMatchObject([{ id: 'job-1', status: 'ok', answer: 'Counted to 40.' }]);
    expect(await table.store.listInterrupted()).toEqual([]);
    const counts = table.db.prepare('SELECT n, count(*) AS times FROM counts GROUP BY n ORDER BY n').all();
    expect(counts.map(({ n }) => n)).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
    expect(counts[0]?.times).toBe(2);
    // What the record had was not done again.
    const inRecord = counts.filter(({ n }) => Number(n) > 5 && Number(n) <= done);
    expect(new Set(inRecord.map(({ times }) => times))).toEqual(new Set(inRecord.length > 0 ? [1] : []));
  });
});
