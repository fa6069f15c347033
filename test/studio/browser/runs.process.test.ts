import { defineTool, memoryStore, type Tool } from 'pawl';
import { callTool, reply, type ScriptedRequest } from 'pawl/testing';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { named, overloaded } from '../../executor/failover/lists.ts';
import { promptOf } from '../../fixtures/answering-model.ts';
import { inChromium, startChromium, whyNoChromium } from '../../fixtures/chromium.ts';
import { type gate, hostOf, gate as newGate, until } from '../../fixtures/host.ts';
import { collecting } from '../../otel/spans.ts';
import { Site } from './site.ts';
import { go, shown, Tabs } from './tabs.ts';

type Gate = ReturnType<typeof gate<void>>;
const gates = new Map<string, Gate>();
const gateOf = (runId: string): Gate => {
  const found = gates.get(runId) ?? newGate();
  gates.set(runId, found);
  return found;
};

const tools = [
  defineTool({
    name: 'slow',
    description: 'Works until the test opens its gate.',
    input: { type: 'object' },
    execute: async (_, { runId, signal }) => {
      const cut = new Promise<never>((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
      await Promise.race([gateOf(runId).pass(), cut]);
      return 'at last';
    },
  }),
  defineTool({
    name: 'paid',
    description: 'Waits until an invoice is paid.',
    input: { type: 'object' },
    execute: (_, context) => context.waitFor('invoice.paid', { key: context.runId }),
  }),
] as unknown as Tool[];

/** A run calls the tool that its prompt names, once. */
const step = (request: ScriptedRequest) => {
  const word = /slow|paid/.exec(promptOf(request))?.[0];
  const hasResult = request.messages.some(({ role }) => role === 'tool');
  return word === undefined || hasResult ? reply('Done.') : callTool(word);
};

type Store = ReturnType<typeof memoryStore>;

/** A process that works on the runs of a store. */
function workerOn(store: Store, options: Parameters<typeof hostOf>[0] = {}) {
  return hostOf({
    store,
    script: Array.from({ length: 200 }, () => step),
    tools,
    journal: { flushMs: 5 },
    retention: { records: Number.POSITIVE_INFINITY },
    defaults: { controlMs: 20, dueMs: 50, waitLingerMs: 1 },
    ...options,
  });
}

describe.skipIf(whyNoChromium)(inChromium('the runs of Studio in Chromium'), () => {
  const store = memoryStore();
  const worker = workerOn(store);
  let browser: Browser;
  let tabs: Tabs;
  let site: Site;
  /** The runs are opened in one tab, one after the other. */
  let page: Page;
  const others: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    [browser, site] = await Promise.all([startChromium(), Site.on(store)]);
    tabs = new Tabs(browser);
    page = await tabs.open(site.at('#/runs'));
  });
  afterEach(() => tabs.check());
  afterAll(async () => {
    await browser?.close();
    for (const stop of others) await stop();
    await site?.stop();
    await worker.executor.shutdown({ drainMs: 0 });
  });

  const button = (name: string) => page.getByRole('button', { name });
  const dialog = () => page.getByRole('dialog');
  const actions = async () => (await page.locator('.head button').allTextContents()).map((text) => text.trim());
  const verdict = (text: string) => page.locator('.why', { hasText: text }).waitFor();

  /** Starts a run that works until its gate is opened. */
  async function working(runId: string, of = worker): Promise<void> {
    await of.start({ runId, prompt: 'slow', callerId: 'shop', labels: { tenant: 'acme' } });
    await gateOf(runId).reached;
  }

  /** Starts a run that rests until its event comes. */
  async function resting(runId: string, of = worker): Promise<void> {
    await (await of.start({ runId, prompt: 'paid', callerId: 'shop' })).result;
  }

  /** Opens the view of a run. */
  async function open(runId: string): Promise<void> {
    await go(page, `#/run/${runId}`);
    await page.locator('h1', { hasText: runId }).waitFor();
    await page.locator('.why').waitFor();
  }

  test('a run is steered by its key, and its view says that the text is stored, taken up and read (studio 9, 14)', async () => {
    await working('steered');
    await open('steered');
    await page.locator('.head button:enabled', { hasText: 'Steer' }).waitFor();
    await page.keyboard.press('s');
    await dialog().getByLabel('The model reads it').fill('Only invoices of this year.');
    await dialog().getByRole('button', { name: 'Send' }).click();
    await shown(page, 'Taken up: the model reads it in its next turn');
    gateOf('steered').open();
    await shown(page, 'Steered: ');
    await verdict('Ended: ok');
    await go(page, '#/run/steered/transcript');
    await shown(page, 'Only invoices of this year.');
    expect(JSON.stringify(worker.model.calls.at(-1)?.messages)).toContain('Only invoices of this year.');
  });

  test('the record of a run has the id of its trace, and a button that copies it (otel 2)', async () => {
    const traced = workerOn(store, { tracing: collecting().process() });
    await traced.run({ runId: 'traced', prompt: 'Be quick.' });
    const { traceId: made } = (await traced.executor.explain('traced')) ?? {};
    await open('traced');
    await go(page, '#/run/traced/record');
    const trace = page.locator('dt', { hasText: 'Trace' }).locator('xpath=following-sibling::dd[1]');
    expect(await trace.textContent()).toBe(`${made} Copy`);
    await page.evaluate('navigator.clipboard.writeText = async (text) => void (globalThis.copied = text)');
    await trace.getByRole('button', { name: 'Copy' }).click();
    await trace.getByText('Copied').waitFor();
    expect(await page.evaluate('globalThis.copied')).toBe(made);
    expect(made).toHaveLength(32);
    await traced.executor.shutdown();
  });

  test('the chart of a run is folded by its key and opened by its button, and stays folded on the page of another run (edges, Studio)', async () => {
    await working('folded');
    await working('other');
    await open('folded');
    const chart = page.locator('svg.chart');
    await chart.waitFor();
    await page.keyboard.press('c');
    await chart.waitFor({ state: 'detached' });
    await open('other');
    const opener = page.getByRole('button', { name: 'c open' });
    await opener.waitFor();
    expect([await chart.count(), await opener.getAttribute('aria-expanded')]).toEqual([0, 'false']);
    await opener.click();
    await chart.waitFor();
    for (const runId of ['folded', 'other']) gateOf(runId).open();
  });

  test('a cancel asks once more with the name of the run, and the ended run says who cancelled it and why (studio 25, 28)', async () => {
    await working('cancelled');
    await open('cancelled');
    expect(await actions()).toEqual(['Steer s', 'Cancel…']);
    await button('Cancel…').click();
    await dialog().getByText('cancelled', { exact: true }).waitFor();
    await dialog().getByRole('button', { name: 'Not now' }).click();
    expect((await store.commands.inbox({ runId: 'cancelled' })).length).toBe(0);
    await button('Cancel…').click();
    await dialog().getByLabel('Why?').fill('too dear');
    await dialog().getByRole('button', { name: 'Cancel the run' }).click();
    await verdict('too dear (by Ada, ada)');
    expect(await actions()).toEqual(['Retry']);
  });

  test('the button of a run that ended badly retries it, and its page says how it ends (lab 29)', async () => {
    await working('retried');
    await worker.executor.control('retried').cancel();
    await until(async () => (await store.load('retried', { ended: true }))?.outcome !== undefined);
    await open('retried');
    await button('Retry').click();
    await until(async () => (await store.load('retried', { ended: true }))?.retries?.length === 1);
    await verdict('Ended: ok');
    // The page was open when the run ended.
    await shown(page, 'Retried by Ada.');
    const record = await store.load('retried', { ended: true });
    expect(record).toMatchObject({
      retries: [{ steps: 0, error: { code: 'CANCELLED' } }],
      outcome: { output: 'done' },
    });
    expect(await actions()).toEqual([]);
  });

  test('a resting run is parked after a question with its name, and unparked by the button beside the reason (studio 2, 25)', async () => {
    await resting('set-aside');
    await open('set-aside');
    expect(await actions()).toEqual(['Steer s', 'Park…', 'Cancel…']);
    await button('Park…').click();
    await dialog().getByText('set-aside', { exact: true }).waitFor();
    await dialog().getByLabel('Why?').fill('the ledger is closed');
    await dialog().getByRole('button', { name: 'Park the run' }).click();
    await verdict('the ledger is closed');
    expect((await store.load('set-aside'))?.parked).toMatchObject({ by: { id: 'ada' } });
    await page.locator('.why').getByRole('button', { name: 'Unpark' }).click();
    await shown(page, 'By Ada');
    expect((await store.load('set-aside'))?.parked).toBeUndefined();
  });

  test('a step that is chosen says which model of a list failed, why, and which one answered (failover 12)', async () => {
    const opus = { model: named('anthropic/opus', [overloaded]), maxAttempts: 1 };
    const list = [opus, named('openai/gpt', [reply('Done.')])];
    const listed = workerOn(store, { models: { fast: list } as never });
    expect((await listed.run({ runId: 'listed', prompt: 'Be quick.' })).status).toBe('ok');
    await open('listed');
    await page.locator('.tr').first().click();
    const models = page.locator('.insp dt', { hasText: 'Models' }).locator('xpath=following-sibling::dd[1]');
    expect(await models.textContent()).toBe('anthropic/opus: 529 → openai/gpt');
    await listed.executor.shutdown();
  });

  test('a step that is chosen can be forked with a word on effects, and the fork continues where its agent is (lab 29)', async () => {
    await working('origin');
    gateOf('origin').open();
    await until(async () => (await store.load('origin', { ended: true }))?.outcome !== undefined);
    await open('origin');
    await page.locator('.tr').first().click();
    await page.locator('.insp').getByText('Fork here').waitFor();
    await page.locator('.insp').getByRole('button', { name: 'refuse' }).click();
    const link = page.locator('.insp .in > a');
    await link.waitFor();
    const fork = (await link.textContent()) ?? '';
    await worker.executor.recover();
    expect((await worker.executor.get(fork)?.result)?.status).toBe('ok');
    expect(await store.load(fork, { ended: true })).toMatchObject({
      effects: 'refuse',
      forkedFrom: { runId: 'origin' },
    });
  });

  test('a run that ends while it is shown says how, and has no button any more (studio 28)', async () => {
    await working('ends');
    await open('ends');
    await button('Cancel…').waitFor();
    gateOf('ends').open();
    await verdict('Ended: ok');
    expect(await actions()).toEqual([]);
  });

  test('a run that another process takes over while it is shown says which, and is not parked from here any more (studio 4, 28)', async () => {
    await resting('taken');
    await open('taken');
    await verdict('No process holds the run.');
    const claim = await store.claim('taken', 'elsewhere|boot|start|4242|id', 60_000);
    await verdict('Process 4242 on elsewhere holds the run');
    expect(await actions()).toEqual(['Steer s', 'Cancel…']);
    if (claim) await store.release(claim);
    await verdict('No process holds the run.');
  });

  test('a run that is erased while it is shown is said to be gone, and has no button that cannot work (studio 28)', async () => {
    await worker.run({ runId: 'erased', prompt: 'Be quick.' });
    await open('erased');
    await worker.executor.erase('erased');
    await shown(page, 'This run is not in the store: it was erased, or was never there.');
    expect(await page.locator('main button, main .tabs').count()).toBe(0);
    await worker.run({ runId: 'erased', prompt: 'It is back.' });
    await verdict('Ended: ok');
    await page.locator('.tr.step').waitFor();
    tabs.check('/runs/erased/record');
  });

  test('the address of a run that is not there says so; the page stays connected, and shows the run once it begins (studio 13)', async () => {
    const early = await tabs.open(site.at('#/run/early'), { mayLose: true });
    await shown(early, 'This run is not in the store: it was erased, or was never there.');
    await early.locator('.live', { hasText: 'live' }).waitFor();
    await worker.run({ runId: 'early', prompt: 'Be quick.' });
    await early.locator('.tr.step').waitFor();
    await early.close();
  });

  test('the address of a run that is not there says so, also where the texts of the server come last (studio 13)', async () => {
    const slow = await tabs.open('about:blank');
    const isMissing = slow.waitForResponse((response) => response.url().endsWith('/runs/nowhere/record'));
    await slow.route('**/store', async (route) => {
      await isMissing;
      // The page has drawn its answer by then, without a word.
      await slow.locator('p.why.at-bad').waitFor({ state: 'attached' });
      await route.continue();
    });
    await slow.goto(site.at('#/run/nowhere'));
    await shown(slow, 'This run is not in the store: it was erased, or was never there.');
    await slow.close();
    tabs.check('/runs/nowhere/record');
  });

  test('a filter by state, text and label is a part of the address, and stays over a reload and the way back (studio 1, 14)', async () => {
    await resting('filtered-1');
    await resting('filtered-2');
    await working('filtered-3');
    const list = await tabs.open(site.at('#/runs'));
    const ids = () => list.locator('.row a.cover').allTextContents();
    await list.getByRole('button', { name: 'Waiting' }).click();
    await list.keyboard.press('/');
    await list.keyboard.type('filtered');
    await list.locator('.row', { hasText: 'filtered-3' }).waitFor({ state: 'detached' });
    expect((await ids()).toSorted()).toEqual(['filtered-1', 'filtered-2']);
    expect(new URL(list.url()).hash).toBe('#/runs?state=wait&q=filtered');
    await list.reload();
    await list.locator('.row', { hasText: 'filtered-1' }).click();
    await list.locator('h1', { hasText: 'filtered-1' }).waitFor();
    await list.keyboard.press('Escape');
    await list.locator('.row', { hasText: 'filtered-2' }).waitFor();
    expect((await ids()).toSorted()).toEqual(['filtered-1', 'filtered-2']);
    expect(await list.getByLabel('Filter runs').inputValue()).toBe('filtered');
    await list.getByRole('button', { name: 'All' }).click();
    await list.getByLabel('Filter runs').fill('');
    await list.getByRole('button', { name: '+ Label' }).click();
    expect(new URL(list.url()).hash).toBe('#/runs?q=label%3A');
    await list.keyboard.type('tenant=acme');
    await list.locator('.row', { hasText: 'filtered-1' }).waitFor({ state: 'detached' });
    await list.locator('.row', { hasText: 'filtered-3' }).waitFor();
    expect(new URL(list.url()).hash).toBe('#/runs?q=label%3Atenant%3Dacme');
    await list.getByLabel('Filter runs').fill('nothing like it');
    await shown(list, 'No run fits the filter');
    gateOf('filtered-3').open();
    await list.close();
  });

  test('ended runs are found by the days of their end, of which the server is asked (studio 1, operations 45)', async () => {
    await worker.run({ runId: 'today', prompt: 'Be quick.' });
    const list = await tabs.open(site.at('#/runs'));
    const row = list.locator('.row', { hasText: 'today' });
    const asked: (string | null)[][] = [];
    list.on('request', (request) => {
      const { pathname, searchParams } = new URL(request.url());
      if (pathname === '/runs') asked.push([searchParams.get('since'), searchParams.get('until')]);
    });
    await list.getByRole('button', { name: 'Ended' }).click();
    const day = await list.evaluate(() => new Date().toLocaleDateString('sv-SE'));
    await list.getByLabel('since').fill(day);
    await list.getByLabel('until').fill(day);
    await row.waitFor();
    await expect
      .poll(() => asked.at(-1))
      .toEqual([String(Date.parse(`${day}T00:00`)), String(Date.parse(`${day}T24:00`))]);
    expect(new URL(list.url()).hash).toContain(`since=${day}&until=${day}`);
    await list.getByLabel('since').fill('2001-02-03');
    await list.getByLabel('until').fill('2001-02-03');
    await shown(list, 'No run fits the filter');
    await list.getByRole('button', { name: 'All' }).click();
    await row.waitFor();
    expect(new URL(list.url()).hash).toBe('#/runs');
    await list.close();
  });

  test('rows come and are filtered under a pointer that rests on them; those of other processes wait (studio 1, 15)', async () => {
    await resting('pointed-1');
    await go(page, '#/store');
    await page.mouse.move(700, 400);
    await go(page, '#/runs?state=wait&q=pointed');
    const row = (name: string) => page.locator('.row', { hasText: name });
    await row('pointed-1').waitFor();
    await resting('pointed-2');
    await working('pointed-3');
    await shown(page, '1 new');
    expect(await row('pointed-2').count()).toBe(0);
    await button('1 new').focus();
    await page.keyboard.press('Enter');
    await row('pointed-2').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('-1');
    await row('pointed-2').waitFor({ state: 'detached' });
    await row('pointed-1').waitFor();
    gateOf('pointed-3').open();
  });

  test('each view of an empty store names the call that fills it, and the first run appears by itself (studio 12)', async () => {
    const empty = memoryStore();
    const own = await Site.on(empty);
    const first = workerOn(empty);
    others.push(
      () => own.stop(),
      () => first.executor.shutdown({ drainMs: 0 }),
    );
    const tab = await tabs.open(own.at('#/runs'));
    const calls = {
      runs: 'executor.start(agent',
      inbox: 'needsApproval: true',
      'fan-outs': "pawl ask 'Which is better?'",
      threads: "executor.thread('chat-42'",
      store: 'pawl doctor --json',
    };
    for (const [view, call] of Object.entries(calls)) {
      await go(tab, `#/${view}`);
      await tab.locator('.card pre', { hasText: call }).waitFor();
    }
    await go(tab, '#/runs');
    await first.run({ runId: 'first', prompt: 'Be quick.' });
    await tab.locator('.row', { hasText: 'first' }).waitFor();
    await tab.close();
  });

  test('a hidden tab closes its stream, and continues after the last event that it handled (studio 19)', async () => {
    await working('hidden');
    const tab = await tabs.open(site.at('#/run/hidden'));
    await tab.locator('.tr.call').waitFor();
    const streams = () => [...site.streams].filter((query) => query.get('run') === 'hidden');
    expect(streams()).toHaveLength(1);
    await hide(tab, true);
    await until(() => streams().length === 0);
    gateOf('hidden').open();
    await until(async () => (await worker.executor.find('hidden'))?.status === 'ended');
    await tab.locator('.live', { hasText: 'resting' }).waitFor({ state: 'attached' });
    expect(await tab.locator('.tr.step').count()).toBe(1);
    await hide(tab, false);
    await tab.locator('.why', { hasText: 'Ended: ok' }).waitFor();
    await tab.locator('.tr.step').nth(1).waitFor();
    expect(await tab.locator('.tr.step').count()).toBe(2);
    expect(streams().map((query) => query.get('after'))).toEqual([expect.stringMatching(/./)]);
    await tab.close();
  });

  test('the one motion of the page is the ring of a run that works, and reduced motion stops it (studio 15)', async () => {
    await working('moves');
    await open('moves');
    await page.locator('.glyph.run').first().waitFor();
    const moving = 'document.getAnimations().map(({ animationName }) => animationName)';
    expect(new Set((await page.evaluate(moving)) as string[])).toEqual(new Set(['beat']));
    await page.emulateMedia({ reducedMotion: 'reduce' });
    for (const view of ['#/run/moves', '#/runs', '#/inbox', '#/store']) {
      await go(page, view);
      await page.locator('.head h1').waitFor();
      expect(await page.evaluate(moving)).toEqual([]);
    }
    await page.emulateMedia({ reducedMotion: 'no-preference' });
    gateOf('moves').open();
  });

  test('a store without a journal shows what the record proves as of the last save, and says what is missing (studio 5, 12)', async () => {
    const plain = memoryStore();
    const own = await Site.on(plain, { journal: false });
    const work = workerOn(plain, { journal: false });
    others.push(
      () => own.stop(),
      () => work.executor.shutdown({ drainMs: 0 }),
    );
    await resting('silent', work);
    const tab = await tabs.open(own.at('#/run/silent'));
    await shown(tab, 'This store has no journal: the timeline is made of the record and its messages, without times.');
    await tab.locator('.tr.call', { hasText: 'paid' }).waitFor();
    await tab.locator('svg.chart[aria-label*="as of the last save"]').waitFor();
    await go(tab, '#/run/silent/usage');
    await shown(tab, 'Tokens a step come from the journal; this run has none.');
    await go(tab, '#/run/silent');
    await work.executor.signal('invoice.paid', {}, { key: 'silent', id: 'p1' });
    await tab.locator('.why', { hasText: 'Ended: ok' }).waitFor();
    await go(tab, '#/store');
    await shown(tab, 'no timeline, and the chart shows the last save');
    await tab.close();
  });

  test('a person with a phone finds a run, reads what it did, and cancels it (studio 15)', async () => {
    await working('on-the-way');
    const phone = await tabs.open(site.at('#/runs'), { width: 390 });
    await phone.locator('.row', { hasText: 'on-the-way' }).click();
    await phone.locator('.tr.call', { hasText: 'slow' }).click();
    await phone.locator('.sheet', { hasText: 'slow' }).waitFor();
    await phone.getByRole('button', { name: 'Close' }).click();
    await phone.getByRole('link', { name: 'Chart' }).click();
    await phone.locator('svg.chart .node.at').waitFor();
    await phone.getByRole('button', { name: 'Cancel…' }).click();
    await phone.getByRole('dialog').getByRole('button', { name: 'Cancel the run' }).click();
    await phone.locator('.why', { hasText: 'Ended: cancelled' }).waitFor();
    expect(await phone.evaluate('document.documentElement.scrollWidth')).toBe(390);
    await phone.close();
  });
});

/** A browser without a screen hides no tab: the page gets the same event, and reads the same property. */
function hide(page: Page, isHidden: boolean): Promise<unknown> {
  return page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'))`);
}
