// What Studio costs who looks at it: a real browser on a store that a bench has filled.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createExecutor, type Executor } from 'pawl';
import { toNodeListener } from 'pawl/http';
import { sqliteStore } from 'pawl/stores/sqlite';
import { studioHandler } from 'pawl/studio';
import type { Browser } from 'playwright-core';
import { startChromium, whyNoChromium } from '../fixtures/chromium.ts';
import { inFolder, median } from './measure.ts';
import type { Part, Row } from './report.ts';
import { askingModel, type BenchStore, bench, hangingAfter } from './workload.ts';

const RUNS = 10_000;
const STEPS = 3_000;

/** A list of very many runs and one very long run, in a browser; from another process's step to the page. */
export async function studioRows(isQuick: boolean): Promise<Part> {
  if (whyNoChromium !== undefined) {
    console.error(`Studio: skipped: ${whyNoChromium}`);
    return { rows: [], broken: [] };
  }
  const browser = await startChromium();
  try {
    const [runs, steps] = isQuick ? [1_000, 300] : [RUNS, STEPS];
    const rows = [...(await listRows(browser, runs)), await longRunRow(browser, steps), await liveRow(browser)];
    return { rows, broken: [] };
  } finally {
    await browser.close();
  }
}

interface Seen {
  readonly url: string;
  readonly answer: (request: Request) => Promise<Response>;
}

/** Studio on a store, as another process has it. */
async function onStudio<T>(path: string, use: (studio: Seen) => Promise<T>): Promise<T> {
  const store = sqliteStore({ path });
  const executor: Executor = createExecutor({ models: () => undefined, checkpoints: store, journal: true });
  const answer = studioHandler(executor, { authorize: () => ({ callerId: 'bench', all: true }) });
  const server = createServer(toNodeListener(answer));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    return await use({ answer, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` });
  } finally {
    server.closeAllConnections();
    server.close();
    await executor.shutdown();
    await store.close();
  }
}

/** The first rows, a page of the list, and the longest frame of a jump to its end. */
function listRows(browser: Browser, runs: number): Promise<Row[]> {
  return inFolder(async (folder) => {
    const path = join(folder, 'pawl.db');
    await fill(path, runs);
    return onStudio(path, async ({ url, answer }) => {
      const pages: number[] = [];
      for (let i = 0, after = ''; i < 20; i++) {
        const began = performance.now();
        const { next } = (await (await answer(new Request(`${url}runs?limit=100${after}`))).json()) as { next: string };
        pages.push(performance.now() - began);
        after = `&after=${encodeURIComponent(next)}`;
      }
      const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
      const began = performance.now();
      await page.goto(url);
      await page.locator('div.row:not(.th)').first().waitFor();
      const first = performance.now() - began;
      const frame = (await page.evaluate(jumps)) as number;
      await page.close();
      const note = `${runs} runs, SQLite`;
      return [
        { what: 'first rows of the list in a browser', value: first, unit: 'ms', budget: 1_000, note },
        { what: 'a page of 100 rows', value: median(pages), unit: 'ms', budget: 50, note },
        { what: 'the longest frame of a jump through the list', value: frame, unit: 'ms', budget: 50, note },
      ];
    });
  });
}

/** Admits runs that no process drives. */
async function fill(path: string, runs: number): Promise<void> {
  const { executor, agent, close } = bench({ path, steps: 0 });
  for (let i = 0; i < runs; i += 100) {
    const ids = Array.from({ length: 100 }, (_, at) => `run-${i + at}`);
    await Promise.all(
      ids.map((runId) => executor.start(agent, { runId, prompt: 'Wait for a process.' }, { drive: 'later' })),
    );
  }
  await executor.shutdown();
  await close();
}

/** In the page: jumps up and down the list ten times; the longest time between two frames, ms. */
const jumps = `(async () => {
  const box = document.querySelector('main .scroll');
  const frame = () => new Promise(requestAnimationFrame);
  let last = await frame();
  let longest = 0;
  for (let i = 0; i < 10; i++) {
    box.scrollTop = i % 2 === 0 ? box.scrollHeight : 0;
    for (let frames = 0; frames < 3; frames++) {
      const now = await frame();
      longest = Math.max(longest, now - last);
      last = now;
    }
  }
  return longest;
})()`;

/** In the page: notes when each step was first shown. */
const noteSteps = `(() => {
  globalThis.seen = {};
  new MutationObserver(() => {
    for (const { textContent } of document.querySelectorAll('.tr.step .no')) seen[textContent] ??= Date.now();
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
})()`;

/** A run of very many steps, from its address to its last step. */
function longRunRow(browser: Browser, steps: number): Promise<Row> {
  return inFolder(async (folder) => {
    const path = join(folder, 'pawl.db');
    const { executor, agent, close } = bench({ path, steps, model: hangingAfter(steps), hasJournal: true });
    const run = await executor.start(agent, { runId: 'long', prompt: 'Collect the pieces.' });
    for await (const event of run.events()) if (event.type === 'step.done' && event.step === steps) break;
    await executor.shutdown();
    await close();
    return onStudio(path, async ({ url }) => {
      const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
      const began = performance.now();
      await page.goto(`${url}#/run/long`);
      await page
        .locator('.facts', { hasText: String(steps) })
        .first()
        .waitFor();
      await page.locator('.tr.step').first().waitFor();
      const value = performance.now() - began;
      await page.close();
      return { what: 'a long run in a browser', value, unit: 'ms', budget: 1_000, note: `${steps} steps, SQLite` };
    });
  });
}

/** From a step that another process records to its row in a page that watches. */
function liveRow(browser: Browser): Promise<Row> {
  return inFolder(async (folder) => {
    const path = join(folder, 'pawl.db');
    const store = sqliteStore({ path });
    const recordedAt = new Map<number, number>();
    const model = askingModel(40);
    const slow = {
      ...model,
      doStream: async (...given: Parameters<typeof model.doStream>) => {
        await new Promise((resolve) => setTimeout(resolve, 150));
        return model.doStream(...given);
      },
    };
    const { executor, agent } = bench({ store: store as BenchStore, model: slow, steps: 40, hasJournal: true });
    const run = await executor.start(agent, { runId: 'live', prompt: 'Collect the pieces.' });
    const value = await onStudio(path, async ({ url }) => {
      const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
      await page.goto(`${url}#/run/live`);
      await page.locator('.tr.step').first().waitFor();
      await page.evaluate(noteSteps);
      for await (const event of run.events()) if (event.type === 'step.done') recordedAt.set(event.step, Date.now());
      await page.waitForTimeout(1_500);
      const seenAt = (await page.evaluate('seen')) as Record<string, number>;
      await page.close();
      const late = [...recordedAt].flatMap(([step, at]) => (seenAt[step] === undefined ? [] : [seenAt[step] - at]));
      return late.toSorted((a, b) => a - b)[Math.floor(late.length * 0.95)] ?? Number.NaN;
    });
    await run.result;
    await executor.shutdown();
    await store.close();
    const note = 'the slowest 5 % above; the step is there before its end is';
    return { what: "from another process's step to the page", value, unit: 'ms', budget: 1_000, note };
  });
}
