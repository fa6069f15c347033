import type { Clock, Executor, RunEvent } from '../../index.ts';
import { JournalGoneError } from '../../values/errors.ts';
import type { Reading } from '../reading.ts';
import { frameOf } from '../sse.ts';
import { RunChunks } from './chunks.ts';
import { AskedQuestions, frameId } from './frame-id.ts';
import { personWaits } from './held-run.ts';
import { type PagePosition, viewFrom } from './page-position.ts';
import { eventsOrRecord } from './tree-events.ts';
import type { StepChunk } from './ui-chunk.ts';

/** The run behind a message, and what the page has of it. */
export interface ChatSource {
  readonly executor: Executor;
  readonly clock: Clock;
  readonly reading: Reading;
  /** Who reads. */
  readonly callerId: string;
  readonly runId: string;
  /** Absent: nothing. */
  readonly position?: PagePosition;
  /** The waits that this request has just answered: the run may not have read that yet. */
  readonly answered?: ReadonlySet<string>;
  /** The waits whose answers in this request were refused, with the codes. */
  readonly refused?: ReadonlyMap<string, string>;
}

/** The headers by which `useChat` recognises the stream. */
export const chatHeaders = { 'x-vercel-ai-ui-message-stream': 'v1' } as const;

/**
 * Makes the frames of a message: the chunks of its run, and `[DONE]`. They end with the run, or when only a person can continue
 * it.
 * @throws {Error} if the events end before that: a reader must not take it for the end
 */
export async function* chatFrames(source: ChatSource, signal: AbortSignal): AsyncGenerator<string> {
  const { executor, runId, position } = source;
  const chunks = new RunChunks(runId);
  const view = viewFrom(position);
  const asked = new AskedQuestions();
  const framesOf = function* (placed: readonly StepChunk[], isOver: boolean): Generator<string> {
    for (const each of placed) {
      asked.see(each);
      for (const { step, chunk } of view([each])) {
        const isEnd = isOver && (chunk.type === 'finish' || chunk.type === 'error');
        const place = isEnd ? ({ step: 'end', asked: [] } as const) : { step, asked: asked.ids };
        yield frameOf({ id: frameId({ runId, ...place }), data: JSON.stringify(chunk) });
      }
    }
  };
  const pending = new Set(source.answered);
  let isFirst = true;
  for await (const { event, isBelow } of eventsOrRecord({ ...source, signal }, runId, chunks)) {
    // Only the outcome is left: the page would lose the message that it has.
    if (isFirst && event.type === 'run.ended' && event.status === 'ok')
      throw new JournalGoneError(`the events of run ${runId} are not kept any more`);
    isFirst = false;
    yield* framesOf(chunks.map(event, isBelow), chunks.isOver);
    const refusal = refusalOf(event, source.refused);
    if (refusal) yield* framesOf(chunks.map(refusal, isBelow), false);
    if (isAnswer(event)) pending.delete(event.waitId);
    if (!chunks.isOver && mayRest(event)) {
      const reason = await restOf(executor, { runId, chunks, pending });
      if (reason) yield* framesOf(chunks.pause(reason), false);
    }
    if (chunks.isOver) return yield done;
  }
  throw new Error(`the events of run ${runId} ended before the run did`);
}

/** Makes the frames of a message that gets nothing: the page keeps what it has, and does not send by itself. */
export async function* nothingNew(): AsyncGenerator<string> {
  yield frameOf({ data: JSON.stringify({ type: 'finish', finishReason: 'interrupted' }) });
  yield done;
}

const done = frameOf({ data: '[DONE]' });

/** An answer that was refused where it was sent is in no event of the run. */
function refusalOf(event: RunEvent, refused: ChatSource['refused']): RunEvent | undefined {
  const code = event.type === 'wait.opened' ? refused?.get(event.wait.id) : undefined;
  if (code === undefined || event.type !== 'wait.opened') return undefined;
  const { runId, seq, at } = event;
  return { type: 'wait.refused', waitId: event.wait.id, code, reason: '', runId, seq, at };
}

type Settling = Extract<RunEvent, { waitId: string }>;

function isAnswer(event: RunEvent): event is Settling {
  return event.type.startsWith('wait.') && 'waitId' in event;
}

function mayRest(event: RunEvent): boolean {
  return ['run.waiting', 'run.parked', 'wait.opened'].includes(event.type) || isAnswer(event);
}

interface Moment {
  readonly runId: string;
  readonly chunks: RunChunks;
  readonly pending: ReadonlySet<string>;
}

/**
 * Returns why the stream of a run ends before its run: only a person can continue it. The events may be old, so the run itself
 * is asked.
 */
async function restOf(
  executor: Executor,
  { runId, chunks, pending }: Moment,
): Promise<'tool-calls' | 'parked' | undefined> {
  if (chunks.parking) return (await executor.find(runId))?.status === 'parked' ? 'parked' : undefined;
  if (!chunks.needsPerson) return undefined;
  const waits = chunks.personWaits;
  if (waits.some((id) => pending.has(id))) return undefined;
  const open = await personWaits(executor, runId);
  return waits.every((id) => open.has(id)) ? 'tool-calls' : undefined;
}
