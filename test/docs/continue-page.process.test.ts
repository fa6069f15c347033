import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { installedFolder, pathWithNode } from '../fixtures/installed.ts';

const page = readFileSync(fileURLToPath(new URL('../../docs/replay.md', import.meta.url)), 'utf8');
const guide = page.split(/^## /m)[1] ?? '';
let folder: string;

beforeAll(() => {
  folder = installedFolder();
  mkdirSync(join(folder, 'node_modules/.bin'));
  symlinkSync('../pawl/dist/src/cli/bin.js', join(folder, 'node_modules/.bin/pawl'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a command of the guide in its folder. */
function sh(command: string) {
  const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, ...rest } = process.env;
  const env = { ...rest, PATH: pathWithNode, HOME: folder, npm_config_loglevel: 'error' };
  return spawnSync('sh', ['-c', command], { cwd: folder, env, encoding: 'utf8' });
}

test('a run that failed continues after its cause is mended, and becomes a green test, by the commands and blocks of the guide in their order (lab 4, 17, 26, 27, 28)', () => {
  const steps = [...guide.matchAll(/^```(ts|sh)\n([\s\S]*?)^```$/gm)];
  expect(steps.length).toBe(5);
  let commands = 0;
  for (const [, language, code = ''] of steps) {
    const name = /^\/\/ (\S+\.ts)\n/.exec(code)?.[1];
    if (language === 'ts') writeFileSync(join(folder, name ?? ''), code);
    else
      for (const line of code.trimEnd().split('\n')) {
        const [command = '', said = ''] = line.split(' # ');
        // The package is installed already, as this line says.
        if (command.startsWith('npm install')) continue;
        const { status, stdout, stderr } = sh(command);
        const told = `${stdout}${stderr}`;
        expect([command, status]).toEqual([command, said.startsWith('fails') ? 1 : 0]);
        expect(told).toContain(said.replace('fails: ', ''));
        commands += 1;
      }
  }
  expect(commands).toBe(6);
});

test('the test of the guide turns red where a tool has another name (lab 17)', () => {
  const agent = readFileSync(join(folder, 'agent.ts'), 'utf8');
  writeFileSync(join(folder, 'agent.ts'), agent.replace("name: 'charge'", "name: 'chargeCard'"));
  expect(sh('node --test')).toMatchObject({ status: 1, stdout: expect.stringContaining('no tool named') });
  writeFileSync(join(folder, 'agent.ts'), agent);
  expect(sh('node --test').status).toBe(0);
});
