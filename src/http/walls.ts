import { RequestError } from './problem.ts';
import type { Web } from './web.ts';

/**
 * Checks where a request comes from. A page of any site can make its reader's browser send requests here: one that uses a name
 * of its own for this address is seen by the host, one that uses the right name by the `Origin`.
 * @returns the URL of the request
 * @throws {RequestError} WRONG_HOST, FOREIGN_ORIGIN
 */
export function checkSource(request: Request, { hosts, origins }: Pick<Web, 'hosts' | 'origins'>): URL {
  const url = new URL(request.url);
  const named = request.headers.get('host');
  if (hosts && !(hosts.has(url.host) && (named === null || hosts.has(hostIn(named)))))
    throw new RequestError('WRONG_HOST');
  const origin = request.headers.get('origin');
  if (origin !== null && !origins.has(origin) && !isSameHost(origin, url) && !isThisComputer(origin, url, named))
    throw new RequestError('FOREIGN_ORIGIN');
  return url;
}

function hostIn(header: string): string {
  const url = `http://${header}`;
  return URL.canParse(url) ? new URL(url).host : '';
}

/** The protocol may differ: a proxy in front of the server often ends TLS. */
function isSameHost(origin: string, { host, protocol }: URL): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol: its, host: itsHost, origin: normal } = new URL(origin);
  const isWeb = its === 'https:' || its === 'http:';
  return isWeb && normal === origin && (itsHost === host || (its !== protocol && withPort(itsHost, its) === host));
}

/** Next writes `localhost` into the URL of a request to `127.0.0.1` or `[::1]`; the header has what the page's address names. */
function isThisComputer(origin: string, { hostname, protocol }: URL, named: string | null): boolean {
  const isAddress = ['127.0.0.1', '[::1]'].some((address) => named === address || named?.startsWith(`${address}:`));
  return isAddress && hostname === 'localhost' && origin === `${protocol}//${named}`;
}

/** `app.example:443` for a proxy that passes the port of TLS on. */
function withPort(host: string, protocol: string): string {
  return host.includes(':') ? host : `${host}:${protocol === 'https:' ? 443 : 80}`;
}

/** Checks the content type: a form of another site cannot send JSON without asking first. @throws {RequestError} WRONG_CONTENT_TYPE */
export function checkContentType({ headers }: Request): void {
  const [type = ''] = (headers.get('content-type') ?? '').split(';');
  if (type.trim().toLowerCase() !== 'application/json') throw new RequestError('WRONG_CONTENT_TYPE');
}

/** Counts what each caller has open. */
export class RequestPlaces {
  readonly #most: number;
  readonly #taken = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /**
   * Takes a place.
   * @returns gives it back; a second call changes nothing
   * @throws {RequestError} TOO_MANY_STREAMS if the caller has no place left
   */
  take(callerId: string): () => void {
    const taken = this.#taken.get(callerId) ?? 0;
    if (taken >= this.#most) {
      throw new RequestError('TOO_MANY_STREAMS', `a caller may have ${this.#most} streams open at the same time`);
    }
    this.#taken.set(callerId, taken + 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      const left = (this.#taken.get(callerId) ?? 1) - 1;
      if (left === 0) this.#taken.delete(callerId);
      else this.#taken.set(callerId, left);
    };
  }
}
