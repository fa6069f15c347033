import type { Grant } from '../../http/authorize.ts';
import { problemAnswer, RequestError } from '../../http/problem.ts';
import { safeHeaders } from '../../studio/assets.ts';

/** The hosts that a request may name: a page of another site cannot use a name of its own for this machine. */
export function hostsAt(port: number): readonly string[] {
  return ['127.0.0.1', 'localhost', '[::1]'].map((name) => `${name}:${port}`);
}

type Handler = (request: Request) => Promise<Response>;

/**
 * Refuses requests of other pages with 403, before anything else looks at them: a present `Origin` must be that of the page
 * itself, and so must what the browser says in `Sec-Fetch-Site`.
 */
export function guarded(handler: Handler): Handler {
  return async (request) => {
    if (isOwn(request)) return handler(request);
    const answer = problemAnswer(new RequestError('FOREIGN_ORIGIN'));
    for (const [name, value] of Object.entries(safeHeaders)) answer.headers.set(name, value);
    return answer;
  };
}

function isOwn(request: Request): boolean {
  const { headers, url } = request;
  const origin = headers.get('origin');
  if (origin !== null && origin !== new URL(url).origin) return false;
  const site = headers.get('sec-fetch-site');
  return site === null || site === 'none' || site === 'same-origin' || isOpened(request);
}

/**
 * The address of the page was opened from elsewhere, in a tab of its own: from the file of `--open`, or a link. The page has
 * no data, and does nothing without the token, which no other page knows.
 */
function isOpened({ method, headers, url }: Request): boolean {
  const isTab = headers.get('sec-fetch-mode') === 'navigate' && headers.get('sec-fetch-dest') === 'document';
  return isTab && method === 'GET' && new URL(url).pathname === '/';
}

/** The person of this machine may see all runs, and decides under the name of their account. */
export function grantOf(user: string): Grant {
  return { callerId: 'studio', by: { id: user, name: 'local user' }, all: true };
}
