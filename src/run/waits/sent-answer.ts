import { AlreadyAnsweredError } from '../../values/errors.ts';
import { canonicalJson } from '../../values/json.ts';
import type { Answer, SentCommand } from '../command.ts';
import { decisionIdOf } from '../identity.ts';
import { type Person, quorumOf, type SettledWait, type Wait } from './wait.ts';

/** An answer that the store holds for a wait: no process has taken up the run since. */
export interface SentAnswer extends Answer {
  readonly by?: Person;
  /** When the store took it, wall clock, ms; absent in stores that do not note it. */
  readonly at?: number;
}

/** Returns the answers of persons in the inbox of a run, the oldest first, by the ids of their waits. */
export function answersIn(inbox: readonly SentCommand[]): ReadonlyMap<string, readonly SentAnswer[]> {
  const answers = new Map<string, SentAnswer[]>();
  for (const { command, sentAt } of inbox) {
    if (command.kind !== 'answer' || command.answer.how === 'signal') continue;
    const { waitId, answer, by } = command;
    const sent = { ...answer, ...(by ? { by } : {}), ...(sentAt === undefined ? {} : { at: sentAt }) };
    const before = answers.get(waitId);
    if (before) before.push(sent);
    else answers.set(waitId, [sent]);
  }
  return answers;
}

/** Returns whether two answers to a wait are the same decision of the same person. */
export function isSameDecision(waitId: string, one: SentAnswer, other: SentAnswer): boolean {
  return decisionIdOf(waitId, one, one.by?.id) === decisionIdOf(waitId, other, other.by?.id);
}

/**
 * Returns the stored answer that will end a wait; undefined while another answer may still do so. The process that takes up the run
 * checks changed inputs, and asks the tool who may decide: an answer that it may refuse ends nothing yet.
 */
export function endingAnswer(wait: Wait, sent: readonly SentAnswer[]): SentAnswer | undefined {
  const inTime = sent.filter(({ at }) => wait.dueAt === undefined || at === undefined || at <= wait.dueAt);
  if (wait.kind === 'question') return wait.approvers ? undefined : agreedAnswer(wait, inTime);
  if (wait.kind !== 'approval' || wait.approvers) return undefined;
  const voters = new Set(wait.votes.map(({ by }) => by.id));
  for (const answer of inTime) {
    if (answer.how === 'deny') return answer;
    if (answer.how !== 'approve' || answer.digest !== wait.digest) continue;
    // A changed input asks for all votes again, if it fits its tool.
    if (answer.input !== undefined) return undefined;
    voters.add(answer.by?.id ?? '');
    if (voters.size >= wait.quorum) return answer;
  }
  return undefined;
}

/** The stored answer with which enough persons have given the same one. The last answer of a person counts. */
function agreedAnswer(wait: Extract<Wait, { kind: 'question' }>, sent: readonly SentAnswer[]): SentAnswer | undefined {
  const given = new Map((wait.votes ?? []).map(({ by, value }) => [by.id, canonicalJson(value)]));
  for (const answer of sent) {
    if (answer.how !== 'answer') continue;
    const text = canonicalJson(answer.value ?? null);
    given.set(answer.by?.id ?? '', text);
    if ([...given.values()].filter((each) => each === text).length >= quorumOf(wait)) return answer;
  }
  return undefined;
}

/** Returns whether persons have answered a wait: no other one is needed, unless the process that takes up the run refuses an answer. */
export function isAnswered(wait: Wait, sent: readonly SentAnswer[]): boolean {
  if (wait.kind === 'question') return agreedAnswer(wait, sent) !== undefined;
  if (wait.kind !== 'approval') return false;
  const voters = new Set([...wait.votes, ...sent.filter(({ how }) => how === 'approve')].map(({ by }) => by?.id ?? ''));
  return sent.some(({ how }) => how === 'deny') || (sent.length > 0 && voters.size >= wait.quorum);
}

/** Returns the error of an answer to a wait that another answer has ended. */
export function answeredBefore({ id, how, by, at }: SettledWait): AlreadyAnsweredError {
  const who = by && by.id !== '' ? ` by ${by.id}` : '';
  return new AlreadyAnsweredError(`wait ${id} was answered before: ${how}${who}`, {
    answered: { how, at, ...(by ? { by } : {}) },
  });
}
