import { isDeepStrictEqual } from 'node:util';
import type { Message, RunCheckpoint, RunResult } from 'pawl';
import { outcomeUnknown } from '../../src/run/open-step.ts';
import { beginsIn, type CallLine, type Line } from './ledger.ts';
import { phaseCount, placeOf } from './pipeline-agent.ts';
import type { Death, Trial } from './trial.ts';

/**
 * Which promises a trial broke, in words; none is what an honest runtime gives. They are judged from outside alone: the
 * ledger of side effects, the store's file after each death, and the result beside that of an undisturbed run.
 */
export function brokenPromises(trial: Trial, undisturbed: RunResult): string[] {
  return [
    ...judgeEnd(trial, undisturbed),
    ...trial.deaths.flatMap((death, i) => judgeDeath(trial, death, `death ${i + 1}`)),
    ...judgeCalls(trial),
  ];
}

function judgeEnd(trial: Trial, undisturbed: RunResult): string[] {
  const { result, left, integrity } = trial;
  if (!result) return [`the run never ended: ${trial.complaints.slice(-400)}`];
  const broken = [...judgeResult(trial, { result, undisturbed }), ...trial.wrongs];
  if (left !== null) broken.push('a record is left although the run ended');
  if (integrity !== 'ok') broken.push(`the database is damaged at the end: ${integrity}`);
  return broken;
}

/** The messages without the time that each reply took. */
export const untimed = (messages: readonly Message[]): Message[] =>
  JSON.parse(JSON.stringify(messages, (key, value) => (key === 'ms' ? undefined : value)));

/** Equal, but for the results of `once` calls that nobody knows, and what a model makes of such a result. */
function judgeResult(trial: Trial, { result, undisturbed }: { result: RunResult; undisturbed: RunResult }): string[] {
  const broken: string[] = [];
  const unknown = unknownCalls(trial);
  // An answer that is given again says so.
  const { messages, kept: _, endedAt: __, ...rest } = result;
  const { messages: expected, kept: ___, endedAt: ____, ...expectedRest } = undisturbed;
  const isReadByModel = unknown.size > 0 && trial.agent === 'survey';
  const isEqual = isReadByModel ? result.status === undisturbed.status : isDeepStrictEqual(rest, expectedRest);
  if (!isEqual) broken.push(`the result differs: ${JSON.stringify(rest)} instead of ${JSON.stringify(expectedRest)}`);
  const end = isReadByModel
    ? expected.findIndex((message) => resultIds(message).some((id) => unknown.has(id))) + 1
    : undefined;
  const difference = firstDifference(
    untimed(messages.slice(0, end)),
    untimed(withUnknown(expected, unknown).slice(0, end)),
  );
  if (difference !== undefined && !isAnswerRepeated(trial)) broken.push(`the messages differ: ${difference}`);
  return broken;
}

/**
 * The outcome was kept and the record gone when the process died, or a pipeline's last phase was complete: the answer is
 * given again, without its messages.
 */
function isAnswerRepeated({ deaths }: Trial): boolean {
  const last = deaths.at(-1);
  const isComplete = last?.record?.completedPhases.length === phaseCount;
  return last?.isMidRun === true && (last.record === null || isComplete);
}

function judgeDeath(trial: Trial, death: Death, name: string): string[] {
  const { record, integrity, lines } = death;
  const before = trial.ledger.slice(0, lines);
  const later = beginsIn(trial.ledger.slice(lines));
  const broken: string[] = [];
  if (integrity !== 'ok') broken.push(`the database is damaged after ${name}: ${integrity}`);
  const promised = Math.max(0, ...before.map((line) => (line.phase === 'saved' ? line.revision : 0)));
  if (record && record.revision < promised) {
    broken.push(`a saved step is lost: ${name} left revision ${record.revision} of ${promised}`);
  }
  // No record although one was saved: the run had ended, and all its calls with it.
  const recorded = record ? recordedCalls(record) : new Set(promised > 0 ? idsOf(before) : []);
  const complete = record?.completedPhases.length ?? 0;
  for (const { callId } of later) {
    const isComplete = (placeOf(callId)?.phase ?? complete) < complete;
    if (recorded.has(callId) || isComplete) broken.push(`a recorded call ran again: ${callId} after ${name}`);
  }
  const redone = new Set(idsOf(before).filter((id) => later.some((line) => line.callId === id)));
  if (!trial.isLate && !isOneStep(trial, redone))
    broken.push(`more than the open step was redone after ${name}: ${[...redone]}`);
  return broken;
}

function judgeCalls({ ledger, deaths, result }: Trial): string[] {
  const broken: string[] = [];
  for (const [callId, lines] of Map.groupBy(beginsIn(ledger), (line) => line.callId)) {
    const [first] = lines as [CallLine];
    if (first.effect === 'once' && lines.length > 1) {
      broken.push(`a call of a once tool began ${lines.length} times: ${callId}`);
    }
    if (first.effect === 'idempotent') broken.push(...judgeRepeats(callId, lines, deaths.length));
  }
  if (deaths.length === 0 && result && idsOf(ledger).length !== new Set(idsOf(ledger)).size) {
    broken.push('a call ran twice although no process died');
  }
  return broken;
}

function judgeRepeats(callId: string, lines: readonly CallLine[], deaths: number): string[] {
  const broken: string[] = [];
  if (new Set(lines.map((line) => line.key)).size > 1) broken.push(`an idempotent call changed its key: ${callId}`);
  for (const [i, { attempt }] of lines.entries()) {
    const last = lines[i - 1]?.attempt ?? 0;
    if (attempt <= last || attempt > deaths + 1) {
      broken.push(`an idempotent call counted its attempts wrongly: ${callId}, ${attempt} after ${last}`);
    }
  }
  return broken;
}

const idsOf = (lines: readonly Line[]) => beginsIn(lines).map((line) => line.callId);

/** Calls whose result is in a record: those in the transcript, and those done in its open step. */
function recordedCalls({ messages, openStep }: RunCheckpoint): Set<string> {
  const done = openStep?.calls.filter((call) => call.state === 'done').map((call) => call.callId) ?? [];
  return new Set([...messages.flatMap(resultIds), ...done]);
}

function resultIds(message: Message): string[] {
  if (message.role !== 'tool') return [];
  return message.content.flatMap((part) => (part.type === 'tool-result' ? [part.toolCallId] : []));
}

/** `once` calls that a death found under way: nobody knows whether they took effect, and the model is told so. */
function unknownCalls({ deaths }: Trial): Set<string> {
  const calls = deaths.flatMap(({ record }) => record?.openStep?.calls ?? []);
  return new Set(calls.flatMap((call) => (call.effect === 'once' && call.state === 'started' ? [call.callId] : [])));
}

function withUnknown(messages: readonly Message[], unknown: ReadonlySet<string>): Message[] {
  return messages.map((message) => {
    if (message.role !== 'tool') return message;
    const content = message.content.map((part) =>
      part.type === 'tool-result' && unknown.has(part.toolCallId)
        ? { ...part, output: { type: 'error-text' as const, value: outcomeUnknown } }
        : part,
    );
    return { ...message, content };
  });
}

function firstDifference(messages: readonly Message[], expected: readonly Message[]): string | undefined {
  const at = expected.findIndex((message, i) => !isDeepStrictEqual(message, messages[i]));
  if (at === -1) return messages.length === expected.length ? undefined : `${messages.length} of ${expected.length}`;
  return `message ${at} is ${JSON.stringify(messages[at])} instead of ${JSON.stringify(expected[at])}`.slice(0, 600);
}

/** Whether all these calls stand in one message of the model. */
function isOneStep({ result }: Trial, callIds: ReadonlySet<string>): boolean {
  if (callIds.size <= 1 || !result || result.messages.length <= 1) return true;
  const places = [...callIds].map(placeOf);
  // Of an earlier phase the messages are gone; one that begins anew redoes all its steps.
  if (places[0]) return new Set(places.map((place) => (place?.isAnew ? place.phase : place?.step))).size === 1;
  return result.messages.some((message) => {
    if (message.role !== 'assistant') return false;
    const ids = message.content.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : []));
    return [...callIds].every((id) => ids.includes(id));
  });
}
