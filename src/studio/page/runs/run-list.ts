import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { RecordView, RunLine, RunState } from '../../wire.ts';
import { get, pathOfApi, type Trouble } from '../frame/api.ts';
import { gone, liveChanges } from '../frame/live.ts';
import { place } from '../frame/route.ts';
import { useNews, useShared } from '../frame/use-shared.ts';
import {
  bounded,
  type Filter,
  fits,
  held,
  labelIn,
  MAX_LINES,
  merged,
  type RunRow,
  rowsOfRuns,
  unfolded,
} from './run-rows.ts';

interface Page {
  readonly items: readonly RunLine[];
  readonly next?: string;
}

interface Listed {
  readonly lines: ReadonlyMap<string, RunLine>;
  /** New runs that wait for a click. */
  readonly fresh: readonly RunLine[];
  readonly next?: string | undefined;
  /** What the lines were asked with: `next` is of no use with another one. */
  readonly asked?: Filter;
  readonly trouble?: Trouble | undefined;
  readonly isLoaded: boolean;
  /** Counts what was added because the reader asked for it. */
  readonly added: number;
}

const nothing: Listed = { lines: new Map(), fresh: [], isLoaded: false, added: 0 };

/** What the list of runs shows, and what changes it. */
interface RunList extends Listed {
  readonly filter: Filter;
  load(): void;
  more(): void;
  showFresh(): void;
}

/** The lines of the list: the first pages from the server, then what changes. New runs wait for a click. */
export function useRunList(): RunList {
  const [list, setList] = useState(nothing);
  const turn = useRef(0);
  const { query } = useShared(place);
  const filter = useMemo<Filter>(
    () => ({
      states: query.getAll('state') as RunState[],
      text: query.get('q') ?? '',
      since: timeOf(query.get('since'), '00:00'),
      until: timeOf(query.get('until'), '24:00'),
    }),
    [query],
  );
  const page = async (after?: string) => {
    turn.current += 1;
    const own = turn.current;
    let place = after;
    // The server reads so many runs for a page, and no more: one without a line that fits says where to look further.
    for (let isEmpty = true; isEmpty; ) {
      const { value, trouble } = await get<Page>(`runs?${queryOf(filter, place)}`);
      if (own !== turn.current) return;
      isEmpty = value?.items.length === 0 && value.next !== undefined;
      const [isFirst, isLoaded] = [place === undefined, !isEmpty];
      setList((before) => {
        if (!value) return { ...before, isLoaded, trouble };
        const kept = isFirst ? { ...nothing, added: before.added } : before;
        return { ...withLines(kept, value.items), isLoaded, trouble, next: value.next, asked: filter };
      });
      place = value?.next;
    }
  };
  // The first page is asked for before anything is drawn. Each filter is asked of the server: it knows runs that this tab has not seen.
  useLayoutEffect(() => {
    if (turn.current === 0) return void page();
    const timer = setTimeout(() => void page(), 150);
    return () => clearTimeout(timer);
  }, [filter]);
  useNews(liveChanges, ({ lines, isFirst }) => setList((before) => withChanges(before, { lines, isFirst, filter })));
  useNews(gone, (gone) =>
    setList((before) => ({ ...before, lines: new Map([...before.lines].filter(([runId]) => runId !== gone)) })),
  );
  return {
    ...list,
    filter,
    load: () => void page(),
    more: () => {
      const isMore = list.next !== undefined && list.asked === filter;
      if (isMore && list.lines.size < MAX_LINES) void page(list.next);
    },
    showFresh: () => setList((before) => ({ ...withLines(before, before.fresh), fresh: [] })),
  };
}

/** The list with lines that the reader asked for, or that were there before. */
function withLines(list: Listed, found: readonly RunLine[]): Listed {
  const lines = bounded(new Map([...list.lines, ...found.map((line) => [line.runId, line] as const)]));
  return { ...list, lines, added: list.added + 1 };
}

interface Changed {
  readonly lines: readonly RunLine[];
  readonly isFirst: boolean;
  readonly filter: Filter;
}

/** The list after a change of runs: its own lines are the newest, and new ones wait. */
function withChanges(list: Listed, { lines: changed, isFirst, filter }: Changed): Listed {
  const { lines, fresh } = merged(list.lines, changed);
  const found = fresh.filter((line) => fits(line, filter));
  // An empty list has nothing that could move.
  if (lines.size === 0 || isFirst) return withLines({ ...list, lines }, found);
  const ids = new Set(found.map(({ runId }) => runId));
  const waiting = [...list.fresh.filter(({ runId }) => !ids.has(runId)), ...found].slice(-MAX_LINES);
  return { ...list, lines, fresh: waiting };
}

/** A day in the reader's own time; undefined = none. */
function timeOf(day: string | null, clock: string): number | undefined {
  return Date.parse(`${day}T${clock}`) || undefined;
}

function queryOf({ states, text, since, until }: Filter, after: string | undefined): URLSearchParams {
  const query = new URLSearchParams({ limit: '100' });
  for (const state of states) query.append('state', state);
  const { label, rest } = labelIn(text);
  if (label) query.append('label', label.join('='));
  if (rest !== '') query.set('q', rest);
  for (const [name, value] of Object.entries({ since, until, after }))
    if (value !== undefined) query.set(name, `${value}`);
  return query;
}

/** Returns whether a filter hides any run. */
export function isFiltered({ states, text }: Filter): boolean {
  return states.length > 0 || text !== '';
}

interface ShownRows {
  readonly rows: readonly RunRow[];
  /** The runs below those that are unfolded. */
  readonly children: ReadonlyMap<string, readonly RunLine[]>;
  /** The pointer came over the rows, or left: under it, none of them moves. */
  setPointed(isPointed: boolean): void;
  fold(runId: string): Promise<void>;
}

/** The rows of a list. */
export function useRows({ lines, filter, added }: RunList): ShownRows {
  const [children, setChildren] = useState<ReadonlyMap<string, readonly RunLine[]>>(new Map());
  const [isPointed, setPointed] = useState(false);
  const before = useRef<{ readonly rows: readonly RunRow[]; readonly asked: readonly unknown[] }>({
    rows: [],
    asked: [],
  });
  const rows = useMemo(() => {
    // What the reader asks for is shown at once, also under the pointer.
    const asked = [filter, added, children];
    const isSame = before.current.rows.length > 0 && asked.every((each, at) => each === before.current.asked[at]);
    const now =
      isPointed && isSame ? held(before.current.rows, lines) : unfolded(rowsOfRuns(lines.values(), filter), children);
    before.current = { rows: now, asked };
    return now;
  }, [lines, filter, added, children, isPointed]);
  const fold = async (runId: string) => {
    const isOpen = children.has(runId);
    const below = isOpen ? [] : await linesBelow(runId);
    setChildren((before) => {
      const next = new Map(before);
      if (isOpen) next.delete(runId);
      else next.set(runId, below);
      return next;
    });
  };
  return { rows, children, setPointed, fold };
}

/** The lines of the runs below a run; none if it cannot be read. */
async function linesBelow(runId: string): Promise<readonly RunLine[]> {
  const answer = await get<RecordView>(`${pathOfApi('runs', runId)}/record`);
  return answer.trouble ? [] : answer.value.children.flatMap(({ line }) => line ?? []);
}
