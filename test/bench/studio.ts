// What Studio costs who looks at it: a real browser on a store that a bench has filled.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createExecutor, type Executor } from 'pawl';
import { toNodeListener } from 'pawl/http';
import { sqliteStore } from 'pawl/stores/sqlite';
import { studioHandler } from 'pawl/studio';
import type { Browser } from 'playwright-core';
import { startChromium, whyNoChromium } from '../fixtures/chromium.ts';
import { inFolder, measured, median } from './measure.ts';
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
    return { rows: [...rows, await workerRow(isQuick ? 2 : 8)], broken: [] };
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
  const executor: Executor = createExecutor({ models: () => undefined, store, journal: true });
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
      await page.goto(url);
      await page.locator('div.row:not(.th)').first().waitFor();
      const frame = (await page.evaluate(jumps)) as number;
      await page.close();
      const note = `${runs} runs, SQLite`;
      return [
        await openingRow('first rows of the list in a browser', note, () =>
          opening(browser, path, { address: '', shown: [['div.row:not(.th)', '']] }),
        ),
        { what: 'a page of 100 rows', value: median(pages), unit: 'ms', budget: 50, note },
        { what: 'the longest frame of a jump through the list', value: frame, unit: 'ms', budget: 50, note },
      ];
    });
  });
}

/** What it took to open a view. */
interface Opening {
  readonly ms: number;
  /** Of Studio, and of the program that drives the browser. */
  readonly serverMs: number;
  /** Of the page. */
  readonly pageMs: number;
}

const OPENINGS = 5;

async function openingRow(what: string, note: string, open: () => Promise<Opening>): Promise<Row> {
  const seen: Opening[] = [];
  while (seen.length < OPENINGS) seen.push(await open());
  const of = (key: keyof Opening) => median(seen.map((each) => each[key])).toFixed(0);
  const cpu = `CPU of Studio and of the browser's driver ${of('serverMs')} ms, of the page ${of('pageMs')} ms`;
  const first = `the first opening ${seen[0]?.ms.toFixed(0)} ms`;
  return { what, value: Number(of('ms')), unit: 'ms', budget: 1_000, note: `${note}; ${first}; ${cpu}` };
}

/** Opens a view of a Studio that has just begun, in a new tab: from its address until all of this is shown. */
function opening(
  browser: Browser,
  path: string,
  { address, shown }: { readonly address: string; readonly shown: readonly (readonly [place: string, text: string])[] },
): Promise<Opening> {
  return onStudio(path, async ({ url }) => {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable');
    let ms = 0;
    const { cpuMs } = await measured(async () => {
      const began = performance.now();
      await page.goto(`${url}${address}`);
      for (const [place, hasText] of shown) await page.locator(place, { hasText }).first().waitFor();
      ms = performance.now() - began;
    });
    const { metrics } = await session.send('Performance.getMetrics');
    await page.close();
    const pageMs = 1_000 * (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN);
    return { ms, serverMs: cpuMs, pageMs };
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
    const shown = [
      ['.facts', `${steps}`],
      ['.tr.step .no', `${steps}`],
    ] as const;
    return openingRow('a long run in a browser', `${steps} steps, SQLite`, () =>
      opening(browser, path, { address: '#/run/long', shown }),
    );
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

const studioWorker = fileURLToPath(new URL('./studio-worker.ts', import.meta.url));
/** How long the CPU of a worker is measured at a time, ms. */
const WINDOW_MS = 5_000;

/** The CPU of a process that works on runs, with a Studio open on its store and without one, by turns. */
function workerRow(windows: number): Promise<Row> {
  return inFolder(async (folder) => {
    const path = join(folder, 'pawl.db');
    const worker = fork(studioWorker, [path]);
    const answer = async () => (await once(worker, 'message'))[0] as number;
    const used = async () => {
      worker.send('cpu');
      return answer();
    };
    /** Percent of a core. */
    const share = async () => {
      const [before, began] = [await used(), performance.now()];
      await new Promise((resolve) => setTimeout(resolve, WINDOW_MS));
      return (100 * ((await used()) - before)) / (performance.now() - began);
    };
    try {
      await answer();
      const found: { with: number; without: number }[] = [];
      await share();
      for (let window = 0; window < windows; window++)
        found.push({ without: await share(), with: await onStudio(path, (studio) => whileWatched(studio, share)) });
      const more = median(found.map((each) => each.with - each.without));
      const without = median(found.map((each) => each.without)).toFixed(1);
      const shares = `${without} % of a core without it, ${median(found.map((each) => each.with)).toFixed(1)} % with it`;
      const note = `5 runs, 50 steps a second, SQLite; ${shares}, ${windows} windows of ${WINDOW_MS / 1_000} s each, by turns`;
      return { what: 'more CPU of a worker while Studio is open', value: more, unit: '%', budget: 1, note };
    } finally {
      worker.disconnect();
      await once(worker, 'exit');
    }
  });
}

/** A tab on one of the runs: it reads its stream, and asks for the record once a second. */
async function whileWatched<T>({ url, answer }: Seen, work: () => Promise<T>): Promise<T> {
  const leaving = new AbortController();
  const { signal } = leaving;
  const { body } = await answer(new Request(`${url}watch?runs=1&run=r0`, { signal }));
  const reader = body?.getReader();
  const reading = (async () => {
    while (reader && !(await reader.read()).done);
  })().catch(() => {});
  const timer = setInterval(() => void answer(new Request(`${url}runs/r0/record`)).then((view) => view.text()), 1_000);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    leaving.abort();
    await reading;
  }
}
