import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { inChromium, startChromium, whyNoChromium } from '../../fixtures/chromium.ts';
import { havePage, StudioProcess } from '../studio-process.ts';
import { World } from './world.ts';

let browser: Browser;
let world: World;
let studio: StudioProcess;
const open: Page[] = [];
const complaints: string[] = [];

const start = (args: readonly string[]): Promise<StudioProcess> =>
  StudioProcess.start(['--store', world.path, ...args], {
    cwd: world.folder,
    env: { PAWL_STATE_HOME: join(world.folder, 'state') },
  });

beforeAll(async () => {
  if (whyNoChromium !== undefined) return;
  world = new World();
  await Promise.all([havePage(), world.work()]);
  await world.start({ runId: 'first', prompt: 'pay {"to":"Ada Lovelace","cents":4200,"memo":"thanks"}' });
  [browser, studio] = await Promise.all([startChromium(), start(['--write'])]);
});
afterEach(async () => {
  for (const page of open.splice(0)) await page.close();
  // A test that failed may have left no process: those after it must not fail for that.
  if (!world.isAtWork) await world.work();
  if (studio.pawl.child.signalCode !== null) studio = await start(['--write']);
  expect(complaints.splice(0)).toEqual([]);
});
afterAll(async () => {
  await browser?.close();
  await studio?.stop();
  await world?.end();
});

interface Opening {
  readonly of?: StudioProcess;
  readonly width?: number;
  readonly isDark?: boolean;
  /** A lost server is an error on the console of the browser itself. */
  readonly mayLose?: boolean;
}

/** Opens a view in a tab of its own. What the browser complains of, and what the CSP reports, fails the test. */
async function opened(view: string, { of = studio, width = 1_440, isDark = true, mayLose }: Opening = {}) {
  const height = width === 390 ? 844 : 900;
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: isDark ? 'dark' : 'light' });
  open.push(page);
  page.on('console', (message) => {
    if (message.type() === 'error' && !mayLose) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.exposeFunction('complain', (text: string) => complaints.push(text));
  // The tests have no types of a page: its own listener is a text. `page.evaluate` would pass the CSP by.
  await page.addInitScript(
    "addEventListener('securitypolicyviolation', (event) => complain('CSP: ' + event.violatedDirective + event.blockedURI))",
  );
  await page.goto(of.facts.url);
  await page.evaluate(`location.hash = ${JSON.stringify(view)}`);
  return page;
}

/** Starts a run, and opens its card. */
async function asked(runId: string, prompt: string, options?: Opening): Promise<Page> {
  await world.start({ runId, prompt });
  const page = await opened('#/inbox', options);
  await choose(page, runId);
  return page;
}

/** The row of a run: its place begins with the id, which another row may have in its own texts. */
const rowOf = (page: Page, runId: string) =>
  page.locator('a.w', { has: page.locator('.mono', { hasText: new RegExp(`^${runId}( |$)`) }) });
/** Opens the card of a run. What is typed before it is there is typed into the card that goes. */
async function choose(page: Page, runId: string): Promise<void> {
  await rowOf(page, runId).click();
  await page.locator('.card header').getByRole('link', { name: runId, exact: true }).waitFor();
}
const press = (page: Page, name: string) => page.getByRole('button', { name }).first().click();
/** By the event of its call; or, if the record was read before, by that alone. */
const paid = /pay (is done, and its result recorded|has a recorded result)/;

/** Waits for a text. A failure says what the page showed in its place. */
async function shown(page: Page, text: string | RegExp): Promise<void> {
  try {
    await page.getByText(text).first().waitFor();
  } catch (error) {
    const card = await page.locator('#ask').locator('xpath=ancestor::section[1]').allInnerTexts();
    throw new Error(`not shown: ${text}. The card: ${JSON.stringify(card)}`, { cause: error });
  }
}

const stateOf = async (runId: string) => (await studio.get(`/runs/${runId}`)).body;

async function endOf(runId: string): Promise<Record<string, unknown>> {
  for (;;) {
    const view = await stateOf(runId);
    if (view.result !== undefined) return view;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

describe.skipIf(whyNoChromium)(inChromium('the inbox of Studio in Chromium'), () => {
  test('approves by the keyboard alone, once the input was seen, and shows stored, taken up and the result as they become true (studio 9, 14)', async () => {
    const page = await asked('keys', 'pay {"to":"Grace","cents":700}');
    await shown(page, 'Runs at most once.');
    await page.waitForTimeout(400);
    await page.keyboard.press('Control+Enter');
    expect((await stateOf('keys')).state).toBe('you');
    await page.keyboard.press('a');
    // A page that is slow has not seen the input yet, and says so.
    const isStored = async () => {
      await page.keyboard.press('Control+Enter');
      return page.getByText('Stored: your answer survives a crash from here on').first().isVisible();
    };
    await expect.poll(isStored, { interval: 100 }).toBe(true);
    await shown(page, 'Taken up');
    await shown(page, paid);
    await shown(page, 'Exactly what ran');
    expect(await endOf('keys')).toMatchObject({ state: 'ok' });
    // The answered card stays, with the way to the next request that needs a person.
    expect(await page.locator('#ask').innerText()).toMatch(/^Approved by/);
    await page.getByRole('link', { name: 'Another request waits for you: show it' }).click();
    await expect.poll(() => page.locator('#ask').innerText()).not.toMatch(/^Approved by/);
    expect(await page.getByRole('button', { name: /^(Approve|Answer)/ }).count()).toBe(1);
  });

  test('sends the input as the person edited it, with the types of the fields kept (studio 8)', async () => {
    const page = await asked('edit', 'pay {"to":"Bob","cents":900}');
    await press(page, 'Edit');
    await page.getByLabel('cents').fill('x');
    await press(page, 'Approve this version');
    await shown(page, 'It needs a number.');
    await page.getByLabel('cents').fill('350');
    await press(page, 'Approve this version');
    await shown(page, paid);
    await endOf('edit');
    const messages = await studio.get('/runs/edit/messages');
    expect(JSON.stringify(messages.body)).toContain('paid 350 to Bob');
  });

  test('denies once a second question with the name of the run was answered (studio 25)', async () => {
    const page = await asked('deny', 'pay {"to":"Bob","cents":901}');
    await press(page, 'Deny');
    const dialog = page.getByRole('dialog');
    await dialog.getByText('deny', { exact: true }).waitFor();
    await dialog.getByLabel('Why?').fill('too much');
    await dialog.getByRole('button', { name: 'Deny' }).click();
    await shown(page, 'The model reads that it was denied');
    await endOf('deny');
    expect(JSON.stringify((await studio.get('/runs/deny/messages')).body)).toContain('too much');
    await page.evaluate("location.hash = '#/run/deny'");
    // The view of the run, not the card before it, has this row.
    await page.locator('button.tr.call', { hasText: 'pay' }).first().click();
    await shown(page, 'never started, result recorded');
    expect(await page.getByText('started · attempt').count()).toBe(0);
  });

  test('counts one vote of two, and says that others are needed (studio 8, 9)', async () => {
    const page = await asked('votes', 'quorum {"to":"Bob","cents":902}');
    await shown(page, 'Needs 2 persons · 0 given');
    await press(page, 'Approve');
    await shown(page, '1 of 2 have approved: others are needed');
    expect((await stateOf('votes')).state).toBe('you');
  });

  test('answers a question with one of its options, and with a form from its schema (studio 8)', async () => {
    const page = await asked('options', 'ask {"question":"May I?","options":["yes",{"no":1}]}');
    await page.getByLabel('{ "no": 1 }').check();
    await press(page, 'Answer');
    await shown(page, /ask (is done, and its result recorded|has a recorded result)/);
    const schema = { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] };
    await world.start({ runId: 'form', prompt: `ask ${JSON.stringify({ question: 'How much?', schema })}` });
    await choose(page, 'form');
    await page.getByLabel('amount').fill('12.5');
    await press(page, 'Answer');
    await shown(page, /ask (is done, and its result recorded|has a recorded result)/);
    expect(JSON.stringify((await studio.get('/runs/form/messages')).body)).toContain('12.5');
  });

  test('shows on the open card who answered first, and has no dead button (studio 9, 28)', async () => {
    const one = await asked('both-tabs', 'pay {"to":"Bob","cents":903}');
    const two = await opened('#/inbox');
    await choose(two, 'both-tabs');
    await press(two, 'Approve');
    await shown(two, 'Stored: your answer survives a crash from here on');
    await shown(one, 'Approved by');
    expect(await one.getByRole('button', { name: 'Approve' }).count()).toBe(0);
  });

  test('says on the open card that its time was over, and what became of the call (studio 8, 28)', async () => {
    // The card is there for some seconds only: the page comes first.
    const page = await opened('#/inbox');
    await page.locator('a.w').first().waitFor();
    await world.start({ runId: 'late', prompt: 'soon {"to":"Bob","cents":904}' });
    await choose(page, 'late');
    await shown(page, 'denied');
    await shown(page, 'No answer came in time');
    expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0);
  });

  test('says what was answered while no process takes it up, counts it no more, and leaves the way to the run (studio 8, 9)', async () => {
    const page = await asked('rests', 'pay {"to":"Zed","cents":906}');
    const needYou = async () => Number(/(\d+) runs? needs? you/.exec(await page.locator('.head').innerText())?.[1]);
    const badge = async () => Number((await page.locator('nav .count').allInnerTexts())[0] ?? 0);
    await expect.poll(async () => (await badge()) > 0).toBe(true);
    const [before, badgeBefore] = [await needYou(), await badge()];
    await world.crash();
    // A tab that shows another card learns it from the list.
    const other = await opened('#/inbox');
    const row = rowOf(other, 'rests');
    await row.getByText('expires').waitFor();
    await press(page, 'Approve');
    await page.getByRole('heading', { name: 'has not started yet.' }).waitFor();
    await row.getByText('answered').waitFor();
    expect(await page.locator('#ask').innerText()).toMatch(/^Approved by \S+\. pay has not started yet\.$/);
    await shown(page, 'Next: a process takes up the run');
    await shown(page, 'A program began it: start that again');
    expect(await page.getByText('expires').count()).toBe(await page.locator('a.w').getByText('expires').count());
    await expect.poll(needYou).toBe(before - 1);
    await expect.poll(badge).toBe(badgeBefore - 1);
    // Another tab, and this one after a reload, find the answer in the store.
    await page.reload();
    await choose(page, 'rests');
    await shown(page, 'pay has not started yet.');
    expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0);
    await world.work();
    await shown(page, paid);
    await endOf('rests');
    await expect.poll(badge, { timeout: 5_000 }).toBe(badgeBefore - 1);
    await page.getByRole('link', { name: 'Open the run' }).click();
    await shown(page, 'Ended: ok.');
  });

  test('shows the input that will run once a person has changed it, and offers another answer: the run may refuse the change (studio 8, 9)', async () => {
    const page = await asked('changed', 'pay {"to":"Zoe","cents":4999}');
    await world.crash();
    await press(page, 'Edit');
    await page.getByLabel('cents').fill('1000');
    // It is shown from the answer of this tab: its record may come later.
    const late = Promise.withResolvers<void>();
    await page.route('**/runs/changed/record', async (route) => {
      await late.promise;
      await route.continue();
    });
    await press(page, 'Approve this version');
    await shown(page, 'What runs: the input as it was changed');
    expect(await page.getByText('Exactly what will run').count()).toBe(0);
    // Until the server has answered the tab keeps what was typed: after a reload it would be edited still.
    await shown(page, 'Sent: the process that takes up the run checks it');
    late.resolve();
    await page.unrouteAll({ behavior: 'wait' });
    await page.reload();
    await choose(page, 'changed');
    await shown(page, 'If the run refuses it, another answer counts.');
    expect(await page.locator('#ask').innerText()).toMatch(/^Approved by \S+ at /);
    const card = await page.locator('.card').innerText();
    expect(card).not.toContain('expires');
    const order = ['Approved by', 'another answer counts.', 'A program began it: start that again', 'What runs'];
    expect(order.map((text) => card.indexOf(text)).toSorted((a, b) => a - b)).toEqual(
      order.map((text) => card.indexOf(text)),
    );
    expect(order.map((text) => card.indexOf(text))).not.toContain(-1);
    const changed = page.locator('.card section', { hasText: 'What runs: the input as it was changed' });
    expect(await changed.innerText()).toMatch(/1000/);
    expect(await page.locator('.card section', { hasText: 'The input before it was changed' }).innerText()).toMatch(
      /4999/,
    );
    // The denial is stored behind it. When the run has read both, the page says which one counts.
    await press(page, 'Deny');
    await page.getByRole('dialog').getByRole('button', { name: 'Deny' }).click();
    await shown(page, 'Stored: your answer survives a crash from here on');
    await world.work();
    await shown(page, 'Your answer changed nothing.');
    expect(await page.getByText('The model reads that it was denied').count()).toBe(0);
    await endOf('changed');
    expect(JSON.stringify((await studio.get('/runs/changed/messages')).body)).toContain('paid 1000 to Zoe');
  });

  test('keeps a typed note over a reload, and over a server that is killed and started again; then Approve works in the same tab (studio 14, 26)', async () => {
    const page = await asked('note', 'pay {"to":"Bob","cents":905}', { mayLose: true });
    await page.getByLabel('Note for those who read').fill('fine by me');
    await page.reload();
    await shown(page, 'Pay 9.05 EUR');
    const { port } = studio.facts;
    studio.pawl.child.kill('SIGKILL');
    await studio.pawl.ended;
    await shown(page, 'the page connects again by itself');
    expect(await page.getByRole('button', { name: 'Approve' }).isDisabled()).toBe(true);
    studio = await start(['--write', '--port', `${port}`]);
    await page.locator('.live', { hasText: 'live' }).waitFor();
    expect(await page.getByLabel('Note for those who read').inputValue()).toBe('fine by me');
    await press(page, 'Approve');
    await shown(page, paid);
  });

  test('has room around the card, and between the buttons of a dialog; an edit shows what was there before (studio 8, 15)', async () => {
    const page = await asked('room', 'pay {"to":"Grace","cents":907}', { width: 1_200 });
    await shown(page, 'Prompt: pay {"to":"Grace","cents":907}');
    const boxOf = async (selector: string) => {
      const box = await page.locator(selector).first().boundingBox();
      return {
        left: box?.x ?? 0,
        right: (box?.x ?? 0) + (box?.width ?? 0),
        bottom: (box?.y ?? 0) + (box?.height ?? 0),
      };
    };
    const [card, list] = [await boxOf('.card'), await boxOf('.waits-box')];
    expect(card.left - list.right).toBeGreaterThanOrEqual(8);
    expect(1_200 - card.right).toBeGreaterThanOrEqual(8);
    await press(page, 'Edit');
    await page.getByLabel('cents').fill('350');
    await shown(page, 'Before: 907');
    await press(page, 'Cancel edit');
    await shown(page, 'Exactly what will run');
    await press(page, 'Deny');
    const [yes, no] = [await boxOf('dialog .buttons button'), await boxOf('dialog .buttons button + button')];
    expect(no.left - yes.right).toBeGreaterThanOrEqual(6);
    const [text, top] = [await boxOf('dialog textarea'), await page.locator('dialog .buttons').boundingBox()];
    expect((top?.y ?? 0) - text.bottom).toBeGreaterThanOrEqual(6);
  });

  test('only reads without --write: no button answers, and a sentence names the option (studio 25)', async () => {
    const reading = await start([]);
    const page = await opened('#/inbox', { of: reading });
    await choose(page, 'first');
    await shown(page, 'Start it with --write to answer.');
    for (const name of ['Approve', 'Deny', 'Edit']) expect(await page.getByRole('button', { name }).count()).toBe(0);
    await page.close();
    await reading.stop();
  });

  test('executes none of 200 payloads in questions, options, prompts and inputs (studio 16, 31)', async () => {
    const shapes = [
      (run: string) => `<img src=x onerror="${run}">`,
      (run: string) => `<script>${run}</script>`,
      (run: string) => `<svg onload="${run}">`,
      (run: string) => `<a href="javascript:${run}">x</a>`,
      (run: string) => `"><iframe srcdoc="<script>parent.${run}</script>">`,
      (run: string) => `javascript:${run}`,
      (run: string) => `{{constructor.constructor('${run}')()}}`,
      (run: string) => `</pre></article><style onload="${run}"></style>`,
    ];
    const payloads = Array.from({ length: 200 }, (_, i) => shapes[i % shapes.length]?.(`canary=${i}`) ?? '');
    const options = payloads.slice(0, 100);
    await world.start({ runId: 'hostile-1', prompt: `ask ${JSON.stringify({ question: payloads[0], options })}` });
    const to = payloads.slice(100).join('\u202e');
    await world.start({
      runId: 'hostile-2',
      prompt: `pay ${JSON.stringify({ to, cents: 1, [payloads[1] ?? '']: to })}`,
    });
    const page = await opened('#/inbox');
    for (const runId of ['hostile-1', 'hostile-2']) {
      await choose(page, runId);
      await page.locator('#ask').waitFor();
      for (const link of await page.locator('main a').all()) expect(await link.getAttribute('href')).toMatch(/^#/);
    }
    await shown(page, '\\u202e');
    expect(await page.locator('main img, main iframe, main script, main style').count()).toBe(0);
    expect(await page.evaluate('globalThis.canary')).toBeUndefined();
  });
});
