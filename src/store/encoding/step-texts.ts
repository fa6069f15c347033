import type { RunHead } from '../../record/checkpoint.ts';
import { parseOpenCalls, parseOpenStep } from '../../record/parse.ts';
import { changedCalls, type OpenCall, type OpenStep } from '../../run/open-step.ts';
import { CheckpointCorruptError } from '../../values/errors.ts';
import { jsonText } from '../../values/json.ts';
import { encodeMessage, enterMessage } from '../../values/message.ts';

/*
 * Each save writes the head of a record, and a message with a thousand calls needs two thousand saves. So the open step of
 * such a message is stored beside the head: one text for the model's message and one for each call. A save writes the texts of
 * changed calls only. Every other step is small, and stays in the head.
 */

/** The open step of a message with more calls than this is stored beside the head. */
const MANY_CALLS = 32;

/** A text of an open step: at place 0 the model's message, after it the calls in their order. */
export interface StepText {
  readonly place: number;
  readonly text: string;
}

/** What a save stores of a large open step. */
export interface StepTexts {
  /** The number of all its texts. */
  readonly count: number;
  /** Whether all texts are given; otherwise only those that the previous save did not have. */
  readonly isWhole: boolean;
  readonly texts: readonly StepText[];
}

interface Save {
  readonly runId: string;
  readonly revision: number;
  readonly head: RunHead;
}

/** The part of an open step that a store got last. */
interface Given {
  readonly runId: string;
  readonly revision: number;
  readonly calls: readonly OpenCall[];
}

/**
 * Splits large open steps out of heads: finds which texts of a step's calls a store lacks. Calls never change in place: a
 * changed call is another object.
 *
 * A delta is stored only if it follows the revision before, so the next one needs only later changes. A repeated delta, whose
 * write may have failed, has the same revision: then all texts are given again.
 */
export class StepSplitter {
  /** By the model's message, which is one object while its step is open. */
  readonly #given = new WeakMap<object, Given>();

  /**
   * Splits a large open step into texts beside the head of its record.
   * @param isWhole everything stored is replaced
   * @returns undefined for a step that stays in its head
   * @throws {NOT_JSON} @throws {CHECKPOINT_CORRUPT} for a value that is not an open step
   */
  split({ runId, revision, head }: Save, { isWhole = false } = {}): StepTexts | undefined {
    const step = head.openStep;
    if (!isLarge(step)) return undefined;
    const { message, calls } = step;
    const given = isWhole ? undefined : this.#given.get(message);
    const isNext = given?.runId === runId && given.revision === revision - 1 && given.calls.length === calls.length;
    const texts = isNext ? callTexts(calls, changedCalls(given.calls, calls)) : allTexts(step);
    // A whole record does not prove the revision that it follows: the next delta gives all texts again.
    if (isWhole) this.#given.delete(message);
    else this.#given.set(message, { runId, revision, calls });
    return { count: calls.length + 1, isWhole: !isNext, texts };
  }

  /** A delta was not stored, because its revision was there already: what is stored may be another step than the one given. */
  forget({ openStep }: RunHead): void {
    if (openStep?.message) this.#given.delete(openStep.message);
  }
}

function isLarge(step: OpenStep | undefined): step is OpenStep {
  // A host may give any value.
  return Array.isArray(step?.calls) && step.calls.length > MANY_CALLS;
}

function allTexts(step: OpenStep): StepText[] {
  const { calls } = parseOpenStep(step);
  const message = encodeMessage(enterMessage(step.message, 'record.openStep.message'));
  return [{ place: 0, text: message }, ...textsOf(calls, [...calls.keys()])];
}

function callTexts(calls: readonly OpenCall[], positions: readonly number[]): StepText[] {
  parseOpenCalls(positions.map((position) => calls[position]));
  return textsOf(calls, positions);
}

function textsOf(calls: readonly OpenCall[], positions: readonly number[]): StepText[] {
  return positions.map((at) => ({ place: at + 1, text: jsonText(calls[at], `record.openStep.calls[${at}]`) }));
}

/**
 * Returns the stored texts of an open step, in order, after a body is stored.
 * @param texts the previous ones; they may be changed in place
 */
export function stepAfter(texts: string[], step: StepTexts): string[] {
  const after = step.isWhole ? [] : texts;
  for (const { place, text } of step.texts) after[place] = text;
  return after;
}

/** Comes before the number of texts, instead of an open step. JSON never contains the character: strings escape it. */
const MARK = '\u001c';

const BEFORE_STEP = ',"openStep":';

/** Adds to a head's text the number of its open step's texts. @param head the JSON of a head without an open step */
export function withStepCount(head: string, count: number): string {
  return `${head.slice(0, -1)}${BEFORE_STEP}${MARK}${count}}`;
}

/** Returns how many texts beside it a stored head needs; 0 = it is whole. */
export function stepCountIn(head: string): number {
  const at = head.lastIndexOf(MARK);
  return at === -1 ? 0 : Number(head.slice(at + 1, -1));
}

/** Returns a stored head without its open step, if that is stored beside it. */
export function withoutStep(head: string): string {
  const at = head.lastIndexOf(MARK);
  return at === -1 ? head : `${head.slice(0, at - BEFORE_STEP.length)}}`;
}

/** Joins a stored head with the texts of its open step. @throws {CHECKPOINT_CORRUPT} if one is missing */
export function withStep(head: string, texts: readonly string[]): string {
  const at = head.lastIndexOf(MARK);
  if (at === -1) return head;
  const count = stepCountIn(head);
  if (texts.length !== count || texts.includes(undefined as never)) {
    throw new CheckpointCorruptError(`this record is damaged: its open step has ${texts.length} of ${count} texts`);
  }
  const [message, ...calls] = texts;
  return `${head.slice(0, at)}{"message":${message},"calls":[${calls.join(',')}]}}`;
}
