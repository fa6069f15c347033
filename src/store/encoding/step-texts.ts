import type { RunHead } from '../../record/checkpoint.ts';
import { parseOpenCalls, parseOpenStep } from '../../record/parse.ts';
import { changedCalls, type OpenCall, type OpenStep } from '../../run/open-step.ts';
import { CheckpointCorruptError } from '../../values/errors.ts';
import { jsonText } from '../../values/json.ts';
import { encodeMessage, enterMessage } from '../../values/message.ts';

/*
 * The head of a record is written with each save, and a message with a thousand calls is saved two thousand times. So the
 * open step of such a message is stored beside the head, a text for the model's message and one for each call, and a save
 * writes the texts of the calls that have changed. Every other step is small, and stays in the head.
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
  /** Whether all of them are given; otherwise those that the save before did not have. */
  readonly isWhole: boolean;
  readonly texts: readonly StepText[];
}

interface Save {
  readonly runId: string;
  readonly revision: number;
  readonly head: RunHead;
}

/** What a store was last given of an open step. */
interface Given {
  readonly runId: string;
  readonly revision: number;
  readonly calls: readonly OpenCall[];
}

/**
 * Finds what a store lacks of large open steps. Calls are never changed in place: one that has changed is another object.
 *
 * A delta is stored only if it follows the revision before, so that what follows needs only what has changed since. One that
 * is tried again, because its write may have failed, has the revision that was given already: then all is given once more.
 */
export class StepSplitter {
  /** By the model's message, which is one object as long as its step is open. */
  readonly #given = new WeakMap<object, Given>();

  /**
   * @param isWhole all that the store has is replaced
   * @returns undefined for a step that stays in its head
   * @throws {NotJsonError} @throws {CheckpointCorruptError} when it is no open step
   */
  split({ runId, revision, head }: Save, { isWhole = false } = {}): StepTexts | undefined {
    const step = head.openStep;
    if (!isLarge(step)) return undefined;
    const { message, calls } = step;
    const given = isWhole ? undefined : this.#given.get(message);
    const isNext = given?.runId === runId && given.revision === revision - 1 && given.calls.length === calls.length;
    const texts = isNext ? callTexts(calls, changedCalls(given.calls, calls)) : allTexts(step);
    // Whether a whole record lands says nothing of the revision that it follows: the delta after it gives all once more.
    if (isWhole) this.#given.delete(message);
    else this.#given.set(message, { runId, revision, calls });
    return { count: calls.length + 1, isWhole: !isNext, texts };
  }
}

function isLarge(step: OpenStep | undefined): step is OpenStep {
  // What a host gives may be anything.
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

/** The texts of an open step, in order, when a body is stored. @param texts those before; they may be changed in place */
export function stepAfter(texts: string[], step: StepTexts): string[] {
  const after = step.isWhole ? [] : texts;
  for (const { place, text } of step.texts) after[place] = text;
  return after;
}

/** Stands before the number of texts, in the place of an open step. JSON has no such character: in strings it is escaped. */
const MARK = '\u001c';

const BEFORE_STEP = ',"openStep":';

/** The text of a head that says how many texts its open step has. @param head the JSON of a head without an open step */
export function withStepCount(head: string, count: number): string {
  return `${head.slice(0, -1)}${BEFORE_STEP}${MARK}${count}}`;
}

/** How many texts beside it a stored head needs; 0 = it is whole. */
export function stepCountIn(head: string): number {
  const at = head.lastIndexOf(MARK);
  return at === -1 ? 0 : Number(head.slice(at + 1, -1));
}

/** A stored head without its open step, if that is stored beside it. */
export function withoutStep(head: string): string {
  const at = head.lastIndexOf(MARK);
  return at === -1 ? head : `${head.slice(0, at - BEFORE_STEP.length)}}`;
}

/** A whole head, made of its text and the texts of its open step. @throws {CheckpointCorruptError} when one is missing */
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
