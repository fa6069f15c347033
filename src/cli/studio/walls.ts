import type { Grant } from '../../http/authorize.ts';
import { problemAnswer, RequestError } from '../../http/problem.ts';
import { safeHeaders } from '../../studio/assets.ts';

/** The hosts that a request may name: a page of another site cannot use a name of its own for this machine. */
export function hostsAt(port: number): readonly string[] {
  return ['127.0.0.1', 'localhost', '[::1]'].map((name) => `${name}:${port}`);
}

type Handler = (request: Request) => Promise<Response>;

/**
 * Refuses requests of other pages with 403: a present `Origin` must be that of the page itself, with the same protocol. There is
 * no proxy before this server. What a browser says in `Sec-Fetch-Site`, the handler checks for all servers.
 */
export function guardStudio(handler: Handler): Handler {
  return async (request) => {
    const origin = request.headers.get('origin');
    if (origin === null || origin === new URL(request.url).origin) return handler(request);
    const answer = problemAnswer(new RequestError('FOREIGN_ORIGIN'));
    for (const [name, value] of Object.entries(safeHeaders)) answer.headers.set(name, value);
    return answer;
  };
}

/** The person of this machine may see all runs, and decides under the name of their account. */
export function grantOf(user: string): Grant {
  return { callerId: 'studio', by: { id: user }, all: true };
}
