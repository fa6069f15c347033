import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import { type Answer, type Command, checkCommand, isPerson } from '../../../run/command.ts';
import { decisionIdOf, waitIdOf } from '../../../run/identity.ts';
import { MAX_LEVELS } from '../../../run/limits.ts';
import type { Progress } from '../../../run/progress.ts';
import { answeredBefore, answersIn, endingAnswer, isSameDecision } from '../../../run/waits/sent-answer.ts';
import { isForModel, needsName, type Person, type Wait } from '../../../run/waits/wait.ts';
import { isSameAnswer, takesAnswer, waitOf } from '../../../run/waits/wait-rules.ts';
import { carriesCommands } from '../../../store/capabilities.ts';
import type { ControlStore } from '../../../store/port.ts';
import {
  AlreadyAnsweredError,
  AnswerRedactedError,
  AnswerRefusedError,
  RunNotFoundError,
  UndeliveredError,
  UnsupportedError,
  WaitGoneError,
} from '../../../values/errors.ts';
import { canonicalJson, frozenJson, type JsonValue } from '../../../values/json.ts';
import { Redactor } from '../../../values/redact.ts';
import type { ActiveRun, ExecutorServices } from '../../run/active-run.ts';
import { runAtWork } from '../../run/life/run-at-work.ts';
import { recordedText, storeOfRun } from '../../run/record/stored-run.ts';
import { openChildren } from '../../run/waits/child-end.ts';
import { isTaking } from '../../run/waits/due-waits.ts';
import { mayBeRefused } from './stored-answer.ts';

/**
 * What became of an answer. `recorded`: the record of the run has it. `sent`: it fits, and waits in the store for the process that has
 * the run, now or later. `pending`: it waits there as well, and that process may refuse it: it was not possible to check it here.
 */
export type AnswerState = 'recorded' | 'sent' | 'pending';

interface Given {
  readonly waitId: string;
  readonly answer: Answer;
  readonly by?: Person | undefined;
}

/**
 * Answers a wait of a run, or of a run below it: a child, a child of that, …, live or stored.
 * @throws {WAIT_GONE} @throws {ALREADY_ANSWERED} @throws {ANSWER_REFUSED} @throws {ANSWER_REDACTED}
 * @throws {RUN_NOT_FOUND} if there is no such run
 */
export async function answerWait(services: ExecutorServices, runId: string, said: Given): Promise<AnswerState> {
  const given = { ...said, answer: recordable(services, said.answer), by: personIn(said.by) };
  checkCommand(commandOf(given));
  for (;;) {
    const run = await holderOf(services, runId, given.waitId);
    const state = run?.live
      ? await answerLive(services, run.live, given)
      : await answerStored(services, run ?? { runId }, given);
    if (state) return state;
  }
}

/** A run as this process works on it, or as its store has it. */
interface Found {
  readonly runId: string;
  readonly live?: ActiveRun | undefined;
  readonly record?: RunCheckpoint | null | undefined;
}

/** A run in a tree, and where it is. */
type InTree = Found & { readonly at: Progress | RunCheckpoint };

/** Yields a run, then the runs below it that may not have ended: each before its children. */
async function* treeOf(services: ExecutorServices, runId: string, depth = 0): AsyncGenerator<InTree, void, undefined> {
  const live = await runAtWork(services, runId);
  const record = live?.progress ? undefined : await services.config.store?.load(runId);
  const at = live?.progress ?? record;
  if (!at) return;
  yield { runId, live, record, at };
  if (at.outcome || depth >= MAX_LEVELS) return;
  const begun = [...(live?.resources.children ?? [])].map((child) => child.runId);
  for (const childRunId of new Set([...begun, ...openChildren(at)])) yield* treeOf(services, childRunId, depth + 1);
}

/** Finds the run that has or had a wait: the run itself, or the first below it; where none has, the run itself says so. */
async function holderOf(services: ExecutorServices, runId: string, waitId: string): Promise<Found | undefined> {
  let root: Found | undefined;
  for await (const run of treeOf(services, runId)) {
    const { waits = [], settled = [] } = run.at.waiting ?? {};
    if ([...waits, ...settled].some(({ id }) => id === waitId)) return run;
    root ??= run;
  }
  return root;
}

/** The command of an answer. Its id is made of the wait, the decision and the person, and of the digest that the person saw. */
function commandOf({ waitId, answer, by }: Given): Command & { readonly kind: 'answer' } {
  const id = waitIdOf([decisionIdOf(waitId, answer, by?.id), answer.digest ?? '']);
  return { id, kind: 'answer', waitId, answer, ...(by ? { by } : {}) };
}

/** The person without fields that no record has. @throws {TypeError} */
function personIn(by: unknown): Person | undefined {
  if (by === undefined) return undefined;
  if (!isPerson(by)) throw new TypeError('`by` must be { id, name? }: texts of at most 256 characters');
  return { id: by.id, ...(by.name === undefined ? {} : { name: by.name }) };
}

/** Most answers of one person to one wait that no process has read. */
const MAX_UNREAD_ANSWERS = 8;

/** The answer as records have it. A value that redaction would change is refused: the run would continue with another one. */
function recordable(services: ExecutorServices, { note, reason, ...answer }: Answer): Answer {
  const text = (said: string | undefined) => said && recordedText(services, said);
  const [saidNote, saidReason] = [text(note), text(reason)];
  for (const what of ['value', 'input'] as const) {
    if (answer[what] !== undefined) recordableValue(services, answer[what], what);
  }
  return { ...answer, ...(saidNote ? { note: saidNote } : {}), ...(saidReason ? { reason: saidReason } : {}) };
}

/** Returns a value as JSON that records may hold. @throws {NOT_JSON} @throws {ANSWER_REDACTED} */
export function recordableValue({ config: { redact } }: ExecutorServices, given: unknown, what: string): JsonValue {
  const value = frozenJson(given, what);
  if (!redact || canonicalJson(new Redactor(redact, 'record').json(value)) === canonicalJson(value)) return value;
  throw new AnswerRedactedError(`${what} holds a text that redaction removes from records; give it without that text`);
}

/** Answers a run that is live here. @returns undefined if it is not any more */
async function answerLive(services: ExecutorServices, live: ActiveRun, given: Given): Promise<AnswerState | undefined> {
  try {
    const open = live.progress && waitOf(live.progress, given.waitId);
    const answer = open ? asSeen(open, given) : given.answer;
    await live.waits.take({ ...given, answer, at: services.config.clock.now() });
    return 'recorded';
  } catch (error) {
    // It left, or stopped, while the answer was on its way in: the store knows more.
    if (!(error instanceof WaitGoneError) || isTaking(live) || !services.config.store) throw error;
    await live.life.ended.promise;
    return undefined;
  }
}

async function answerStored(services: ExecutorServices, { runId, record }: Found, given: Given): Promise<AnswerState> {
  const store = mailStore(services);
  if (!record) return answerEnded(store, runId, given);
  const open = waitOf(record, given.waitId);
  if (!open) return answerSettled(record, given);
  const answer = asSeen(open, given);
  const isPending = await mayBeRefused(services, { record, wait: open, answer, by: given.by });
  await checkFirst(store, { runId, open }, { ...given, answer });
  await store.commands.send(runId, commandOf({ ...given, answer }));
  services.stuck.retry(runId);
  if (services.sweep.isOn) void services.sweep.look();
  return isPending ? 'pending' : 'sent';
}

/**
 * Refuses an answer that cannot count any more: the store holds another one that ends the wait, and no process has read it. Of two that
 * are sent at the same moment the run refuses the second.
 * @throws {ALREADY_ANSWERED}
 */
async function checkFirst(
  store: ControlStore,
  { runId, open }: { readonly runId: string; readonly open: Wait },
  { answer, by }: Given,
): Promise<void> {
  const sent = answersIn(await store.commands.inbox({ runId })).get(open.id) ?? [];
  const own = { ...answer, ...(by ? { by } : {}) };
  if (sent.some((each) => isSameDecision(open.id, each, own))) return;
  const first = endingAnswer(open, sent);
  if (!first) {
    // A person whom the run refuses must not fill the inbox, which others need.
    if (sent.filter((each) => (each.by?.id ?? '') === (by?.id ?? '')).length < MAX_UNREAD_ANSWERS) return;
    throw new UndeliveredError(`${MAX_UNREAD_ANSWERS} answers of this person to wait ${open.id} were not read yet`);
  }
  const who = first.by && first.by.id !== '' ? ` by ${first.by.id}` : '';
  // A store without times says at least that it came after its question.
  const answered = { how: first.how, at: first.at ?? open.createdAt, ...(first.by ? { by: first.by } : {}) };
  throw new AlreadyAnsweredError(
    `wait ${open.id} is answered: ${first.how}${who}; that answer is stored, and this one changes nothing`,
    { answered },
  );
}

/**
 * Ends the timers of a run and of those below it, and their waits for models.
 * @throws {WAIT_GONE} if there is none @throws {RUN_NOT_FOUND} if there is no such run
 */
export async function wakeAll(services: ExecutorServices, runId: string): Promise<AnswerState> {
  const asleep: { readonly of: string; readonly waitId: string }[] = [];
  let isFound = false;
  for await (const { runId: of, at } of treeOf(services, runId)) {
    isFound = true;
    const waits = (at.waiting?.waits ?? []).filter((wait) => wait.kind === 'timer' || isForModel(wait));
    asleep.push(...waits.map(({ id }) => ({ of, waitId: id })));
  }
  if (!isFound && storeOfRun(services)) throw new RunNotFoundError(`run ${runId} has ended, or never began`);
  if (asleep.length === 0) throw new WaitGoneError(`run ${runId} waits for no time and no model`);
  const states: AnswerState[] = [];
  for (const { of, waitId } of asleep) states.push(await answerWait(services, of, { waitId, answer: { how: 'wake' } }));
  return states.includes('sent') ? 'sent' : 'recorded';
}

/** A run that is over has no waits. @throws {WAIT_GONE} @throws {RUN_NOT_FOUND} */
async function answerEnded(store: ControlStore, runId: string, { waitId }: Given): Promise<never> {
  if (await store.outcomes?.find(runId)) throw new WaitGoneError(`run ${runId} is over: it has no open wait ${waitId}`);
  throw new RunNotFoundError(`run ${runId} has ended, or never began`);
}

/** Answers for a wait that is over. @throws {WAIT_GONE} @throws {ALREADY_ANSWERED} unless the record has this answer */
function answerSettled({ meta, waiting }: RunCheckpoint, { waitId, answer, by }: Given): AnswerState {
  const settled = waiting?.settled.find(({ id }) => id === waitId);
  if (!settled) throw new WaitGoneError(`run ${meta.runId} has no open wait ${waitId}`);
  const decision = decisionIdOf(waitId, answer, by?.id);
  if (isSameAnswer(settled, { how: answer.how, decision, ...(by ? { by } : {}) })) return 'recorded';
  throw answeredBefore(settled);
}

/**
 * The answer with the digest that the person saw: a vote must not count for an input that another person puts in its place.
 * @throws {TypeError} if the decision needs a person, and none is given
 * @throws {ANSWER_REFUSED} if the person saw another input
 */
function asSeen(wait: Wait, { answer, by }: Given): Answer {
  const { how, digest } = answer;
  if (!takesAnswer(wait, how)) return answer;
  if (!by?.id && needsName(wait))
    throw new TypeError(`wait ${wait.id} needs a person who decides: give { by: { id } }`);
  if (wait.kind !== 'approval' || how === 'deny') return answer;
  if (digest !== undefined && digest !== wait.digest)
    throw new AnswerRefusedError(`wait ${wait.id} asks about another input, or another version of the agent`);
  return { ...answer, digest: wait.digest };
}

/** Returns the store of this executor as one that carries commands. @throws {UNSUPPORTED} */
export function mailStore(services: ExecutorServices): ControlStore {
  const store = storeOfRun(services);
  if (carriesCommands(store)) return store;
  throw new UnsupportedError('this store carries no commands to other processes: it has no group commands');
}
