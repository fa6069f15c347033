import { createServer, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { Failure } from '../ui/failure.ts';

/** The addresses of this machine that no other machine reaches. There is no option for more. */
const ADDRESSES = ['127.0.0.1', '::1'] as const;

/** How many ports are tried. */
const TRIES = 100;

/** Most connections of an address. */
const MOST_CONNECTIONS = 256;
/** Requests of one connection that are under way. */
const MOST_REQUESTS = 16;

/** A server that listens. */
interface Listening {
  readonly port: number;
  /** Whether the first port was taken. */
  readonly isMoved: boolean;
  /** Breaks the open connections. */
  close(): Promise<void>;
}

/**
 * Listens on both loopback addresses: on `port`, or on the next one that is free on both; 0 = any free one.
 * @param listenerFor makes the listener once the port is known
 * @throws {Failure} if no port can be used
 */
export async function listenHere(port: number, listenerFor: (port: number) => RequestListener): Promise<Listening> {
  for (let tries = 0; tries < TRIES; tries++) {
    const wanted = port === 0 ? 0 : port + tries;
    if (wanted > 65_535) break;
    // Both addresses share one listener.
    let listener: RequestListener | undefined;
    const servers = await listenOn(wanted, (found) => {
      listener ??= listenerFor(found);
      return listener;
    });
    if (!servers) continue;
    return {
      port: portOf(servers[0]),
      isMoved: tries > 0 && port !== 0,
      close: async () => void (await Promise.all(servers.map(closePageServer))),
    };
  }
  throw new Failure(`the ports from ${port} on are all taken; name another one with --port`);
}

type Servers = readonly [Server, ...Server[]];

/** Undefined if the port is taken on one of the addresses: another program would answer there for this one. */
async function listenOn(wanted: number, listenerFor: (port: number) => RequestListener): Promise<Servers | undefined> {
  const open: Server[] = [];
  for (const address of ADDRESSES) {
    const server = createServer();
    bound(server);
    // A request that no server can read is answered by Node; a socket that breaks must not end the process.
    server.on('error', () => {});
    const port = open[0] ? portOf(open[0]) : wanted;
    server.once('listening', () => server.on('request', listenerFor(portOf(server))));
    const found = await listening(server, { port, address });
    if (found === 'open') open.push(server);
    if (found === 'taken') {
      await Promise.all(open.map(closePageServer));
      return undefined;
    }
  }
  const [first, ...others] = open;
  if (!first) throw new Failure('this machine has no loopback address to listen on');
  return [first, ...others];
}

/**
 * Bounds the connections: for one too many, the oldest is closed on which no request is under way. Any user of this machine can
 * open connections, and none of them keeps the page out.
 */
function bound(server: Server): void {
  const idle = new Set<Socket>();
  let open = 0;
  server.on('connection', (socket) => {
    open += 1;
    idle.add(socket);
    socket.once('close', () => {
      open -= 1;
      idle.delete(socket);
    });
    if (open <= MOST_CONNECTIONS) return;
    const [oldest = socket] = idle;
    idle.delete(oldest);
    oldest.destroy();
  });
  const asked = new Map<Socket, number>();
  server.on('request', ({ socket }, response) => {
    idle.delete(socket);
    const requests = (asked.get(socket) ?? 0) + 1;
    asked.set(socket, requests);
    // A browser asks once it has its answer. Who sends requests without reading would fill the memory with answers.
    if (requests > MOST_REQUESTS) socket.destroy();
    response.once('close', () => {
      const left = (asked.get(socket) ?? 1) - 1;
      if (left > 0) asked.set(socket, left);
      else asked.delete(socket);
      if (left === 0 && !socket.destroyed) idle.add(socket);
    });
  });
}

/** `none`: this machine has no such address. @throws {Failure} */
function listening(
  server: Server,
  { port, address }: { readonly port: number; readonly address: string },
): Promise<'open' | 'taken' | 'none'> {
  return new Promise((resolve, reject) => {
    server.once('listening', () => resolve('open'));
    server.once('error', (error: NodeJS.ErrnoException) => {
      const { code } = error;
      if (code === 'EADDRINUSE') resolve('taken');
      else if (code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT') resolve('none');
      else reject(new Failure(`port ${port} of ${address} cannot be used (${code}); name another one with --port`));
    });
    server.listen({ port, host: address, exclusive: true });
  });
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

function closePageServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
