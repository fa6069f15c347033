import { RequestError } from '../http/problem.ts';

/**
 * Nothing but the page's own files may run, load or be connected to: it shows texts of models and tools. Trusted Types
 * forbid each way to parse HTML from a string.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** The headers of every answer. */
export const safeHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': policy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
};

const types: Readonly<Record<string, string>> = {
  'index.html': 'text/html; charset=utf-8',
  'studio.js': 'text/javascript; charset=utf-8',
  'studio.css': 'text/css; charset=utf-8',
};

/**
 * Returns a file of the page; undefined for a path that is none.
 * @param path below the base path: `/`, `/studio.js`
 * @throws {RequestError} METHOD_NOT_ALLOWED
 */
export async function pageAnswer({ method }: Request, path: string): Promise<Response | undefined> {
  const name = path === '/' ? 'index.html' : path.slice(1);
  const type = Object.hasOwn(types, name) ? types[name] : undefined;
  if (type === undefined) return undefined;
  if (method !== 'GET' && method !== 'HEAD') throw new RequestError('METHOD_NOT_ALLOWED', '', { allow: 'GET, HEAD' });
  const { pageFiles } = await import('./page-files.ts');
  const file = (await pageFiles())[name];
  return new Response(method === 'HEAD' ? null : file, { headers: { ...safeHeaders, 'content-type': type } });
}
