import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Pawl, type Settings } from '../cli/pawl.ts';
import { buildStudioPage } from '../toolchain/build-studio.ts';

/** What `pawl studio --json` prints. */
interface Facts {
  readonly url: string;
  readonly port: number;
  readonly store: string;
  readonly write: boolean;
  readonly apply: string | null;
}

/** A `pawl studio` in a process of its own, on a port that is free. */
export class StudioProcess {
  readonly pawl: Pawl;
  readonly facts: Facts;

  private constructor(pawl: Pawl) {
    this.pawl = pawl;
    this.facts = JSON.parse(pawl.stdout);
  }

  static async start(args: readonly string[], settings: Settings): Promise<StudioProcess> {
    const pawl = new Pawl(['studio', '--json', ...(args.includes('--port') ? [] : ['--port', '0']), ...args], settings);
    await pawl.says('\n', 'stdout');
    return new StudioProcess(pawl);
  }

  get token(): string {
    return new URL(this.facts.url).hash.slice('#token='.length);
  }

  /** Asks for data, with the token. */
  async get(path: string): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
    return this.send(path, {});
  }

  async post(
    path: string,
    body: unknown,
  ): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
    const headers = { 'content-type': 'application/json' };
    return this.send(path, { method: 'POST', headers, body: JSON.stringify(body) });
  }

  async stop(): Promise<number | null> {
    this.pawl.child.kill('SIGINT');
    return (await this.pawl.ended).code;
  }

  private async send(path: string, { headers = {}, ...init }: RequestInit) {
    const answer = await fetch(`http://127.0.0.1:${this.facts.port}${path}`, {
      ...init,
      headers: { ...headers, authorization: `Bearer ${this.token}` },
    });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  }
}

/** Sends bytes over a socket of its own. @returns the status of the answer, and all of its bytes */
export function raw(
  port: number,
  lines: readonly string[],
  host = '127.0.0.1',
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(port, host, () => socket.write(`${lines.join('\r\n')}\r\n\r\n`));
    socket.setTimeout(10_000, () => socket.destroy(new Error(`no answer: ${text}`)));
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // A server that refuses a request does not read the rest of it.
      if (error.code !== 'ECONNRESET') reject(error);
    });
    socket.on('close', () => resolve({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]), text }));
  });
}

/** The page comes out of `dist`: where nothing was built, it is. */
export async function havePage(): Promise<void> {
  const built = fileURLToPath(new URL('../../dist/src/studio/page-files.js', import.meta.url));
  if (!existsSync(built)) await buildStudioPage();
}
