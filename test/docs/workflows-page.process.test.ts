import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../fixtures/host.ts';
import { installedFolder, pathWithNode } from '../fixtures/installed.ts';

const page = readFileSync(fileURLToPath(new URL('../../docs/workflows.md', import.meta.url)), 'utf8');
const env = { ...process.env, PATH: pathWithNode, npm_config_loglevel: 'error' };
let folder: string;

beforeAll(() => {
  folder = installedFolder(['zod']);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a command in the folder to its end. @param logged what its log may say @returns the lines that it prints */
function sh(command: string, logged = /^$/): string[] {
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { cwd: folder, env, encoding: 'utf8' });
  expect([command, status, stderr]).toEqual([command, 0, expect.stringMatching(logged)]);
  return stdout.trimEnd().split('\n');
}

/** What the comments of a block say that it prints. */
const told = (code: string) => [...code.matchAll(/^console\.log\(.*\); \/\/ (.*)$/gm)].map(([, text = '']) => text);

/** Saves a block under its name, or runs it: in the order of the page. */
function follow(language: string, code: string, nth: number): void {
  const named = /^\/\/ ([a-z-]+\.ts)\n/.exec(code)?.[1];
  if (language === 'ts') writeFileSync(join(folder, named ?? `block-${nth}.ts`), code);
  if (language === 'ts' && named === undefined) {
    const printed = sh(`node block-${nth}.ts`);
    expect(printed).toEqual(told(code).length > 0 ? told(code) : ['']);
  }
  if (language !== 'sh') return;
  for (const line of code.trimEnd().split('\n')) {
    const [command = '', comment = ''] = line.split(' # ');
    // The package is installed already, as this line says.
    if (command.startsWith('npm install')) continue;
    const printed = sh(command.trim());
    if (comment !== '') expect(printed).toEqual([comment.split(':')[0]]);
  }
}

describe('the page about workflows, in an empty folder', () => {
  test('has blocks and commands that run in their order, and print what it says (workflow 32)', () => {
    const blocks = [...page.matchAll(/^```(ts|sh)\n([\s\S]*?)^```$/gm)];
    expect(blocks.length).toBeGreaterThan(6);
    for (const [nth, [, language = '', code = '']] of blocks.entries()) follow(language, code, nth);
  });

  test('has a refund that ends as it says although its process is killed twice (workflow 3, 7, 32)', async () => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(join(folder, `runs.db${suffix}`), { force: true });
    const begin = () => spawn(process.execPath, ['start.ts'], { cwd: folder, env, stdio: 'ignore' });
    const first = begin();
    await until(() => sh('node answer.ts')[0] === 'answered yes');
    first.kill('SIGKILL');
    await once(first, 'exit');
    const second = begin();
    await new Promise((resolve) => setTimeout(resolve, 250));
    if (second.exitCode === null && second.kill('SIGKILL')) await once(second, 'exit');
    // Killed in the middle of the payment it says so.
    const unclear = /^(run: a call of tool pay may or may not have taken effect[^}]*}\n)?$/;
    await until(() => !sh('node start.ts', unclear)[0]?.startsWith('interrupted'));
    expect(sh('node start.ts')[0]).toMatch(/^(paid receipt of 700|unclear)$/);
  });
});
