import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { historiesOf, repeatedCalls } from '../../src/cli/demo/call-journal.ts';
import { type Kill, Narrator } from '../../src/cli/demo/narrator.ts';
import type { Output } from '../../src/cli/ui/output.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { isAlive } from '../fixtures/processes.ts';
import { linesIn, withoutChance } from '../pictures/recording.ts';
import { bin } from '../toolchain/programs.ts';
import { emptyFolder, Pawl, pawl } from './pawl.ts';
import { hasTerminal, TerminalSession } from './terminal.ts';

interface DemoDocument {
  readonly folder: string;
  readonly report: string;
  readonly status: string;
  readonly kills: readonly {
    readonly pid: number;
    readonly steps: number;
    readonly underWay: readonly { readonly tool: string; readonly callId: string }[];
  }[];
  readonly approval: {
    readonly tool: string;
    readonly callId: string;
    readonly askedBy: number;
    readonly approvedBy: number;
  };
  readonly processes: readonly {
    readonly pid: number;
    readonly calls: readonly { readonly tool: string; readonly callId: string; readonly finished: boolean }[];
  }[];
  readonly recorded: number;
  readonly once: readonly string[];
  readonly repeated: number;
}

const docs = fileURLToPath(new URL('../../docs', import.meta.url));

/** What the demo says with --json, and where it ran: played once, as it takes its time. */
let played: Promise<{ readonly demo: DemoDocument; readonly cwd: string }> | undefined;
function playedDemo(): NonNullable<typeof played> {
  played ??= (async () => {
    const cwd = emptyFolder();
    const { code, stdout, stderr } = await pawl(['demo', '--json'], { cwd });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return { demo: JSON.parse(stdout) as DemoDocument, cwd };
  })();
  return played;
}
afterAll(async () => {
  if (played) rmSync((await played).demo.folder, { recursive: true });
});

test.concurrent('the demo kills a run twice at work, resumes it, and repeats nothing that was recorded or is of effect once', async () => {
  const { demo, cwd } = await playedDemo();
  expect(demo).toMatchObject({ status: 'ok', repeated: 0 });
  const [halfway, publishing] = demo.kills;
  expect(halfway?.steps).toBeGreaterThan(2);
  expect(halfway?.underWay.map(({ tool }) => tool)).toContain('add_note');
  expect(publishing?.underWay.map(({ tool }) => tool)).toEqual(['publish_report']);
  expect(demo.once).toEqual(publishing?.underWay.map(({ callId }) => callId));

  const [first, second, third, fourth] = demo.processes;
  expect(new Set(demo.processes.map(({ pid }) => pid)).size).toBe(4);
  const cutOff = first?.calls.filter(({ finished }) => !finished).map(({ callId }) => callId) ?? [];
  expect(cutOff).toEqual(halfway?.underWay.map(({ callId }) => callId));
  expect(second?.calls.map(({ callId }) => callId)).toEqual(expect.arrayContaining(cutOff));
  expect(second?.calls.filter(({ finished }) => !finished)).toEqual([]);
  expect(third?.calls).toMatchObject([{ tool: 'publish_report', finished: false }]);
  expect(fourth?.calls).toEqual([]);

  const files = readdirSync(docs, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const report = readFileSync(demo.report, 'utf8');
  for (const { name } of files) expect(report).toContain(name);
  expect(readdirSync(cwd)).toEqual([]);
});

test.concurrent('the demo has an approval that outlives its process: another process approves, and the call begins once, after it (waiting 22)', async () => {
  const { approval, processes, once, folder } = (await playedDemo()).demo;
  const [first, asking, publishing, last] = processes.map(({ pid }) => pid);
  expect(approval).toMatchObject({
    tool: 'publish_report',
    askedBy: asking,
    digest: expect.stringMatching(/^\w{64}$/),
  });
  expect([first, asking, publishing, last]).not.toContain(approval.approvedBy);
  expect(isAlive(approval.askedBy)).toBe(false);
  expect(once).toEqual([approval.callId]);
  const calls = readFileSync(join(folder, 'demo/calls.jsonl'), 'utf8').trimEnd().split('\n');
  const published = calls.map((line) => JSON.parse(line)).filter(({ callId }) => callId === approval.callId);
  expect(published).toMatchObject([{ event: 'begun', tool: 'publish_report', pid: publishing }]);
  const store = sqliteStore({ path: join(folder, 'runs.db') });
  expect(await store.load('demo')).toBeNull();
  // Studio shows all of it: its record and its events are kept.
  expect(await store.load('demo', { ended: true })).toMatchObject({ outcome: { status: 'ok' } });
  const page = await store.journal.read('demo', { after: 0, limit: 10 });
  expect(page?.entries.length).toBeGreaterThan(0);
  await store.close();
});

test
  .skipIf(!hasTerminal)
  .concurrent(
    'the demo is about twelve lines of 80 columns on a terminal, an approval and a once call that is not repeated among them (waiting 22)',
    async () => {
      // A folder of temporary files whose name is as short as a user's.
      const settings = { columns: 80, rows: 24, cwd: emptyFolder(), env: { TMPDIR: '/tmp' } };
      const session = new TerminalSession([process.execPath, bin, 'demo'], settings);
      expect(await session.ended).toEqual({ code: 0, signal: null });
      const lines = await session.screen();
      expect(lines.length).toBeLessThanOrEqual(13);
      expect(
        lines.map((line) => line.replace(/pid \d+/g, 'pid').replace(/\b\d+ (files|calls|recorded)/g, 'n $1')),
      ).toEqual([
        'An agent surveys n files; its model is a small program. Each step: --verbose',
        'Process 1 (pid) starts the run',
        expect.stringMatching(/^ {2}SIGKILL during .*add_note( ×\d+)? \(idempotent\).*; n recorded$/),
        'Process 2 (pid) resumes it',
        '  publish_report waits for a person; process 2 is gone, no other has the run',
        'Process 3 (pid) approves it; process 4 (pid) resumes it',
        '  SIGKILL during publish_report (once); n recorded',
        'Process 5 (pid) resumes it again',
        '  publish_report (once) is not repeated: its model gets "outcome unknown"',
        expect.stringMatching(/^The run ended ok: n calls; \d+ were cut off and ran again, as they may\.$/),
        'Recorded calls that ran again: 0. Once calls that ran twice: 0.',
        expect.stringMatching(/^Report: .*report\.md$/),
        expect.stringMatching(/^Look at it: (npx )?pawl studio --store .*runs\.db$/),
      ]);
      const recorded = linesIn(readFileSync(join(docs, 'pictures/demo.svg'), 'utf8'));
      expect(
        recorded.map(({ words }) => withoutChance(words)),
        'run `npm run recording`',
      ).toEqual(lines.map(withoutChance));
      const report = /Report: (.*)/.exec(lines.join('\n'))?.[1] ?? '';
      expect(existsSync(report)).toBe(true);
      rmSync(dirname(dirname(report)), { recursive: true });
    },
  );

test('the line of a kill has the effect of each tool beside its name', () => {
  const said: string[] = [];
  const output = { show() {}, say: (line: string) => said.push(line), paint: (_: string, text: string) => text };
  const call = (name: string, effect: string, id: string) => ({ name, effect, id, state: 'started' });
  const line = (tool: string) => ({ event: 'begun', pid: 1, tool, callId: tool, file: '' });
  const calls = [call('add_note', 'idempotent', 'a'), call('read_file', 'read', 'b'), call('read_file', 'read', 'c')];
  const record = { messages: [], iteration: 1, openStep: { calls } };
  const kill = { pid: 1, cutOff: [line('read_file'), line('add_note'), line('read_file')], record };
  new Narrator(output as unknown as Output, { isSilent: false, isVerbose: false }).tellKill(1, kill as unknown as Kill);
  expect(said).toEqual(['  SIGKILL during read_file ×2 (read), add_note (idempotent); 0 recorded']);
});

test.concurrent('the demo tells with --verbose what ran where', async () => {
  const { code, stdout, stderr } = await pawl(['demo', '--verbose'], { cwd: emptyFolder() });
  expect(code).toBe(0);
  expect(stderr).toMatch(/\n {2}process 1 {2}step 1: list_files\n/);
  expect(stderr).toMatch(/\n {2}add_note \S+ +cut off +done +- +-\n/);
  expect(stderr).toMatch(/\n {2}list_files +done +- +- +-\n/);
  expect(stderr).toMatch(/\n {2}publish_report +- +- +cut off +-\n/);
  expect(stderr).toMatch(/\n {2}process 2 {2}asked: Publish the report\? \(wait \w{12}\)\n/);
  const report = /Report: (.*)/.exec(stdout)?.[1] ?? '';
  expect(existsSync(report)).toBe(true);
  rmSync(dirname(dirname(report)), { recursive: true });
});

test('a call that ran again although it was recorded, or is of effect once, would be found', () => {
  const line = (event: 'begun' | 'finished', pid: number) => ({ event, pid, tool: 't', callId: 'a', file: '' });
  const lines = [line('begun', 1), line('finished', 1), line('begun', 2)];
  const found = (recordings: readonly ReadonlySet<string>[], once?: ReadonlySet<string>) =>
    repeatedCalls(historiesOf(lines, recordings), [1, 2, 3], once);
  expect(found([new Set(['a']), new Set(['a'])])).toMatchObject([{ callId: 'a', begun: 2 }]);
  // Cut off by the first kill, repeated by the second process and recorded then: that is how it should be.
  expect(found([new Set(), new Set(['a'])])).toEqual([]);
  expect(found([new Set(), new Set()])).toEqual([]);
  expect(found([new Set(), new Set()], new Set(['a']))).toMatchObject([{ callId: 'a' }]);
});

test.concurrent('the demo leaves no process behind when a signal ends it', async () => {
  const demo = new Pawl(['demo'], { cwd: emptyFolder() });
  await demo.says(/pid \d+/);
  const pid = Number(/pid (\d+)/.exec(demo.stderr)?.[1]);
  demo.child.kill('SIGTERM');
  expect((await demo.ended).code).toBe(143);
  await expect.poll(() => isAlive(pid)).toBe(false);
});
