// A record that is larger than the host's column allows: its longest texts are shortened, and where that is not enough the run
// is parked with what was stored of it last. Neither fails the run.
import { PawlError, type RunCheckpoint } from 'pawl';
import { decodeCheckpoint, encodeCheckpoint } from 'pawl/stores/kit';

export interface SizeCap {
  readonly maxBytes: number;
}

/** How many characters of each text stay: the first that makes the record fit is taken. */
const lengths = [10_000, 1_000, 100] as const;

/**
 * The text to store. The run at work keeps its whole transcript: only a process that takes it over later works with the
 * shortened one.
 * @returns undefined when the record is too large, however much is shortened
 */
export function fittingText(record: RunCheckpoint, { maxBytes }: SizeCap): string | undefined {
  const whole = encodeCheckpoint(record);
  if (Buffer.byteLength(whole) <= maxBytes) return whole;
  for (const length of lengths) {
    const text = encodeCheckpoint(shortened(record, length));
    if (Buffer.byteLength(text) <= maxBytes) return text;
  }
  return undefined;
}

/** Prompts, calls and their inputs stay whole: the results of tools and what the model said between them do not. */
function shortened(record: RunCheckpoint, length: number): RunCheckpoint {
  const messages = record.messages.map((message, i) => (i === 0 ? message : withShortTexts(message, length)));
  const { openStep } = record;
  if (!openStep) return { ...record, messages };
  const calls = openStep.calls.map((call) => withShortTexts(call, length, ['input']));
  return { ...record, messages, openStep: { ...openStep, calls } };
}

const kept = ['input', 'toolCallId', 'toolName', 'role', 'type', 'providerOptions'];

/** @param alsoKept fields that stay as they are, at any length */
function withShortTexts<T>(value: T, length: number, alsoKept: readonly string[] = []): T {
  if (typeof value === 'string') return cut(value, length) as T;
  if (Array.isArray(value)) return value.map((each) => withShortTexts(each, length)) as T;
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, each]) =>
    kept.includes(key) || alsoKept.includes(key) ? [key, each] : [key, withShortTexts(each, length)],
  );
  return Object.fromEntries(entries) as T;
}

function cut(text: string, length: number): string {
  if (text.length <= length + 50) return text;
  return `${text.slice(0, length).toWellFormed()} … (${text.length - length} characters more were not stored)`;
}

/**
 * What the row of a run holds that cannot be stored any more: its last record, set aside for a person. The error says to Pawl
 * that this process has lost the run: it stops, announces no end, and touches the row no more.
 * @param stored the text of its last record
 */
export function parkedText(record: RunCheckpoint, stored: string | undefined): { parked?: string; error: Error } {
  const { runId } = record.meta;
  const reason = `the record of ${runId} is larger than its column allows, and cannot be shortened further`;
  if (stored === undefined) return { error: new PawlError('RECORD_TOO_LARGE', reason) };
  const last = decodeCheckpoint(stored, runId);
  const parked = encodeCheckpoint({ ...last, parked: { code: 'RECORD_TOO_LARGE', reason } });
  return { parked, error: new PawlError('LEASE_LOST', `${reason}; it was parked`) };
}
