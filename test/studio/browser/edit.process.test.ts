import { defineTool, memoryStore, type Tool } from 'pawl';
import { callTool, reply } from 'pawl/testing';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { inChromium, startChromium, whyNoChromium } from '../../fixtures/chromium.ts';
import { until } from '../../fixtures/host.ts';
import { havePage } from '../studio-process.ts';
import { Site } from './site.ts';
import { type Look, press, shown, Tabs } from './tabs.ts';

interface Parcel {
  readonly to: string;
  readonly count: number;
  readonly speed?: 'slow' | 'fast';
  readonly signed?: boolean;
  readonly labels?: readonly string[];
  readonly memo?: string;
}

const sent: Parcel[] = [];
const send = defineTool({
  name: 'send',
  description: 'Sends a parcel.',
  input: {
    type: 'object',
    properties: {
      to: { type: 'string', description: 'Who gets it.' },
      count: { type: 'integer', maximum: 9 },
      speed: { enum: ['slow', 'fast'] },
      signed: { type: 'boolean' },
      labels: { type: 'array', items: { type: 'string' } },
      memo: { type: 'string' },
    },
    required: ['to', 'count'],
  },
  needsApproval: true,
  approval: { editable: true, prompt: ({ to }) => `Send it to ${(to as string).slice(0, 20)}?` },
  execute: (input) => {
    sent.push(input as unknown as Parcel);
    return 'sent';
  },
}) as unknown as Tool;

let browser: Browser;
let tabs: Tabs;
let site: Site | undefined;

beforeAll(async () => {
  if (whyNoChromium !== undefined) return;
  [browser] = await Promise.all([startChromium(), havePage()]);
  tabs = new Tabs(browser);
});
afterEach(async () => {
  await tabs?.close();
  await site?.stop();
  site = undefined;
  sent.length = 0;
  tabs?.check();
});
afterAll(() => browser?.close());

/** Opens the card of a run that waits until its parcel may be sent. */
async function asked(parcel: Parcel, look?: Look): Promise<Page> {
  site = await Site.on(memoryStore(), { script: [callTool('send', { ...parcel }), reply('Done.')], tools: [send] });
  const agent = site.executor.agent('worker');
  if (agent) await site.executor.start(agent, { prompt: 'Send it.', runId: 'r', callerId: 'shop' });
  const page = await tabs.open(site.at('#/inbox'), look);
  await shown(page, 'Exactly what will run');
  return page;
}

describe.skipIf(whyNoChromium)(inChromium('the card of an approval in Chromium'), () => {
  test('shows the beginning of a long input, loads the rest in pieces, and is approved by the keyboard once its end was seen (studio 8, 14, 27)', async () => {
    const memo = `${'word '.repeat(80_000)}the end`;
    const page = await asked({ to: 'Bob', count: 1, memo });
    const pieces: string[] = [];
    page.on('request', (request) => request.url().includes('/value?') && pieces.push(request.url()));
    await shown(page, 'It has 400 KB; the first 16,384 characters are shown.');
    expect(await page.getByRole('button', { name: 'Edit' }).count()).toBe(0);
    await page.keyboard.press('a');
    await page.keyboard.press('Control+Enter');
    await shown(page, 'Read the input to its end first');
    expect(sent).toEqual([]);
    await press(page, 'Load all of it');
    await press(page, 'Show all 400,007 characters');
    expect(pieces).toHaveLength(2);
    expect(await page.locator('pre', { hasText: 'the end' }).textContent()).toBe(memo);
    await page.evaluate("for (const pre of document.querySelectorAll('pre')) pre.scrollTop = pre.scrollHeight");
    await page.locator('.digest').scrollIntoViewIfNeeded();
    await page.getByRole('button', { name: 'Edit' }).waitFor();
    await page.keyboard.press('a');
    await until(async () => {
      await page.keyboard.press('Control+Enter');
      return sent.length > 0;
    });
    expect(sent).toEqual([{ to: 'Bob', count: 1, memo }]);
  });

  test('has a form from the schema of the tool, also of a long input once it was loaded: fields that the input lacks, choices, and beside each field what is wrong (studio 8, 27)', async () => {
    const memo = 'word '.repeat(40_000);
    const page = await asked({ to: 'Bob', count: 1, memo });
    await press(page, 'Load all of it');
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('to · Who gets it.').fill('Grace');
    await page.getByLabel('count').fill('1.5');
    await page.getByLabel('speed').selectOption('fast');
    await page.getByLabel('signed').selectOption('true');
    await page.getByLabel('labels · JSON').fill('["glass"');
    await press(page, 'Approve this version');
    await page.locator('.field', { hasText: 'count' }).getByText('It needs a whole number.').waitFor();
    await page.locator('.field', { hasText: 'labels' }).getByText('It is not valid JSON.').waitFor();
    await page.getByLabel('count').fill('2');
    await page.getByLabel('labels · JSON').fill('["glass"]');
    await press(page, 'Approve this version');
    await until(() => sent.length > 0);
    expect(sent).toEqual([{ to: 'Grace', count: 2, speed: 'fast', signed: true, labels: ['glass'], memo }]);
  });

  test('says in sight what the server refuses of an edit, and at its field (studio 8)', async () => {
    const page = await asked({ to: 'Bob', count: 1, memo: 'word\n'.repeat(200) }, { mayLose: true });
    await press(page, 'Edit');
    await page.getByLabel('count').fill('12');
    await press(page, 'Approve this version');
    const refusal = page.locator('.card').getByText('the changed input does not fit: count');
    await refusal.waitFor();
    const { y = -1, height = 0 } = (await refusal.boundingBox()) ?? {};
    expect(y).toBeGreaterThanOrEqual(0);
    expect(y + height).toBeLessThanOrEqual(900);
    expect(await page.getByLabel('count').getAttribute('aria-invalid')).toBe('true');
    await page.locator('.field', { hasText: 'count' }).getByRole('alert').waitFor();
    expect(await page.getByLabel('to · Who gets it.').getAttribute('aria-invalid')).toBe('false');
    await page.getByLabel('count').fill('9');
    await press(page, 'Approve this version');
    await until(() => sent.length > 0);
    expect(sent).toMatchObject([{ to: 'Bob', count: 9 }]);
  });
});
