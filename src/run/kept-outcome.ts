import { encodeMessage } from '../values/message.ts';
import type { RunOutcome } from './result.ts';

/** Longest outcome that is stored, in characters. */
const MAX_CHARS = 8 * 2 ** 20;

/** What a longer one keeps of its answer, of the outputs of its phases together, and of the messages that were not delivered. */
const OUTPUT_CHARS = 2 ** 21;
const PHASES_CHARS = 2 ** 20;
const UNDELIVERED_CHARS = 2 ** 20;

/**
 * The outcome as it is stored. One that is too long is shortened and marked (`isCut`); the result that the run itself gives,
 * and the first delivery, stay whole.
 */
export function keptOutcome(outcome: RunOutcome): RunOutcome {
  if (sizeOf(outcome) <= MAX_CHARS) return outcome;
  const { data: _, ...rest } = outcome;
  const perPhase = Math.floor(PHASES_CHARS / Math.max(1, outcome.phases.length));
  let room = UNDELIVERED_CHARS;
  return {
    ...rest,
    output: cut(outcome.output, OUTPUT_CHARS),
    phases: outcome.phases.map(({ data: __, ...phase }) => ({ ...phase, output: cut(phase.output, perPhase) })),
    undelivered: outcome.undelivered.filter((message) => {
      room -= encodeMessage(message).length;
      return room >= 0;
    }),
    isCut: true,
  };
}

function sizeOf({ output, data, phases, undelivered }: RunOutcome): number {
  let size = output.length + lengthOf(data);
  for (const phase of phases) size += phase.output.length + lengthOf(phase.data);
  for (const message of undelivered) size += encodeMessage(message).length;
  return size;
}

const lengthOf = (data: unknown): number => (data === undefined ? 0 : JSON.stringify(data).length);

function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most).toWellFormed()} [cut: ${text.length} characters, ${most} of them are kept]`;
}
