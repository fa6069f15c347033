import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freePort } from '../fixtures/free-port.ts';
import { passOnErrors } from '../fixtures/processes.ts';
import { packageFlags } from '../toolchain/programs.ts';

const file = (name: string) => fileURLToPath(new URL(`../../docs/examples/chat/${name}`, import.meta.url));

/** Bundles the page of the example. @returns the folder with the bundle */
export async function buildPage(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-chat-page-'));
  await promisify(execFile)(process.execPath, [...packageFlags, file('build.ts'), folder]);
  return folder;
}

export interface Sent {
  readonly key: string;
  readonly to: string;
  readonly subject: string;
  readonly body: string;
}

/** The server of the example: one port and one folder, over many processes. */
export class ChatServer {
  readonly #folder = mkdtempSync(join(tmpdir(), 'pawl-chat-'));
  readonly #wordMs: number;
  #port: number | undefined;
  #process: ChildProcess | undefined;

  /** @param page the folder of the bundle; absent: without a page @param wordMs how long the model needs for a word */
  constructor(page: string | undefined, { wordMs = 20 } = {}) {
    this.#wordMs = wordMs;
    if (page !== undefined) symlinkSync(join(page, 'page.js'), join(this.#folder, 'page.js'));
  }

  async start(): Promise<void> {
    this.#port ??= await freePort();
    const env = { ...process.env, PORT: `${this.#port}`, CHAT: this.#folder, WORD_MS: `${this.#wordMs}` };
    const stdio = ['ignore', 'pipe', 'pipe'] as const;
    const child = passOnErrors(
      spawn(process.execPath, [...packageFlags, file('server.ts')], { env, stdio: [...stdio] }),
    );
    this.#process = child;
    const died = once(child, 'exit').then(() => Promise.reject(new Error('the server ended')));
    await Promise.race([once(child.stdout, 'data'), died]);
    died.catch(() => {});
  }

  /** Ends the process as the kernel would, and waits until it is gone. */
  async kill(): Promise<void> {
    await this.end('SIGKILL');
  }

  /** @returns the exit code; null for a process that was killed, or none */
  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> {
    const child = this.#process;
    this.#process = undefined;
    if (!child?.kill(signal)) return null;
    const [code] = await once(child, 'exit');
    return code as number | null;
  }

  /** The address of a conversation. */
  chat(id: string, more = ''): string {
    return `${this.url}/?chat=${id}${more}`;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** The mails that have left. */
  get sent(): readonly Sent[] {
    const outbox = join(this.#folder, 'outbox.jsonl');
    if (!existsSync(outbox)) return [];
    const lines = readFileSync(outbox, 'utf8').split('\n');
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Sent);
  }
}
