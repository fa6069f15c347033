import { RequestError } from '../http/problem.ts';
import type { Web } from '../http/web.ts';

/**
 * Refuses what a page of another site sends, by what the browser says of it. A page that the host has named in `origins` may
 * send requests, and a link to the page itself may be followed: the page has no data.
 * @throws {RequestError} FOREIGN_ORIGIN
 */
export function checkSite(request: Request, { origins, basePath }: Pick<Web, 'origins' | 'basePath'>): void {
  const { headers } = request;
  const site = headers.get('sec-fetch-site');
  if (site === null || site === 'none' || site === 'same-origin') return;
  if (origins.has(headers.get('origin') ?? '') || isFollowed(request, basePath)) return;
  throw new RequestError('FOREIGN_ORIGIN');
}

function isFollowed({ method, headers, url }: Request, basePath: string): boolean {
  const isTab = headers.get('sec-fetch-mode') === 'navigate' && headers.get('sec-fetch-dest') === 'document';
  const { pathname } = new URL(url);
  return isTab && method === 'GET' && (pathname === basePath || pathname === `${basePath}/`);
}
