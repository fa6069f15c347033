import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { inChromium, startChromium, whyNoChromium } from '../fixtures/chromium.ts';
import { until } from '../fixtures/host.ts';
import { installedFolder, pathWithNode } from '../fixtures/installed.ts';

/* The pages of the group Start that are followed: each block and each command in its order, in a folder with the packed package. */

const pageOf = (name: string) => readFileSync(fileURLToPath(new URL(`../../docs/${name}.md`, import.meta.url)), 'utf8');
const env = { ...process.env, PATH: pathWithNode, npm_config_loglevel: 'error' };
const ends: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

/** A folder as it is after the commands with which each of these pages begins. */
function startFolder(): string {
  const folder = installedFolder();
  ends.push(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'package.json'), '{ "name": "app", "type": "module" }\n');
  mkdirSync(join(folder, 'node_modules/.bin'));
  symlinkSync('../pawl/dist/src/cli/bin.js', join(folder, 'node_modules/.bin/pawl'));
  return folder;
}

/** Runs one line of a page to its end. @returns what it prints */
function sh(folder: string, command: string): string {
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { cwd: folder, env, encoding: 'utf8' });
  expect([command, status, status === 0 ? '' : stderr]).toEqual([command, 0, '']);
  return `${stdout}${stderr}`;
}

/** Starts a program of a page, which the test ends. @returns it, and what it has printed */
function begin(folder: string, file: string, more: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, [file], { cwd: folder, env: { ...env, ...more } });
  const printed = { text: '' };
  child.stdout.on('data', (data) => {
    printed.text += data;
  });
  ends.push(() => end(child, 'SIGKILL'));
  return { child, printed };
}

async function end(child: ChildProcess, signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null && child.kill(signal)) await once(child, 'exit');
  return child.exitCode;
}

async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  return String(port);
}

/** Saves a block of a page under its name. */
const save = (folder: string, code: string) => writeFileSync(join(folder, /^\/\/ (\S+)\n/.exec(code)?.[1] ?? ''), code);
const blocksOf = (page: string) =>
  [...page.matchAll(/^```(ts|sh)\n([\s\S]*?)^```$/gm)].map(([, language = '', code = '']) => ({ language, code }));

test('the program of the quickstart, killed in its second mail, sends the third one and no mail again', async () => {
  const folder = startFolder();
  for (const { language, code } of blocksOf(pageOf('quickstart'))) if (language === 'ts') save(folder, code);
  const first = begin(folder, 'main.ts');
  await until(() => first.printed.text.includes('mail to Grace'));
  expect(first.printed.text).toContain(`started in process ${first.child.pid}`);
  await end(first.child, 'SIGKILL');
  // Its output, then its log: one line, of the mail that was under way.
  expect(sh(folder, 'node main.ts')).toMatch(
    /^resumed in process \d+\nmail to Edsger\nAll three have a mail\.\nrun: a call of tool send_mail may or may not have taken effect; [^\n]+\{\n {2}event: 'call\.unknown',\n[^}]+\}\n$/,
  );
  expect(sh(folder, 'cat sent.log')).toBe('Ada\nGrace\nEdsger\n');
});

/** Follows the tutorial to its server: each command prints what its comment says. */
function followTutorial(folder: string): number {
  let approval = '';
  let commands = 0;
  for (const { language, code } of blocksOf(pageOf('tutorial'))) {
    if (language === 'ts') save(folder, code);
    for (const line of language === 'sh' ? code.trimEnd().split('\n') : []) {
      const [command = '', said = ''] = line.split(/ +# /);
      // The package is installed already; the server is started by the test of the page.
      if (/^npm (?:init|install)|server\.ts/.test(command)) continue;
      const isApproval = command.includes('<run> <wait>');
      const printed = sh(folder, isApproval ? `${approval} --by ada` : command);
      if (!command.includes('kill')) expect(printed).toContain(said);
      approval = /^ *(npx .* approve .*)$/m.exec(printed)?.[1] ?? approval;
      commands += 1;
    }
  }
  return commands;
}

describe('the tutorial, in an empty folder with the packed package', () => {
  test('has blocks and commands that run in their order, and print what it says', { timeout: 120_000 }, () => {
    expect(followTutorial(startFolder())).toBe(11);
  });

  test.skipIf(whyNoChromium)(
    inChromium(
      'has a page that continues over a killed server, and money that is paid once after an approval in Studio',
    ),
    { timeout: 120_000 },
    async () => {
      const folder = startFolder();
      for (const { language, code } of blocksOf(pageOf('tutorial'))) if (language === 'ts') save(folder, code);
      const PORT = await freePort();
      const boot = async () => {
        const server = begin(folder, 'server.ts', { PORT });
        await until(() => server.printed.text.includes(`http://localhost:${PORT}/studio`));
        return server.child;
      };
      const first = await boot();
      const browser = await startChromium();
      ends.push(() => browser.close());
      const page = await browser.newPage();
      await page.goto(`http://localhost:${PORT}/`);
      await page.getByRole('button', { name: 'Ask' }).click();
      await page.getByText('A person looks at it.').waitFor();
      await end(first, 'SIGKILL');
      const second = await boot();
      const studio = await browser.newPage();
      await studio.goto(`http://localhost:${PORT}/studio#/inbox`);
      await studio.getByRole('button', { name: 'Approve' }).click();
      await page.getByText('I looked after order A1.').waitFor();
      expect(sh(folder, 'cat bank.log')).toBe('A1 4990\n');
      expect([0, 75]).toContain(await end(second, 'SIGTERM'));
    },
  );
});
