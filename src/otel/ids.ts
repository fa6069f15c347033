import { createHash, randomBytes } from 'node:crypto';

/*
 * The spans of a run have ids that each process computes alike: so a process names the spans of one that died, and the trace of a
 * run is known before its first span begins.
 */

/** What a span belongs to: the trace of its run. */
export interface TracePlace {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The span above the first attempt of the run, 16 hexadecimal digits; undefined: the first attempt is the root. */
  readonly parentId: string | undefined;
  readonly isSampled: boolean;
  /** The span of the code that started the run; undefined: it had none, or it is the one above the run. */
  readonly caller?: SpanPlace | undefined;
}

/** Where a span is. */
export interface SpanPlace {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** Returns the id of the trace of a run that no other run began. */
export function traceIdOf(runId: string, birth: string): string {
  return hash(['trace', runId, birth], 32);
}

/** Returns the id of the span of one attempt of a run. */
export function attemptSpanId(traceId: string, runId: string, attempt: number): string {
  return hash([traceId, runId, String(attempt)], 16);
}

/** Which start of a call, by which attempt of its run. */
interface CallStart {
  readonly runId: string;
  readonly attempt: number;
  readonly callId: string;
  readonly callAttempt: number;
}

/** Returns the id of the span of one start of a tool call. */
export function callSpanId(traceId: string, { runId, attempt, callId, callAttempt }: CallStart): string {
  return hash([traceId, runId, String(attempt), callId, String(callAttempt)], 16);
}

/** Lengths stand before the parts: no two lists make the same text. */
function hash(parts: readonly string[], digits: number): string {
  const text = parts.map((part) => `${part.length}:${part}`).join('');
  // A part of a longer text would keep all of it, in each span.
  const id = createHash('sha256')
    .update(text)
    .digest()
    .toString('hex', 0, digits / 2);
  // An id of zeros is none.
  return isZero(id) ? id.replace(/0$/, '1') : id;
}

const isZero = (id: string): boolean => id === '0'.repeat(id.length);

const NONE = '0'.repeat(16);

/** Returns a place as a record keeps it: a `traceparent`, whose span is the one above the run, and after a space that of the caller. */
export function placeText({ traceId, parentId = NONE, isSampled, caller }: TracePlace): string {
  const own = traceparent({ traceId, spanId: parentId, isSampled });
  return caller ? `${own} ${traceparent(caller)}` : own;
}

function traceparent({ traceId, spanId, isSampled }: SpanPlace): string {
  return ['00', traceId, spanId, isSampled ? '01' : '00'].join('-');
}

/** Reads the place that a record keeps; undefined for a text that is none. */
export function placeInTrace(text = ''): TracePlace | undefined {
  const [own, caller] = [spanIn(text.slice(0, 55)), spanIn(text.slice(56))];
  if (!own || (text.length > 55 && (text[55] !== ' ' || !caller || isZero(caller.spanId)))) return undefined;
  const { traceId, spanId, isSampled } = own;
  return { traceId, parentId: isZero(spanId) ? undefined : spanId, isSampled, ...(caller ? { caller } : {}) };
}

function spanIn(text: string): SpanPlace | undefined {
  if (text.length !== 55) return undefined;
  const [version, traceId = '', spanId = '', flags = ''] = text.split('-');
  if (version !== '00' || !isHex(traceId, 32) || !isHex(spanId, 16) || !isHex(flags, 2) || isZero(traceId))
    return undefined;
  return { traceId, spanId, isSampled: flags === '01' };
}

const digits = new Set('0123456789abcdef');
const isHex = (text: string, length: number): boolean =>
  text.length === length && [...text].every((char) => digits.has(char));

/** The ids that the next span gets. */
interface Wish {
  readonly traceId: string;
  readonly spanId: string;
}

/** Two bundles of `pawl/otel` in one process agree by this name. */
const key = Symbol.for('pawl.otel');
type Wishes = { [key]?: Wish | undefined };
const wishes = globalThis as unknown as Wishes;

/** Calls a function whose next span gets these ids, where the provider has `runIds()`. */
export function withIds<T>(wish: Wish, call: () => T): T {
  wishes[key] = wish;
  try {
    return call();
  } finally {
    wishes[key] = undefined;
  }
}

/** Makes ids of spans and traces, as the SDK of OpenTelemetry asks for them. */
export interface IdGenerator {
  generateTraceId(): string;
  generateSpanId(): string;
}

const random: IdGenerator = {
  generateTraceId: () => randomBytes(16).toString('hex'),
  generateSpanId: () => randomBytes(8).toString('hex'),
};

/**
 * Makes the id generator that gives the spans of Pawl the ids that each process knows, and random ids to all others. Without it the
 * spans of a process that died may lack their parent.
 * @param fallback for spans of others; default: random ids
 * @example new NodeSDK({ idGenerator: runIds() })
 */
export function runIds(fallback: IdGenerator = random): IdGenerator {
  return {
    generateTraceId: () => wishes[key]?.traceId ?? fallback.generateTraceId(),
    generateSpanId: () => wishes[key]?.spanId ?? fallback.generateSpanId(),
  };
}
