import { isObject } from '../../values/json.ts';
import type { CliCommand } from '../command.ts';
import { exitCodes, Failure, oneLine } from '../ui/failure.ts';

const USUAL_URL = 'http://127.0.0.1:8080/readyz';
/** Longest time for the answer, ms. */
const ANSWER_MS = 5_000;
/** A probe answers with less. */
const MAX_CHARS = 10_000;

/** Runs `pawl health`: asks a probe. */
export const healthCommand: CliCommand = async ({ args, output }) => {
  const given = args.url ?? USUAL_URL;
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (!url || !/^https?:$/.test(url.protocol))
    throw new Failure(`--url ${JSON.stringify(oneLine(given))} is not an http address; the usual one is ${USUAL_URL}`);
  const { ok, reasons } = await askHealth(url);
  if (args.json) output.printJson({ ok, reasons });
  else output.printText(ok ? 'ok' : `not ok: ${reasons.map(oneLine).join(', ') || 'it gives no reason'}`);
  return ok ? exitCodes.ok : exitCodes.failed;
};

/** What the probe says. An answer that is none of a probe counts by its status. */
async function askHealth(url: URL): Promise<{ readonly ok: boolean; readonly reasons: readonly string[] }> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS), redirect: 'error' });
    return { ok: answer.status === 200, reasons: reasonsIn(await answer.text()) };
  } catch {
    return { ok: false, reasons: ['NO_ANSWER'] };
  }
}

function reasonsIn(text: string): string[] {
  try {
    const body: unknown = text.length > MAX_CHARS ? undefined : JSON.parse(text);
    const reasons = isObject(body) && Array.isArray(body.reasons) ? body.reasons : [];
    return reasons.filter((reason) => typeof reason === 'string');
  } catch {
    return [];
  }
}
