import { canonicalJson, type JsonValue } from '../../values/json.ts';
import { approvalDigest, waitIdOf } from '../identity.ts';
import { callOf, changeCalls, endedLast, type OpenCall, type WaitEnd } from '../open-step.ts';
import { keepPhase } from '../pipeline.ts';
import type { Progress } from '../progress.ts';
import {
  type Allowed,
  type AnswerVote,
  type HowAnswered,
  isForModel,
  quorumOf,
  type SettledWait,
  type Vote,
  type Wait,
  type Waiting,
} from './wait.ts';
import type { Answered, WaitAnswer } from './wait-answer.ts';

/*
 * The rules of waits, pure: how a call is judged before its first start, how a wait begins, and what an answer does to it. The
 * effects and the executor give times, ids of persons and checked values; the record has the rest.
 */

/** The decision about one call before its first start. */
export type Judgement =
  | { readonly callId: string; readonly verdict: 'run'; readonly allowed?: Allowed }
  | { readonly callId: string; readonly verdict: 'deny'; readonly reason: string }
  /** It can never run: no tool has its name, or its input does not fit. The model reads why. */
  | { readonly callId: string; readonly verdict: 'unfit'; readonly error: string }
  | { readonly callId: string; readonly verdict: 'ask'; readonly wait: Wait };

/** Most remembered ends of waits. */
const MAX_SETTLED = 8;

/** A run that waits for nothing. */
export const noWaits: Waiting = { waits: [], settled: [] };

/** Returns the open waits of a run. */
export function waitsOf({ waiting }: { readonly waiting?: Waiting | undefined }): readonly Wait[] {
  return waiting?.waits ?? [];
}

/** Finds an open wait by its id. */
export function waitOf(progress: Pick<Progress, 'waiting'>, waitId: string): Wait | undefined {
  return waitsOf(progress).find(({ id }) => id === waitId);
}

/** Returns the progress after its step, which has just opened, was judged: denied calls have a result, asked ones wait. */
export function applyJudgements(progress: Progress, judgements: readonly Judgement[]): Progress {
  const { openStep } = progress;
  if (!openStep) return progress;
  const byCall = new Map(judgements.map((judgement) => [judgement.callId, judgement]));
  const judged = changeCalls(openStep, new Set(byCall.keys()), (call) => {
    const judgement = byCall.get(call.callId);
    if (call.state !== 'planned' || !judgement || judgement.verdict === 'ask') return call;
    if (judgement.verdict === 'deny') return deniedCall(call, judgement.reason);
    if (judgement.verdict === 'unfit') return unfitCall(call, judgement.error);
    return judgement.allowed ? { ...call, allowed: judgement.allowed } : call;
  });
  const waits = judgements.flatMap((judgement) => (judgement.verdict === 'ask' ? [judgement.wait] : []));
  return openWaits({ ...progress, openStep: judged }, waits);
}

function unfitCall(call: OpenCall, error: string): OpenCall {
  return { ...call, state: 'done', result: { type: 'error-text', value: error } };
}

function deniedCall(call: OpenCall, reason: string): OpenCall {
  return { ...call, state: 'done', result: { type: 'execution-denied', reason } };
}

/**
 * Returns the progress with more open waits: their calls wait. A `once` call that asks has done nothing yet, so its start does
 * not count.
 */
export function openWaits(progress: Progress, waits: readonly Wait[]): Progress {
  if (waits.length === 0) return progress;
  const { openStep } = progress;
  const calls = new Set(waits.flatMap(({ callId }) => callId ?? []));
  const held = openStep && changeCalls(openStep, calls, heldCall);
  const waiting = withWaits(progress.waiting ?? noWaits, [...waitsOf(progress), ...waits]);
  return keepPhase({ ...progress, ...(held ? { openStep: held } : {}), waiting });
}

/**
 * Returns the progress of a run that continues from its record without waits of calls that wait no more: redaction took the input
 * of such a call, and it ended as lost. A waiting call without a wait, which nothing could ever end, is planned again.
 */
export function withoutLostWaits<At extends Pick<Progress, 'openStep' | 'waiting'>>(progress: At): At {
  const { openStep } = progress;
  if (!openStep && !progress.waiting) return progress;
  const waits = waitsOf(progress);
  // A message may have thousands of calls that all wait.
  const calls = new Map(openStep?.calls.map((call) => [call.callId, call]));
  const isHeld = (callId: string) => calls.get(callId)?.state === 'waiting';
  const kept = waits.filter(({ callId }) => callId === undefined || isHeld(callId));
  const waiting = kept.length === waits.length ? {} : { waiting: withWaits(progress.waiting ?? noWaits, kept) };
  const asked = new Set(kept.flatMap(({ callId }) => callId ?? []));
  const freed = (openStep?.calls ?? []).filter(({ state, callId }) => state === 'waiting' && !asked.has(callId));
  if (!openStep || freed.length === 0) return { ...progress, ...waiting };
  const ids = new Set(freed.map(({ callId }) => callId));
  const step = changeCalls(openStep, ids, (call) => ({ ...call, state: 'planned' }));
  return { ...progress, ...waiting, openStep: step };
}

function heldCall(call: OpenCall): OpenCall {
  if (call.state === 'done') return call;
  const isUnbegun = call.state === 'started' && call.effect === 'once';
  return { ...call, state: 'waiting', attempt: isUnbegun ? call.attempt - 1 : call.attempt };
}

/** Returns the waits of a run with these open ones in place of those. */
export function withWaits({ settled }: Waiting, waits: readonly Wait[]): Waiting {
  const wakeAt = earliest(waits.map(({ dueAt }) => dueAt));
  return { waits, ...(wakeAt === undefined ? {} : { wakeAt }), settled };
}

/** Returns the first of some times; undefined if there is none. A run may have thousands of waits. */
export function earliest(times: readonly (number | undefined)[]): number | undefined {
  return times.reduce(
    (first, time) => (time === undefined || (first !== undefined && first <= time) ? first : time),
    undefined,
  );
}

/**
 * Applies an answer to a run. The first recorded answer of a wait stands.
 * @returns for a changed run the whole progress: the wait and its effect are one save
 */
export function applyAnswer(progress: Progress, answer: WaitAnswer): Answered {
  const wait = waitOf(progress, answer.waitId);
  if (!wait) return answeredBefore(progress, answer);
  if (!takesAnswer(wait, answer.how)) return { kind: 'unfit', wait };
  const remembered = remember(progress, answer.command);
  if (wait.kind === 'approval' && answer.how === 'approve') return approve(remembered, wait, answer);
  if (wait.kind === 'question' && answer.how === 'answer' && quorumOf(wait) > 1) return vote(remembered, wait, answer);
  const after = effectOf(remembered, wait, answer);
  const settled = settledBy(wait, answer);
  const ends =
    wait.kind === 'approval' && answer.how === 'expire' && wait.onExpiry !== 'deny' ? wait.onExpiry : undefined;
  return { kind: 'settled', progress: close(after, wait, settled), wait, settled, ...(ends ? { ends } : {}) };
}

function answeredBefore(progress: Progress, answer: WaitAnswer): Answered {
  const settled = progress.waiting?.settled.find(({ id }) => id === answer.waitId);
  if (!settled) return { kind: 'gone' };
  return isSameAnswer(settled, answer) ? { kind: 'known' } : { kind: 'other', settled };
}

/** Returns whether an answer repeats one that ended the wait: the same decision of the same person. */
export function isSameAnswer(
  { how, by, decisions }: SettledWait,
  answer: Pick<WaitAnswer, 'how' | 'by' | 'decision'>,
): boolean {
  if (decisions && answer.decision !== undefined) return decisions.includes(answer.decision);
  return how === answer.how && by?.id === answer.by?.id;
}

/** The answers that a kind of wait takes. A missing kind does not compile. */
const answersTo: { readonly [Kind in Wait['kind']]: readonly HowAnswered[] } = {
  approval: ['approve', 'deny', 'expire'],
  question: ['answer', 'expire'],
  event: ['signal', 'expire'],
  timer: ['expire', 'wake'],
  child: ['ended'],
  retry: ['expire', 'wake'],
  limit: ['expire', 'wake'],
};

/** Returns whether a kind of wait takes an answer. */
export function takesAnswer({ kind }: Wait, how: HowAnswered): boolean {
  return answersTo[kind].includes(how);
}

/** A command that is recorded here, and may still be in the inbox. */
function remember(progress: Progress, command: string | undefined): Progress {
  if (command === undefined || progress.commands.includes(command)) return progress;
  return { ...progress, commands: [...progress.commands, command] };
}

type Approval = Extract<Wait, { kind: 'approval' }>;
type Approve = Extract<WaitAnswer, { how: 'approve' }>;

/** A vote for a call and its input. The call may start once `quorum` persons have approved the same input. */
function approve(progress: Progress, wait: Approval, answer: Approve): Answered {
  const call = progress.openStep && callOf(progress.openStep, wait.callId ?? '');
  if (!call) return { kind: 'gone' };
  if (answer.unfit !== undefined) return withdrawUnfit(progress, wait, answer.unfit);
  const { version } = progress.definition;
  const digestNow = approvalDigest(call.name, wait.input ?? call.input, version);
  if (answer.again || digestNow !== wait.digest) return reopen(progress, wait, { call, answer });
  if (answer.digest !== undefined && answer.digest !== wait.digest) return { kind: 'unfit', wait };
  const vote = voteOf(answer);
  const edit = editIn(answer, wait.input ?? call.input);
  const input = edit === undefined ? wait.input : edit;
  const before = edit === undefined ? wait.votes : [];
  if (before.some(({ by }) => by.id === vote.by.id)) return { kind: 'known' };
  const votes = [...before, vote];
  const digest = edit === undefined ? wait.digest : approvalDigest(call.name, edit, version);
  const asked = edit === undefined ? wait : changed(wait, answer);
  const voted: Approval = { ...asked, digest, votes, ...(input === undefined ? {} : { input }) };
  if (votes.length < wait.quorum) return { kind: 'voted', progress: replace(progress, voted), wait: voted };
  const notes = votes.flatMap(({ note }) => note ?? []);
  const allowed: Allowed = {
    by: votes.map(({ by }) => by),
    at: answer.at,
    digest,
    ...(input === undefined ? {} : { input }),
    ...(notes.length > 0 ? { note: notes.join('\n') } : {}),
  };
  const decisions = votes.flatMap(({ decision }) => decision ?? []);
  const settled: SettledWait = {
    ...settledBy(wait, answer),
    digest,
    decisions,
    ...(vote.note === undefined ? {} : { note: vote.note }),
    ...(wait.quorum > 1 ? { votes } : {}),
  };
  const after = changeCall(progress, wait, (waiting) => ({ ...waiting, state: 'planned', allowed }));
  return { kind: 'settled', progress: close(after, wait, settled), wait: voted, settled };
}

type Asked = Extract<Wait, { kind: 'question' }>;

/** The answer of one person to a question that needs several equal ones. A person may change it while the question is open. */
function vote(progress: Progress, wait: Asked, answer: Extract<WaitAnswer, { how: 'answer' | 'signal' }>): Answered {
  const { by = { id: '' }, at, decision, value } = answer;
  const before = wait.votes ?? [];
  const text = canonicalJson(value);
  const isEqual = (each: AnswerVote) => canonicalJson(each.value) === text;
  if (before.some((each) => each.by.id === by.id && isEqual(each))) return { kind: 'known' };
  const own: AnswerVote = { by, at, value, ...(decision === undefined ? {} : { decision }) };
  const votes = [...before.filter((each) => each.by.id !== by.id), own];
  const voted: Asked = { ...wait, votes };
  const equal = votes.filter(isEqual);
  if (equal.length < quorumOf(wait)) return { kind: 'voted', progress: replace(progress, voted), wait: voted };
  const decisions = equal.flatMap((each) => each.decision ?? []);
  const settled = { ...settledBy(wait, answer), decisions };
  return { kind: 'settled', progress: close(effectOf(progress, wait, answer), wait, settled), wait: voted, settled };
}

/** The input as this answer changes it; undefined if it is the one that the others approved. */
function editIn({ input }: Approve, now: JsonValue): JsonValue | undefined {
  return input === undefined || canonicalJson(input) === canonicalJson(now) ? undefined : input;
}

/** The wait for a changed input: what its tool said of the input before is true no more. */
function changed({ prompt: _, detail: __, changedBy: ___, ...wait }: Approval, { words, by }: Approve): Approval {
  return { ...wait, ...words, ...(by ? { changedBy: by } : {}) };
}

/** Ends a wait whose call can never run. No answer ended it: a repetition finds no wait. */
function withdrawUnfit(progress: Progress, wait: Approval, reason: string): Answered {
  const after = changeCall(progress, wait, (call) => unfitCall(call, reason));
  const { waiting = noWaits } = after;
  const waits = waiting.waits.filter(({ id }) => id !== wait.id);
  return { kind: 'withdrawn', progress: { ...after, waiting: withWaits(waiting, waits) }, wait, reason };
}

function voteOf({ by = { id: '' }, at, note, decision }: Approve): Vote {
  return { by, at, ...(note === undefined ? {} : { note }), ...(decision === undefined ? {} : { decision }) };
}

/** An approval is valid for one tool, one input and one version of the agent: for another one the question is asked again. */
function reopen(
  progress: Progress,
  wait: Approval,
  { call, answer }: { readonly call: OpenCall; readonly answer: Approve },
): Answered {
  const opened = answer.again ?? askedAgain(progress, wait, { call, at: answer.at });
  const waits = waitsOf(progress).map((each) => (each.id === wait.id ? opened : each));
  const waiting = withWaits(progress.waiting ?? noWaits, waits);
  return { kind: 'reopened', progress: { ...progress, waiting }, wait, opened };
}

/** The same question about the call as the model made it, with its whole time. */
function askedAgain(
  { meta, definition }: Progress,
  { input: _, changedBy: __, ...wait }: Approval,
  { call, at }: { readonly call: OpenCall; readonly at: number },
): Wait {
  const digest = approvalDigest(call.name, call.input, definition.version);
  const id = waitIdOf([meta.runId, wait.id, digest]);
  const dueAt = wait.dueAt === undefined ? {} : { dueAt: at + wait.dueAt - wait.createdAt };
  return { ...wait, id, digest, createdAt: at, ...dueAt, votes: [] };
}

/** Why a call is denied whose approval has expired. */
export const notInTime = 'No person decided in time.';

/** The effect of an answer on the call, or on the run itself. */
function effectOf(progress: Progress, wait: Wait, answer: WaitAnswer): Progress {
  switch (wait.kind) {
    case 'approval': {
      const said = answer.how === 'deny' ? answer.reason : notInTime;
      return changeCall(progress, wait, (call) => deniedCall(call, said || 'A person denied this call.'));
    }
    case 'child':
      if (answer.how !== 'ended') return progress;
      return changeCall(progress, wait, (call) => ({ ...call, state: 'done', result: answer.output }));
    case 'retry':
    case 'limit':
      return progress;
    default: {
      const end = endOf(wait, answer);
      return changeCall(progress, wait, (call) => ({
        ...call,
        state: 'planned',
        answers: [...(call.answers ?? []), call.isWait ? { ...end, at: answer.at } : end],
      }));
    }
  }
}

function endOf(wait: Extract<Wait, { kind: 'question' | 'event' | 'timer' }>, answer: WaitAnswer): WaitEnd {
  const named = wait.kind === 'event' ? { kind: wait.kind, name: wait.name } : { kind: wait.kind };
  if (answer.how === 'answer' || answer.how === 'signal') return { ...named, how: answer.how, value: answer.value };
  return { ...named, how: answer.how === 'wake' ? 'wake' : 'expire' };
}

function changeCall(progress: Progress, { callId }: Wait, change: (call: OpenCall) => OpenCall): Progress {
  if (!progress.openStep || callId === undefined) return progress;
  const openStep = changeCalls(progress.openStep, new Set([callId]), (call) =>
    call.state === 'waiting' ? change(call) : call,
  );
  // An answer is new progress.
  return { ...progress, openStep: progress.workflow ? endedLast(openStep, callId) : openStep, attempts: 0 };
}

function settledBy({ id, kind, createdAt }: Wait, { how, by, decision, ...sent }: WaitAnswer): SettledWait {
  // A signal may be older than its wait.
  const at = Math.max(createdAt, sent.at);
  return { id, kind, how, at, ...(by ? { by } : {}), ...(decision === undefined ? {} : { decisions: [decision] }) };
}

/** Returns whether a wait is a timer of a workflow's machine: those of calls have a call. */
export function isMachineTimer({ kind, callId }: Wait): boolean {
  return kind === 'timer' && callId === undefined;
}

function close(progress: Progress, wait: Wait, settled: SettledWait): Progress {
  // It stays open, and is due, until the model has answered: a crash during the attempt must not end an outage, or lose a turn.
  if (isForModel(wait)) {
    const { dueAt: _, ...due } = wait;
    return replace(progress, due);
  }
  const { waits, settled: before } = progress.waiting ?? noWaits;
  const left = withWaits(
    // No person answers the timer of a machine a second time.
    { waits, settled: isMachineTimer(wait) ? before : [...before, settled].slice(-MAX_SETTLED) },
    waits.filter(({ id }) => id !== wait.id),
  );
  return { ...progress, waiting: left };
}

function replace(progress: Progress, wait: Wait): Progress {
  const waits = waitsOf(progress).map((each) => (each.id === wait.id ? wait : each));
  return { ...progress, waiting: withWaits(progress.waiting ?? noWaits, waits) };
}

/** Returns the progress of a run that ends otherwise: nothing waits any more, and its outcome is due at once. */
export function withdrawWaits(progress: Progress): Progress {
  if (waitsOf(progress).length === 0) return progress;
  return { ...progress, waiting: withWaits(progress.waiting ?? noWaits, []) };
}

/** Returns the progress without some of its open waits: nothing will end them. */
export function withdrawWaitsOf(progress: Progress, isGone: (wait: Wait) => boolean): Progress {
  const waits = waitsOf(progress);
  const kept = waits.filter((wait) => !isGone(wait));
  if (kept.length === waits.length) return progress;
  return { ...progress, waiting: withWaits(progress.waiting ?? noWaits, kept) };
}
