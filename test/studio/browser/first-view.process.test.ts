import { memoryStore } from 'pawl';
import { callTool, hang, reply } from 'pawl/testing';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inChromium, startChromium, whyNoChromium } from '../../fixtures/chromium.ts';
import { hostOf, toolOf, until } from '../../fixtures/host.ts';
import { pageSite } from './page-site.ts';

const STEPS = 700;

const toTop = (box: unknown) => (box as { scrollTo(x: number, y: number): void }).scrollTo(0, 0);

/** A Studio on a run of very many steps and on the runs beside it. */
async function startSite() {
  const store = memoryStore();
  const worker = hostOf({
    store,
    journal: true,
    tools: [toolOf('look', 'read', async () => 'seen '.repeat(100))],
    agent: { maxSteps: STEPS + 1 },
    script: [...Array.from({ length: STEPS }, (_, at) => callTool('look', { at })), hang()],
  });
  const run = await worker.start({ runId: 'long' });
  for await (const event of run.events()) if (event.type === 'step.done' && event.step === STEPS) break;
  const silent = hostOf({ store, tools: [toolOf('look', 'read')], script: [callTool('look', {}), hang()] });
  await silent.start({ runId: 'silent' });
  await until(async () => ((await store.load('silent'))?.iteration ?? 0) === 1);
  await hostOf({ store, script: [reply('All is well.')] }).run({ runId: 'gone' });
  for (let at = 0; at < 120; at++) await worker.start({ runId: `r${at}` }, { drive: 'later' });
  const site = await pageSite(hostOf({ store, journal: true }).executor);
  const close = async () => {
    await site.close();
    await Promise.all([worker.executor.shutdown(), silent.executor.shutdown()]);
  };
  return { ...site, close };
}

describe.skipIf(whyNoChromium !== undefined)('the first view of Studio', () => {
  let site: Awaited<ReturnType<typeof startSite>>;
  let browser: Browser;
  beforeAll(async () => {
    [site, browser] = await Promise.all([startSite(), startChromium()]);
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
  });

  /** @returns a page, and what it asks the server for, in the order in which it does: connections may change that */
  async function opened(address: string): Promise<{ readonly page: Page; readonly paths: string[] }> {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    site.asked.length = 0;
    const paths: string[] = [];
    page.on('request', (request) => {
      if (request.resourceType() === 'fetch') paths.push(request.url().slice(site.origin.length));
    });
    await page.goto(`${site.origin}#/${address}`);
    return { page, paths };
  }

  it(
    inChromium(
      'of the list asks for its rows first, once for each thing, and draws at most 60 of them (studio 20, 33)',
    ),
    async () => {
      const { page, paths } = await opened('runs');
      await page.locator('div.row:not(.th)').first().waitFor();
      await page.locator('.live').waitFor();
      await until(() => paths.length >= 3);
      expect(paths.toSorted()).toEqual(['runs?limit=100', 'store', 'watch?runs=1']);
      expect(paths[0]).toBe('runs?limit=100');
      expect(await page.locator('div.row:not(.th)').count()).toBeLessThanOrEqual(60);
      // What was there before is no news.
      expect(await page.locator('.fresh').count()).toBe(0);
      await page.close();
    },
  );

  it(
    inChromium(
      'of a long run asks for its record first, follows it once, and reads and draws only its last steps (studio 20, 33)',
    ),
    async () => {
      const { page, paths } = await opened('run/long');
      const steps = page.locator('.tr.step .no');
      await steps.getByText(`${STEPS}`, { exact: true }).waitFor();
      await page
        .locator('.facts', { hasText: `${STEPS}` })
        .first()
        .waitFor();
      expect(paths[0]).toBe('runs/long/record');
      expect(paths.filter((path) => path.startsWith('watch'))).toEqual(['watch?runs=1&run=long']);
      expect(paths.filter((path) => path === 'store')).toHaveLength(1);
      const stream = site.asked.find(({ path }) => path.startsWith('watch'));
      const sent = () => stream?.bytes ?? 0;
      // About 1 KB for each of the steps that are sent.
      expect(sent()).toBeLessThan(400_000);
      expect(await page.locator('.tr').count()).toBeLessThanOrEqual(60);

      await page.locator('.tl').evaluate(toTop);
      const earlier = page.getByRole('button', { name: /^Steps 1 to \d+: show$/ });
      await earlier.click();
      await page.locator('.tr.step[aria-pressed=true]', { hasNotText: `${STEPS}` }).waitFor();
      await until(async () => {
        await page.locator('.tl').evaluate(toTop);
        return (await steps.getByText('1', { exact: true }).count()) > 0;
      });
      expect(await earlier.count()).toBe(0);
      expect(paths).toContain('watch?runs=1&run=long&all=1');
      await page.close();
    },
  );

  it(
    inChromium(
      'of a run whose process keeps no journal has its steps from the record, and names the option (studio 3, 12)',
    ),
    async () => {
      const { page } = await opened('run/silent');
      await page.locator('.tr.call', { hasText: 'look' }).waitFor();
      await page.getByText('This run has no journal: createExecutor({ journal: true })').waitFor();
      await page.close();
    },
  );

  it(inChromium('of a run that has ended, and whose record is not kept, says what keeps it (studio 12)'), async () => {
    const { page } = await opened('run/gone');
    await page.getByText("export const retention = { records: '1d' }").waitFor();
    await page.getByText('All is well.').waitFor();
    await page.close();
  });

  it(inChromium('of a second tab without a token asks no other tab, where none has one (studio 22, 33)'), async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.addInitScript(`globalThis.asks = [];
      const post = BroadcastChannel.prototype.postMessage;
      BroadcastChannel.prototype.postMessage = function (message) { asks.push(message); return post.call(this, message); };`);
    await page.goto(site.origin);
    await page.locator('.live').waitFor();
    expect(await page.evaluate('asks')).toEqual([]);
    const other = await context.newPage();
    await page.goto(`${site.origin}#token=one-that-the-server-takes`);
    await page.reload();
    await page.locator('.live').waitFor();
    await other.goto(site.origin);
    await other.locator('.live').waitFor();
    expect(await other.evaluate(`sessionStorage.getItem('pawl-studio-token')`)).toBe('one-that-the-server-takes');
    await context.close();
  });
});
