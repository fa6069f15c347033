import { memoryStore } from 'pawl';
import type { Browser, CDPSession } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { askingModel, bench } from '../../bench/workload.ts';
import { inChromium, startChromium, whyNoChromium } from '../../fixtures/chromium.ts';
import { gate, hostOf } from '../../fixtures/host.ts';
import { pageSite } from './page-site.ts';

/** An hour of 20 events a second. */
const EVENTS = 72_000;
/** The message, the start and the end of its call, its own end. */
const EVENTS_A_STEP = 4;
const MOST_BYTES = 10_000_000;

/** A model that asks for a call in each step, and waits at some of the steps until the test lets it continue. */
function pausingModel(steps: number, pauses: readonly number[]) {
  const model = askingModel(steps);
  const gates = new Map(pauses.map((step) => [step, gate()]));
  const doStream: typeof model.doStream = async (options) => {
    // A system prompt, the prompt, and two messages a step.
    await gates.get((options.prompt.length - 2) / 2)?.pass();
    return model.doStream(options);
  };
  return { model: { ...model, doStream }, at: (step: number) => gates.get(step) };
}

/** The memory that the page needs, bytes. */
async function heapOf(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.collectGarbage');
  await session.send('HeapProfiler.collectGarbage');
  return (await session.send('Runtime.getHeapUsage')).usedSize;
}

/** PAWL_TORTURE=1: it feeds 72,000 events, which takes a minute. */
describe.skipIf(whyNoChromium !== undefined || !process.env.PAWL_TORTURE)(
  'a tab on a run that works for an hour',
  () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await startChromium();
    });
    afterAll(() => browser?.close());

    it(inChromium('needs at most 10 MB for 72,000 events: it keeps the last steps, and no events (studio 20, 33)'), {
      timeout: 900_000,
    }, async () => {
      const steps = EVENTS / EVENTS_A_STEP;
      const pauses = [50, steps / 3, (2 * steps) / 3, steps];
      const { model, at } = pausingModel(steps + 1, pauses);
      const store = memoryStore();
      const worker = bench({ store, steps: steps + 1, model, effect: 'idempotent', hasJournal: true });
      const site = await pageSite(hostOf({ store, journal: true }).executor);
      const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
      const session = await page.context().newCDPSession(page);
      await session.send('HeapProfiler.enable');
      const run = await worker.executor.start(worker.agent, { runId: 'long', prompt: 'Work for an hour.' });
      await run.accepted;
      await page.goto(`${site.origin}#/run/long`);
      const heaps: number[] = [];
      for (const step of pauses) {
        await at(step)?.reached;
        await page.locator('.tr.step .no').getByText(`${step}`, { exact: true }).waitFor({ timeout: 300_000 });
        await page
          .locator('.facts', { hasText: `${step}` })
          .first()
          .waitFor();
        heaps.push(await heapOf(session));
        at(step)?.open();
      }
      const events = site.asked.reduce((sum, asked) => sum + asked.events, 0);
      const nodes = (await session.send('Memory.getDOMCounters')).nodes;
      console.info(
        `bytes of heap ${heaps.join(', ')}; ${events} events, ${nodes} nodes, ${site.asked.length} requests`,
      );
      expect(events).toBeGreaterThanOrEqual(EVENTS);
      const [first = 0, ...later] = heaps;
      for (const heap of later) expect(heap - first, `${heaps}`).toBeLessThanOrEqual(MOST_BYTES);
      await page.close();
      await site.close();
      await worker.executor.shutdown();
    });
  },
);
