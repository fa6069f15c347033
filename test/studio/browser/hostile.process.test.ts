import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fanOut } from 'pawl/fan-out';
import { fail, reply, scriptedModel } from 'pawl/testing';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { escapedHtml } from '../../../src/studio/page/parts/escaped.ts';
import { inChromium, startChromium, whyNoChromium } from '../../fixtures/chromium.ts';
import { hostOf, until } from '../../fixtures/host.ts';
import { hostileStore, idOf, payloads, richRuns } from './hostile-store.ts';
import { Site } from './site.ts';
import { go, Tabs } from './tabs.ts';

const shown = payloads.map(escapedHtml);

describe.skipIf(whyNoChromium)(inChromium('hostile texts in Studio in Chromium'), () => {
  const root = mkdtempSync(join(tmpdir(), 'pawl-hostile-'));
  let browser: Browser;
  let tabs: Tabs;
  let site: Site;
  let page: Page;

  beforeAll(async () => {
    const store = await hostileStore();
    const models = {
      [payloads[0] ?? '']: scriptedModel([reply(payloads.join('\n'))]),
      [payloads[1] ?? '']: scriptedModel([fail(Object.assign(new Error(payloads[2]), { statusCode: 400 }))]),
    };
    await fanOut({ prompt: payloads.join(' '), models, path: join(root, `${payloads[21]}.json`) });
    const host = hostOf({ store, script: [reply(payloads.join('\n'))] });
    const thread = host.executor.thread(payloads[3] ?? '', { agent: host.agent, callerId: payloads[4] ?? '' });
    await thread.send({ id: payloads[5] ?? '', text: payloads.join('\n') });
    await until(async () => (await thread.turns({ limit: 1 }))[0]?.state === 'ended');
    await host.executor.shutdown({ drainMs: 0 });
    [browser, site] = await Promise.all([
      startChromium(),
      Site.on(store, {}, { fanOuts: root, title: payloads[6] ?? '' }),
    ]);
    tabs = new Tabs(browser);
    page = await tabs.open(site.at('#/runs'));
  });
  afterEach(() => tabs.check());
  afterAll(async () => {
    await browser?.close();
    await site?.stop();
    rmSync(root, { recursive: true, force: true });
  });

  /** All texts of elements, also of those that come into sight only when one scrolls. */
  async function scrolled(selector: string): Promise<string> {
    return page.evaluate(`(async () => {
      const box = document.querySelector('main .scroll:has(${selector})');
      const texts = new Set();
      const scroll = async (to) => {
        box.scrollTop = to;
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
        for (const each of document.querySelectorAll('${selector}')) texts.add(each.textContent);
      };
      await scroll(0);
      for (let before = -1; box.scrollTop !== before; ) {
        before = box.scrollTop;
        await scroll(before + box.clientHeight / 2);
      }
      return [...texts].join('\\n');
    })()`);
  }
  const missing = (text: string, of: readonly string[] = shown) => of.filter((each) => !text.includes(each));

  test('the payloads execute where a page takes them for HTML, and the tests see it (studio 31)', async () => {
    const open = await tabs.open('about:blank');
    await open.setContent(payloads.join('\n'));
    await until(() => tabs.complaints.filter((text) => text.startsWith('EXECUTED')).length > 30, 'the payloads');
    tabs.complaints.length = 0;
    await open.close();
  });

  test('200 payloads as ids, prompts, names and reasons of runs stay texts in the list and in the inbox (studio 16, 31)', async () => {
    await page.locator('.row a.cover').first().waitFor();
    // Each end that comes into sight loads a page, whose rows may come above it: 200 runs, and the turn of the thread.
    const all = page.getByText(/^201 runs .*live first$/);
    await until(async () => (await scrolled('.row')) !== '' && (await all.isVisible()), 'all runs');
    expect(missing(await scrolled('.row'))).toEqual([]);
    await go(page, '#/inbox');
    for (const run of richRuns) {
      await page
        .locator('a.w', { hasText: shown[run] ?? '' })
        .first()
        .click();
      await page.locator('#ask', { hasText: shown[run] ?? '' }).waitFor();
    }
    await go(page, '#/store');
    await page.locator('.doctor td a').first().waitFor();
  });

  test('200 payloads as tools, ids of calls, inputs, errors and labels stay texts in each tab of a run (studio 16, 31)', async () => {
    const seen = { labels: '', names: '', transcript: '' };
    for (const run of richRuns) {
      const address = `#/run/${encodeURIComponent(idOf(run))}`;
      await go(page, address);
      await page.locator('.tr.call').first().waitFor();
      expect(await page.title()).toContain(shown[run]);
      seen.labels += await page.textContent('.facts');
      seen.names += await scrolled('.tr.call');
      await page.locator('.tr.call').nth(run).click();
      await page.locator('.insp pre').first().waitFor();
      await go(page, `${address}/transcript`);
      await page.locator('.called').first().waitFor();
      await page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true");
      await page.locator('.called pre').nth(24).waitFor();
      seen.transcript += await page.textContent('main');
    }
    for (const [tab, has] of Object.entries({ usage: '.bars', record: '.record pre' })) {
      await go(page, `#/run/${encodeURIComponent(idOf(0))}/${tab}`);
      await page.locator(has).first().waitFor();
    }
    expect({ labels: missing(seen.labels), names: missing(seen.names), transcript: missing(seen.transcript) }).toEqual({
      labels: [],
      names: [],
      transcript: [],
    });
  });

  test('payloads of threads, fan-outs and the title of Studio stay texts (studio 16, 31)', async () => {
    await go(page, '#/threads');
    await page.click('a.line');
    await page.locator('.msg').nth(1).waitFor();
    expect(missing((await page.textContent('main')) ?? '')).toEqual([]);
    await go(page, '#/fan-outs');
    await page.click('a.line');
    await page.locator('.col .said').first().waitFor();
    expect(missing((await page.textContent('main')) ?? '')).toEqual([]);
    expect(await page.textContent('.brand')).toBe(shown[6]);
  });
});
