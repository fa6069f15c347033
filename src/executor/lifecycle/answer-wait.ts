import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { type Answer, type Command, checkCommand } from '../../run/command.ts';
import { waitIdOf } from '../../run/identity.ts';
import type { Person, Wait, Waiting } from '../../run/waits/wait.ts';
import { type ControlStore, carriesCommands } from '../../store/port.ts';
import {
  AlreadyAnsweredError,
  AnswerRedactedError,
  CheckpointMissingError,
  UnsupportedError,
  WaitGoneError,
} from '../../values/errors.ts';
import { canonicalJson, frozenJson, type JsonValue } from '../../values/json.ts';
import { Redactor } from '../../values/redact.ts';
import type { ActiveRun, ExecutorServices } from '../run/active-run.ts';
import { recordedText, storeOf } from '../run/stored-run.ts';
import { isTaking } from '../run/waits/run-waits.ts';

/**
 * What became of an answer. `recorded`: the record of the run has it. `sent`: it waits in the store for the process that has the
 * run, now or later.
 */
export type AnswerState = 'recorded' | 'sent';

interface Given {
  readonly waitId: string;
  readonly answer: Answer;
  readonly by?: Person | undefined;
}

/**
 * Answers a wait of a run, or of one of its child runs that rest.
 * @throws {WaitGoneError} @throws {AlreadyAnsweredError} @throws {AnswerRefusedError} @throws {AnswerRedactedError}
 * @throws {CheckpointMissingError} if there is no such run
 */
export async function answerWait(services: ExecutorServices, runId: string, given: Given): Promise<AnswerState> {
  const { waitId, by } = given;
  const answer = recordable(services, given.answer);
  const command: Command = {
    id: waitIdOf([waitId, answer.how, by?.id ?? '', canonicalJson([answer.value ?? null, answer.input ?? null])]),
    ...{ kind: 'answer', waitId, answer },
    ...(by ? { by } : {}),
  };
  checkCommand(command);
  for (let live = services.registry.live(runId); live; live = services.registry.live(runId)) {
    const state = await answerLive(services, live, { ...given, answer });
    if (state) return state;
  }
  return answerStored(services, runId, command);
}

/** The answer as records have it. A value that redaction would change is refused: the run would continue with another one. */
function recordable(services: ExecutorServices, { note, reason, ...answer }: Answer): Answer {
  const { redact } = services.config;
  const text = (said: string | undefined) => said && recordedText(services, said);
  const [saidNote, saidReason] = [text(note), text(reason)];
  for (const what of ['value', 'input'] as const) {
    if (answer[what] === undefined) continue;
    const value: JsonValue = frozenJson(answer[what], what);
    if (!redact || canonicalJson(new Redactor(redact, 'record').json(value)) === canonicalJson(value)) continue;
    throw new AnswerRedactedError(
      `${what} holds a text that redaction removes from records; give it without that text`,
    );
  }
  return { ...answer, ...(saidNote ? { note: saidNote } : {}), ...(saidReason ? { reason: saidReason } : {}) };
}

/** Answers a run that is live here. @returns undefined if it is not any more */
async function answerLive(
  services: ExecutorServices,
  live: ActiveRun,
  { waitId, answer, by }: Given,
): Promise<AnswerState | undefined> {
  await live.life.accepted.promise;
  const hasLeft = (await live.life.leaving) || live.life.hasLeft;
  if (hasLeft || live.life.resolution !== 'accepted' || live.life.isFinished) {
    await live.life.ended.promise;
    return undefined;
  }
  const { waiting, outcome } = live.progress ?? {};
  const child = outcome ? undefined : childOf(waiting, waitId);
  if (child) return answerChild(services, child, { waitId, answer, by });
  try {
    await live.waits.take({ waitId, answer, by, at: services.config.clock.now() });
    return 'recorded';
  } catch (error) {
    // It left, or stopped, while the answer was on its way in: the store knows more.
    if (!(error instanceof WaitGoneError) || isTaking(live) || !services.config.store) throw error;
    await live.life.ended.promise;
    return undefined;
  }
}

/** The child that may have a wait: it rests, and the run waits for it. */
function childOf(waiting: Waiting | undefined, waitId: string): readonly string[] | undefined {
  const { waits = [], settled = [] } = waiting ?? {};
  if ([...waits, ...settled].some(({ id }) => id === waitId)) return undefined;
  const children = waits.flatMap((wait) => (wait.kind === 'child' ? [wait.childRunId] : []));
  return children.length > 0 ? children : undefined;
}

async function answerChild(
  services: ExecutorServices,
  children: readonly string[],
  given: Given,
): Promise<AnswerState> {
  for (const child of children) {
    try {
      return await answerWait(services, child, given);
    } catch (error) {
      if (!(error instanceof WaitGoneError) && !(error instanceof CheckpointMissingError)) throw error;
    }
  }
  throw new WaitGoneError(`no run of this tree has an open wait ${given.waitId}`);
}

async function answerStored(
  services: ExecutorServices,
  runId: string,
  command: Command & { kind: 'answer' },
): Promise<AnswerState> {
  const store = mailStore(services);
  const record = await store.load(runId);
  if (!record) throw new CheckpointMissingError(`the store has no record of run ${runId}`);
  const { waitId, answer, by } = command;
  const children = childOf(record.waiting, waitId);
  if (children) return answerChild(services, children, { waitId, answer: answer as Answer, by });
  if (isKnown(record, command)) return 'recorded';
  await store.send(runId, command);
  services.sweep.retry(runId);
  if (services.sweep.isOn) void services.sweep.look();
  return 'sent';
}

/**
 * Returns whether the record has this answer already.
 * @throws {WaitGoneError} @throws {AlreadyAnsweredError} @throws {TypeError} if several persons must agree and none is given
 */
function isKnown({ meta, waiting }: RunCheckpoint, { waitId, answer, by }: Command & { kind: 'answer' }): boolean {
  const open = waiting?.waits.find(({ id }) => id === waitId);
  if (open) {
    checkBy(open, by);
    return false;
  }
  const settled = waiting?.settled.find(({ id }) => id === waitId);
  if (!settled) throw new WaitGoneError(`run ${meta.runId} has no open wait ${waitId}`);
  if (settled.how === answer.how && settled.by?.id === by?.id) return true;
  const { how, at } = settled;
  const who = settled.by && settled.by.id !== '' ? ` by ${settled.by.id}` : '';
  const answered = { how, at, ...(settled.by ? { by: settled.by } : {}) };
  throw new AlreadyAnsweredError(`wait ${waitId} was answered before: ${how}${who}`, { answered });
}

function checkBy(wait: Wait, by: Person | undefined): void {
  if (wait.kind === 'approval' && wait.quorum > 1 && !by?.id)
    throw new TypeError(`wait ${wait.id} needs ${wait.quorum} persons: give { by: { id } }`);
}

/** Returns the store of this executor as one that carries commands. @throws {UnsupportedError} */
export function mailStore(services: ExecutorServices): ControlStore {
  const store = storeOf(services);
  if (carriesCommands(store)) return store;
  throw new UnsupportedError(
    'this store carries no commands to other processes: it has no send, inbox and acknowledge',
  );
}
