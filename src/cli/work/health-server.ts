/// <reference lib="esnext.disposable" preserve="true" />
import { createServer, type Server } from 'node:http';
import { healthHandler, toNodeListener } from '../../http/index.ts';
import type { Executor, Health } from '../../index.ts';
import { Failure, oneLine } from '../ui/failure.ts';
import type { Output } from '../ui/output.ts';

/** Where probes are answered. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Most connections at once: probes come one by one. */
const MOST_CONNECTIONS = 64;
/** Longest time for a request, ms. */
const REQUEST_MS = 5_000;

/**
 * Parses the option `--health`: a port of this machine alone, or an address with a port.
 * @throws {Failure} if it is neither
 * @example addressOf('8080') // { host: '127.0.0.1', port: 8080 }
 */
export function addressOfServer(option: string): Address {
  const cut = option.lastIndexOf(':');
  const [host, port] = [cut < 0 ? '127.0.0.1' : option.slice(0, cut), option.slice(cut + 1)];
  const number = /^\d{1,5}$/.test(port) ? Number(port) : Number.NaN;
  const bare = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
  if (number <= 65_535 && bare !== '') return { host: bare, port: number };
  throw new Failure(
    `--health ${JSON.stringify(oneLine(option))} is not an address; use a port (8080) or an address with one (0.0.0.0:8080)`,
  );
}

/** What answers probes until it is disposed. */
interface HealthServer extends AsyncDisposable {
  /** From now on it answers for this executor. */
  of(executor: Executor): void;
}

/** The answer before there is an executor: the store is waited for. */
const starting: Health = {
  ...{ live: true, ready: false, reasons: ['STARTING'] },
  ...{ store: 'away', draining: false },
};

/** Begins to answer probes. @param address undefined = it answers none @throws {Failure} if it cannot be used */
export async function serveHealth(address: Address | undefined, output: Output): Promise<HealthServer> {
  let known: Pick<Executor, 'health'> = { health: async () => starting };
  const of = (executor: Executor) => {
    known = executor;
  };
  if (!address) return { of, [Symbol.asyncDispose]: async () => {} };
  const server = createServer({ requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS });
  server.maxConnections = MOST_CONNECTIONS;
  server.on('request', toNodeListener(healthHandler({ health: () => known.health() })));
  const port = await listening(server, address);
  // A socket that breaks must not end the process.
  server.on('error', () => {});
  const shown = address.host.includes(':') ? `[${address.host}]` : address.host;
  output.say(`pawl: health at http://${shown}:${port}/healthz and /readyz`);
  return { of, [Symbol.asyncDispose]: () => closeHealthServer(server) };
}

function listening(server: Server, { host, port }: Address): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', ({ code }: NodeJS.ErrnoException) => {
      const why = code === 'EADDRINUSE' ? 'another program has it' : `it cannot be used (${code})`;
      reject(new Failure(`--health ${oneLine(host)}:${port}: ${why}; name another one`));
    });
    server.listen({ host, port }, () => {
      const found = server.address();
      resolve(typeof found === 'object' && found ? found.port : port);
    });
  });
}

function closeHealthServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
