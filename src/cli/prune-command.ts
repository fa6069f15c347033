import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline/promises';
import type { InterruptedRun } from '../index.ts';
import { hasCode } from '../run/error-data.ts';
import { lengthOf } from './bounds.ts';
import type { Command, CommandContext } from './command.ts';
import { exitCodes, Failure, lineOf, oneLine } from './failure.ts';
import { ago, count } from './figures.ts';
import { openExistingStore, type RunStore, statusOf } from './run-store.ts';

/** `pawl prune`: removes what nobody needs any more, and only what it was told to. */
export const pruneCommand: Command = async (context) => {
  const wish = wishOf(context);
  const store = await openExistingStore(context.args.store);
  const chosen = (await store.listInterrupted()).filter((entry) => isChosen(entry, wish));
  for (const entry of chosen) if (!context.args.json) context.output.say(lineFor(entry, context.args.dryRun));
  if (chosen.length > 0 && !context.args.dryRun) await confirm(context, chosen.length);
  const deleted: string[] = [];
  const kept: { runId: string; reason: string }[] = [];
  for (const entry of chosen) {
    const reason = context.args.dryRun ? undefined : await removed(store, entry);
    if (reason === undefined) deleted.push(entry.runId);
    else kept.push({ runId: entry.runId, reason });
  }
  const outcomes = (await store.forgetOutcomes?.({ dryRun: context.args.dryRun })) ?? 0;
  report(context, store, { outcomes, deleted, kept });
  await store.close();
  return kept.length === 0 ? exitCodes.ok : exitCodes.failed;
};

/** Which records are to go. */
interface Wish {
  readonly quarantined: boolean;
  readonly parked: boolean;
  /** Wall clock, ms: only what was last written before that. */
  readonly before: number | undefined;
}

function wishOf({ args }: CommandContext): Wish {
  const { quarantined, parked, olderThan } = args;
  if (parked && olderThan === undefined) {
    throw new Failure(
      '--parked needs --older-than <time>, for example 30d: somebody may still be looking at the others',
    );
  }
  if (olderThan !== undefined && !parked && !quarantined) {
    throw new Failure('--older-than goes with --parked or --quarantined; outcomes have a time of their own');
  }
  const before = olderThan === undefined ? undefined : Date.now() - lengthOf('older-than', olderThan);
  return { quarantined, parked, before };
}

function isChosen(entry: InterruptedRun, { quarantined, parked, before }: Wish): boolean {
  const status = statusOf(entry);
  // What a newer version wrote, or is encrypted, is whole: it takes an upgrade, or a key, to read it.
  const isDamaged = entry.status === 'quarantined' && entry.reason.startsWith('CHECKPOINT_CORRUPT');
  const isWanted = (status === 'quarantined' && quarantined && isDamaged) || (status === 'parked' && parked);
  if (!isWanted || before === undefined) return isWanted;
  // Of some damaged records nobody can tell how old they are.
  return entry.updatedAt !== undefined && entry.updatedAt > 0 && entry.updatedAt < before;
}

function lineFor(entry: InterruptedRun, isDryRun: boolean): string {
  const age = entry.updatedAt ? `, recorded ${ago(entry.updatedAt, Date.now())}` : '';
  const why = entry.reason === undefined ? '' : `: ${oneLine(entry.reason)}`;
  return `${isDryRun ? 'would delete' : 'to delete'} ${oneLine(entry.runId)} (${statusOf(entry)}${age})${why}`;
}

/** @throws {Failure} when nobody agrees */
async function confirm({ args }: CommandContext, records: number): Promise<void> {
  if (args.yes) return;
  const what = count(records, 'record');
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new Failure(`${what} would be deleted for good; say --yes, or --dry-run to look only`);
  }
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await asking.question(`delete ${what} for good? [y/N] `);
  asking.close();
  if (!/^y(es)?$/i.test(answer.trim())) throw new Failure('nothing was deleted');
}

type Removing = Pick<RunStore, 'claim' | 'release' | 'load' | 'delete'>;

/** Removes the record of an entry as it was listed. @returns why it was not deleted */
export async function removed(store: Removing, entry: InterruptedRun): Promise<string | undefined> {
  const { runId } = entry;
  try {
    const claim = await claimed(store, runId);
    if (claim === null) return 'a process works on it now';
    // Meanwhile somebody may have given it back, or gone on with it.
    const isStill = await isUnchanged(store, entry);
    if (isStill) await store.delete(runId, claim ? { claim } : {});
    // It was not a start of the run.
    else if (claim) await store.release(claim, { attempts: claim.attempts - 1 });
    return isStill ? undefined : 'it has changed meanwhile';
  } catch (error) {
    return lineOf(error);
  }
}

const CLAIM_MS = 30_000;

/** Undefined where the record is too damaged to be anybody's. */
async function claimed(store: Removing, runId: string) {
  try {
    return await store.claim(runId, `pawl prune ${process.pid} ${randomUUID()}`, CLAIM_MS);
  } catch (error) {
    if (hasCode(error, 'CHECKPOINT_CORRUPT')) return undefined;
    throw error;
  }
}

async function isUnchanged(store: Removing, entry: InterruptedRun): Promise<boolean> {
  try {
    const record = await store.load(entry.runId);
    return record?.parked !== undefined && record.updatedAt === entry.updatedAt;
  } catch (error) {
    return entry.status === 'quarantined' && hasCode(error, 'CHECKPOINT_CORRUPT');
  }
}

interface Pruned {
  readonly outcomes: number;
  readonly deleted: readonly string[];
  readonly kept: readonly { readonly runId: string; readonly reason: string }[];
}

function report({ args, output }: CommandContext, store: RunStore, { outcomes, deleted, kept }: Pruned): void {
  const { dryRun } = args;
  if (args.json) {
    output.print(JSON.stringify({ store: store.path, dryRun, outcomes, deleted, kept }, null, 2));
    return;
  }
  for (const { runId, reason } of kept) output.say(`kept ${oneLine(runId)}: ${reason}`);
  const what = `${count(deleted.length, 'record')} and ${count(outcomes, 'outcome')} past their time`;
  output.say(`${dryRun ? 'would delete' : 'deleted'} ${what} in ${store.path}`);
}
