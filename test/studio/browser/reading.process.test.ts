import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { torture } from '../../crash/random.ts';
import { inChromium, startChromium, whyNoChromium } from '../../fixtures/chromium.ts';
import { gallery, hostile } from './gallery.ts';
import type { Site } from './site.ts';
import { faultsOf, go, lookAt, press, shown, Tabs, tooWide } from './tabs.ts';

/** Set it to a folder to look at the pages. */
const shots = process.env.PAWL_TEST_SHOTS;

interface View {
  readonly view: string;
  /** What it has when it is complete. */
  readonly has: string;
  /** What is done there before one looks. */
  act?(page: Page): Promise<void>;
}

const views: readonly View[] = [
  { view: 'runs', has: 'a.cover' },
  { view: 'runs?state=wait', has: 'a.cover', act: (page) => page.keyboard.press('j') },
  { view: 'run/asks', has: '.tr.call' },
  { view: 'run/below', has: '.tr.call .wait' },
  { view: 'run/done', has: '.tr.step', act: (page) => page.keyboard.press('[') },
  { view: 'run/phases', has: '.tr.phase' },
  { view: 'run/done/transcript', has: '.msg' },
  { view: 'run/done/usage', has: '.bars ~ .pad .meter' },
  { view: 'run/done/record', has: '.record' },
  { view: 'run/works/chart', has: 'svg.chart .node.at' },
  { view: 'run/works', has: '.tr.call', act: (page) => press(page, 'Cancel…') },
  { view: 'inbox', has: 'a.w' },
  { view: 'inbox/question', has: '#ask' },
  { view: 'inbox/asks', has: '.card .note', act: (page) => press(page, 'Edit') },
  { view: 'fan-outs', has: 'a.line' },
  { view: 'fan-outs/one', has: '.col.best' },
  { view: 'threads', has: 'a.line' },
  { view: 'threads/chat-42?caller=ada', has: '.msg' },
  { view: 'store', has: '.doctor td' },
];

describe.skipIf(whyNoChromium !== undefined)(inChromium('the views of Studio that only read'), () => {
  let shop: Awaited<ReturnType<typeof gallery>>;
  let browser: Browser;
  let tabs: Tabs;
  /** The views are opened in one tab, one after the other. */
  let page: Page;
  beforeAll(async () => {
    [shop, browser] = await Promise.all([gallery(), startChromium()]);
    tabs = new Tabs(browser);
    page = await tabs.open(shop.site.at('#/runs'));
  });
  afterEach(() => tabs.check());
  afterAll(async () => {
    await browser?.close();
    await shop?.stop();
  });

  it('show a fan-out, apply its changes after their files were shown, and take them back, and say by whom (studio 10, 16, 25, 29)', async () => {
    const file = join(shop.root, 'greeting.txt');
    await go(page, '#/fan-outs');
    await page.click('a.line');
    await page.waitForSelector('.col.best');
    expect(await page.textContent('.col.best .said')).toBe(hostile.replace('\u202e', '\\u202e'));
    // Both answers name one place.
    expect(await page.locator('.col .shared').allTextContents()).toEqual(['greeting.txt:1●●', 'greeting.txt:1●●']);
    await page.click('.col.best >> text=Apply…');
    const dialog = page.locator('dialog');
    expect(await dialog.textContent()).toMatch(/greeting\.txt.*run\.sh.*the file is executable/);
    await dialog.locator('button', { hasText: /^Apply$/ }).click();
    await shown(page, 'Applied: 2 files');
    expect(readFileSync(file, 'utf8')).toBe('Hello, world!\n');
    await press(page, 'Take back');
    await page.waitForSelector('.col.best >> text=Apply…');
    expect(readFileSync(file, 'utf8')).toBe('Hello!\n');
    // Who did it stays, also after a reload.
    await page.reload();
    await page.waitForSelector('.col.best >> text=/^Taken back by Ada at \\d\\d:\\d\\d:\\d\\d$/');
    await page.waitForSelector('.col.best >> text=/^Applied by Ada at \\d\\d:\\d\\d:\\d\\d$/');
  });

  it('show a thread, its turns and the chart of its run, whose labels fit their states (studio 5, 11, 29)', async () => {
    await go(page, '#/threads');
    await page.click('a.line');
    await shown(page, 'What colour is the sky?');
    await page.click('td a');
    await page.waitForSelector('svg.chart[aria-label="Statechart of the run: ok, it is in settled"]');
    const tooWide = `[...document.querySelectorAll('.node')].filter((node) => node.querySelector('text').getBBox().width
      > node.querySelector('rect').getBBox().width - 4).map((node) => node.textContent)`;
    expect(await page.evaluate(tooWide)).toEqual([]);
  });

  it.each([1_440, 390] as const)(
    'have no fault that axe finds, and nothing wider than the window, light and dark, at %i px (studio 15, 29)',
    async (width) => {
      const ids = await idsOf(shop.site);
      const faults: string[] = [];
      for (const [at, { view, has, act }] of views.entries()) {
        const name = `${width}-${at}-${view.replaceAll(/\W/g, '-')}`;
        await lookAt(page, { width, isDark: false });
        await go(page, `#/${ids[view] ?? view}`);
        await page.waitForSelector(has, { timeout: 90_000 });
        await act?.(page);
        if (shots) await page.screenshot({ path: `${shots}/${name}-light.png` });
        faults.push(...(await tooWide(page)).map((fault) => `${name}: ${fault}`));
        // On a telephone axe sees the same elements again: some of them here, all under torture.
        if (width === 390 && torture === 1 && at % 3 > 0 && !shots) continue;
        faults.push(...(await faultsOf(page)).map((fault) => `${name}: ${fault}`));
        await lookAt(page, { width, isDark: true });
        faults.push(...(await tooWide(page)).map((fault) => `${name}, dark: ${fault}`));
        if (shots) await page.screenshot({ path: `${shots}/${name}-dark.png` });
        faults.push(...(await faultsOf(page, 'colours')).map((fault) => `${name}, dark: ${fault}`));
      }
      expect(faults).toEqual([]);
    },
  );
});

/** The addresses of things whose ids are made by chance. */
async function idsOf(site: Site): Promise<{ readonly [view: string]: string }> {
  const items = async (path: string) =>
    ((await (await fetch(site.at(path))).json()) as { items: { id: string; runId?: string }[] }).items;
  const [[fan], waits] = await Promise.all([items('fan-outs'), items('waiting')]);
  const waitOf = (runId: string) => `inbox/${waits.find((wait) => wait.runId === runId)?.id}`;
  return { 'fan-outs/one': `fan-outs/${fan?.id}`, 'inbox/asks': waitOf('asks'), 'inbox/question': waitOf('question') };
}
