// What the functions of all platforms share: how long a slice is, and who may ask for one.
import { createHash, timingSafeEqual } from 'node:crypto';
import type { DriveOptions } from 'pawl';

/** The platform kills a request at its limit: all work ends so long before it, ms. */
const MARGIN_MS = 5_000;

/**
 * The times of a slice below the limit of a platform, ms: three quarters for the work, a quarter for the calls that its end finds
 * under way.
 */
export function sliceBelow(limitMs: number): DriveOptions {
  const leftMs = Math.max(0, limitMs - MARGIN_MS);
  return { budgetMs: leftMs * 0.75, graceMs: leftMs * 0.25 };
}

const hashOf = (text: string) => createHash('sha256').update(text).digest();

/** Whether a request has `Authorization: Bearer` and the secret. It takes as long for each wrong one. */
export function isAllowed({ headers }: Request, secret: string): boolean {
  // A variable that is not set comes as undefined where no compiler looks, and must not be the secret `undefined`.
  return Boolean(secret) && timingSafeEqual(hashOf(headers.get('authorization') ?? ''), hashOf(`Bearer ${secret}`));
}
