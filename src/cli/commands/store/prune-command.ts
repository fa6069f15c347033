import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline/promises';
import type { Executor, InterruptedRun } from '../../../index.ts';
import { listedStatus } from '../../../record/listed-status.ts';

import { hasCode } from '../../../values/error-data.ts';
import type { CliCommand, CommandContext } from '../../command.ts';
import { controlExecutor } from '../../open/control-executor.ts';
import { openExistingStore, type RunStore } from '../../open/open-store.ts';
import { exitCodes, Failure, lineOf, oneLine } from '../../ui/failure.ts';
import { ago, count } from '../../ui/format.ts';
import { chosenOf, type OnRead, type PruneWish, wishOf } from './prune-choice.ts';

/** Runs `pawl prune`: deletes expired outcomes, and the records that its options name. */
export const pruneCommand: CliCommand = async (context) => {
  const wish = wishOf(context.args);
  const store = await openExistingStore(context.args.store);
  const chosen = await choose(context, store, wish);
  if (chosen.length > 0 && !context.args.dryRun) await confirm(context, chosen.length);
  const executor = controlExecutor(store);
  const deleted: string[] = [];
  const kept: { runId: string; reason: string }[] = [];
  for (const entry of chosen) {
    const reason = context.args.dryRun ? undefined : await pruneRun(store, executor, entry);
    if (reason === undefined) deleted.push(entry.runId);
    else kept.push({ runId: entry.runId, reason });
  }
  const { dryRun } = context.args;
  const outcomes = await store.outcomes.forget({ dryRun });
  const history = (await store.history?.forget({ dryRun })) ?? 0;
  report(context, store, { outcomes, history, deleted, kept });
  await store.close();
  return kept.length === 0 ? exitCodes.ok : exitCodes.failed;
};

const REDRAW_MS = 100;

/** Shows progress: reading every record takes a while. */
async function choose({ args, output }: CommandContext, store: RunStore, wish: PruneWish): Promise<InterruptedRun[]> {
  const chosen: InterruptedRun[] = [];
  let shownAt = performance.now();
  const onRead: OnRead = (done, all) => {
    if (performance.now() - shownAt < REDRAW_MS) return;
    shownAt = performance.now();
    output.show(`reading records: ${done} of ${all}`);
  };
  for await (const entry of chosenOf(store, wish, onRead)) {
    chosen.push(entry);
    if (!args.json) output.say(lineFor(entry, args.dryRun));
  }
  output.show('');
  return chosen;
}

function lineFor(entry: InterruptedRun, isDryRun: boolean): string {
  const age = entry.updatedAt ? `, recorded ${ago(entry.updatedAt, Date.now())}` : '';
  const why = entry.reason === undefined ? '' : `: ${oneLine(entry.reason)}`;
  const verb = entry.status === 'waiting' ? 'cancel' : 'delete';
  return `${isDryRun ? 'would' : 'to'} ${verb} ${oneLine(entry.runId)} (${listedStatus(entry)}${age})${why}`;
}

/** Asks the user whether the records may be deleted. @throws {Failure} if the user does not agree */
async function confirm({ args }: CommandContext, records: number): Promise<void> {
  if (args.yes) return;
  const what = count(records, args.waiting ? 'run' : 'record');
  const verb = args.waiting ? 'end' : 'delete';
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new Failure(
      `${what} would be ${args.waiting ? 'ended' : 'deleted'} for good; use --yes to confirm, or --dry-run to look only`,
    );
  }
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await asking.question(`${verb} ${what} for good? [y/N] `);
  asking.close();
  if (!/^y(es)?$/i.test(answer.trim())) throw new Failure('nothing was deleted');
}

/**
 * Ends a listed run for `pawl prune`: one that waits as cancelled, with its children and a result; of another one only the
 * record is left, and is deleted.
 * @returns why it was not ended
 */
async function pruneRun(store: RunStore, executor: Executor, entry: InterruptedRun): Promise<string | undefined> {
  if (entry.status !== 'waiting') return removeUnchanged(store, entry);
  try {
    const sent = await executor.control(entry.runId).cancel('it waited too long (pawl prune --waiting)');
    return sent === 'ended' ? undefined : 'a process works on it now';
  } catch (error) {
    // Another process, or the end of its parent, was faster.
    return hasCode(error, 'RUN_NOT_FOUND') ? undefined : lineOf(error);
  }
}

type Removing = Pick<RunStore, 'claim' | 'release' | 'load' | 'delete'>;

/**
 * Deletes the record of one listed entry for `pawl prune`, unless it has changed or a process works on it.
 * @returns why it was not deleted
 */
export async function removeUnchanged(store: Removing, entry: InterruptedRun): Promise<string | undefined> {
  const { runId } = entry;
  try {
    const claim = await claimToPrune(store, runId);
    if (claim === null) return 'a process works on it now';
    const reason = await whatChanged(store, entry);
    if (reason === undefined) await store.delete(runId, claim ? { claim } : {});
    // The claim was not a start of the run.
    else if (claim) await store.release(claim, { attempts: claim.attempts - 1 });
    return reason;
  } catch (error) {
    return lineOf(error);
  }
}

const CLAIM_MS = 30_000;

/** Undefined if the record is too damaged to be claimed. */
async function claimToPrune(store: Removing, runId: string) {
  try {
    return await store.claim(runId, `pawl prune ${process.pid} ${randomUUID()}`, CLAIM_MS);
  } catch (error) {
    if (hasCode(error, 'CHECKPOINT_CORRUPT')) return undefined;
    throw error;
  }
}

/** The run may have been unparked, continued or repaired meanwhile. @returns undefined if it has not changed */
async function whatChanged(store: Removing, entry: InterruptedRun): Promise<string | undefined> {
  const isDamaged = entry.status === 'quarantined';
  try {
    const record = await store.load(entry.runId);
    const isSame = !isDamaged && record?.parked !== undefined && record.updatedAt === entry.updatedAt;
    return isSame ? undefined : 'it has changed meanwhile';
  } catch (error) {
    return isDamaged && hasCode(error, 'CHECKPOINT_CORRUPT') ? undefined : lineOf(error);
  }
}

interface Pruned {
  readonly outcomes: number;
  /** Kept records of ended runs, past their time. */
  readonly history: number;
  readonly deleted: readonly string[];
  readonly kept: readonly { readonly runId: string; readonly reason: string }[];
}

function report({ args, output }: CommandContext, store: RunStore, { outcomes, history, deleted, kept }: Pruned): void {
  const { dryRun } = args;
  if (args.json) {
    output.printJson({ store: store.path, dryRun, outcomes, history, deleted, kept }, 2);
    return;
  }
  for (const { runId, reason } of kept) output.say(`kept ${oneLine(runId)}: ${reason}`);
  const ends = history > 0 ? `, and ${count(history, 'record')} of ended runs,` : '';
  const what = `${count(deleted.length, 'record')} and ${count(outcomes, 'outcome')}${ends} past their time`;
  output.say(`${dryRun ? 'would delete' : 'deleted'} ${what} in ${store.path}`);
}
