import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { HttpAgent, type ResumeEntry } from '@ag-ui/client';
import { createExecutor, defineAgent } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { scriptedModel } from 'pawl/testing';
import { expect, test, vi } from 'vitest';
import { agUiMessagesOf } from '../../src/ag-ui/messages.ts';
import { randomFrom, seed, torture } from '../crash/random.ts';
import { packageFlags } from '../toolchain/programs.ts';

const worker = fileURLToPath(new URL('./server-worker.ts', import.meta.url));
const KILLS = torture > 1 ? 100 : 3;
const TURNS = torture > 1 ? 30 : 2;

/** A server that is killed again and again; each time another one begins, on another port. */
class Server {
  readonly #folder: string;
  readonly #random: () => number;
  #child: ChildProcess | undefined;
  #isOver = false;
  kills = 0;
  port = 0;

  constructor(folder: string, random: () => number) {
    this.#folder = folder;
    this.#random = random;
  }

  async run(): Promise<void> {
    while (!this.#isOver) {
      await this.#begin();
      const lives = 100 + this.#random() * 700;
      for (let left = lives; left > 0 && !this.#isOver; left -= 20) await sleep(20);
      while (this.kills >= KILLS && !this.#isOver) await sleep(20);
      const gone = new Promise((resolve) => this.#child?.once('close', resolve));
      this.#child?.kill('SIGKILL');
      this.kills += 1;
      await gone;
    }
  }

  end(): void {
    this.#isOver = true;
  }

  async #begin(): Promise<void> {
    const job = JSON.stringify({ folder: this.#folder });
    const child = spawn(process.execPath, [...packageFlags, worker, job], { stdio: ['ignore', 'pipe', 'ignore'] });
    this.#child = child;
    this.port = await new Promise<number>((resolve, reject) => {
      child.stdout?.once('data', (port: Buffer) => resolve(Number(port)));
      child.once('close', () => reject(new Error('the server did not begin')));
    });
  }
}

/** A page with the real client: it posts until its stream has an end, whatever breaks. */
class LastingPage {
  readonly #server: Server;
  readonly agent = new HttpAgent({
    url: 'http://server.invalid/',
    threadId: 't',
    fetch: (_, init) => this.#fetch(init),
  });
  cuts = 0;

  constructor(server: Server) {
    this.#server = server;
  }

  /** Posts until the stream ends, and gives each approval that it asks for. */
  async turn(id: string, content: string): Promise<void> {
    this.agent.addMessage({ id, role: 'user', content });
    for (let resume: ResumeEntry[] | undefined; ; ) {
      await this.#posted(resume);
      const asked = this.agent.pendingInterrupts;
      if (asked.length === 0) return;
      resume = asked.map((each) => ({ interruptId: each.id, status: 'resolved', payload: { approved: true } }));
    }
  }

  async #posted(resume: ResumeEntry[] | undefined): Promise<void> {
    for (;;) {
      let last = '';
      const onEvent = ({ event }: { event: { type: string; code?: unknown; message?: unknown } }) => {
        last = event.code === 'abort' ? '' : event.type;
        if (last === 'RUN_ERROR') throw new Error(`the run failed: ${String(event.code)} ${String(event.message)}`);
      };
      try {
        await this.agent.runAgent(resume ? { resume } : {}, { onEvent: onEvent as never });
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
      }
      if (last === 'RUN_FINISHED') return;
      this.cuts += 1;
      await sleep(20);
    }
  }

  /** A connection that breaks looks like one that this page left: else the client leaves a rejection without a handler. */
  async #fetch(init: RequestInit): Promise<Response> {
    const { body, ok, status, headers } = await fetch(`http://127.0.0.1:${this.#server.port}/`, init);
    if (!ok || !body) return new Response(body, { status, headers });
    const reader = body.getReader();
    const cut = () => new DOMException('cut', 'AbortError');
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
      const { done, value } = await reader.read().catch(() => {
        throw cut();
      });
      if (done) controller.close();
      else controller.enqueue(value);
    };
    return new Response(new ReadableStream({ pull, cancel: () => reader.cancel().catch(() => {}) }), {
      status,
      headers,
    });
  }
}

test(`a conversation over a server that is killed ${KILLS} times: the real client has the recorded messages, and no approved call ran twice (web 34, 35)`, {
  timeout: 60_000 + KILLS * 4_000,
}, async () => {
  const errors = vi.spyOn(console, 'error').mockReturnValue();
  const folder = mkdtempSync(join(tmpdir(), 'pawl-ag-ui-'));
  const server = new Server(folder, randomFrom(seed));
  const serving = server.run();
  const page = new LastingPage(server);
  let turns = 0;
  try {
    while (server.port === 0) await sleep(10);
    while (turns < TURNS || server.kills < KILLS) {
      turns += 1;
      await page.turn(`m${turns}`, `Turn ${turns}`);
    }
  } finally {
    server.end();
    await serving;
    errors.mockRestore();
  }
  expect(page.cuts).toBeGreaterThan(0);

  const agent = defineAgent({ id: 'desk', instructions: 'Write.' });
  await using executor = createExecutor({
    models: { fast: scriptedModel([]) },
    store: sqliteStore({ path: join(folder, 'runs.db') }),
  });
  const recorded = await executor.thread('t', { agent, callerId: 'ada' }).messages({ limit: 1_000 });
  expect(page.agent.messages).toEqual(agUiMessagesOf(recorded));
  expect(page.agent.messages.length).toBe(turns * 5);
  // A process that died during a call leaves its outcome unknown: it is not repeated, and may not have taken effect.
  const known = page.agent.messages.flatMap(({ role, content }) =>
    role === 'tool' && String(content).startsWith('sent ') ? [Number(String(content).slice('sent '.length))] : [],
  );
  const sent = readFileSync(join(folder, 'sent.txt'), 'utf8').trim().split('\n').map(Number);
  expect(sent.length).toBe(new Set(sent).size);
  expect(sent).toEqual(expect.arrayContaining(known));
});
