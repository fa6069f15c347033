import type { InterruptedRun } from '../../index.ts';
import type { ReadableRun } from '../../record/interrupted.ts';
import { listedStatus } from '../../record/listed-status.ts';
import type { Arguments } from '../arguments.ts';
import type { CommandContext } from '../command.ts';
import { controlExecutor } from '../open/control-executor.ts';
import type { RunStore } from '../open/open-store.ts';
import { allRuns } from '../open/stored-runs.ts';
import { lengthOf } from '../option-values.ts';
import { exitCodes, Failure, lineOf, oneLine } from '../ui/failure.ts';
import { count, shortened } from '../ui/format.ts';
import { withStore } from './obstacle.ts';

/** Whether the command names its runs by a filter. */
export function isForMany({ words, code }: Arguments): boolean {
  return words[0] === undefined && code !== undefined;
}

/**
 * Runs `pawl unpark --code`: releases all parked runs of a filter, after it has said how many. It may be interrupted and repeated: a
 * run that it has released is not found again.
 */
export function unparkMany({ args, output }: CommandContext): Promise<number> {
  return withStore(args, async (store) => {
    const runs = (await allRuns(store)).filter(isParked).filter(wishOf(args));
    const found = `${count(runs.length, 'parked run')} with ${oneLine(args.code ?? '')}`;
    if (!args.json) output.say(found);
    if (args.dryRun) {
      if (args.json) output.printJson({ runIds: runs.map(({ runId }) => runId), unparked: 0, failed: [] });
      else
        for (const { runId, reason = '' } of runs)
          output.print(`${oneLine(runId)}: ${shortened(oneLine(reason), 100)}`);
      return exitCodes.ok;
    }
    if (!args.yes) throw new Failure(`${found} would be unparked; use --yes to confirm, or --dry-run to look only`);
    const failed = await unparkAll(store, runs, args);
    const unparked = runs.length - failed.length;
    if (args.json) output.printJson({ runIds: runs.map(({ runId }) => runId), unparked, failed });
    else {
      for (const { runId, reason } of failed) output.say(`pawl: ${oneLine(runId)} stays parked: ${reason}`);
      output.say(`unparked ${count(unparked, 'run')}; a process that has their agents continues them`);
    }
    return failed.length === 0 ? exitCodes.ok : exitCodes.failed;
  });
}

function isParked(entry: InterruptedRun): entry is ReadableRun {
  return entry.status !== 'quarantined' && listedStatus(entry) === 'parked';
}

/** Returns which runs the options name. @throws {Failure} for a label or an age that is none */
function wishOf({ code, agentId, label, olderThan }: Arguments): (run: ReadableRun) => boolean {
  const at = label?.indexOf('=') ?? 1;
  if (at < 1) throw new Failure(`--label ${JSON.stringify(oneLine(label ?? ''))} is not a label; write name=text`);
  const before = olderThan === undefined ? undefined : Date.now() - lengthOf('older-than', olderThan);
  return (run) =>
    run.code === code &&
    (agentId === undefined || run.meta.agentId === agentId) &&
    (label === undefined || run.labels?.[label.slice(0, at)] === label.slice(at + 1)) &&
    (before === undefined || run.updatedAt < before);
}

async function unparkAll(store: RunStore, runs: readonly ReadableRun[], { by }: Arguments) {
  const executor = controlExecutor(store);
  const failed: { readonly runId: string; readonly reason: string }[] = [];
  for (const { runId } of runs)
    try {
      await executor.unpark(runId, by === undefined ? {} : { by: { id: by } });
    } catch (error) {
      failed.push({ runId, reason: lineOf(error) });
    }
  return failed;
}
