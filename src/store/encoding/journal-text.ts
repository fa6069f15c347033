import type { RunEvent } from '../../run/events/body.ts';
import type { ContentPlace, JournalEntry } from '../../run/journal/entry.ts';
import { finishReasons } from '../../run/reply.ts';
import { CheckpointCorruptError } from '../../values/errors.ts';
import { isAmount, isCount, isObject } from '../../values/json.ts';

/*
 * Each step adds a row to its journal: three events, nearly always the same ones. As plain JSON they would be larger than a fifth of
 * the step. So a row names the numbers that its entries share once, and the events of a step are lists without names.
 */

/** What a row stores: [place back, seq forward, ms forward] of each entry are small numbers. */
interface Row {
  /** Number and time of the first event. */
  readonly q: number;
  readonly t: number;
  /** Step, message and phase of the short entries. */
  readonly s?: number | undefined;
  readonly m?: number | undefined;
  readonly f?: number | undefined;
  readonly e: readonly (Short | Long)[];
}

type Short = readonly [kind: 'S' | 'D' | 'E', back: number, seq: number, ms: number, ...rest: unknown[]];

/** Any other entry: its event without run, number and time. */
interface Long {
  readonly b: number;
  readonly q: number;
  readonly t: number;
  readonly a?: number | undefined;
  readonly c?: ContentPlace | undefined;
  readonly n?: JournalEntry['end'];
  readonly v: object;
}

const effects = ['read', 'idempotent', 'once'] as const;
const nothing = { type: 'text', value: '' } as const;

/** Returns the JSON value of a row of entries. @param place of the last one */
export function shortRow(entries: readonly JournalEntry[], place: number): object {
  const [first] = entries;
  const shared = entries.find(({ event, content }) => content && 'step' in event);
  const row = {
    q: first?.event.seq ?? 0,
    t: first?.event.at ?? 0,
    ...(shared ? { s: (shared.event as { step: number }).step, m: shared.content?.message } : {}),
    ...(shared?.content?.phase === undefined ? {} : { f: shared.content.phase }),
  };
  return { ...row, e: entries.map((entry) => shortEntry(entry, row) ?? longEntry(entry, row)).map(at(place, entries)) };
}

/** Adds to an entry how far its place is before that of the row. */
const at = (place: number, entries: readonly JournalEntry[]) => (entry: Short | Long, i: number) => {
  const back = place - (entries[i]?.place ?? 0);
  if (!Array.isArray(entry)) return { ...entry, b: back };
  const [kind, , ...rest] = entry as Short;
  return [kind, back, ...rest];
};

function shortEntry({ event, content, attempt, end }: JournalEntry, row: Omit<Row, 'e'>): Short | undefined {
  if (!content || content.message !== row.m || content.phase !== row.f) return undefined;
  if (!('step' in event) || event.step !== row.s) return undefined;
  const when = [0, event.seq - row.q, event.at - row.t] as const;
  switch (event.type) {
    case 'step.snapshot':
      return ['S', ...when, attempt, ...(end ? [end.block, end.offset] : [])];
    case 'tool.done': {
      if (event.isLate || event.owner !== undefined || attempt !== undefined) return undefined;
      return ['D', ...when, event.callId, effects.indexOf(event.effect), event.ms, event.revision ?? -1];
    }
    case 'step.done': {
      const { inputTokens, outputTokens, reasoningTokens, cacheReadTokens, cacheWriteTokens } = event.usage;
      // A cost is rare: its event is written whole.
      if (event.spend) return undefined;
      const reason = event.finishReason === undefined ? [] : [finishReasons.indexOf(event.finishReason)];
      return ['E', ...when, inputTokens, outputTokens, reasoningTokens, cacheReadTokens, cacheWriteTokens, ...reason];
    }
    default:
      return undefined;
  }
}

function longEntry({ event, attempt, content, end }: JournalEntry, { q, t }: Pick<Row, 'q' | 't'>): Long {
  const { runId: _, seq, at: time, ...v } = event;
  return {
    ...{ b: 0, q: seq - q, t: time - t, v },
    ...(attempt === undefined ? {} : { a: attempt }),
    ...(content ? { c: content } : {}),
    ...(end ? { n: end } : {}),
  };
}

/** Returns the entries of a row. @throws {CHECKPOINT_CORRUPT} for a value that is not a row */
export function entriesIn(value: unknown, { runId, place, isKept }: { runId: string; place: number; isKept: boolean }) {
  if (!isObject(value) || !isCount(value.q) || !isAmount(value.t) || !Array.isArray(value.e)) throw damaged();
  const row = value as unknown as Row;
  const keep = isKept ? ('kept' as const) : ('passing' as const);
  return row.e.map((each): JournalEntry => {
    const entry = Array.isArray(each) ? fromShort(each as never, row) : fromLong(each as Long, row);
    const { back, event, ...rest } = entry;
    const isWhole = isCount(place - back) && isCount(event.seq) && typeof event.type === 'string';
    if (!isWhole) throw damaged();
    return { place: place - back, keep, event: { ...event, runId } as RunEvent, ...rest };
  });
}

type Read = { readonly back: number; readonly event: Omit<RunEvent, 'runId'> } & Pick<
  JournalEntry,
  'attempt' | 'content' | 'end'
>;

function fromShort([kind, back, seq, ms, ...rest]: Short, row: Row): Read {
  const content: ContentPlace = { ...(row.f === undefined ? {} : { phase: row.f }), message: row.m ?? 0 };
  const when = { seq: row.q + seq, at: row.t + ms };
  const step = row.s ?? 0;
  if (!isCount(content.message)) throw damaged();
  if (kind === 'S') {
    const [attempt, block, offset] = rest as number[];
    const end = block === undefined || offset === undefined ? {} : { end: { block, offset } };
    const event = { type: 'step.snapshot', step, content: [], ...when } as const;
    return { back, event, content, ...(typeof attempt === 'number' ? { attempt } : {}), ...end };
  }
  if (kind === 'D') {
    const [callId, effect, took, revision] = rest as [string, number, number, number];
    const known = revision >= 0 ? { revision } : {};
    const done = { type: 'tool.done', step, callId, name: '', effect: effects[effect] ?? 'once', output: nothing };
    return { back, event: { ...done, ms: took, ...known, ...when } as unknown as Read['event'], content };
  }
  const [inputTokens = 0, outputTokens = 0, reasoningTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0] =
    rest as number[];
  const usage = { inputTokens, outputTokens, reasoningTokens, cacheReadTokens, cacheWriteTokens };
  const reason = finishReasons[rest[5] as number];
  const ended = reason === undefined ? {} : { finishReason: reason };
  return {
    back,
    event: { type: 'step.done', step, usage, tools: [], ...ended, ...when } as unknown as Read['event'],
    content,
  };
}

function fromLong({ b, q, t, a, c, n, v }: Long, row: Row): Read {
  if (!isObject(v) || (c !== undefined && !isCount(c.message))) throw damaged();
  return {
    back: b,
    event: { ...(v as unknown as Omit<RunEvent, 'runId'>), seq: row.q + q, at: row.t + t },
    ...(a === undefined ? {} : { attempt: a }),
    ...(c ? { content: c } : {}),
    ...(n ? { end: n } : {}),
  };
}

const damaged = () => new CheckpointCorruptError('this record is damaged: its journal is not what it should be');
