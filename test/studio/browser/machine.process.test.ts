import { ask, createExecutor, defineWorkflow, memoryStore } from 'pawl';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AnyStateMachine, createMachine, setup } from 'xstate';
import { z } from 'zod';
import { inChromium, startChromium, whyNoChromium } from '../../fixtures/chromium.ts';
import { until } from '../../fixtures/host.ts';
import { drawnMachines } from '../drawn-machines.ts';
import { Site } from './site.ts';
import { faultsOf, type Look, lookAt, press, shown, Tabs, tooWide } from './tabs.ts';

const DAY = 86_400_000;

/** An order in which a person reviews while the goods are held: nested and parallel states, a timer, a loop, events with fields. */
const order = defineWorkflow({
  id: 'order',
  events: { hold: z.object({ days: z.int().min(1), why: z.string().optional() }) },
  machine: setup({
    types: { events: {} as { type: string } },
    actors: { reviewer: ask({ question: 'Is it fine?' }) },
    delays: { patience: 3 * DAY },
  }).createMachine({
    id: 'order',
    initial: 'working',
    states: {
      working: {
        type: 'parallel',
        on: { abort: 'over', again: { target: 'working', reenter: true } },
        onDone: 'over',
        states: {
          review: {
            initial: 'asked',
            states: {
              asked: {
                description: 'A person reads the order.',
                invoke: { src: 'reviewer', onDone: 'fine' },
                on: { pause: 'paused', note: {} },
              },
              paused: { on: { resume: 'asked' } },
              fine: { type: 'final' },
            },
          },
          goods: {
            initial: 'held',
            states: {
              held: { after: { patience: 'released' }, on: { hold: { target: 'held', reenter: true } } },
              released: { type: 'final' },
              was: { type: 'history' },
            },
          },
        },
      },
      over: { type: 'final' },
    },
  }),
});

/** Workflows that only show how a machine is drawn. */
const drawn = Object.entries(drawnMachines).map(([what, config], at) => ({
  what,
  workflow: defineWorkflow({ id: `drawn${at}`, machine: createMachine(config as never) as AnyStateMachine }),
}));

async function startSite() {
  const store = memoryStore();
  const workflows = [order, ...drawn.map(({ workflow }) => workflow)];
  const worker = createExecutor({ store, workflows, journal: { flushMs: 5 } });
  await worker.start(order, { runId: 'order-7', input: undefined });
  for (const { workflow } of drawn) await worker.start(workflow, { runId: workflow.id, input: undefined });
  await until(async () => (await worker.waiting({ kind: 'question' })).length === 1);
  const site = await Site.on(store, { workflows });
  const stop = async () => {
    await site.stop();
    await worker.shutdown({ drainMs: 0 });
  };
  return { site, worker, stop };
}

/** What is wrong with the drawing in the page, by its real boxes and its real letters. */
const faultsOfDrawing = `(() => {
  const faults = [];
  const all = [...document.querySelectorAll('.drawing .st')].map((g) => {
    const [box] = g.querySelectorAll('rect');
    return { name: g.querySelector('.name').textContent, g, box: box.getBoundingClientRect() };
  });
  const inside = (a, b, by = 1) => a.left >= b.left - by && a.right <= b.right + by && a.top >= b.top - by && a.bottom <= b.bottom + by;
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const whole = document.querySelector('.drawing svg').getBoundingClientRect();
  for (const [at, one] of all.entries()) {
    if (!inside(one.box, whole)) faults.push(one.name + ' is outside');
    for (const text of one.g.querySelectorAll('text'))
      if (!inside(text.getBoundingClientRect(), one.box)) faults.push('a text of ' + one.name + ' is wider than it: ' + text.textContent);
    for (const other of all.slice(at + 1))
      if (meet(one.box, other.box) && !inside(other.box, one.box)) faults.push(one.name + ' and ' + other.name + ' overlap');
  }
  const labels = [...document.querySelectorAll('.drawing .lb')].map((g) => ({ g, box: g.querySelector('rect').getBoundingClientRect() }));
  for (const [at, { g, box }] of labels.entries()) {
    if (!inside(box, whole)) faults.push('a label is outside: ' + g.textContent);
    for (const text of g.querySelectorAll('text'))
      if (!inside(text.getBoundingClientRect(), box)) faults.push('a label is too small: ' + text.textContent);
    for (const other of labels.slice(at + 1)) if (meet(box, other.box)) faults.push('labels overlap: ' + g.textContent);
    for (const { name, box: its } of all) if (meet(box, its) && !inside(box, its)) faults.push('a label is over ' + name);
  }
  const onBorder = ({ x, y }, box) => {
    const near = (a, b) => Math.abs(a - b) < 1.5;
    const isWithin = x > box.left - 1.5 && x < box.right + 1.5 && y > box.top - 1.5 && y < box.bottom + 1.5;
    return isWithin && (near(x, box.left) || near(x, box.right) || near(y, box.top) || near(y, box.bottom));
  };
  const dots = [...document.querySelectorAll('.drawing circle')].map((dot) => dot.getBoundingClientRect());
  for (const path of document.querySelectorAll('.drawing path.edge')) {
    const ends = [path.getPointAtLength(0), path.getPointAtLength(path.getTotalLength())].map((point) => point.matrixTransform(path.getScreenCTM()));
    for (const end of ends)
      if (![...all.map(({ box }) => box), ...dots].some((box) => onBorder(end, box))) faults.push('an arrow ends nowhere: ' + path.getAttribute('d'));
  }
  if (all.length === 0) faults.push('there is no drawing');
  return faults;
})()`;

const looks: readonly Look[] = [
  { width: 1_440, isDark: false },
  { width: 1_440, isDark: true },
  { width: 390, isDark: false },
  { width: 390, isDark: true },
];

/** The browser itself names each answer that is an error: an event that is refused, and an input that the record does not have any more. */
const refused = '/runs/order-7/';

describe.skipIf(whyNoChromium !== undefined)('the drawing of a workflow in Studio', () => {
  let world: Awaited<ReturnType<typeof startSite>>;
  let browser: Browser;
  let tabs: Tabs;
  beforeAll(async () => {
    [world, browser] = await Promise.all([startSite(), startChromium()]);
    tabs = new Tabs(browser);
  });
  afterAll(async () => {
    await browser?.close();
    await world?.stop();
  });

  async function opened(runId: string, look?: Look): Promise<Page> {
    const page = await tabs.open(world.site.at(`#/run/${runId}/chart`), look);
    await page.locator('.drawing svg').waitFor();
    return page;
  }

  const at = (page: Page) => page.locator('.st.at .name').allTextContents();
  const isAt = (page: Page, ...names: readonly string[]) =>
    until(async () => (await at(page)).toSorted().join() === names.toSorted().join());

  it(
    inChromium(
      'has no overlap, all letters in their boxes, and each arrow at its states, of several machines (workflow 23)',
    ),
    async () => {
      for (const { what, workflow } of drawn) {
        const page = await opened(workflow.id);
        expect([what, await page.evaluate(faultsOfDrawing)]).toEqual([what, []]);
        await page.close();
      }
      tabs.check();
    },
  );

  it(
    inChromium(
      'moves with the run: active states, the last transition, visits, and a clock for a pending timer (workflow 23)',
    ),
    async () => {
      const page = await opened('order-7');
      await isAt(page, 'asked', 'held');
      expect(await page.evaluate(faultsOfDrawing)).toEqual([]);
      expect(await page.locator('.lb .left').textContent()).toMatch(/^2 d 23 h$/);
      const control = world.worker.control('order-7');
      await control.send({ type: 'pause' });
      await isAt(page, 'paused', 'held');
      expect(await page.locator('.lb.hot').allTextContents()).toEqual(['pause']);
      expect(await page.locator('path.edge.hot').count()).toBe(1);
      await control.send({ type: 'resume' });
      await isAt(page, 'asked', 'held');
      const asked = page.locator('.st', { has: page.locator('.name', { hasText: /^asked$/ }) }).last();
      expect(await asked.locator('.sub').first().textContent()).toBe('×2');
      // The open call of the state.
      expect(await asked.locator('.sub.open').textContent()).toBe('calls reviewer');
      await page.close();
      tabs.check(refused);
    },
  );

  it(
    inChromium(
      'sends an event with the fields of its schema, and says beside the form what the server refuses (workflow 23)',
    ),
    async () => {
      const page = await opened('order-7');
      await press(page, 'hold');
      await page.getByLabel('days').fill('0');
      await page.getByRole('button', { name: 'Send hold' }).click();
      await shown(page, 'EVENT_INVALID');
      await page.getByLabel('days').fill('2');
      await page.getByRole('button', { name: 'Send hold' }).click();
      await shown(page, 'The event hold is sent.');
      await until(async () => (await page.locator('.lb.hot').allTextContents()).join() === 'hold');
      await press(page, 'pause');
      await page.getByLabel('Value · JSON').fill('{"days":');
      await page.getByRole('button', { name: 'Send pause' }).click();
      await shown(page, 'It is not valid JSON.');
      await page.close();
      tabs.check(refused);
    },
  );

  it(inChromium('has no fault that axe finds, light and dark, on a desk and on a telephone (studio 29)'), async () => {
    const page = await opened('order-7');
    for (const look of looks) {
      await lookAt(page, look);
      await page.locator('.drawing svg').waitFor();
      expect([look, await faultsOf(page), await tooWide(page)]).toEqual([look, [], []]);
    }
    await page.close();
    tabs.check(refused);
  });
});
