import type { Executor, ListedWait, OpenWait } from '../../../index.ts';
import { endingAnswer, type SentAnswer } from '../../../run/waits/sent-answer.ts';
import { nameOfWait, quorumOf } from '../../../run/waits/wait.ts';
import type { Command } from '../../command.ts';
import { controlExecutor } from '../../open/control-executor.ts';
import { openExistingStore, type RunStore } from '../../open/open-store.ts';
import { whatContinues } from '../../open/way-to-resume.ts';
import { commandsFor, describeWait } from '../../ui/describe-wait.ts';
import { exitCodes, oneLine } from '../../ui/failure.ts';
import { count } from '../../ui/format.ts';

const PAGE = 500;

/** The most characters of an input or a value in a line. */
const SHOWN_CHARS = 500;

/** Runs `pawl waiting`: prints what the runs of a store wait for, and the commands that answer. */
export const waitingCommand: Command = async ({ args, output }) => {
  const store = await openExistingStore(args.store);
  const [runId] = args.words;
  const waits: ListedWait[] = [];
  for await (const wait of allWaits(controlExecutor(store), runId)) {
    waits.push(wait);
    if (args.json) continue;
    output.print(`run ${oneLine(wait.runId)} of ${oneLine(wait.agentId)} waits for ${oneLine(nameOfWait(wait))}`);
    for (const line of describeWait(wait, Date.now())) output.print(`  ${line}`);
    for (const line of answerLines(wait, store)) output.print(`  ${line}`);
  }
  if (args.json) output.printJson({ store: store.path, waits }, 2);
  else output.say(`${count(waits.length, 'open wait')} in ${store.path}`);
  await store.close();
  return exitCodes.ok;
};

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

/** Says what a person answered, and with which input the call runs then. */
export function describeAnswer({ how, by, input, value, reason }: SentAnswer): string {
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
