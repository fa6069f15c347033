import type { AsyncLocalStorage } from 'node:async_hooks';
import { readProperty } from '../values/error-data.ts';

/** The addresses at the other ends of requests, for `localOnly`. */
const addresses = new WeakMap<Request, string>();

/** Notes the address at the other end of a request's connection. */
export function noteAddress(request: Request, address: string | undefined): void {
  if (address !== undefined) addresses.set(request, address);
}

/**
 * Notes what a server says about the connection of a request: the second argument that Deno, Bun and Hono give to a handler.
 * @param connection anything: other servers give values of their own
 */
export function noteConnection(request: Request, connection: unknown): void {
  if (connection !== undefined && !addresses.has(request)) noteAddress(request, addressIn(request, connection));
}

function addressIn(request: Request, connection: unknown): string | undefined {
  // Deno's `info`; the environment of Hono on Node.
  const socket = readProperty(readProperty(connection, 'incoming'), 'socket');
  const found =
    readProperty(readProperty(connection, 'remoteAddr'), 'hostname') ?? readProperty(socket, 'remoteAddress');
  if (typeof found === 'string') return found;
  try {
    // Bun's `server`.
    const { requestIP } = connection as { requestIP?: (of: Request) => { readonly address?: unknown } | null };
    const address = typeof requestIP === 'function' ? requestIP.call(connection, request)?.address : undefined;
    return typeof address === 'string' ? address : undefined;
  } catch {
    return undefined;
  }
}

let sockets: AsyncLocalStorage<unknown> | undefined;
/** When the connections of this process began to be noted, and whether one was. */
let watch = { since: Number.NEGATIVE_INFINITY, hasSeen: false };

/** How long a server may take from its first request to the code that answers it, ms. */
const STARTING_MS = 5_000;

/** Whether a request may be older than `watchConnections`: a server that loads its code late has taken it before. */
export function isStarting(): boolean {
  return !watch.hasSeen && performance.now() - watch.since < STARTING_MS;
}

/**
 * From now on notes the connection of each request of a `node:http` server, so that it is known in the code that this server calls: Hono,
 * Next and others make a `Request` without it. Does nothing in a runtime without these modules.
 */
export function watchConnections(): void {
  if (sockets) return;
  try {
    const { AsyncLocalStorage: Storage } = process.getBuiltinModule('node:async_hooks');
    const { subscribe } = process.getBuiltinModule('node:diagnostics_channel');
    const storage = new Storage<unknown>();
    sockets = storage;
    // The request is handled in the same call of the parser of its connection, whose context this is.
    watch = { since: performance.now(), hasSeen: false };
    subscribe('http.server.request.start', (message) => {
      watch.hasSeen = true;
      storage.enterWith(readProperty(message, 'socket'));
    });
  } catch {
    // The host passes `address`.
  }
}

/** Returns the address at the other end of a request's connection; undefined if no server has said it. */
export function remoteAddressOf(request: Request): string | undefined {
  const known = addresses.get(request);
  if (known !== undefined) return known;
  const found = readProperty(sockets?.getStore(), 'remoteAddress');
  return typeof found === 'string' ? found : undefined;
}
