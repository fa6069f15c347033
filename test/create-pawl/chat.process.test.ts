// The template with Next: built for production, and used in a browser.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { engineEnvironment, inEngine, whyNo } from '../engines/engines.ts';
import { inChromium, startChromium, whyNoChromium } from '../fixtures/chromium.ts';
import { freePort } from '../fixtures/free-port.ts';
import { until } from '../fixtures/host.ts';
import { installInto, pathWithNode } from '../fixtures/installed.ts';

const whyNotNow = process.env.PAWL_TEST_ENGINES ? whyNo('next') : 'npm run test:engines runs it';
const bin = fileURLToPath(new URL('../../create-pawl/bin.js', import.meta.url));
const engines = fileURLToPath(new URL('../engines', import.meta.url));
const next = join('node_modules', 'next', 'dist', 'bin', 'next');
const env = { ...engineEnvironment, PATH: pathWithNode, NODE_OPTIONS: '' };
/** A build for production takes minutes on a busy computer. */
const BUILD_MS = 900_000;

let place: string;
let folder: string;
let browser: Browser | undefined;
const servers = new Set<ChildProcess>();

beforeAll(() => {
  if (whyNotNow !== undefined) return;
  // Inside the repository: Next follows no link that leads out of its root.
  place = mkdtempSync(join(engines, '.chat-'));
  folder = join(place, 'chat');
  ended([bin, 'chat', '--template', 'chat', '--pawl', '0.1.0'], place);
  installInto(folder, ['@ai-sdk/react', 'ai', 'react', 'react-dom', '@types/node', '@types/react', '@types/react-dom']);
  for (const name of ['next', 'typescript'])
    symlinkSync(join(engines, 'node_modules', name), join(folder, 'node_modules', name), 'dir');
});
afterAll(async () => {
  for (const server of servers) server.kill('SIGKILL');
  await browser?.close();
  if (place) rmSync(place, { recursive: true, force: true });
});

function ended(args: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...args], { cwd, env, encoding: 'utf8' });
  expect([args, status, stdout + stderr]).toEqual([args, 0, expect.anything()]);
  return stdout;
}

/** The server as `npm start` starts it. */
async function started(port: string) {
  const child = spawn(process.execPath, [next, 'start', '-H', '127.0.0.1', '-p', port], { cwd: folder, env });
  servers.add(child);
  const seen = { text: '' };
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (seen.text += data));
  await until(() => seen.text.includes('Ready'));
  return {
    paid: () => seen.text.split('paying 4200 cents').length - 1,
    killed: async () => {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

const say = async (page: Page, text: string) => {
  await page.getByLabel('Message').fill(text);
  await page.getByRole('button', { name: 'Send' }).click();
};
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const shown = (page: Page, text: string) => page.getByText(text).last().waitFor();

describe.skipIf(whyNotNow)(inEngine('next', 'a program from the template chat'), () => {
  test('compiles, holds what it promises when it is killed at each boundary, and is built for production', {
    timeout: BUILD_MS,
  }, () => {
    expect(ended(['--test'], folder)).toMatch(/\d{2,} crashes, at each of \d+ boundaries/);
    expect(ended([next, 'build'], folder)).toContain('/api/[...path]');
    ended([join('node_modules', 'typescript', 'bin', 'tsc')], folder);
  });

  test('answers this computer alone (edges 32)', async () => {
    const port = String(await freePort());
    const server = await started(port);
    const ask = async (headers: Record<string, string> = {}) =>
      (await fetch(`http://127.0.0.1:${port}/api/runs`, { headers })).status;
    // What comes before the server has begun is refused: nothing says from where it came.
    await until(async () => (await ask()) === 200);
    expect(await ask({ 'x-forwarded-for': '8.8.8.8' })).toBe(401);
    expect(await ask({ 'x-forwarded-host': 'desk.example' })).toBe(401);
    await server.killed();
  });

  test.skipIf(whyNoChromium)(
    inChromium(
      'shows a card, loses its server to kill -9, and after the approval pays once and continues in the same page',
    ),
    async () => {
      const port = String(await freePort());
      const first = await started(port);
      browser = await startChromium();
      const page = await browser.newPage();
      await page.goto(`http://127.0.0.1:${port}/`);
      await say(page, 'Refund order 7.');
      await shown(page, 'Refund 42.00 EUR for order 7?');
      await page.evaluate('window.isSame = true');
      await first.killed();
      const second = await started(port);
      await press(page, 'Approve');
      await shown(page, 'Order 7 is refunded: 42.00 EUR.');
      expect([first.paid(), second.paid()]).toEqual([0, 1]);
      expect(await page.evaluate('window.isSame')).toBe(true);
      expect(await page.locator('li.assistant').count()).toBe(1);

      await say(page, 'And order 8.');
      await shown(page, 'Refund 42.00 EUR for order 8?');
      await press(page, 'Deny');
      await shown(page, 'Order 8 is not refunded.');
      await page.reload();
      await shown(page, 'Order 8 is not refunded.');
      expect(await page.locator('li.assistant').count()).toBe(2);
      expect(second.paid()).toBe(1);
      await second.killed();
    },
  );
});
