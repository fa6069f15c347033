import { type KeptRun, keptLineOf, keptRunOf, quarantinedKeptRun } from '../../record/kept-run.ts';
import { totalsRowOf } from '../../record/totals.ts';
import type { RunOutcome } from '../../run/result.ts';
import { jsonText } from '../../values/json.ts';
import { deliveryOf } from '../deliveries/deliveries.ts';
import { encodeOutcome, parseStored } from '../encoding/encode.ts';
import type { Encryption } from '../encoding/encryption.ts';
import { keysOf } from '../encoding/filed.ts';
import type { EndOptions } from '../history-port.ts';
import type { RunToEnd } from '../rules/history.ts';
import type { EndedHead } from '../store-driver.ts';

/** Encodes and encrypts what a run leaves at its end. @throws {NOT_JSON} @throws the codec's error */
export function encodeEnd(
  runId: string,
  { outcome, keepUntil, outcomeUntil = keepUntil, undelivered, isCounted, counted }: EndOptions,
  encryption: Encryption,
): RunToEnd {
  const { agentId = '', callerId = '' } = outcome.run?.meta ?? {};
  const kept = () => ({
    text: encryption.seal(encodeOutcome(outcome), runId, 'outcome'),
    untilMs: finite(outcomeUntil),
  });
  return {
    outcome: outcomeUntil > 0 || undelivered ? kept() : undefined,
    deliver: deliveryOf(outcome, undelivered, encryption),
    ended: {
      text: encryption.seal(encodeEntry(outcome), runId, 'ended'),
      agent: keysOf(agentId, 'agent', encryption)?.[0] ?? null,
      caller: keysOf(callerId, 'caller', encryption)?.[0] ?? null,
      keepUntil: finite(keepUntil),
      totals: isCounted ? totalsRowOf(outcome, counted) : undefined,
    },
  };
}

/** JSON has no infinity. */
const finite = (time: number) => Math.min(time, Number.MAX_SAFE_INTEGER);

function encodeEntry(outcome: RunOutcome): string {
  return jsonText(keptLineOf(outcome), 'outcome');
}

/** Decrypts and decodes the entry of a run that ended; one that cannot be read is quarantined. */
export function decodeEntry({ runId, endedAt, text, error }: EndedHead, encryption: Encryption): KeptRun {
  const place = { runId, endedAt };
  try {
    if (error !== undefined) throw error;
    return keptRunOf(parseStored(encryption.open(text, runId, 'ended'), 'entry'), place);
  } catch (reason) {
    return quarantinedKeptRun(place, reason);
  }
}
