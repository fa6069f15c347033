import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../fixtures/host.ts';
import { installedFolder, pathWithNode } from '../fixtures/installed.ts';
import { passOnErrors } from '../fixtures/processes.ts';

/*
 * The examples as somebody has them who has installed the package: what npm would pack is unpacked below node_modules, and the
 * commands are those in the comment at the top of each example.
 */

const path = pathWithNode;
let folder: string;
const children: ChildProcess[] = [];

beforeAll(() => {
  folder = installedFolder();
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    const isRunning = child.exitCode === null && child.signalCode === null;
    if (isRunning && child.kill('SIGKILL')) await once(child, 'exit');
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The commands in the comment at the top of an example. */
function commandsOf(example: string): string[] {
  const text = readFileSync(join(folder, 'node_modules', 'pawl', 'docs', 'examples', example), 'utf8');
  const [comment = ''] = text.split('\nimport ');
  return [...comment.matchAll(/^\/\/ {3}(\S.*)$/gm)].map(([, command = '']) => command);
}

function sh(command: string, env: NodeJS.ProcessEnv = {}): string[] {
  const options = {
    cwd: folder,
    env: { ...process.env, PATH: path, npm_config_loglevel: 'error', ...env },
    encoding: 'utf8' as const,
  };
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], options);
  expect([command, status, stderr]).toEqual([command, 0, '']);
  return stdout.trimEnd().split('\n');
}

/** A command that goes on until it is killed. */
function begun(command: string, env: NodeJS.ProcessEnv = {}) {
  const options = { cwd: folder, env: { ...process.env, PATH: path, ...env } };
  const child = passOnErrors(spawn('sh', ['-c', `exec ${command}`], { ...options, stdio: ['ignore', 'pipe', 'pipe'] }));
  children.push(child);
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  return { child, lines, ended: once(child, 'exit') };
}

describe('an example of the installed package runs by the commands in its comment:', () => {
  test('the desk is killed with open tickets, and its second command answers each of them once', async () => {
    const [esm = '', copy = '', start = '', again = ''] = commandsOf('desk/desk.ts');
    sh(esm);
    sh(copy);
    const first = begun(start, { ANSWER_MS: '60000' });
    await until(() => first.lines.length === 2, 'two tickets');
    first.child.kill('SIGKILL');
    await first.ended;
    expect(sh(again, { ANSWER_MS: '10' })).toEqual(['ticket.1: It will be seen to.', 'ticket.2: It will be seen to.']);
  });

  test('the jobs are done, and their second command finds nothing left', () => {
    const [esm = '', copy = '', start = '', again = ''] = commandsOf('jobs/jobs.ts');
    sh(esm);
    sh(copy);
    const lines = sh(start, { COUNT_MS: '1' });
    expect(lines).toContain('job-1: Counted to 3. durable: false');
    expect(lines).toContain('job-2: Counted to 40. durable: true');
    expect(sh(again)).toEqual(['']);
  });
});
