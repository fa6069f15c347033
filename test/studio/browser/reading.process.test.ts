import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { memoryStore } from 'pawl';
import { fanOut } from 'pawl/fan-out';
import { toNodeListener } from 'pawl/http';
import { studioHandler } from 'pawl/studio';
import { callTool, reply, scriptedModel } from 'pawl/testing';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { safeHeaders } from '../../../src/studio/assets.ts';
import { inChromium, startChromium, whyNoChromium } from '../../fixtures/chromium.ts';
import { hostOf, toolOf, until } from '../../fixtures/host.ts';
import { madePage } from '../../toolchain/build-studio.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const hostile = '<img src=x onerror="window.hit=1">\u202e**bold**';

/** A Studio on a folder with a fan-out, and on a store with a thread. */
async function startSite() {
  const root = mkdtempSync(join(tmpdir(), 'pawl-reading-'));
  writeFileSync(join(root, 'greeting.txt'), 'Hello!\n');
  writeFileSync(join(root, 'run.sh'), 'true\n');
  chmodSync(join(root, 'run.sh'), 0o755);
  const editor = scriptedModel([
    callTool('read_file', { path: 'greeting.txt' }),
    callTool('write_file', { path: 'greeting.txt', content: 'Hello, world!\n' }),
    callTool('read_file', { path: 'run.sh' }),
    callTool('write_file', { path: 'run.sh', content: 'false\n' }),
    reply(hostile),
  ]);
  const models = { editor, other: scriptedModel([reply('As it is.')]) };
  await fanOut({
    prompt: 'Greet.',
    models,
    root,
    path: join(root, '.pawl', 'ask.json'),
    judge: () => ['editor', 'other'],
  });
  const host = hostOf({
    script: [callTool('look'), reply(hostile)],
    tools: [toolOf('look')],
    checkpoints: memoryStore(),
    journal: true,
  });
  const thread = host.executor.thread('chat-42', { agent: host.agent, callerId: 'ada' });
  await thread.send({ id: 'm1', text: 'What colour is the sky?' });
  await until(async () => (await thread.turns({ limit: 1 }))[0]?.state === 'ended');
  const files = await madePage();
  const grant = { callerId: 'ada', all: true, by: { id: 'ada' } };
  const studio = studioHandler(host.executor, {
    authorize: () => grant,
    fanOuts: join(root, '.pawl'),
    apply: { root },
  });
  const types = { html: 'text/html', js: 'text/javascript', css: 'text/css' };
  // The page as it would be built now.
  const handler = async (request: Request): Promise<Response> => {
    const name = new URL(request.url).pathname.slice(1) || 'index.html';
    const type = types[name.split('.').at(-1) as keyof typeof types];
    return name in files
      ? new Response(files[name], { headers: { ...safeHeaders, 'content-type': type } })
      : studio(request);
  };
  const server = createServer(toNodeListener(handler)).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const close = async () => {
    server.close();
    server.closeAllConnections();
    await host.executor.shutdown();
    rmSync(root, { recursive: true, force: true });
  };
  return { root, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close };
}

const large = { width: 1440, height: 900 };
const small = { width: 390, height: 844 };
/** Each costs seconds: the other two have the same elements, with the other colours. */
const looks = [
  ['light', large],
  ['dark', small],
  ...(process.env.PAWL_TORTURE
    ? ([
        ['dark', large],
        ['light', small],
      ] as const)
    : []),
] as const;

describe.skipIf(whyNoChromium !== undefined)('the views of Studio that only read', () => {
  let site: Awaited<ReturnType<typeof startSite>>;
  let browser: Browser;
  beforeAll(async () => {
    [site, browser] = await Promise.all([startSite(), startChromium()]);
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
  });

  async function opened(address: string, options: object = {}) {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
    const page: Page = await context.newPage();
    const wrong: string[] = [];
    page.on('console', (message) => message.type() === 'error' && wrong.push(message.text()));
    page.on('pageerror', (error) => wrong.push(String(error)));
    await page.goto(`${site.origin}#/${address}`);
    return { page, wrong, close: () => context.close() };
  }

  it(
    inChromium(
      'show a fan-out, apply its changes after their files were shown, and take them back, and say by whom (studio 10, 16, 25, 29)',
    ),
    async () => {
      const { page, wrong, close } = await opened('fan-outs');
      await page.click('a.line');
      await page.waitForSelector('.col.best');
      expect(await page.textContent('.col.best .said')).toBe(hostile.replace('\u202e', '\\u202e'));
      await page.click('.col.best >> text=Apply…');
      const dialog = page.locator('dialog');
      expect(await dialog.textContent()).toMatch(/greeting\.txt.*run\.sh.*the file is executable/);
      await dialog.locator('button', { hasText: /^Apply$/ }).click();
      await page.waitForSelector('text=Applied: 2 files');
      expect(readFileSync(join(site.root, 'greeting.txt'), 'utf8')).toBe('Hello, world!\n');
      await page.click('text=Take back');
      await page.waitForSelector('.col.best >> text=Apply…');
      expect(readFileSync(join(site.root, 'greeting.txt'), 'utf8')).toBe('Hello!\n');
      // Who did it stays, also after a reload.
      await page.reload();
      await page.waitForSelector('.col.best >> text=/^Taken back by ada at \\d\\d:\\d\\d:\\d\\d$/');
      await page.waitForSelector('.col.best >> text=/^Applied by ada at \\d\\d:\\d\\d:\\d\\d$/');
      expect(await page.evaluate('window.hit')).toBeUndefined();
      expect(wrong).toEqual([]);
      await close();
    },
  );

  it(
    inChromium('show a thread, its turns and the chart of its run, whose labels fit their states (studio 5, 11, 29)'),
    async () => {
      const { page, wrong, close } = await opened('threads');
      await page.click('a.line');
      await page.waitForSelector('text=What colour is the sky?');
      await page.click('td a');
      await page.waitForSelector('.node.at');
      await page.waitForSelector('svg.chart[aria-label="Statechart of the run: ok, it is in settled"]');
      const tooWide = `[...document.querySelectorAll('.node')].filter((node) => node.querySelector('text').getBBox().width
      > node.querySelector('rect').getBBox().width - 4).map((node) => node.textContent)`;
      expect(await page.evaluate(tooWide)).toEqual([]);
      expect(wrong).toEqual([]);
      await close();
    },
  );

  it(
    inChromium(
      'have no fault that axe finds and nothing wider than the window, light and dark, large and small (studio 15, 29)',
    ),
    async () => {
      for (const [colorScheme, viewport] of looks) {
        const { page, close } = await opened('store', { colorScheme, viewport, bypassCSP: true });
        await page.evaluate(axe);
        for (const view of ['fan-outs', 'threads', 'store', 'threads/chat-42?caller=ada']) {
          await page.evaluate(`location.hash = '#/${view}'`);
          await page.waitForSelector({ store: '.doctor' }[view] ?? (view.includes('/') ? '.msg' : 'a.line'));
          const { violations } = (await page.evaluate('axe.run()')) as { violations: { id: string }[] };
          expect([view, viewport.width, colorScheme, ...violations.map(({ id }) => id)]).toEqual([
            view,
            viewport.width,
            colorScheme,
          ]);
          expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
        }
        await close();
      }
    },
  );
});
