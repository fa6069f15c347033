// Starts restate-server, as npm brings it, on free ports of this machine: without telemetry, with all data in one folder.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** A Restate of one process, which can be killed and started again. */
export class RestateServer {
  readonly #program: string;
  readonly #folder: string;
  #process: ChildProcess | undefined;
  ingress = '';
  admin = '';

  /** @param program the path of restate-server @param folder for its data, its configuration and its log */
  constructor(program: string, folder: string) {
    this.#program = program;
    this.#folder = folder;
  }

  /** Starts it, and waits until it answers. A second start continues with the data of the first. */
  async start(): Promise<void> {
    // A port that was free a moment ago may be another program's by now: the first start tries others.
    for (let tries = this.ingress === '' ? 3 : 1; tries > 0; tries--) {
      if (!this.ingress) await this.#configure();
      if (await this.#comesUp()) return;
      await this.kill();
      if (tries > 1) this.ingress = '';
    }
    throw new Error(`restate-server did not start: see ${this.#folder}/restate.log`);
  }

  /** Whether it answers in time. One that has ended does not. */
  async #comesUp(): Promise<boolean> {
    const log = openSync(join(this.#folder, 'restate.log'), 'a');
    const env = { ...process.env, RESTATE_DISABLE_TELEMETRY: 'true', DO_NOT_TRACK: '1' };
    const options = ['--no-logo', '--config-file', join(this.#folder, 'restate.toml')];
    const server = spawn(this.#program, options, { env, stdio: ['ignore', log, log] });
    this.#process = server;
    for (const limit = Date.now() + 30_000; Date.now() < limit; await sleep(25)) {
      if (server.exitCode !== null || server.signalCode !== null) return false;
      if (await this.#isHealthy()) return true;
    }
    return false;
  }

  /** Ends it at once, as a loss of power does. */
  async kill(): Promise<void> {
    const server = this.#process;
    this.#process = undefined;
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const closed = new Promise((resolve) => server.once('close', resolve));
    server.kill('SIGKILL');
    await closed;
  }

  /** Ends it, removes its data, and starts it again. */
  async wipe(): Promise<void> {
    await this.kill();
    rmSync(join(this.#folder, 'data'), { recursive: true, force: true });
    await this.start();
  }

  /** Registers the services at an address. The same address again: Restate reads anew what they have. */
  async register(uri: string): Promise<string> {
    const body = JSON.stringify({ uri, force: true });
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${this.admin}/deployments`, { method: 'POST', headers, body });
    if (!answer.ok) throw new Error(`registration failed: ${await answer.text()}`);
    return ((await answer.json()) as { id: string }).id;
  }

  /** Reads Restate's own tables, for example `sys_invocation`. */
  async query(sql: string): Promise<readonly Record<string, unknown>[]> {
    const headers = { 'content-type': 'application/json', accept: 'application/json' };
    const answer = await fetch(`${this.admin}/query`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ query: sql }),
    });
    if (!answer.ok) throw new Error(`the query failed: ${await answer.text()}`);
    return ((await answer.json()) as { rows: readonly Record<string, unknown>[] }).rows;
  }

  async #isHealthy(): Promise<boolean> {
    const urls = [`${this.admin}/health`, `${this.ingress}/restate/health`];
    const answers = await Promise.all(
      urls.map((url) => fetch(url, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined)),
    );
    return answers.every((answer) => answer?.ok);
  }

  async #configure(): Promise<void> {
    mkdirSync(this.#folder, { recursive: true });
    const [ingress, admin, fabric] = await Promise.all([freePort(), freePort(), freePort()]);
    this.ingress = `http://127.0.0.1:${ingress}`;
    this.admin = `http://127.0.0.1:${admin}`;
    const lines = [
      'disable-telemetry = true',
      'node-name = "node"',
      'listen-mode = "tcp"',
      `base-dir = ${JSON.stringify(join(this.#folder, 'data'))}`,
      `bind-address = "127.0.0.1:${fabric}"`,
      `advertised-address = "http://127.0.0.1:${fabric}/"`,
      'default-num-partitions = 4',
      'rocksdb-total-memory-size = "128 MiB"',
      'log-format = "compact"',
      'log-disable-ansi-codes = true',
      '[ingress]',
      `bind-address = "127.0.0.1:${ingress}"`,
      '[admin]',
      `bind-address = "127.0.0.1:${admin}"`,
    ];
    writeFileSync(join(this.#folder, 'restate.toml'), `${lines.join('\n')}\n`);
  }
}

/** A port on which no process listens now. */
export async function freePort(): Promise<number> {
  const listener = createServer();
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const { port } = listener.address() as { port: number };
  await new Promise((resolve) => listener.close(resolve));
  return port;
}
