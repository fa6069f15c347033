import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { type Message, memoryStore } from 'pawl';
import { exportRuns, importRuns, type LabFile, type RecordedRun, readRun, readRuns, replay } from 'pawl/lab';
import { callTool, reply } from 'pawl/testing';
import { afterAll, expect, test } from 'vitest';
import { wrapStore } from '../../src/store/read-only.ts';
import { seed, torture } from '../crash/random.ts';
import { hostOf, toolOf } from '../fixtures/host.ts';
import { agentsOf, histories, recordingsOf } from './histories.ts';
import { recordedRun, retention } from './recorded.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-lab-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function all<T>(from: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const each of from) found.push(each);
  return found;
}

const pipeline = {
  phases: [
    { name: 'a', instructions: 'A.' },
    { name: 'b', instructions: 'B of {{.a}}.' },
  ],
};

/** The lines of a run with two steps, and the run. */
async function exported(options: Parameters<typeof recordedRun>[0] = {}) {
  const script = [callTool('pay', { cents: 7 }), reply('Done.'), reply('Again.')];
  const { host, run } = await recordedRun(
    { script, tools: [toolOf('pay', 'once')], ...options },
    { labels: { a: 'b' } },
  );
  return { host, run, lines: await all(exportRuns(host.executor, ['r'])) };
}

test('a file gives its runs back as they were read, from lines and from a path, and files may be joined (lab 22, 23)', async () => {
  const one = await exported();
  const other = await exported({ agent: pipeline });
  const text = `${one.lines.join('')}\n${other.lines.join('')}`;
  const path = join(folder, 'joined.jsonl');
  writeFileSync(path, text);
  expect(await all(readRuns(path))).toStrictEqual([one.run, other.run]);
  expect(await all(readRuns([...one.lines, ...other.lines]))).toStrictEqual([one.run, other.run]);
  expect(await all(readRuns(text.split('\n')))).toStrictEqual([one.run, other.run]);
});

test('each line is JSON; a run begins with its version, has a line for each step, and ends with the count and the checksum of its lines (lab 23)', async () => {
  const { lines, run } = await exported();
  const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines[0]?.startsWith('{"pawl":"run","version":1,"runId":"r"')).toBe(true);
  expect(parsed.filter(({ step }) => step !== undefined)).toHaveLength(run.steps.length);
  expect(parsed.at(-1)).toStrictEqual({
    end: 'r',
    lines: lines.length - 1,
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
});

test('children follow their parents, with the call that began them (lab 22)', async () => {
  const script = [callTool('agent__helper', { prompt: 'Help.' }), reply('helped'), reply('Done.')];
  const host = hostOf({ store: memoryStore(), retention, script, agent: { subAgents: ['helper'] } });
  const helper = hostOf({ agent: { id: 'helper' } }).agent;
  const both = hostOf({
    store: memoryStore(),
    retention,
    script,
    agent: { subAgents: ['helper'] },
    agents: [host.agent, helper],
  });
  await both.run({ runId: 'r' });
  const runs = await all(readRuns(exportRuns(both.executor, ['r'])));
  const { id, childRunId } = runs[0]?.steps[0]?.calls[0] ?? {};
  expect(runs.map(({ runId, parent }) => ({ runId, parent }))).toStrictEqual([
    { runId: 'r', parent: undefined },
    { runId: childRunId, parent: { runId: 'r', callId: id } },
  ]);
  expect(runs[1]).toMatchObject({ agentId: 'helper', status: 'ok', output: 'helped' });
});

test('what redact takes away is in no line, also of a record that was written without it (lab 22)', async () => {
  const store = memoryStore();
  await exported({ store });
  const later = hostOf({ store, redact: (text) => text.replaceAll('Done', '***') });
  const text = (await all(exportRuns(later.executor, ['r']))).join('');
  expect(text).toContain('***');
  expect(text).not.toContain('Done');
});

const damages: readonly [string, (lines: string[]) => string[], RegExp][] = [
  ['a changed text', (lines) => lines.map((line) => line.replace('Done.', 'Dine.')), /checksum does not fit/],
  ['a missing line', (lines) => lines.filter((_, i) => i !== 2), /lines are missing/],
  ['a cut file', (lines) => lines.slice(0, -1), /is cut/],
  [
    'a newer version',
    (lines) => [lines[0]?.replace('"version":1', '"version":2') ?? '', ...lines.slice(1)],
    /newer than this Pawl/,
  ],
  ['no version', (lines) => [lines[0]?.replace('"version":1,', '') ?? '', ...lines.slice(1)], /has no version/],
  ['a foreign line', (lines) => ['{"hello":1}', ...lines.slice(1)], /no line of an exported run/],
  ['no JSON', (lines) => [lines[0] ?? '', '{"opening":', ...lines.slice(2)], /JSON/],
  ['a list', (lines) => [lines[0] ?? '', '[]', ...lines.slice(2)], /not a JSON object/],
  ['an unknown part', (lines) => [lines[0] ?? '', '{"x":1}', ...lines.slice(2)], /no part of a run/],
  [
    'an unknown field',
    (lines) => [lines[0]?.replace('{"pawl":"run",', '{"pawl":"run","x":1,') ?? '', ...lines.slice(1)],
    /no field "x"/,
  ],
  ['a bad run id', (lines) => [lines[0]?.replace('"runId":"r"', '"runId":""') ?? '', ...lines.slice(1)], /run id/],
  [
    'a bad message',
    (lines) => [lines[0] ?? '', '{"earlier":[],"opening":[{"role":"root"}]}', ...lines.slice(2)],
    /the role is/,
  ],
  ['a bad phase', (lines) => [lines[0] ?? '', lines[1] ?? '', '{"phase":7,"step":[]}'], /phase is not a text/],
  [
    'an end of another run',
    (lines) => [...lines.slice(0, -1), lines.at(-1)?.replace('"r"', '"q"') ?? ''],
    /of another run/,
  ],
];

test.for(damages)(
  '%s is LAB_FILE with its line, and reading continues at the next run (lab 24)',
  async ([, damage, message]) => {
    const { lines, run } = await exported();
    const file = [...damage([...lines]), ...lines];
    const thrown = all(readRuns(file));
    await expect(thrown).rejects.toMatchObject({
      code: 'LAB_FILE',
      line: expect.any(Number),
      message: expect.stringMatching(message),
    });
    const told: LabFile[] = [];
    expect(await all(readRuns(file, { onDamaged: (error) => void told.push(error) }))).toStrictEqual([run]);
    expect(told.map(({ message: text }) => text)).toStrictEqual([expect.stringMatching(message)]);
  },
);

test('a run of more than 64 MiB or 10,000 steps is LAB_FILE; a long line is not kept in memory (lab 24)', async () => {
  const { lines, run } = await exported();
  const path = join(folder, 'large.jsonl');
  writeFileSync(path, `${lines[0]}{"earlier":[],"opening":[],"x":"`);
  for (let i = 0; i < 65; i++) writeFileSync(path, 'x'.repeat(2 ** 20), { flag: 'a' });
  writeFileSync(path, `"}\n${lines.slice(2).join('')}${lines.join('')}`, { flag: 'a' });
  const told: string[] = [];
  expect(await all(readRuns(path, { onDamaged: ({ message }) => void told.push(message) }))).toStrictEqual([run]);
  expect(told).toStrictEqual([expect.stringMatching(/line 2: run "r": it has more than 67108864 bytes/)]);
  const many = [...lines.slice(0, 2), ...Array.from({ length: 10_001 }, () => '{"step":[]}')];
  await expect(all(readRuns(many))).rejects.toThrow('more than 10000 steps');
  const wide = JSON.stringify({ step: [{ role: 'user', content: [{ type: 'text', text: 'x'.repeat(2 ** 20) }] }] });
  const long = [...lines.slice(0, 2), ...Array.from({ length: 64 }, () => wide)];
  await expect(all(readRuns(long))).rejects.toThrow('line 66: run "r": it has more than 67108864 bytes');
});

test('a run that is too large for a file is not exported: UNSUPPORTED, before its first line (lab 22, 24)', async () => {
  const exportOf = async (messages: readonly Message[]) => {
    const store = memoryStore();
    await recordedRun({ store });
    const { load } = store;
    store.load = async (...args) => {
      const record = await load(...args);
      const all = record && [...record.messages.slice(0, 1), ...messages];
      return record && all && { ...record, iteration: messages.length, messages: all };
    };
    const lines: string[] = [];
    try {
      for await (const line of exportRuns(hostOf({ store }).executor, ['r'])) lines.push(line);
    } catch (error) {
      return [lines.length, (error as { code: string }).code, (error as Error).message];
    }
    return [lines.length];
  };
  const saying = (text: string): Message => ({ role: 'assistant', content: [{ type: 'text', text }] });
  const often = (count: number) => Array.from({ length: count }, () => saying('Hm.'));
  expect(await exportOf(often(9))).toEqual([4 + 9]);
  const refused = (what: RegExp) => [0, 'UNSUPPORTED', expect.stringMatching(what)];
  expect(await exportOf(often(10_001))).toEqual(refused(/^run r .* 10001 steps; a file takes up to 10000 a run$/));
  const pages = 'x'.repeat(2 ** 23);
  expect(await exportOf(Array.from({ length: 8 }, () => saying(pages)))).toEqual(refused(/67108864 bytes/));
});

test('an imported run has ended: it is read, replayed and exported again, is never due and tells no end (lab 25)', async () => {
  const { lines, run, host } = await exported();
  const outcomes: unknown[] = [];
  const there = hostOf({
    store: memoryStore(),
    onOutcome: (outcome) => void outcomes.push(outcome),
    agents: [host.agent],
  });
  expect(await importRuns(there.executor, lines)).toStrictEqual({ imported: ['r'], skipped: [], damaged: [] });
  const imported = await readRun(there.executor, 'r');
  expect(imported).toStrictEqual({ ...run, imported: true });
  expect(await replay(imported, { agent: host.agent })).toMatchObject({ same: true });
  expect(await there.executor.due()).toMatchObject({ runs: [] });
  expect(await there.executor.recover()).toMatchObject({ resumed: [] });
  expect(await there.executor.find('r')).toMatchObject({ status: 'ended' });
  expect(outcomes).toStrictEqual([]);
  expect(await all(readRuns(exportRuns(there.executor, ['r'])))).toStrictEqual([imported]);
});

test('a run that waited for a person when it was exported asks no person where it is imported (lab 25)', async () => {
  const { host, lines } = await exported({ approvals: () => 'ask', defaults: { waitLingerMs: 1 } });
  expect(await host.executor.waiting()).toHaveLength(1);
  const there = hostOf({ store: memoryStore(), agents: [host.agent] });
  expect(await importRuns(there.executor, lines)).toMatchObject({ imported: ['r'] });
  expect(await there.executor.waiting()).toEqual([]);
  expect(await there.executor.recover()).toMatchObject({ resumed: [] });
  expect(await readRun(there.executor, 'r')).toMatchObject({ imported: true });
});

test('an import overwrites no run, and a repeated one adds what is missing; damage is reported with its line (lab 25)', async () => {
  const { lines, host, run } = await exported();
  const there = hostOf({ store: memoryStore() });
  const damaged = [...lines.slice(0, -1), ...lines];
  expect(await importRuns(there.executor, damaged)).toStrictEqual({
    imported: ['r'],
    skipped: [],
    damaged: [{ line: 1, message: expect.stringContaining('is cut') }],
  });
  expect(await importRuns(there.executor, lines)).toMatchObject({ imported: [], skipped: ['r'] });
  expect(await importRuns(host.executor, lines)).toMatchObject({ imported: [], skipped: ['r'] });
  expect(await readRun(host.executor, 'r')).toStrictEqual(run);
});

test('a start under the id of an imported run is refused, and its record stays (lab 25)', async () => {
  const { lines, host } = await exported();
  const there = hostOf({ store: memoryStore(), agents: [host.agent], retention });
  await importRuns(there.executor, lines);
  expect(await there.run({ runId: 'r' })).toMatchObject({ status: 'error', error: { code: 'RUN_ID_CONFLICT' } });
  expect(await readRun(there.executor, 'r')).toMatchObject({ imported: true });
});

test('an import that was cut off between its two writes is completed by the next one, and no process continues the run (lab 25)', async () => {
  const { lines, host, run } = await exported();
  const store = memoryStore();
  let isKilled = true;
  const dying = wrapStore(store, (name, call) => async (...args) => {
    if (name === 'history.end' && isKilled) throw new Error('killed');
    return call(...args);
  });
  const outcomes: unknown[] = [];
  const next = hostOf({ store: dying, agents: [host.agent], onOutcome: (outcome) => void outcomes.push(outcome) });
  await expect(importRuns(next.executor, lines)).rejects.toThrow('killed');
  isKilled = false;
  expect(await next.executor.due()).toMatchObject({ runs: [] });
  await next.executor.recover();
  expect(await next.executor.list()).toMatchObject([{ runId: 'r', status: 'parked' }]);
  expect(await importRuns(next.executor, lines)).toMatchObject({ imported: ['r'] });
  expect(await next.executor.list()).toStrictEqual([]);
  expect(await readRun(next.executor, 'r')).toStrictEqual({ ...run, imported: true });
  expect(outcomes).toStrictEqual([]);
  expect(next.model.calls).toStrictEqual([]);
});

test('a file needs a path or lines, and importRuns an executor with a store (lab 22, 25)', async () => {
  await expect(all(readRuns(7 as never))).rejects.toThrow('a path, or lines');
  await expect(all(readRuns([], { onDamage: 1 } as never))).rejects.toThrow('did you mean onDamaged?');
  await expect(all(readRuns(join(folder, 'none.jsonl')))).rejects.toMatchObject({ code: 'ENOENT' });
  const { lines } = await exported();
  await expect(importRuns(hostOf().executor, lines)).rejects.toMatchObject({ code: 'NOT_DURABLE' });
});

const HISTORIES = torture > 1 ? 200 : 10;

test(`a run that is exported, read, imported and read again is the same, after ${HISTORIES} random histories (seed ${seed}) (lab 22, 25)`, {
  timeout: 60_000 * torture,
}, async () => {
  await fc.assert(
    fc.asyncProperty(histories, async (history) => {
      const { runs, executors, count } = await recordingsOf(history);
      for (const [i, run] of runs.entries()) {
        const lines = await all(exportRuns(executors[i] as never, ['r']));
        const [read] = await all(readRuns(lines));
        expect(read).toStrictEqual(run);
        const there = hostOf({ store: memoryStore() });
        expect(await importRuns(there.executor, lines)).toMatchObject({ skipped: [], damaged: [] });
        const imported = await readRun(there.executor, 'r');
        const { status: _, error: __, ...same } = { ...run, imported: true } as RecordedRun;
        expect(imported).toMatchObject(same);
        const report = await replay(imported, { agent: agentsOf(history, count).agent });
        if (run.status === imported.status) expect(report).toMatchObject({ same: true });
        else expect(report.difference).toBeNull();
      }
    }),
    { numRuns: HISTORIES, seed },
  );
});
