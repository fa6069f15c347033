import { type MemoryStore, memoryStore, type RunCheckpoint } from 'pawl';
import { callTool } from 'pawl/testing';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inChromium, startChromium, whyNoChromium } from '../../fixtures/chromium.ts';
import { hostOf, toolOf, until } from '../../fixtures/host.ts';
import { Site } from './site.ts';
import { go } from './tabs.ts';

/** Half of a character, as a model's provider may send it in the id of a call. */
const half = '\ud800';

type Change = (event: Record<string, unknown>) => object;

/** Adds a run that is a copy of the run `fine`, with other events. */
async function copy(store: MemoryStore, runId: string, change: Change): Promise<void> {
  const record = (await store.load('fine')) as RunCheckpoint;
  const page = await store.journal.read('fine', { limit: 1_000 });
  const entries = (page?.entries ?? []).map((entry) => {
    const event = { ...change({ ...entry.event }), runId } as unknown as typeof entry.event;
    return { ...entry, event };
  });
  const claim = (await store.claim(runId, 'by hand', 60_000)) ?? undefined;
  await store.save({ ...record, meta: { ...record.meta, runId } }, { claim, events: { entries } });
  if (claim) await store.release(claim);
}

/** Runs of a model that names its calls by halves of characters, and a run whose owner is no text. */
async function hostileRuns(): Promise<MemoryStore> {
  const store = memoryStore();
  const wait = toolOf('wait', 'once', (_, context) => context.ask({ question: 'Which one?' }));
  const host = hostOf({
    store,
    journal: { flushMs: 1 },
    script: [
      callTool('look', {}, 'c'),
      callTool('wait', {}, 'w'),
      callTool('look', {}, half),
      callTool('wait', {}, 'w'),
    ],
    tools: [toolOf('look'), wait],
    defaults: { waitLingerMs: 1 },
  });
  for (const runId of ['fine', 'half']) {
    await (await host.start({ runId })).result;
    await until(() => host.executor.runs.get().length === 0);
  }
  await copy(store, 'broken', (event) =>
    event.type === 'run.started' ? { ...event, type: 'run.resumed', owner: { toString: 7 } } : event,
  );
  await host.executor.shutdown({ drainMs: 0 });
  return store;
}

describe.skipIf(whyNoChromium)(inChromium('a run that no view can draw, in Chromium'), () => {
  let browser: Browser;
  let site: Site;
  let page: Page;

  beforeAll(async () => {
    [browser, site] = await Promise.all([startChromium(), Site.on(await hostileRuns())]);
    page = await browser.newPage();
    await page.goto(site.at('#/runs'));
  });
  afterAll(async () => {
    await browser?.close();
    await site?.stop();
  });

  const listed = () => page.locator('.row a.cover').nth(2).waitFor();

  test('says so in its place, and the page continues (studio 13, 27)', async () => {
    await listed();
    await go(page, '#/run/broken');
    await page.getByText('This cannot be shown.').waitFor();
    await go(page, '#/runs');
    await listed();
    await go(page, '#/run/fine');
    await page.locator('.tr.call').first().waitFor();
  });

  test('a call whose id has half of a character is shown, and the list after it (studio 16, 27)', async () => {
    await go(page, '#/run/half');
    await page.locator('.tr.call').first().click();
    await page.locator('.insp h3').first().waitFor();
    expect(await page.textContent('.insp')).toContain('\\ud800');
    await go(page, '#/runs');
    await listed();
  });
});
