import type { Clock, Executor, RunEvent, Wait } from '../../index.ts';
import { withDeadline } from '../../values/deadline.ts';
import type { Reading } from '../reading.ts';
import type { RunChunks } from './chunks.ts';

/** An event of a run; with `isBelow` one of a run below it, about its state or its waits, which name the call of this run. */
export interface TreeEvent {
  readonly event: RunEvent;
  readonly isBelow: boolean;
}

/** Where the events of runs come from. */
export interface TreeSource {
  readonly executor: Executor;
  readonly clock: Clock;
  readonly reading: Reading;
  /** Who reads. */
  readonly callerId: string;
  readonly signal: AbortSignal;
}

/** The events of an ended child are all there: reading them takes no longer than this, ms. */
const CHILD_END_MS = 2_000;

type ChildWait = Extract<Wait, { kind: 'child' }>;

/** Reads the events of a run, and those about waits of the runs below it while the run waits for them. */
export async function* treeEvents(source: TreeSource, runId: string): AsyncGenerator<TreeEvent> {
  const children = new ChildWaits(source);
  const events = source.reading.events(source.executor, runId, source);
  try {
    let next = events.next();
    for (;;) {
      const got = await Promise.race([next, children.news()]);
      yield* children.taken();
      if (!got) continue;
      if (got.done) return;
      const event = got.value;
      if (event.type === 'tool.done' || event.type === 'wait.withdrawn') yield* await children.listEnded(event.callId);
      yield { event, isBelow: false };
      if (event.type === 'wait.opened' && event.wait.kind === 'child') children.follow(event.wait);
      next = events.next();
    }
  } finally {
    children.stop();
    await events.return?.(undefined);
  }
}

/** The waits of runs below a run. */
class ChildWaits {
  readonly #source: TreeSource;
  readonly #stop = new AbortController();
  /** The runs that are read, by the call that began them. */
  readonly #reading = new Map<string, Promise<void>>();
  #events: TreeEvent[] = [];
  #news = Promise.withResolvers<undefined>();

  constructor(source: TreeSource) {
    const { signal } = source;
    this.#source = { ...source, signal: AbortSignal.any([signal, this.#stop.signal]) };
  }

  /** Resolves when there is an event. */
  news(): Promise<undefined> {
    return this.#news.promise;
  }

  taken(): readonly TreeEvent[] {
    this.#news = Promise.withResolvers();
    return this.#events.splice(0);
  }

  /** Reads a child of a call, as long as the call waits for it. */
  follow(wait: ChildWait): void {
    this.#reading.set(wait.callId ?? '', this.#read(wait, wait.childRunId));
  }

  /** What is left of the child of a call that is over. */
  async listEnded(callId = ''): Promise<readonly TreeEvent[]> {
    const reading = this.#reading.get(callId);
    if (!reading) return [];
    this.#reading.delete(callId);
    const { clock } = this.#source;
    await withDeadline(reading, { ms: CHILD_END_MS, clock, what: 'reading a child' }).catch(() => {});
    return this.taken();
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Never rejects: without the events of a child, the page does not show its waits. */
  async #read(of: ChildWait, childRunId: string): Promise<void> {
    const { executor, reading, callerId, signal } = this.#source;
    const deeper: Promise<void>[] = [];
    try {
      for await (const event of reading.each(executor, childRunId, { callerId, signal })) {
        if (event.type === 'wait.opened' && event.wait.kind === 'child')
          deeper.push(this.#read(of, event.wait.childRunId));
        else this.#add(event, of);
      }
    } catch {
      return;
    }
    await Promise.all(deeper);
  }

  #add(event: RunEvent, { step, callId = '' }: ChildWait): void {
    if (!event.type.startsWith('wait.') && !event.type.startsWith('run.')) return;
    const mapped = 'wait' in event ? { ...event, wait: { ...event.wait, step, callId } } : event;
    this.#events.push({ event: mapped, isBelow: true });
    this.#news.resolve(undefined);
  }
}

/** How long a run is silent before its record is looked at, ms; each look doubles it. */
const FIRST_LOOK_MS = 1_000;
const LAST_LOOK_MS = 30_000;

/**
 * Reads the events of a run and of the runs below it, and adds waits of the record that no event announced: a process may die
 * between a save and the events that report it, and then no process has anything to do until a person acts.
 */
export async function* eventsOrRecord(source: TreeSource, runId: string, chunks: RunChunks): AsyncGenerator<TreeEvent> {
  const { clock } = source;
  const events = treeEvents(source, runId);
  let lookMs = FIRST_LOOK_MS;
  try {
    let next = events.next();
    for (;;) {
      const silence = Promise.withResolvers<undefined>();
      const timer = clock.setTimeout(() => silence.resolve(undefined), lookMs);
      const got = await Promise.race([next, silence.promise]).finally(() => clock.clearTimeout(timer));
      if (got?.done) return;
      if (got) {
        lookMs = FIRST_LOOK_MS;
        yield got.value;
        next = events.next();
      } else {
        lookMs = Math.min(LAST_LOOK_MS, lookMs * 2);
        for (const event of await findLostEvents(source, runId, chunks)) yield { event, isBelow: false };
      }
    }
  } finally {
    // A read that waits ends with the signal of the stream.
    void events.return(undefined).catch(() => {});
  }
}

/** What the record of a run says and its events did not. */
async function findLostEvents(
  { executor, clock }: TreeSource,
  runId: string,
  chunks: RunChunks,
): Promise<readonly RunEvent[]> {
  // A run that is live beside its waits publishes what it does.
  const line = await executor.find(runId, { owner: true });
  if (!line || line.status === 'ended' || line.status === 'queued') return [];
  const facts = { runId, seq: 0, at: clock.now() };
  const lost: RunEvent[] = [];
  for (const { input, ...wait } of line.waits ?? []) {
    if (chunks.knows(wait.id)) continue;
    lost.push({ type: 'wait.opened', wait, ...(input === undefined ? {} : { input }), ...facts });
  }
  if (line.status === 'waiting' && !chunks.isWaiting)
    lost.push({ type: 'run.waiting', waits: line.waits?.length ?? 0, ...facts });
  if (line.status === 'parked' && !chunks.parking)
    lost.push({ type: 'run.parked', code: line.code ?? '', reason: '', ...facts });
  return lost;
}
