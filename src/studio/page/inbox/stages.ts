// How far an answer has come: a stage is shown once something proves it. Pure.
import type { JournalEvent, JsonValue, RecordView, WaitLine } from '../../wire.ts';
import { words } from '../frame/words.ts';
import { endWord, personText, settledIn, settledText, votesShownOf } from './waits.ts';

/** An answer of this tab. */
export interface StageAnswer {
  /** The wait as it was shown. */
  readonly wait: WaitLine;
  readonly how: 'approve' | 'deny' | 'answer' | 'wake';
  /** The input as the person changed it. */
  readonly input?: JsonValue | undefined;
  readonly isSending: boolean;
  readonly isStored: boolean;
  /** The process that takes up the run may refuse it. */
  readonly isPending?: boolean;
  /** Who gave it, if it was found in the store. */
  readonly by?: unknown;
  /** The process that took it up; '' if its name is not known. Absent = none so far. */
  readonly takenBy?: string | undefined;
  /** How many persons have approved, while others are needed. */
  readonly votes?: number | undefined;
  readonly call?: 'started' | 'done' | 'failed' | 'recorded';
  readonly trouble?: { readonly code: string; readonly message: string };
}

/** What an event proves of an answer. @param owner the process that the events before it named */
export function stageAfter(own: StageAnswer, event: JournalEvent, owner = ''): StageAnswer {
  const { wait } = own;
  // A wait that was asked again is not in the record any more: it looks as if the answer was taken.
  const isRefused = event.type === 'wait.refused' && (own.takenBy === undefined || event.code === 'WAIT_GONE');
  if (isRefused && event.waitId === wait.id && own.isStored)
    return { ...own, trouble: { code: event.code, message: event.reason } };
  if (event.type === 'wait.answered' && event.waitId === wait.id) {
    const { votes } = event;
    return { ...own, takenBy: owner, votes: votes ?? own.votes };
  }
  if (own.takenBy === undefined || own.how === 'deny' || wait.callId === undefined) return own;
  if (event.type === 'tool.started' && event.callId === wait.callId)
    return { ...own, takenBy: event.owner ?? own.takenBy, call: own.call ?? 'started' };
  if (event.type !== 'tool.done' || event.callId !== wait.callId) return own;
  return { ...own, call: event.output.type.startsWith('error') ? 'failed' : 'done' };
}

/** What the record proves of an answer. */
export function afterRecord(own: StageAnswer, { waits, record, owner, line }: RecordView): StageAnswer {
  const { wait } = own;
  const open = waits.find(({ id }) => id === wait.id);
  if (open?.kind === 'approval' && wait.kind === 'approval' && open.votes.length > wait.votes.length)
    return own.votes === open.votes.length ? own : { ...own, takenBy: owner?.name ?? '', votes: open.votes.length };
  if (open || !own.isStored) return own;
  const taken = own.takenBy === undefined ? { ...own, takenBy: owner?.name ?? '' } : own;
  const settled = settledIn(record, wait.id);
  if (settled && settled.how !== own.how)
    return {
      ...own,
      trouble: { code: 'ALREADY_ANSWERED', message: `${settledText(settled)}. Your answer changed nothing.` },
    };
  if (own.how === 'deny' || wait.callId === undefined || (own.call && own.call !== 'started')) return taken;
  const state = callStateIn(record, wait, line.steps);
  return state === undefined || own.call === state ? taken : { ...taken, call: state };
}

/** The answer that will end a wait: it is stored, and its run has not read it. Of several persons it is one vote. */
export function answerIn(wait: WaitLine, { answers }: RecordView): StageAnswer | undefined {
  const given = answers?.[wait.id]?.find(({ isLast }) => isLast);
  if (!given || votesShownOf(wait) !== '') return undefined;
  return { wait, how: given.how, by: given.by, isSending: false, isStored: true };
}

/**
 * Where the call of a wait is. A step ends once each of its calls has a result; whether that is an error, or says that the outcome is
 * unknown, is in the transcript.
 */
function callStateIn(record: RecordView['record'], wait: WaitLine, steps: number): StageAnswer['call'] {
  const call = record?.openStep?.calls.find(({ callId }) => callId === wait.callId);
  if (call?.state === 'started') return 'started';
  return call?.state === 'done' || (!call && steps >= wait.step) ? 'recorded' : undefined;
}

/** A stage of an answer. */
interface Stage {
  readonly text: string | undefined;
  readonly isDone: boolean;
}

/** The stages of an answer, those that are true first. */
export function stagesOfAnswers(own: StageAnswer): readonly Stage[] {
  const { wait, how, isStored, isPending, takenBy, votes, call, trouble } = own;
  const { stages = {} } = words;
  const isTaken = takenBy !== undefined;
  const taken = isTaken ? `Taken up${takenBy && ` by ${takenBy}`}` : stages.next;
  const first = [
    { text: isPending && !isTaken ? stages.pending : stages.stored, isDone: isStored },
    { text: taken, isDone: isTaken },
  ];
  // What came instead is said in its place: a refused answer is not stored any more.
  if (trouble) return [];
  if (votes !== undefined && wait.kind === 'approval' && votes < wait.quorum)
    return [...first, { text: `${votes} of ${wait.quorum} have approved: others are needed`, isDone: true }];
  if (votes !== undefined && wait.kind === 'question' && (wait.quorum ?? 1) > 1)
    return [...first, { text: `${votes} have answered, ${wait.quorum} must agree: others are needed`, isDone: true }];
  const isDone = how === 'deny' || how === 'wake' ? isTaken : call !== undefined;
  return [...first, { text: `${isDone ? '' : 'Then: '}${lastText(own)}`, isDone }];
}

function lastText({ wait, how, call }: StageAnswer): string {
  const { stages = {} } = words;
  if (how === 'deny') return `${stages.denied}`;
  if (how === 'wake') return `${stages[wait.kind === 'retry' ? 'retried' : 'woken']}`;
  return `${toolOf(wait)}${stages[call && call !== 'started' ? call : how === 'answer' ? 'answered' : 'runs']}`;
}

function toolOf({ tool = 'the call' }: WaitLine): string {
  return tool;
}

/** Returns whether nothing more will become true of an answer. */
export function isStageOver(own: StageAnswer): boolean {
  if (own.trouble) return true;
  return stagesOfAnswers(own).every(({ isDone }) => isDone) && own.call !== 'started';
}

/** Returns whether an answer is stored, and stands. */
export function isGiven(own: StageAnswer | undefined): own is StageAnswer {
  return own?.isStored === true && !own.trouble;
}

/** The head of an answered card: the answer, by whom, and what became of the call. @param by who answers in this tab */
export function headOfStage(own: StageAnswer, by: unknown): string {
  const { wait, how, call } = own;
  const { stages = {} } = words;
  const what = { started: 'isRunning', failed: 'hasFailed', done: 'isDone', recorded: 'isRecorded' } as const;
  const now =
    toolOf(wait) +
    stages[how === 'deny' ? 'isDenied' : call ? what[call] : how === 'answer' ? 'isAsking' : 'isWaiting'];
  const isAlone = votesShownOf(wait) === '';
  return `${endWord(how)} by ${personText(own.by ?? by) || 'you'}. ${isAlone ? now : stages.vote}`;
}
