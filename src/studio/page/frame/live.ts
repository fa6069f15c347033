import type { JournalEvent, RunLine, StoreView, WatchFrame } from '../../wire.ts';
import { get, offline, type Trouble, troubleOf } from './api.ts';
import { ownHeaders, tokenIsTaken } from './session.ts';
import { news, shared } from './shared.ts';
import { useShared } from './use-shared.ts';
import { takeWords } from './words.ts';

/** Whether the page has the newest state. `rest`: the tab is hidden, and asks for nothing. */
interface Connection {
  readonly state: 'connecting' | 'live' | 'lost' | 'rest';
  /** When it came into this state, wall clock, ms. */
  readonly since: number;
  readonly trouble?: Trouble | undefined;
}

/** The connection to the server. */
export const connection = shared<Connection>({ state: 'connecting', since: Date.now() });
/** What the store can do, and what may be done here; undefined until the server has said so. */
export const store = shared<StoreView | undefined>(undefined);
/** Whether a change can be sent now: this Studio may write, and the server answers. Without it, buttons rest. */
export function useCanWrite(): boolean {
  const { state } = useShared(connection);
  return useShared(store)?.may.write === true && state === 'live';
}
/** Why the store cannot be read, while it cannot. */
export const storeTrouble = shared<{ readonly code: string; readonly message: string } | undefined>(undefined);
/** Lines that have changed; a list takes them into its own rows. `isFirst`: they were there when the stream began, and are no news. */
export const liveChanges = news<{ readonly lines: readonly RunLine[]; readonly isFirst: boolean }>();
/** The id of a run that is gone. */
export const gone = news<string>();

/** A run whose events the tab reads. */
interface Followed {
  readonly runId: string;
  after: string | undefined;
  readonly isWhole: boolean;
  onEvent(event: JournalEvent): void;
}

let followed: Followed | undefined;
let stop = new AbortController();

/**
 * Follows the events of one run over each cut; another one takes its place.
 * @param isWhole from the first event; else from the newest ones
 * @returns ends that
 */
export function followStudio(runId: string, onEvent: (event: JournalEvent) => void, isWhole = false): () => void {
  const own: Followed = { runId, after: undefined, isWhole, onEvent };
  followed = own;
  again();
  return () => {
    if (followed !== own) return;
    followed = undefined;
    again();
  };
}

/** Closes the stream: the loop opens one with what is wanted now. */
function again(): void {
  stop.abort();
}

/** Begins to watch the store. A hidden tab closes its stream. */
export function startLive(): void {
  document.addEventListener('visibilitychange', again);
  readStore();
  void watchForEver();
}

let reading = Promise.resolve();

/** What the store can do, once it is read; undefined if that failed. */
export async function storeRead(): Promise<StoreView | undefined> {
  await reading;
  return store.value;
}

/** Reads what the store can do once more. */
function readStore(): void {
  reading = readStoreOnce();
}

async function readStoreOnce(): Promise<void> {
  const { value, trouble } = await get<StoreView>('store');
  if (value) {
    takeWords(value.words);
    store.set(value);
  } else if (trouble && trouble.code !== 'OFFLINE') storeTrouble.set(trouble);
}

const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 10_000;

async function watchForEver(): Promise<void> {
  for (let failures = 0; ; ) {
    await visible();
    stop = new AbortController();
    const { signal } = stop;
    const trouble = await watchOnce(signal, () => {
      failures = 0;
    });
    if (signal.aborted) continue;
    setState('lost', trouble);
    const pause = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures);
    failures += 1;
    await slept(pause * (0.5 + Math.random() / 2));
  }
}

function setState(state: Connection['state'], trouble?: Trouble): void {
  if (connection.value.state === state && connection.value.trouble?.code === trouble?.code) return;
  connection.set({ state, since: Date.now(), trouble });
}

function slept(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function visible(): Promise<void> {
  while (document.hidden) {
    setState('rest');
    await new Promise((resolve) => document.addEventListener('visibilitychange', resolve, { once: true }));
  }
}

/** Reads one stream to its end. @returns why it ended */
async function watchOnce(signal: AbortSignal, onFrame: () => void): Promise<Trouble | undefined> {
  const query = new URLSearchParams({ runs: '1' });
  if (followed) {
    query.set('run', followed.runId);
    if (followed.after !== undefined) query.set('after', followed.after);
    if (followed.isWhole) query.set('all', '1');
  }
  try {
    const answer = await fetch(`watch?${query}`, { headers: ownHeaders(), signal });
    if (!answer.ok || !answer.body) return troubleOf(answer.status, await answer.json().catch(() => undefined));
    tokenIsTaken();
    const isBack = connection.value.state === 'lost' || connection.value.state === 'rest';
    setState('live');
    if (isBack) readStore();
    let isFirst = true;
    for await (const { id, data } of frames(answer.body)) {
      onFrame();
      const frame = JSON.parse(data) as WatchFrame;
      take(frame, id, isFirst);
      if (frame.type === 'runs') isFirst = false;
    }
    return undefined;
  } catch {
    return offline;
  }
}

function take(frame: WatchFrame, id: string | undefined, isFirst: boolean): void {
  if (frame.type === 'run') {
    if (followed?.runId !== frame.event.runId) return;
    followed.onEvent(frame.event);
    // What was handled, not what arrived: the next stream begins after it.
    if (id !== undefined) followed.after = id;
    return;
  }
  if (frame.type === 'runs') passLines(frame.lines, isFirst);
  else if (frame.type === 'gone') {
    gone.send(frame.runId);
    void count();
  } else storeTrouble.set(frame.isAway ? { code: frame.code ?? '', message: frame.message ?? '' } : undefined);
}

/** The counts beside the filters follow: soon, and at most once in a while. */
const COUNT_MS = [250, 1_000] as const;
let isCounting = false;
let isToCount = false;
/** The page reads the counts once it begins. */
let isNew = true;

function passLines(lines: readonly RunLine[], isFirst: boolean): void {
  liveChanges.send({ lines, isFirst });
  // The events of a run stop at its end: a run that was retried has others, which only another stream has.
  const isOver = followed?.after?.endsWith('-end');
  if (!isFirst && isOver && lines.some(({ runId }) => runId === followed?.runId)) again();
  // The first ones of a later stream may have changed while there was none.
  if (lines.length > 0 && !(isFirst && isNew)) void count();
  isNew = false;
}

async function count(): Promise<void> {
  isToCount = true;
  if (isCounting) return;
  isCounting = true;
  for (const ms of COUNT_MS) {
    await slept(ms);
    if (isToCount) readStore();
    isToCount = false;
  }
  isCounting = false;
}

interface SseFrame {
  readonly id: string | undefined;
  readonly data: string;
}

/** The frames of an event stream; a piece of one at its end is dropped. */
async function* frames(body: ReadableStream<Uint8Array>): AsyncGenerator<SseFrame> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  // Where the search for the next end begins: a long frame comes in many pieces, and is not searched again for each.
  let from = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      let at = 0;
      for (let end = text.indexOf('\n\n', from); end >= 0; end = text.indexOf('\n\n', at)) {
        const frame = frameOf(text.slice(at, end));
        if (frame) yield frame;
        at = end + 2;
      }
      text = text.slice(at);
      from = Math.max(0, text.length - 1);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Undefined for a comment, which only keeps the connection open. */
function frameOf(text: string): SseFrame | undefined {
  const lines = text.split('\n');
  const field = (name: string) =>
    lines
      .filter((line) => line.startsWith(`${name}: `))
      .map((line) => line.slice(name.length + 2))
      .join('\n');
  const data = field('data');
  return data === '' ? undefined : { id: field('id') || undefined, data };
}
