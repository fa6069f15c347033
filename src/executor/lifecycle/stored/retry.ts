import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import { whyOver } from '../../../record/reopen.ts';
import { retryWaitOf } from '../../../run/waits/model-waits.ts';
import type { Person } from '../../../run/waits/wait.ts';
import type { KeepingStore } from '../../../store/history-port.ts';
import { AgentNotFoundError, RunEndedError, RunNotFoundError } from '../../../values/errors.ts';
import type { ExecutorServices } from '../../run/active-run.ts';
import { handleOf, type Run } from '../../run/handle.ts';
import { runAtWork } from '../../run/life/run-at-work.ts';
import { isBadEnd, recordGone, reopen } from '../../run/record/reopen-ended.ts';
import { withStoredRun } from '../../run/record/stored-run.ts';
import { cancelStored } from './cancel-stored.ts';
import { historyStoreOf } from './history.ts';
import { type ParkOptions, personIn, unpark } from './parking.ts';
import { agentFor, begin } from './recover-one-run.ts';

/**
 * Continues a run that ended badly, for `executor.retry`. One that is live, or has no end, is left as it is; a parked one is unparked.
 * @throws {RUN_ENDED} @throws {RECORD_GONE} @throws {RUN_NOT_FOUND} @throws {AGENT_NOT_FOUND} @throws {UNSUPPORTED}
 */
export async function retryRun(services: ExecutorServices, runId: string, options: ParkOptions): Promise<Run> {
  const by = personIn(options, 'retry');
  const live = await runAtWork(services, runId);
  if (live) return handleOf(live, 'joined');
  const store = historyStoreOf(services);
  const record = await retriable(services, store, runId);
  const { meta } = record;
  if (!agentFor(services, meta.agentId)) {
    const how =
      'name it in agents of createExecutor, or retry the run with control(runId).retry() for a process that has it';
    throw new AgentNotFoundError(`run ${runId} is of agent ${meta.agentId}, which this executor does not have: ${how}`);
  }
  if (!record.outcome) await unparkHeld(services, record, by);
  // Another call may have begun it meanwhile.
  const begun = services.registry.live(runId);
  if (begun) {
    await begun.life.accepted.promise;
    return handleOf(begun, 'joined');
  }
  const { maxAttempts } = services.config.defaults;
  return (await begin(services, { meta, maxAttempts, retry: by })).handle;
}

/**
 * Makes a stored run that ended badly one that is due, for `control(runId).retry`: any process with its agent continues it.
 * @throws the errors of `retryRun` but AGENT_NOT_FOUND @throws {RUN_OWNED_ELSEWHERE} while an owner works on it
 */
export async function retryStored(services: ExecutorServices, runId: string, options: ParkOptions): Promise<void> {
  const by = personIn(options, 'retry');
  if (await runAtWork(services, runId)) return;
  const store = historyStoreOf(services);
  const record = await retriable(services, store, runId);
  if (!record.outcome) return unparkHeld(services, record, by);
  await withStoredRun(services, { ended: runId }, async ({ record: claimed, claim, counts }) => {
    if (!isBadEnd(claimed)) return;
    await reopen(services, { record: claimed, store, claim, ...by });
    counts(0);
  });
  services.config.hints.tell(runId);
}

/** The record of a run that may continue, without its messages. An end that a crash has cut off is ended first. */
async function retriable(services: ExecutorServices, store: KeepingStore, runId: string): Promise<RunCheckpoint> {
  const stored = await store.load(runId, { messages: false });
  if (stored?.outcome) await cancelStored(services, runId);
  const record = await store.load(runId, { ended: true, messages: false });
  if (!record) throw await goneError(store, runId);
  const over = record.outcome && whyOver({ ...record, outcome: record.outcome });
  if (over !== undefined) throw new RunEndedError(over);
  return record;
}

async function goneError(store: KeepingStore, runId: string): Promise<Error> {
  const outcome = await store.outcomes.find(runId);
  if (!outcome) return new RunNotFoundError(`there is no run ${runId}, or not any more`);
  if (outcome.status !== 'ok') return recordGone(runId, outcome);
  return new RunEndedError(`run ${runId} has ended with status ok: it has its answer, and does not continue`);
}

/** A parked run is unparked, and one that waits for its model asks it at once; any other run goes its way. */
async function unparkHeld(
  services: ExecutorServices,
  { meta, parked, waiting }: RunCheckpoint,
  by: { readonly by?: Person },
): Promise<void> {
  if (parked || retryWaitOf(waiting ? { waiting } : {})) await unpark(services, meta.runId, by);
}
