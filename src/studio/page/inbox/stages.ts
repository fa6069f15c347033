// How far an answer has come: a stage is shown once something proves it. Pure.
import type { JournalEvent, ListedWait, RecordView } from '../../wire.ts';
import { personText, settledIn, settledText, votesOf } from './waits.ts';

/** An answer of this tab. */
export interface Sent {
  /** The wait as it was shown. */
  readonly wait: ListedWait;
  readonly how: 'approve' | 'deny' | 'answer' | 'wake';
  readonly isSending: boolean;
  readonly isStored: boolean;
  /** The process that took it up; '' if its name is not known. Absent = none so far. */
  readonly takenBy?: string;
  /** How many persons have approved, while others are needed. */
  readonly votes?: number | undefined;
  readonly call?: 'started' | 'done' | 'failed';
  readonly trouble?: { readonly code: string; readonly message: string };
}

/** What an event proves of an answer. @param owner the process that the events before it named */
export function afterEvent(own: Sent, event: JournalEvent, owner = ''): Sent {
  const { wait } = own;
  if (event.type === 'wait.refused' && event.waitId === wait.id && own.isStored && own.takenBy === undefined)
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
export function afterRecord(own: Sent, { waits, record, owner, line }: RecordView): Sent {
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
  if (own.how === 'deny' || wait.callId === undefined || own.call === 'done' || own.call === 'failed') return taken;
  const state = callStateIn(record, wait, line.steps);
  return state === undefined || own.call === state ? taken : { ...taken, call: state };
}

/** Where the call of a wait is. A step ends once each of its calls has a result. */
function callStateIn(record: RecordView['record'], wait: ListedWait, steps: number): Sent['call'] {
  const call = record?.openStep?.calls.find(({ callId }) => callId === wait.callId);
  if (call?.state === 'started') return 'started';
  return call?.state === 'done' || (!call && steps >= wait.step) ? 'done' : undefined;
}

/** A stage of an answer. */
export interface Stage {
  readonly text: string;
  readonly isDone: boolean;
}

/** The stages of an answer, those that are true first. */
export function stagesOf(own: Sent): readonly Stage[] {
  const { wait, how, isStored, takenBy, votes, call } = own;
  const isTaken = takenBy !== undefined;
  const by = isTaken ? takenBy && ` by ${takenBy}` : ' by a process or pawl resume';
  const taken = { text: `Taken up${by}`, isDone: isTaken };
  const first = [{ text: 'Stored: your answer survives a crash from here on', isDone: isStored }, taken];
  if (votes !== undefined && wait.kind === 'approval' && votes < wait.quorum)
    return [...first, { text: `${votes} of ${wait.quorum} have approved: others are needed`, isDone: true }];
  return [...first, { text: lastText(own), isDone: how === 'deny' || how === 'wake' ? isTaken : call !== undefined }];
}

function lastText({ wait, how, call }: Sent): string {
  const tool = wait.tool ?? 'the call';
  if (how === 'deny') return 'The model reads that it was denied';
  if (how === 'wake') return wait.kind === 'retry' ? 'The model is asked again' : 'The run continues';
  if (call === 'failed') return `${tool} has failed: the model reads why`;
  if (call === 'done') return `${tool} is done, and its result recorded`;
  return how === 'answer' ? `${tool} continues with the answer` : `${tool} runs`;
}

/** Returns whether nothing more will become true of an answer. */
export function isOver(own: Sent): boolean {
  if (own.trouble) return true;
  return stagesOf(own).every(({ isDone }) => isDone) && own.call !== 'started';
}

/** What is said at the end of an answered card. */
export function endText(own: Sent, by: unknown): string {
  const who = personText(by) || 'you';
  const words = { approve: 'Approved', deny: 'Denied', answer: 'Answered', wake: 'Woken' } as const;
  const votes = votesOf(own.wait);
  return `${words[own.how]} by ${who}. ${votes === '' ? 'The run continues without this page.' : 'Each person has one vote.'}`;
}
