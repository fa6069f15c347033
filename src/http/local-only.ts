import { checkKeys } from '../values/known-options.ts';
import type { Authorize, Grant } from './authorize.ts';
import { remoteAddressOf } from './node-listener.ts';

/** The options of `localOnly`. */
export interface LocalOptions {
  /** The caller of all requests. */
  readonly callerId: string;
  /**
   * Returns the address at the other end of the connection, for servers other than `toNodeListener`, which knows it by itself.
   */
  readonly address?: (request: Request) => string | undefined;
}

const names: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/** Headers of a proxy: the connection comes from this machine, and the request from elsewhere. */
const proxyHeaders = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'];

/**
 * Makes an `authorize` for the server of one's own machine: it grants all requests of this machine to one caller who may see
 * everything, and refuses others. A request must come from a loopback address, name the host `localhost`, `127.0.0.1` or
 * `[::1]`, pass no proxy, and come from no other site's page.
 * @throws {TypeError} without a callerId
 * @example httpHandler(executor, { agents: { support }, authorize: localOnly({ callerId: 'me' }) })
 */
export function localOnly(options: LocalOptions): Authorize {
  checkKeys(options, { callerId: true, address: true }, { of: 'localOnly' });
  const { callerId, address = remoteAddressOf } = options;
  if (typeof callerId !== 'string' || callerId === '') throw new TypeError('localOnly needs a callerId');
  const grant: Grant = { callerId, by: { id: callerId.slice(0, 256) }, all: true };
  return (request) => (isLocal(request, address(request)) ? grant : null);
}

function isLocal({ url, headers }: Request, address: string | undefined): boolean {
  const site = headers.get('sec-fetch-site') ?? 'none';
  const isOwnPage = site === 'none' || site === 'same-origin';
  const isDirect = !proxyHeaders.some((name) => headers.has(name));
  return isOwnPage && isDirect && names.includes(new URL(url).hostname) && isLoopback(address);
}

function isLoopback(address = ''): boolean {
  const plain = address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address;
  return plain === '::1' || plain.startsWith('127.');
}
