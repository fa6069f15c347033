import { askHost } from '../http/authorize.ts';
import { jsonAnswer } from '../http/problem.ts';
import type { Web } from '../http/web.ts';
import { hasCode, toErrorData } from '../values/error-data.ts';

/** Why a store cannot be read as a whole, by the code of its error. */
const titles: Readonly<Record<string, string>> = {
  CHECKPOINT_CORRUPT: 'The store is damaged',
  CHECKPOINT_TOO_NEW: 'A newer version wrote the store',
  KEY_MISMATCH: 'The store is encrypted with another key',
  STORE_FULL: 'The store has no room',
  STORE_UNAVAILABLE: 'The store cannot be read',
};

/**
 * Answers with the store's own sentence, which may name its place: only a caller who may see all runs gets it.
 * @throws the same error if it is another one, or the caller may not read it
 */
export async function troubleAnswer(error: unknown, request: Request, web: Web): Promise<Response> {
  const code = Object.keys(titles).find((known) => hasCode(error, known));
  if (code === undefined) throw error;
  const grant = await askHost(web, request, { action: 'inspect' }).catch(() => undefined);
  if (!grant?.all) throw error;
  web.warn('studio.answer.failed', { code, error });
  const { message } = toErrorData(error);
  const problem = { type: `urn:pawl:${code}`, title: titles[code], status: 503, code, detail: message.slice(0, 1_000) };
  return jsonAnswer(problem, 503, { 'content-type': 'application/problem+json', 'retry-after': '5' });
}
