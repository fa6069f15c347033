import type { EncodedDelta, EncodedHead, EncodedRecord } from './encode.ts';
import type { Sealing } from './sealing.ts';
import type { StepTexts } from './step-texts.ts';

/*
 * Texts are sealed before a write is queued: a codec may throw, and a transaction that others share must not be half
 * written then. Messages are sealed by the row, because each seal costs some bytes.
 */

/** Messages that are stored as one text. */
export interface MessageRow {
  /** The index of its first message. */
  readonly first: number;
  readonly count: number;
  /** A JSON array, or what the codec made of it. */
  readonly text: string;
}

export interface MessageRows {
  readonly messageCount: number;
  readonly rows: readonly MessageRow[];
}

/** A long history is split over rows of about this many characters, so that loading can pause between them. */
const MAX_ROW_CHARS = 2 ** 18;

/** The part that a text of an open step is. */
export const stepText = (place: number): string => `step ${place}`;

/** The part that a row of messages is. */
export const messagesFrom = (first: number): string => `messages ${first}`;

export function sealRecord(record: EncodedRecord, sealing: Pick<Sealing, 'seal'>): EncodedRecord & MessageRows {
  const { runId, meta, head, extras, messages, step } = record;
  return {
    ...record,
    meta: sealing.seal(meta, runId, 'meta'),
    extras: extras === null ? null : sealing.seal(extras, runId, 'extras'),
    head: sealing.seal(head, runId, 'head'),
    step: sealStep(step, runId, sealing),
    messageCount: messages.length,
    rows: rowsOf({ ...record, from: 0 }, sealing),
  };
}

/** A delta as it is stored. Its messages stand in rows, and nowhere else: of a thousand that wait, each byte counts. */
export interface SealedDelta extends EncodedHead, MessageRows {
  readonly from: number;
}

export function sealDelta(delta: EncodedDelta, sealing: Pick<Sealing, 'seal'>): SealedDelta {
  const { runId, head, version, revision, updatedAt, attempts, from, messages, step } = delta;
  return {
    runId,
    head: sealing.seal(head, runId, 'head'),
    version,
    revision,
    updatedAt,
    attempts,
    step: sealStep(step, runId, sealing),
    from,
    messageCount: from + messages.length,
    rows: rowsOf(delta, sealing),
  };
}

export function sealStep(
  step: StepTexts | undefined,
  runId: string,
  sealing: Pick<Sealing, 'seal'>,
): StepTexts | undefined {
  if (!step) return undefined;
  const texts = step.texts.map(({ place, text }) => ({ place, text: sealing.seal(text, runId, stepText(place)) }));
  return { ...step, texts };
}

/** A long history is split, so that loading can pause between its rows. */
export function rowsOf(
  { runId, from, messages }: Pick<EncodedDelta, 'runId' | 'from' | 'messages'>,
  sealing: Pick<Sealing, 'seal'>,
): MessageRow[] {
  const rows: MessageRow[] = [];
  for (let start = 0; start < messages.length; ) {
    let end = start;
    // Put together, not joined: that would copy the messages once more than the store does.
    let array = '[';
    for (; end < messages.length && array.length < MAX_ROW_CHARS; end++) {
      array += end > start ? `,${messages[end]}` : messages[end];
    }
    const first = from + start;
    const text = sealing.seal(`${array}]`, runId, messagesFrom(first));
    rows.push({ first, count: end - start, text });
    start = end;
  }
  return rows;
}
