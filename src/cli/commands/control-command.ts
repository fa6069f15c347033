import { setTimeout as sleep } from 'node:timers/promises';
import type { Executor } from '../../index.ts';
import { listedStatus } from '../../record/listed-status.ts';
import { hasCode } from '../../values/error-data.ts';
import type { CliCommand, CommandContext } from '../command.ts';
import { auditOption, controlExecutor } from '../open/control-executor.ts';
import type { RunStore } from '../open/open-store.ts';
import { findWaiting, pidOf } from '../open/stored-runs.ts';
import { lengthOf } from '../option-values.ts';
import { exitCodes, Failure, oneLine } from '../ui/failure.ts';
import { PAWL } from '../ui/shell-words.ts';
import { withStore } from './obstacle.ts';

/** What a command to a run has achieved. */
interface Answer {
  readonly status: 'cancelled' | 'ended' | 'heard' | 'kept' | 'waiting';
  readonly text: string;
}

/** Runs `pawl cancel`: ends a run for good, live in any process or stored. */
export const cancelCommand: CliCommand = (context) =>
  tell(context, async (told) => {
    const { store, runId } = told;
    const reason = context.args.reason ?? 'cancelled on the command line';
    const sent = await told.control.cancel(reason).catch(asEnded(store, runId));
    // The run has already ended, or an earlier cancel has ended it.
    if (typeof sent === 'object') return sent;
    // A run whose end was already recorded keeps that end.
    if (sent === 'ended') return overBy((await store.outcomes.find(runId))?.status ?? 'cancelled');
    const end = await told.until(async () => endOf(store, runId));
    if (end !== undefined) return overBy(end);
    return {
      status: 'waiting',
      text: `is to be cancelled: ${await told.whoHasIt()} has not ended it yet; that process, or the next one, will`,
    };
  });

/** The answer about a run that had ended, by how it ended. @param end as `endOf` has it */
function overBy(end: string): Answer {
  if (end === 'cancelled') return { status: 'cancelled', text: 'is cancelled' };
  return { status: 'ended', text: `has already ended: ${end}` };
}

/** Says how a run without a record ended. */
function asEnded(store: RunStore, runId: string): (error: unknown) => Promise<Answer> {
  return async (error) => {
    const outcome = hasCode(error, 'RUN_NOT_FOUND') ? await store.outcomes.find(runId) : null;
    if (outcome) return overBy(outcome.status);
    throw error;
  };
}

/** Runs `pawl steer`: sends a message to the model of a run, before its next turn. */
export const steerCommand: CliCommand = (context) => {
  const [, text] = context.args.words;
  if (text === undefined || text.trim() === '')
    throw new Failure('`pawl steer` needs a run id and what to say to the run');
  return tell(context, async (told) => {
    await told.control.steer(text);
    const entry = await findWaiting(told.store, told.runId);
    if (entry && listedStatus(entry) !== 'live') {
      return { status: 'kept', text: 'gets the message when it continues; no process works on it now' };
    }
    const isHeard = await told.until(async () => (await told.control.unread()) === 0 || undefined);
    if (!isHeard)
      return { status: 'waiting', text: `does not have the message yet; it waits for ${await told.whoHasIt()}` };
    const end = await endOf(told.store, told.runId);
    if (end === undefined) return { status: 'heard', text: 'has the message' };
    return { status: 'ended', text: `has ended (${end}), perhaps without the message` };
  });
};

interface Told {
  readonly store: RunStore;
  readonly runId: string;
  readonly control: ReturnType<Executor['control']>;
  /** Repeats `ask` until it returns a result, for at most the time of `--wait`. */
  until<T>(ask: () => Promise<T | undefined>): Promise<T | undefined>;
  whoHasIt(): Promise<string>;
}

const USUAL_WAIT_MS = 10_000;
const POLL_MS = 100;

async function tell(context: CommandContext, say: (told: Told) => Promise<Answer>): Promise<number> {
  const { args, output } = context;
  const [runId] = args.words;
  if (runId === undefined)
    throw new Failure(`\`pawl ${args.command}\` needs the id of a run; \`${PAWL} list\` lists them`);
  const waitMs = args.wait === undefined ? USUAL_WAIT_MS : lengthOf('wait', args.wait);
  const until: Told['until'] = async (ask) => {
    const latest = performance.now() + waitMs;
    for (;;) {
      const answer = await ask();
      if (answer !== undefined || performance.now() >= latest) return answer;
      await sleep(POLL_MS);
    }
  };
  const tell = async (store: RunStore) => {
    const whoHasIt = async () => {
      const pid = pidOf(await findWaiting(store, runId));
      return pid === undefined ? 'its process' : `process ${pid}`;
    };
    const control = controlExecutor(store, auditOption(args)).control(runId);
    const answer = await say({ store, runId, control, until, whoHasIt });
    if (args.json) output.printJson({ runId, status: answer.status });
    else output.say(`run ${oneLine(runId)} ${answer.text}`);
    return answer.status === 'waiting' ? exitCodes.failed : exitCodes.ok;
  };
  return withStore(args, tell, runId);
}

/** How a run ended; 'over' if its outcome was not kept, undefined while it has a record. */
async function endOf(store: RunStore, runId: string): Promise<string | undefined> {
  const outcome = await store.outcomes.find(runId);
  if (outcome) return outcome.status;
  return (await store.load(runId)) === null ? 'over' : undefined;
}
