import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { inChromium, startChromium, whyNoChromium } from '../fixtures/chromium.ts';
import { buildPage, ChatServer } from './chat-server.ts';

let browser: Browser;
let bundle: string;
const servers: ChatServer[] = [];
const open: Page[] = [];

/** Set it to a folder to look at the page. */
const shots = process.env.PAWL_TEST_SHOTS;

const REQUEST = 'Write a mail to ada@example.com';
const CARD = 'Send this mail to ada@example.com?';
/** The first and the last words of the answer after the approval. */
const [BEGIN, END] = ['Done: the mail has left', 'whenever you like.'];

beforeAll(async () => {
  if (whyNoChromium === undefined) [browser, bundle] = await Promise.all([startChromium(), buildPage()]);
});
afterEach(async () => {
  for (const page of open.splice(0)) await page.close();
  for (const server of servers.splice(0)) await server.kill();
});
afterAll(() => browser?.close());

/** How fast the model speaks in a test that kills no server in the middle of a text. */
const fast = { wordMs: 5 };

async function started(options?: { readonly wordMs: number }): Promise<ChatServer> {
  const server = new ChatServer(bundle, options);
  servers.push(server);
  await server.start();
  return server;
}

async function opened(address: string): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 900, height: 760 } });
  open.push(page);
  await page.goto(address);
  return page;
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message').fill(text);
  await page.getByRole('button', { name: 'Send' }).click();
}

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const shown = (page: Page, text: string) => page.getByText(text).first().waitFor();
/** The texts of the messages, as a person reads them. */
const texts = (page: Page) => page.locator('.message').allTextContents();

async function shoot(page: Page, name: string): Promise<void> {
  if (shots === undefined) return;
  await page.screenshot({ path: `${shots}/${name}.png` });
  await page.setViewportSize({ width: 360, height: 740 });
  await page.screenshot({ path: `${shots}/${name}-narrow.png` });
  await page.setViewportSize({ width: 900, height: 760 });
}

/** What a page shows of the conversation if nothing is cut. */
async function uncut(): Promise<readonly string[]> {
  const server = await started(fast);
  const page = await opened(server.chat('uncut'));
  await say(page, REQUEST);
  await shown(page, CARD);
  await press(page, 'Approve');
  await shown(page, END);
  return texts(page);
}

describe.skipIf(whyNoChromium)(inChromium('the example chat in Chromium'), () => {
  test('shows an approval card, loses its server to kill -9, and after the approval at another process the mail leaves once and the text continues in the same page and message, over another kill in the middle of it (web 33, 35)', async () => {
    const server = await started();
    const page = await opened(server.chat('one'));
    await page.evaluate('window.isSame = true');
    await say(page, REQUEST);
    await shown(page, CARD);
    await shoot(page, 'card');
    await server.kill();
    await server.start();
    expect(server.sent).toEqual([]);
    await press(page, 'Approve');
    await shown(page, BEGIN);
    await shoot(page, 'text');
    await server.kill();
    expect((await texts(page))[1]).not.toContain(END);
    await server.start();
    await shown(page, END);
    await shoot(page, 'end');
    expect(server.sent).toMatchObject([{ to: 'ada@example.com', subject: 'Friday’s release' }]);
    expect(await page.evaluate('window.isSame')).toBe(true);
    expect(await texts(page)).toEqual(await uncut());
  });

  test('takes an approval while there is no server, and sends the mail once when one is back (web 33, 35)', async () => {
    const server = await started(fast);
    const page = await opened(server.chat('two'));
    await say(page, REQUEST);
    await shown(page, CARD);
    await server.kill();
    await press(page, 'Approve');
    await shown(page, 'Your answer is on its way');
    await server.start();
    await shown(page, END);
    expect(server.sent).toHaveLength(1);
    expect(await page.locator('.message').count()).toBe(2);
  });

  test('with the transport of the AI SDK continues after a reload: the card is there again, and the mail leaves once (web 31, 35)', async () => {
    const server = await started();
    const page = await opened(server.chat('three', '&stock'));
    await say(page, REQUEST);
    await shown(page, CARD);
    await server.kill();
    await server.start();
    await page.reload();
    await shown(page, CARD);
    await press(page, 'Approve');
    await shown(page, BEGIN);
    await server.kill();
    await shown(page, 'The connection is lost');
    await server.start();
    await page.reload();
    await shown(page, END);
    expect(server.sent).toHaveLength(1);
  });

  test('shows the same in two tabs: an approval in one is the answer in both, a message in one comes to the other, and a third tab shows all (web 35)', async () => {
    const server = await started(fast);
    const one = await opened(server.chat('four'));
    await say(one, REQUEST);
    const two = await opened(server.chat('four'));
    await Promise.all([shown(one, CARD), shown(two, CARD)]);
    await press(two, 'Approve');
    await Promise.all([shown(one, END), shown(two, END)]);
    expect(await texts(one)).toEqual(await texts(two));
    expect(server.sent).toHaveLength(1);
    await say(one, 'Hello');
    await Promise.all([shown(one, 'or wait for you.'), shown(two, 'or wait for you.')]);
    const three = await opened(server.chat('four'));
    await shown(three, 'or wait for you.');
    const all = await texts(one);
    expect([all.length, await texts(two), await texts(three)]).toEqual([4, all, all]);
  });

  test('sends the mail as the person edited it (web 29)', async () => {
    const server = await started(fast);
    const page = await opened(server.chat('five'));
    await say(page, REQUEST);
    await press(page, 'Edit');
    await page.getByLabel('subject').fill('Monday’s release');
    await shoot(page, 'edit');
    await press(page, 'Approve this version');
    await shown(page, END);
    expect(server.sent).toMatchObject([{ subject: 'Monday’s release' }]);
  });

  test('sends nothing after a denial, and the agent reads of it (web 29)', async () => {
    const server = await started(fast);
    const page = await opened(server.chat('six'));
    await say(page, REQUEST);
    await press(page, 'Deny');
    await shown(page, 'I have not sent it');
    await shown(page, 'Not sent: you said no');
    expect(server.sent).toEqual([]);
  });

  test('stops an answer, keeps what it said, and takes the next message (web 28, 31)', async () => {
    const server = await started({ wordMs: 100 });
    const page = await opened(server.chat('seven'));
    await say(page, 'Hello');
    await shown(page, 'I write mails, and I ask you');
    await press(page, 'Stop');
    await page.getByRole('button', { name: 'Send' }).waitFor();
    const kept = (await texts(page))[1] ?? '';
    expect(kept).not.toContain('wait for you');
    await say(page, REQUEST);
    await shown(page, CARD);
    expect((await texts(page))[1]).toBe(kept);
  });
});
