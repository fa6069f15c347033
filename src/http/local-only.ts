import { LogLines } from '../log/log.ts';
import { checkKeys } from '../values/known-options.ts';
import type { Authorize, Grant } from './authorize.ts';
import { isStarting, remoteAddressOf, watchConnections } from './connection.ts';
import { RequestError } from './problem.ts';

/** The options of `localOnly`. */
export interface LocalOptions {
  /** The caller of all requests. */
  readonly callerId: string;
  /**
   * Returns the address at the other end of the connection, for a server that does not say it. Known by themselves: `toNodeListener`,
   * each server on `node:http` (Hono, Next and others), and Bun, Deno and Hono where the handler gets their second argument.
   */
  readonly address?: (request: Request) => string | undefined;
}

const names: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/** Headers of a proxy: the connection comes from this machine, and the request from elsewhere. */
const proxyHeaders = ['forwarded', 'x-real-ip', 'via'];

/**
 * Makes an `authorize` for the server of one's own machine: it grants all requests of this machine to one caller who may see
 * everything, and refuses others. A request must come from a loopback address, name the host `localhost`, `127.0.0.1` or
 * `[::1]`, pass no proxy, and come from no other site's page. The first refusal of each kind is a warning on the console.
 * @throws {TypeError} without a callerId
 * @example httpHandler(executor, { agents: { support }, authorize: localOnly({ callerId: 'me' }) })
 */
export function localOnly(options: LocalOptions): Authorize {
  checkKeys(options, { callerId: true, address: true }, { of: 'localOnly' });
  const { callerId, address = remoteAddressOf } = options;
  if (typeof callerId !== 'string' || callerId === '') throw new TypeError('localOnly needs a callerId');
  if (address === remoteAddressOf) watchConnections();
  const grant: Grant = { callerId, by: { id: callerId.slice(0, 256) }, all: true };
  const { warn } = new LogLines();
  const told = new Set<string>();
  return (request) => {
    const from = address(request);
    // Next takes requests before it loads this code: such a request may come again.
    if (from === undefined && isStarting())
      throw new RequestError('STARTING', 'the request may be older than this code', { 'retry-after': '1' });
    const why = refusalOf(request, from);
    if (why === undefined) return grant;
    if (!told.has(why)) warn('http.local.refused', { why });
    told.add(why);
    return null;
  };
}

/** Why a request is refused, without a word of the request. */
function refusalOf({ url, headers }: Request, address: string | undefined): string | undefined {
  if (address === undefined)
    return 'this server does not say where a request comes from. Pass what it says: the second argument of its handler, handler(request, connection), or localOnly({ callerId, address: (request) => … })';
  if (!isLoopback(address)) return 'it came from another machine';
  if (!names.includes(new URL(url).hostname)) return 'it names another host than localhost, 127.0.0.1 or [::1]';
  if (!isDirect(headers)) return 'it came through a proxy';
  const site = headers.get('sec-fetch-site') ?? 'none';
  return site === 'none' || site === 'same-origin' ? undefined : "it came from another site's page";
}

/** Next itself adds the headers of a proxy: then they name this machine. A proxy names the client, or gives another host. */
function isDirect(headers: Headers): boolean {
  if (proxyHeaders.some((name) => headers.has(name))) return false;
  const [from, host] = [listIn(headers, 'x-forwarded-for'), listIn(headers, 'x-forwarded-host')];
  if (from.length === 0) return host.length === 0;
  return from.every(isLoopback) && host.every((name) => names.includes(name.replace(/:\d{1,5}$/, '')));
}

function listIn(headers: Headers, name: string): readonly string[] {
  return (
    headers
      .get(name)
      ?.split(',')
      .map((each) => each.trim()) ?? []
  );
}

function isLoopback(address: string): boolean {
  const plain = address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address;
  return plain === '::1' || /^127(\.\d{1,3}){3}$/.test(plain);
}
