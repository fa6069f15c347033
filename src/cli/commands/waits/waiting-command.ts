import type { Executor, ListedWait, OpenWait } from '../../../index.ts';
import { endingAnswer, type SentAnswer } from '../../../run/waits/sent-answer.ts';
import { nameOfWait, quorumOf } from '../../../run/waits/wait.ts';
import { restText } from '../../../run/workflow/state.ts';
import type { CliCommand } from '../../command.ts';
import { controlExecutor } from '../../open/control-executor.ts';
import { openExistingStore, type RunStore } from '../../open/open-store.ts';
import { allRuns } from '../../open/stored-runs.ts';
import { whatContinues } from '../../open/way-to-resume.ts';
import { lengthOf } from '../../option-values.ts';
import { commandsFor, describeWait, isForPerson } from '../../ui/describe-wait.ts';
import { exitCodes, oneLine } from '../../ui/failure.ts';
import { count } from '../../ui/format.ts';

const PAGE = 500;

/** The most characters of an input or a value in a line. */
const SHOWN_CHARS = 500;

/** Runs `pawl waiting`: prints what the runs of a store wait for, and the commands that answer. */
export const waitingCommand: CliCommand = async ({ args, output }) => {
  const before = args.olderThan === undefined ? undefined : Date.now() - lengthOf('older-than', args.olderThan);
  const store = await openExistingStore(args.store);
  const [runId] = args.words;
  const waits: ListedWait[] = [];
  let younger = 0;
  for await (const wait of allWaits(controlExecutor(store), runId)) {
    if (before !== undefined && wait.createdAt > before) younger += 1;
    else waits.push(wait);
  }
  // What needs a person must not stand below a page of timers.
  waits.sort((a, b) => Number(needsPerson(b)) - Number(needsPerson(a)));
  for (const wait of args.json ? [] : waits) {
    output.print(`run ${oneLine(wait.runId)} of ${oneLine(wait.agentId)} waits for ${oneLine(nameOfWait(wait))}`);
    for (const line of describeWait(wait, Date.now())) output.print(`  ${line}`);
    for (const line of answerLines(wait, store)) output.print(`  ${line}`);
  }
  const suspended = await findSuspended(store, runId);
  if (args.json) output.printJson({ store: store.path, waits, suspended }, 2);
  else
    for (const { runId: id, agentId, why } of suspended)
      output.print(`run ${oneLine(id)} of ${oneLine(agentId)} waits: ${oneLine(why)}`);
  const also =
    suspended.length === 0
      ? ''
      : `, and ${count(suspended.length, 'workflow', 'workflows')} that only an event continues`;
  const older = args.olderThan === undefined ? '' : ` for longer than ${oneLine(args.olderThan)} (${younger} for less)`;
  if (!args.json) output.say(`${count(waits.length, 'open wait')}${older}${also} in ${store.path}`);
  await store.close();
  return exitCodes.ok;
};

function needsPerson(wait: ListedWait): boolean {
  return isForPerson(wait) && !wait.isAnswered;
}

/** A workflow that waits for machine events alone: it has no wait. */
interface SuspendedRun {
  readonly runId: string;
  readonly agentId: string;
  readonly why: string;
}

async function findSuspended(store: RunStore, runId: string | undefined): Promise<readonly SuspendedRun[]> {
  const suspended: SuspendedRun[] = [];
  for (const entry of await allRuns(store)) {
    const isWaited = entry.status === 'waiting' && entry.waits?.length === 0;
    if (!isWaited || (runId !== undefined && entry.runId !== runId)) continue;
    const record = await store.load(entry.runId, { messages: false });
    const value = record?.workflow?.snapshot.value;
    if (record && value !== undefined)
      suspended.push({ runId: entry.runId, agentId: record.meta.agentId, why: restText(value, undefined) });
  }
  return suspended;
}

/** A wait, and the answers that the store holds for it. */
type AnsweredWait = OpenWait & Pick<ListedWait, 'runId' | 'rootRunId' | 'answers'>;

/** Returns the answers that are stored already, and how the run gets them; then the commands of which one may still count. */
export function answerLines(wait: AnsweredWait, store: Pick<RunStore, 'identity' | 'option'>): readonly string[] {
  const commands = commandsFor(wait, store.option);
  const { answers = [] } = wait;
  if (answers.length === 0) return commands;
  const given = answers.map(describeAnswer).join(', ');
  const sent = `answered: ${given}; ${whatContinues(store, wait.rootRunId)}`;
  if (endingAnswer(wait, answers)) return [sent];
  const others =
    quorumOf(wait) > 1
      ? `${quorumOf(wait)} persons must agree; another one answers with:`
      : `another answer counts only if the run refuses ${answers.length === 1 ? 'this one' : 'these'}:`;
  return [sent, others, ...commands];
}

/** Says what a person answered, with which input the call runs then, and the note or the reason. */
export function describeAnswer({ how, by, input, value, note, reason = note }: SentAnswer): string {
  const who = by && by.id !== '' ? ` by ${by.id}` : '';
  const what = input ?? value;
  const text = what === undefined ? '' : JSON.stringify(what);
  const shown = text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS).toWellFormed()}… (--json has all)` : text;
  return oneLine(`${how}${who}${shown && ` with ${shown}`}${reason === undefined ? '' : ` (${reason})`}`);
}

/** Iterates over the open waits of all runs; with an id, over those of this run and of the runs below it. */
export async function* allWaits(
  executor: Pick<Executor, 'waiting'>,
  runId?: string,
): AsyncGenerator<ListedWait, void, undefined> {
  // A run that rests meanwhile is listed where it was live, and in the store.
  const seen = new Set<string>();
  for (let after: ListedWait | undefined; ; ) {
    const page = await executor.waiting({ limit: PAGE, answers: true, ...(after ? { after } : {}) });
    for (const wait of page) {
      const key = `${wait.runId}\n${wait.id}`;
      if (seen.has(key) || (runId !== undefined && ![wait.runId, wait.rootRunId].includes(runId))) continue;
      seen.add(key);
      yield wait;
    }
    after = page.at(-1);
    if (page.length < PAGE) return;
  }
}
