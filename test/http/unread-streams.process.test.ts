import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { toNodeListener } from 'pawl/http';
import { callTool, hang } from 'pawl/testing';
import { afterEach, expect, test } from 'vitest';
import { torture } from '../crash/random.ts';
import { gate, toolOf, until } from '../fixtures/host.ts';
import { webHost } from './web-host.ts';

/** A thousand with PAWL_TORTURE. */
const STREAMS = 100 * torture;
/** So many steps are more than a socket takes that is not read, and more than a host keeps for all readers of a run. */
const STEPS = 30;
const STEP_CHARS = 50_000;
/** What the server may hold for a stream that is not read: one event as value, text and bytes, and a few buffers of 16 KiB. */
const STREAM_BYTES = 6 * STEP_CHARS + 64 * 1_024;

const folder = mkdtempSync(join(tmpdir(), 'pawl-unread-'));
const clients: Socket[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.destroy();
  rmSync(folder, { recursive: true, force: true });
});

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Bytes that are in use once nothing is left to collect. */
async function memory(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test(
  `${STREAMS} streams that no client reads hold a few buffers each, while their run works on (web 36)`,
  async () => {
    const { pass, open: release } = gate<string>();
    let steps = 0;
    const step = toolOf('step', 'read', () => (++steps === STEPS ? pass() : `${steps} `.padEnd(STEP_CHARS, 'x')));
    const host = webHost({
      script: [...Array.from({ length: 2 * STEPS }, (_, i) => callTool('step', { i })), hang()],
      tools: [step],
      agent: { maxIterations: 3 * STEPS },
      http: { maxStreams: STREAMS, heartbeatMs: 20 },
    });
    await host.start({ runId: 'r', callerId: 'ada' });
    await until(() => steps === STEPS);

    const sockets: Socket[] = [];
    const server = createServer(toNodeListener(host.handler)).on('connection', (socket: Socket) =>
      sockets.push(socket),
    );
    const path = join(folder, 'socket');
    await once(server.listen({ path, backlog: STREAMS }), 'listening');
    const before = await memory();
    for (let i = 0; i < STREAMS; i++) {
      const client = connect(path).pause();
      client.on('error', () => {});
      client.write('GET /runs/r/events HTTP/1.1\r\nhost: pawl.test\r\nauthorization: Bearer ada\r\n\r\n');
      clients.push(client);
    }
    const waiting = () => sockets.map((socket) => socket.writableLength);
    const isFull = () => sockets.length === STREAMS && waiting().every((bytes) => bytes > 0);
    // Each reads its own pages: a thousand of them take a while.
    while (!isFull()) await new Promise((resolve) => setTimeout(resolve, 20));
    // And none reads on.
    for (let [same, last] = [0, '']; same < 5; await new Promise((resolve) => setTimeout(resolve, 20))) {
      same = `${waiting()}` === last ? same + 1 : 0;
      last = `${waiting()}`;
    }
    const [filled, opened] = [waiting(), await memory()];
    expect((opened - before) / STREAMS).toBeLessThan(STREAM_BYTES);

    release('done');
    await until(() => steps === 2 * STEPS);
    await new Promise((resolve) => setTimeout(resolve, 100));
    // Neither the events of the second half nor the comments of 100 ms wait in a buffer.
    expect(waiting()).toEqual(filled);
    const grown = (await memory()) - opened;
    // The record and the journal in the memory store have grown, once for all streams.
    expect(grown).toBeLessThan(20 * STEPS * STEP_CHARS);
    if (torture > 1)
      console.log(`${Math.round((opened - before) / STREAMS)} bytes a stream, ${grown} bytes for 30 more steps`);

    for (const client of clients.splice(0)) client.destroy();
    server.close();
    await until(() => sockets.every(({ destroyed }) => destroyed));
    expect(host.httpWarned).toEqual([]);
  },
  60_000 + 12_000 * torture,
);
