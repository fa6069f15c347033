import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { packageFlags } from '../toolchain/programs.ts';
import { type Relay, type Socket, startRelay } from './relay.ts';
import type { Told } from './worker.ts';

const here = fileURLToPath(new URL('.', import.meta.url));

/** Runs a host whose client sends to `url`; `inTheMiddle` resolves when the host may go on. */
async function hostWatchedAt(url: string, how: 'ends' | 'exits', inTheMiddle: Promise<unknown> = Promise.resolve()) {
  const child = spawn(process.execPath, [...packageFlags, 'worker.ts', url, how], { cwd: here });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [out, err, closed] = [text(child.stdout), text(child.stderr), once(child, 'close')];
  void inTheMiddle.then(() => child.stdin.write('on\n'));
  const [code, signal] = await closed;
  return { code, signal, stderr: await err, told: JSON.parse((await out) || '{}') as Told };
}

/** A relay that does something to the client when the run is in its eleventh step. */
async function relayThat(act: (client: Socket) => void) {
  const middle = Promise.withResolvers<void>();
  const relay: Relay = await startRelay((frame, from) => {
    if (JSON.parse(frame).name !== 'tool.11.0') return;
    act(from);
    middle.resolve();
  });
  onTestFinished(() => relay.close());
  return { relay, middle: middle.promise };
}

const untouched = {
  code: 0,
  signal: null,
  stderr: '',
  told: { status: 'ok', iterations: 31, warnings: [], waiting: expect.any(Number) },
};

describe('a viewer', { timeout: 120_000 }, () => {
  test('that is there to the end gets everything, and the process ends by itself', async () => {
    const { relay, middle } = await relayThat(() => {});
    expect(await hostWatchedAt(relay.url, 'ends', middle)).toEqual(untouched);
    expect(relay.frames.some((frame) => frame.includes('"xstate.done.actor.settle"'))).toBe(true);
  });

  test.for([
    ['closes the connection', (client: Socket) => client.close()],
    ['tears the connection', (client: Socket) => client.terminate()],
  ] as const)('that %s in the middle of a run does nothing to it, and the process ends by itself', async ([, act]) => {
    const { relay, middle } = await relayThat(act);
    expect(await hostWatchedAt(relay.url, 'ends', middle)).toEqual(untouched);
    expect(relay.frames.some((frame) => frame.includes('tool.10.0'))).toBe(true);
    expect(relay.frames.some((frame) => frame.includes('tool.20.0'))).toBe(false);
  });

  test('that reads no more does nothing to a run: frames wait in memory, and the process can exit', async () => {
    const { relay, middle } = await relayThat((client) => client.pause());
    const seen = await hostWatchedAt(relay.url, 'exits', middle);
    expect(seen).toEqual(untouched);
    expect(seen.told.waiting).toBeGreaterThan(1_000_000);
  });

  test('that is not there, or accepts and never answers, does nothing to a run, and the process can exit', async () => {
    const server = createServer((socket) => socket.on('error', () => {}).resume()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const connected = once(server, 'connection');
    expect(await hostWatchedAt(url, 'exits')).toEqual(untouched);
    await connected;
    server.close();
    await once(server, 'close');
    expect(await hostWatchedAt(url, 'exits')).toEqual(untouched);
  });
});
