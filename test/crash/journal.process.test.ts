import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createExecutor, type JournalEvent, type RunResult } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { scriptedModel } from 'pawl/testing';
import { afterAll, expect, test } from 'vitest';
import { passOnErrors } from '../fixtures/processes.ts';
import { packageFlags } from '../toolchain/programs.ts';
import { closed, heard } from './child-end.ts';
import type { JournalJob } from './journal-worker.ts';
import { randomFrom, seed, torture } from './random.ts';

const TRIALS = torture > 1 ? 40 : 2;
const worker = fileURLToPath(new URL('./journal-worker.ts', import.meta.url));
const running = new Set<ChildProcess>();
afterAll(() => {
  for (const child of running) child.kill('SIGKILL');
});

function start(job: JournalJob): ChildProcess {
  const child = passOnErrors(spawn(process.execPath, [...packageFlags, worker, JSON.stringify(job)]));
  running.add(child);
  return child;
}

/** What a reader shows: a text for each step. It checks that pieces continue the text that it has. */
class Page {
  readonly #steps = new Map<number, string>();
  resets = 0;
  cuts = 0;

  show(event: JournalEvent): void {
    if (event.type === 'step.reset') {
      this.resets += 1;
      for (const step of this.#steps.keys()) if (step >= event.step) this.#steps.delete(step);
    } else if (event.type === 'step.snapshot') {
      this.#steps.set(event.step, event.content.map((part) => (part.type === 'text' ? part.text : '')).join(''));
    } else if (event.type === 'model.delta') {
      const text = this.#steps.get(event.step) ?? '';
      expect(event.offset).toBe(text.length);
      this.#steps.set(event.step, text + event.text);
    }
  }

  get texts(): string[] {
    return [...this.#steps].sort(([a], [b]) => a - b).map(([, text]) => text);
  }
}

/** Follows a run to its end; after some events, the connection is cut and made again with the last cursor. */
async function follow(folder: string, runId: string, random: () => number): Promise<Page> {
  const page = new Page();
  const store = sqliteStore({ path: join(folder, 'runs.db'), durability: 'process' });
  const executor = createExecutor({ models: { fast: scriptedModel([]) }, store, journal: true });
  let after: string | undefined;
  for (let isOver = false; !isOver; ) {
    let left = 1 + Math.floor(random() * 40);
    try {
      for await (const event of executor.events(runId, { after })) {
        page.show(event);
        after = event.cursor;
        isOver = event.type === 'run.ended';
        left -= 1;
        if (left === 0) break;
      }
    } catch (error) {
      // The first process has not begun the run yet.
      if ((error as { code?: string }).code !== 'JOURNAL_GONE' || after !== undefined) throw error;
    }
    page.cuts += 1;
    await sleep(random() * 20);
  }
  await executor.shutdown();
  await store.close();
  return page;
}

test(`readers that are cut at random have the recorded text of a run whose processes are killed with SIGKILL (seed ${seed}) (web 4, 5, 6, 35)`, async () => {
  let [trial, kills, cuts, resets] = [0, 0, 0, 0];
  // Few draws may well be unlucky: more are made until a kill has met a text that was not recorded yet.
  const isEnough = () => trial >= TRIALS && resets > 0;
  for (; !isEnough() && trial < 20 + TRIALS; trial++) {
    const random = randomFrom(seed + trial);
    const folder = await mkdtemp(join(tmpdir(), 'pawl-journal-'));
    const runId = `run ${trial}`;
    const job = { folder, runId, pieces: 20, pauseMs: 4 };
    const readers = Promise.all([follow(folder, runId, random), follow(folder, runId, randomFrom(seed - trial))]);
    const result = join(folder, 'result.json');
    for (let i = 0; !existsSync(result); i++) {
      const child = start(job);
      const end = closed(child);
      // From the fourth process on, they may end.
      if (i < 3) {
        await Promise.race([end, heard(child, 'started').then(() => sleep(20 + random() * 250))]);
        if (child.exitCode === null) kills += 1;
        child.kill('SIGKILL');
      }
      await end;
      running.delete(child);
    }
    const { messages } = JSON.parse(readFileSync(result, 'utf8')) as RunResult;
    const recorded = messages
      .filter(({ role }) => role === 'assistant')
      .map(({ content }) => (content as { text?: string }[]).map(({ text = '' }) => text).join(''));
    for (const page of await readers) {
      expect(page.texts).toEqual(recorded);
      cuts += page.cuts;
      resets += page.resets;
    }
  }
  console.log(`seed ${seed}: ${trial} runs, ${kills} kills, ${cuts} connections, ${resets} resets`);
  expect(kills).toBeGreaterThan(trial);
  expect(resets).toBeGreaterThan(0);
}, 600_000);
