import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { historiesOf, repeatedCalls } from '../../src/cli/demo/call-lines.ts';
import { isAlive } from '../fixtures/processes.ts';
import { emptyFolder, Pawl, pawl } from './pawl.ts';

interface DemoDocument {
  readonly folder: string;
  readonly report: string;
  readonly status: string;
  readonly killed: { readonly pid: number; readonly steps: number; readonly underWay: readonly { callId: string }[] };
  readonly processes: readonly {
    readonly pid: number;
    readonly calls: readonly { callId: string; finished: boolean }[];
  }[];
  readonly recorded: number;
  readonly repeated: number;
}

const docs = fileURLToPath(new URL('../../docs', import.meta.url));

test.concurrent('the demo kills a run at work, resumes it, and repeats nothing that was recorded', async () => {
  const cwd = emptyFolder();
  const { code, stdout, stderr } = await pawl(['demo', '--json'], { cwd });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const demo: DemoDocument = JSON.parse(stdout);
  expect(demo).toMatchObject({ status: 'ok', repeated: 0 });
  expect(demo.killed.steps).toBeGreaterThan(2);
  expect(demo.killed.underWay.length).toBeGreaterThan(0);
  expect(demo.recorded).toBeGreaterThan(4);

  const [first, second] = demo.processes;
  expect(first?.pid).toBe(demo.killed.pid);
  expect(second?.pid).not.toBe(first?.pid);
  const cutOff = first?.calls.filter(({ finished }) => !finished).map(({ callId }) => callId) ?? [];
  expect(cutOff).toEqual(demo.killed.underWay.map(({ callId }) => callId));
  expect(second?.calls.map(({ callId }) => callId)).toEqual(expect.arrayContaining(cutOff));
  expect(second?.calls.every(({ finished }) => finished)).toBe(true);

  const files = readdirSync(docs, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const report = readFileSync(demo.report, 'utf8');
  for (const { name } of files) expect(report).toContain(name);
  expect(readdirSync(cwd)).toEqual([]);
  rmSync(demo.folder, { recursive: true });
});

test.concurrent('the demo tells a reader what ran where', async () => {
  const { code, stdout, stderr } = await pawl(['demo'], { cwd: emptyFolder() });
  expect(code).toBe(0);
  expect(stderr).toContain('not a language model');
  expect(stderr).toMatch(/SIGKILL to process 1 \(pid \d+\) in the middle of: .*add_note/);
  expect(stderr).toMatch(/\n {2}add_note \S+ +cut off +done\n/);
  expect(stderr).toMatch(/\n {2}list_files +done +-\n/);
  expect(stdout).toContain('Recorded calls that ran again: 0.\n');
  const folder = /Everything it writes is in (\S+)/.exec(stderr)?.[1] ?? '';
  expect(existsSync(/Report: (.*)/.exec(stdout)?.[1] ?? '')).toBe(true);
  rmSync(folder, { recursive: true });
});

test('a recorded call that ran again would be found', () => {
  const line = (event: 'begun' | 'finished', pid: number) => ({ event, pid, tool: 't', callId: 'a', file: '' });
  const lines = [line('begun', 1), line('finished', 1), line('begun', 2)];
  expect(repeatedCalls(historiesOf(lines, new Set(['a'])))).toMatchObject([{ callId: 'a', begun: 2 }]);
  expect(repeatedCalls(historiesOf(lines, new Set()))).toEqual([]);
});

test.concurrent('the demo leaves no process behind when it is told to end', async () => {
  const demo = new Pawl(['demo'], { cwd: emptyFolder() });
  await demo.says(/pid \d+/);
  const pid = Number(/pid (\d+)/.exec(demo.stderr)?.[1]);
  demo.child.kill('SIGTERM');
  expect((await demo.ended).code).toBe(130);
  await expect.poll(() => isAlive(pid), { timeout: 15_000 }).toBe(false);
});
