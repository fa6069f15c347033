// Counts what the services did: outcomes, repeats, lost model calls, calls with an unknown outcome.
import { existsSync, readFileSync } from 'node:fs';
import type { LedgerLine } from './agent.ts';

export interface Tally {
  /** Model calls that began. */
  readonly modelCalls: number;
  /** Model calls whose answer no record has: their service was killed. */
  readonly lost: number;
  /** Model calls that began although their answer was recorded, and calls with effect `once` that ran twice. */
  readonly repeats: number;
  /** Those of them that are calls with effect `once`. */
  readonly repeatedEffects: number;
  /** Calls with effect `once` that were cut: the model reads that their outcome is unknown. */
  readonly unknown: number;
}

/** Reads the ledger. */
export function readLedger(path: string): readonly LedgerLine[] {
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line));
}

/** Compares the ledger with the transcripts of the runs, as JSON. */
export function tallyOf(ledger: readonly LedgerLine[], transcripts: readonly string[]): Tally {
  const nonces = /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g;
  const recorded = new Set(transcripts.flatMap((text) => text.match(nonces) ?? []));
  const calls = ledger.filter(({ model }) => model !== undefined);
  const done = new Set<string>();
  let [repeats, repeatedEffects] = [0, 0];
  for (const { runId, model = '', step, tool, effect } of ledger) {
    if (effect === 'read') continue;
    const call = `${runId} ${tool ?? step}`;
    if (done.has(call)) repeats += 1;
    if (done.has(call) && tool) repeatedEffects += 1;
    if (tool || recorded.has(model)) done.add(call);
  }
  const lost = calls.filter(({ model = '' }) => !recorded.has(model)).length;
  const unknown = transcripts.reduce((sum, text) => sum + text.split('Outcome unknown').length - 1, 0);
  return { modelCalls: calls.length, lost, repeats, repeatedEffects, unknown };
}
