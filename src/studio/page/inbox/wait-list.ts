import { useEffect } from 'preact/hooks';
import type { ListedWait, RecordView } from '../../wire.ts';
import { get, pathOf, type Trouble } from '../frame/api.ts';
import { changes, connection, follow, gone, store } from '../frame/live.ts';
import type { ReadonlySignal } from '../frame/signals.ts';
import { useComputed, useSignal, useSignalEffect } from '../frame/use-signals.ts';
import { seeEvent, seeRecord, sent } from './answers.ts';
import { isOver } from './stages.ts';
import { overText } from './waits.ts';

/** Most waits that the page holds. */
const MAX_WAITS = 300;
/** Most pages of the server that are read: what ends soonest may be on the last. */
const MAX_PAGES = 10;
/** Changes that come within this time are one reading, ms. */
const GATHER_MS = 200;

interface WaitPage {
  readonly items: readonly ListedWait[];
  readonly next?: string;
}

/** The waits of all runs. */
export interface WaitList {
  readonly waits: ReadonlySignal<readonly ListedWait[]>;
  /** The waits as they were read last, also while the list rests under the pointer. */
  readonly newest: ReadonlySignal<readonly ListedWait[]>;
  readonly isLoaded: ReadonlySignal<boolean>;
  /** Whether the store has more waits than were read. */
  readonly isMore: ReadonlySignal<boolean>;
  readonly trouble: ReadonlySignal<Trouble | undefined>;
  /** Waits that came while the pointer was over the list. */
  readonly fresh: ReadonlySignal<number>;
  load(): void;
  showFresh(): void;
  hold(isHeld: boolean): void;
}

/** Reads the waits, and once more after each change of a run. Under the pointer no row moves: new ones wait. */
export function useWaits(): WaitList {
  const newest = useSignal<readonly ListedWait[]>([]);
  const waits = useSignal<readonly ListedWait[]>([]);
  const isHeld = useSignal(false);
  const isLoaded = useSignal(false);
  const isMore = useSignal(false);
  const trouble = useSignal<Trouble | undefined>(undefined);
  const reading = useSignal<AbortController | undefined>(undefined);
  const fresh = useComputed(() => {
    const shown = new Set(waits.value.map(({ id }) => id));
    return newest.value.filter(({ id }) => !shown.has(id)).length;
  });
  const showFresh = () => {
    waits.value = newest.value;
  };
  const load = async () => {
    reading.peek()?.abort();
    const own = new AbortController();
    reading.value = own;
    const read = await readWaits(own.signal);
    if (own.signal.aborted) return;
    trouble.value = read.trouble;
    if (read.trouble) return;
    newest.value = read.items;
    isMore.value = read.isMore;
    isLoaded.value = true;
    if (!isHeld.peek() || waits.peek().length === 0) showFresh();
  };
  useSignalEffect(() => {
    if (connection.value.state === 'lost') return;
    void [changes.value, gone.value];
    const timer = setTimeout(load, isLoaded.peek() ? GATHER_MS : 0);
    return () => clearTimeout(timer);
  });
  useEffect(() => () => reading.peek()?.abort(), []);
  const hold = (next: boolean) => {
    isHeld.value = next;
    if (!next) showFresh();
  };
  return { waits, newest, isLoaded, isMore, trouble, fresh, load: () => void load(), showFresh, hold };
}

async function readWaits(
  signal: AbortSignal,
): Promise<{ readonly items: readonly ListedWait[]; readonly isMore: boolean; readonly trouble?: Trouble }> {
  const all = new Map<string, ListedWait>();
  let next: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const query = next === undefined ? '' : `&after=${encodeURIComponent(next)}`;
    const answer = await get<WaitPage>(`waiting?limit=100${query}`, signal);
    if (answer.trouble) return { items: [], isMore: false, trouble: answer.trouble };
    // The connection was cut in the middle of the answer.
    if (!answer.value) break;
    for (const wait of answer.value.items) all.set(wait.id, wait);
    next = answer.value.next;
    if (next === undefined) break;
  }
  const items = [...all.values()].toSorted((a, b) => (a.dueAt ?? Infinity) - (b.dueAt ?? Infinity));
  return { items: items.slice(0, MAX_WAITS), isMore: next !== undefined || items.length > MAX_WAITS };
}

/** What the record says of the wait that is shown. */
export interface WaitFacts {
  readonly record: ReadonlySignal<RecordView | undefined>;
  /** Why it is not open any more. */
  readonly over: ReadonlySignal<string | undefined>;
}

const FIRST_LOOK_MS = 500;
const MAX_LOOK_MS = 5_000;

/** Follows the run of a wait: its record, and its events while an answer of this tab is on its way. */
export function useWaitFacts({ id, runId }: ListedWait, isListed: boolean): WaitFacts {
  const record = useSignal<RecordView | undefined>(undefined);
  const over = useSignal<string | undefined>(undefined);
  const isOnWay = useComputed(() => {
    const own = sent.value.get(id);
    return own?.isStored === true && !isOver(own);
  });
  const look = async (signal: AbortSignal) => {
    const answer = await get<RecordView>(`${pathOf('runs', runId)}/record`, signal);
    if (signal.aborted) return;
    if (answer.trouble) {
      if (answer.trouble.status === 404)
        over.value = 'The run is not there any more: it was erased, or its record deleted.';
      return;
    }
    record.value = answer.value;
    const isOpen = answer.value.waits.some((wait) => wait.id === id);
    over.value = isOpen ? undefined : overText(answer.value, id);
    seeRecord(id, answer.value);
  };
  useEffect(() => {
    const stop = new AbortController();
    void look(stop.signal);
    return () => stop.abort();
  }, [id, isListed]);
  useSignalEffect(() => {
    if (!isOnWay.value) return;
    const stop = new AbortController();
    void lookOften(look, stop.signal);
    let owner: string | undefined;
    const unfollow = store.peek()?.parts.journal
      ? follow(runId, (event) => {
          if ('owner' in event && event.owner !== undefined) owner = event.owner;
          seeEvent(id, event, owner);
        })
      : undefined;
    return () => {
      stop.abort();
      unfollow?.();
    };
  });
  return { record, over };
}

async function lookOften(look: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
  for (let pause = FIRST_LOOK_MS; !signal.aborted; pause = Math.min(MAX_LOOK_MS, pause * 1.5)) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    if (!signal.aborted && !document.hidden) await look(signal);
  }
}
