import { memoryStore } from 'pawl';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inChromium, startChromium, whyNoChromium } from '../../fixtures/chromium.ts';
import { hostOf, until } from '../../fixtures/host.ts';
import { Site } from './site.ts';
import { go, shown } from './tabs.ts';

/** More than the server reads for one page of the list. */
const RUNS = 2_200;

/** A store of runs that begin later; the first and the last ones are parked, in whichever order a list has them. */
async function manyRuns() {
  const store = memoryStore();
  const host = hostOf({ store, script: [] });
  const parked = ['needle-first', 'needle-last'];
  const others = Array.from({ length: RUNS }, (_, at) => `run-${at}`);
  for (const runId of parked.slice(0, 1).concat(others, parked.slice(1)))
    await host.start({ runId }, { drive: 'later' });
  for (const runId of parked) await host.executor.park(runId, 'a look is needed');
  await host.executor.shutdown({ drainMs: 0 });
  return store;
}

describe.skipIf(whyNoChromium)(inChromium('a store with thousands of open runs, in Chromium'), () => {
  let browser: Browser;
  let site: Site;
  let page: Page;
  const store = manyRuns();

  beforeAll(async () => {
    [browser, site] = await Promise.all([startChromium(), Site.on(await store)]);
    page = await browser.newPage();
    await page.goto(site.at('#/store'));
  });
  afterAll(async () => {
    await browser?.close();
    await site?.stop();
  });

  const rows = () => page.locator('div.row:not(.th) a.cover').allInnerTexts();

  test('a filter finds a run behind the first 2,000 that the server reads (studio 1)', async () => {
    await go(page, '#/runs?q=needle');
    await expect.poll(async () => (await rows()).toSorted()).toEqual(['needle-first', 'needle-last']);
    await go(page, '#/runs?state=ok');
    await shown(page, 'No run fits the filter');
  });

  test('a chip finds the parked runs among them, and one button frees all that are listed (studio 1)', async () => {
    await go(page, '#/runs');
    await page.getByRole('button', { name: 'Parked' }).click();
    await expect.poll(async () => (await rows()).length).toBe(2);
    await page.getByRole('button', { name: 'Unpark 2…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Unpark 2 runs' }).click();
    const parkedIn = async (runId: string) => (await (await store).load(runId))?.parked;
    await until(async () => !(await parkedIn('needle-first')) && !(await parkedIn('needle-last')));
    // Under the pointer no row moves; the open dialog is a part of the list.
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.mouse.move(5, 5);
    await shown(page, 'No run fits the filter');
  });
});
