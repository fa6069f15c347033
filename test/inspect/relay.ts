import { once } from 'node:events';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';

/** What is used here of a socket of `ws`. */
export interface Socket {
  on(event: 'message', listener: (data: unknown) => void): void;
  on(event: 'error', listener: () => void): void;
  send(data: string): void;
  close(): void;
  terminate(): void;
  /** Reads no more: what the other side sends piles up there. */
  pause(): void;
}

interface SocketServer extends NodeJS.EventEmitter {
  readonly clients: ReadonlySet<Socket>;
  address(): AddressInfo;
  close(done: () => void): void;
}

// The `ws` that the inspector's client brings along, and uses itself; it has no types.
const required = createRequire(createRequire(import.meta.url).resolve('@statelyai/inspect'));
const { WebSocketServer } = required('ws') as {
  WebSocketServer: new (options: { host: string; port: number }) => SocketServer;
};

/**
 * What stands between an inspector's client and its receiver: a server on loopback that gives each socket what the others
 * send, and keeps the text of every frame as it came over the wire.
 *
 * @param onFrame told of each frame and the socket that it came from
 */
export async function startRelay(onFrame: (frame: string, from: Socket) => void = () => {}) {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const frames: string[] = [];
  server.on('connection', (from: Socket) => {
    from.on('error', () => {});
    from.on('message', (data) => {
      const frame = String(data);
      frames.push(frame);
      onFrame(frame, from);
      for (const to of server.clients) if (to !== from) to.send(frame);
    });
  });
  return {
    frames,
    url: `ws://127.0.0.1:${server.address().port}`,
    async connected(count: number): Promise<void> {
      while (server.clients.size < count) await once(server, 'connection');
    },
    async close(): Promise<void> {
      for (const socket of server.clients) socket.terminate();
      await new Promise<void>((done) => server.close(done));
    },
  };
}

export type Relay = Awaited<ReturnType<typeof startRelay>>;
