import { useEffect, useRef, useState } from 'preact/hooks';
import type { RecordView, WaitLine } from '../../wire.ts';
import { get, pathOfApi, type Trouble } from '../frame/api.ts';
import { connection, followStudio, gone, liveChanges, store } from '../frame/live.ts';
import { useNews, useShared } from '../frame/use-shared.ts';
import { words } from '../frame/words.ts';
import { seeEvent, seeRecord, sent } from './answers.ts';
import { isStageOver } from './stages.ts';
import { bySoonest, overText } from './waits.ts';

/** Most waits that the page holds. */
const MAX_WAITS = 300;
/** Most pages of the server that are read: what ends soonest may be on the last. */
const MAX_PAGES = 10;
/** Changes that come within this time are one reading, ms. */
const GATHER_MS = 200;

interface WaitPage {
  readonly items: readonly WaitLine[];
  readonly next?: string;
}

interface Waits {
  readonly waits: readonly WaitLine[];
  /** The waits as they were read last, also while the list rests under the pointer. */
  readonly newest: readonly WaitLine[];
  readonly isLoaded: boolean;
  /** Whether the store has more waits than were read. */
  readonly isMore: boolean;
  readonly trouble?: Trouble | undefined;
}

/** The waits of all runs. */
export interface WaitList extends Waits {
  /** Waits that came while the pointer was over the list. */
  readonly fresh: number;
  load(): void;
  showFresh(): void;
  hold(isHeld: boolean): void;
}

/** Reads the waits, and once more after each change of a run. Under the pointer no row moves: new ones wait. */
export function useWaits(): WaitList {
  const [list, setList] = useState<Waits>({ waits: [], newest: [], isLoaded: false, isMore: false });
  const isHeld = useRef(false);
  const reading = useRef(new AbortController());
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const { state } = useShared(connection);
  const load = async () => {
    reading.current.abort();
    reading.current = new AbortController();
    const { signal } = reading.current;
    const { items: newest, isMore, trouble } = await readWaits(signal);
    if (signal.aborted) return;
    setList((before) => {
      if (trouble) return { ...before, trouble };
      const isResting = isHeld.current && before.waits.length > 0;
      return { waits: isResting ? before.waits : newest, newest, isMore, isLoaded: true };
    });
  };
  const loadSoon = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(load, list.isLoaded ? GATHER_MS : 0);
  };
  useNews(liveChanges, loadSoon);
  useNews(gone, loadSoon);
  useEffect(() => {
    if (state !== 'lost') loadSoon();
    return () => clearTimeout(timer.current);
  }, [state]);
  useEffect(() => () => reading.current.abort(), []);
  const showFresh = () => setList((before) => ({ ...before, waits: before.newest }));
  const hold = (next: boolean) => {
    isHeld.current = next;
    if (!next) showFresh();
  };
  const shown = new Set(list.waits.map(({ id }) => id));
  const fresh = list.newest.filter(({ id }) => !shown.has(id)).length;
  return { ...list, fresh, load: () => void load(), showFresh, hold };
}

async function readWaits(
  signal: AbortSignal,
): Promise<{ readonly items: readonly WaitLine[]; readonly isMore: boolean; readonly trouble?: Trouble }> {
  const all = new Map<string, WaitLine>();
  let next: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const query = next === undefined ? '' : `&after=${next}`;
    const answer = await get<WaitPage>(`waiting?limit=100${query}`, signal);
    if (answer.trouble) return { items: [], isMore: false, trouble: answer.trouble };
    // The connection was cut in the middle of the answer.
    if (!answer.value) break;
    for (const wait of answer.value.items) all.set(wait.id, wait);
    next = answer.value.next;
    if (next === undefined) break;
  }
  const items = [...all.values()].toSorted(bySoonest);
  return { items: items.slice(0, MAX_WAITS), isMore: next !== undefined || items.length > MAX_WAITS };
}

/** What the record says of the wait that is shown. */
interface WaitFacts {
  readonly record: RecordView | undefined;
  /** Why it is not open any more. */
  readonly over: string | undefined;
}

const FIRST_LOOK_MS = 500;
const MAX_LOOK_MS = 5_000;

/** Follows the run of a wait: its record, and its events while an answer of this tab is on its way. */
export function useWaitFacts(wait: WaitLine, isListed: boolean): WaitFacts {
  const { id, runId } = wait;
  const [record, setRecord] = useState<RecordView>();
  const [over, setOver] = useState<string>();
  const own = useShared(sent).get(id);
  const isOnWay = own?.isStored === true && !isStageOver(own);
  const look = async (signal: AbortSignal) => {
    const answer = await get<RecordView>(`${pathOfApi('runs', runId)}/record`, signal);
    if (signal.aborted) return;
    if (answer.trouble) {
      if (answer.trouble.status === 404) setOver(words.stages?.erased);
      return;
    }
    setRecord(answer.value);
    const isOpen = answer.value.waits.some((wait) => wait.id === id);
    setOver(isOpen ? undefined : overText(answer.value, id));
    seeRecord(wait, answer.value);
  };
  useEffect(() => {
    const stop = new AbortController();
    void look(stop.signal);
    return () => stop.abort();
  }, [id, isListed]);
  useEffect(() => {
    if (!isOnWay) return;
    const stop = new AbortController();
    void lookOften(look, stop.signal);
    let owner: string | undefined;
    const unfollow = store.value?.parts.journal
      ? followStudio(runId, (event) => {
          if ('owner' in event && event.owner !== undefined) owner = event.owner;
          seeEvent(id, event, owner);
        })
      : undefined;
    return () => {
      stop.abort();
      unfollow?.();
    };
  }, [isOnWay]);
  return { record, over };
}

async function lookOften(look: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
  for (let pause = FIRST_LOOK_MS; !signal.aborted; pause = Math.min(MAX_LOOK_MS, pause * 1.5)) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    if (!signal.aborted && !document.hidden) await look(signal);
  }
}
