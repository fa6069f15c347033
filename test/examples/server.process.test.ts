import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RunEvent } from 'pawl';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { passOnErrors } from '../fixtures/processes.ts';

const script = fileURLToPath(new URL('../../docs/examples/server/server.ts', import.meta.url));
let folder: string;
const processes: ChildProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-server-'));
});
afterEach(async () => {
  for (const child of processes.splice(0)) {
    // One that is still at it may write to its folder until it is gone.
    if (child.kill('SIGKILL')) await once(child, 'exit');
  }
  rmSync(folder, { recursive: true, force: true });
});

interface Server {
  readonly url: string;
  /** Ends the process, and gives its exit code. */
  readonly end: (signal: 'SIGTERM' | 'SIGKILL') => Promise<number | null>;
}

async function boot(): Promise<Server> {
  const env = { ...process.env, PORT: '0', STORE: join(folder, 'runs.db'), COUNT_MS: '100' };
  const child = passOnErrors(spawn(process.execPath, [script], { env, stdio: ['ignore', 'pipe', 'pipe'] }));
  processes.push(child);
  const url = await new Promise<string>((resolve, reject) => {
    let text = '';
    child.once('exit', () => reject(new Error('the server ended')));
    child.stdout.on('data', (data) => {
      text += data;
      const found = /http:\/\/\S+/.exec(text)?.[0];
      if (found) resolve(found);
    });
  });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const end: Server['end'] = (signal) => {
    child.kill(signal);
    return ended;
  };
  return { url, end };
}

const post = (url: string, body: unknown) =>
  fetch(`${url}/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

/** The events of a run, until the server or the run ends; `onEvent` is told of each. */
async function follow(url: string, runId: string, onEvent: (event: RunEvent) => void = () => {}): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  const response = await fetch(`${url}/runs/${runId}/events`);
  let text = '';
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const event = JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? '') as RunEvent;
      events.push(event);
      onEvent(event);
    }
  }
  return events;
}

describe('the example server', () => {
  test.each(['SIGTERM', 'SIGKILL'] as const)(
    'streams a run, is ended by %s in the middle, and goes on at the next boot',
    async (signal) => {
      const first = await boot();
      expect((await post(first.url, { runId: 'count-1', prompt: 'Count to 12.' })).status).toBe(202);
      let exit: Promise<number | null> | undefined;
      const seen = await follow(first.url, 'count-1', (event) => {
        if (event.type === 'step.done' && event.step === 4) exit ??= first.end(signal);
      }).catch(() => []);
      expect(await exit).toBe(signal === 'SIGTERM' ? 0 : null);
      if (signal === 'SIGTERM') expect(seen.at(-1)).toMatchObject({ type: 'run.ended', status: 'interrupted' });

      const second = await boot();
      await post(second.url, { runId: 'count-1', prompt: 'Count to 12.' });
      const events = await follow(second.url, 'count-1');
      const counted = events.flatMap((event) => (event.type === 'tool.started' ? [event.input] : []));
      const result = await (await fetch(`${second.url}/runs/count-1`)).json();
      expect(result).toMatchObject({ status: 'ok', output: 'Counted to 12.', iterations: 13 });
      expect(counted.length).toBeLessThan(12);
      expect(await second.end('SIGTERM')).toBe(0);
    },
  );

  test('answers bad requests with 400 or 404 and goes on', async () => {
    const server = await boot();
    const statuses = [];
    for (const body of ['not json', {}, { prompt: ' ' }, { prompt: 'x', runId: 7 }])
      statuses.push((await post(server.url, body)).status);
    statuses.push((await fetch(`${server.url}/runs/nobody`)).status, (await fetch(`${server.url}/elsewhere`)).status);
    expect(statuses).toEqual([400, 400, 400, 400, 404, 404]);
    expect((await post(server.url, { prompt: 'Count to 1.' })).status).toBe(202);
  });
});
