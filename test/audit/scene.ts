import { type CheckpointStore, createAudit, memoryStore, type RunOutcome } from 'pawl';
import type { KeepingStore } from 'pawl/stores/kit';
import { testClock } from 'pawl/testing';
import { sampleMeta, sampleOutcome, sampleRecord } from '../../src/testing/store-contract/records.ts';
import { noUsage } from '../../src/values/usage.ts';

export const noon = Date.UTC(2026, 10, 22, 12);
export const usage = (inputTokens: number, outputTokens = 0) => ({ ...noUsage, inputTokens, outputTokens });
export const ids = (runs: readonly { readonly runId: string }[]) => runs.map(({ runId }) => runId);

export interface Ending {
  readonly callerId?: string;
  readonly agentId?: string;
  readonly parentRunId?: string;
  readonly startedAt?: number;
  readonly status?: RunOutcome['status'];
  readonly tokens?: number;
}

/** Ends a run as an executor with an audit does. */
export async function endRun(store: CheckpointStore, runId: string, ending: Ending = {}): Promise<void> {
  const { callerId = 'ada', agentId = 'researcher', parentRunId = '', startedAt: beganAt = noon } = ending;
  const { status = 'ok', tokens = 10 } = ending;
  const meta = { ...sampleMeta(runId), callerId, agentId, parentRunId };
  const history = store as KeepingStore;
  const claim = await history.claim(runId, 'us', 60_000);
  if (!claim) throw new Error('held');
  await history.save({ ...sampleRecord(runId), meta, beganAt }, { claim });
  const error = { name: 'Error', code: 'RUN_PANIC', message: 'no' };
  const facts = { usage: usage(tokens), spend: { tokens, usd: 0.5, seconds: 2 }, iterations: 1 };
  const run = { meta, beganAt, elapsedMs: 1_000 };
  const outcome = {
    ...sampleOutcome(runId),
    ...facts,
    status,
    run,
    ...(status === 'ok' ? {} : { error }),
  } as RunOutcome;
  await history.history.end(claim, { outcome, keepUntil: Number.POSITIVE_INFINITY, isCounted: true });
}

/** An audit of a store in memory, on a clock that stands still. */
export function someAudit() {
  const clock = testClock(noon);
  const store = memoryStore({ clock });
  return { clock, store, audit: createAudit({ store }) };
}
