import { useLayoutEffect, useRef } from 'preact/hooks';
import type { RecordView, RunLine, RunState } from '../../wire.ts';
import { get, pathOf, type Trouble } from '../frame/api.ts';
import { changes, gone } from '../frame/live.ts';
import { place } from '../frame/route.ts';
import { effect, type ReadonlySignal, type Signal } from '../frame/signals.ts';
import { useComputed, useSignal, useSignalEffect } from '../frame/use-signals.ts';
import {
  bounded,
  type Filter,
  fits,
  held,
  labelIn,
  MAX_LINES,
  merged,
  type RunRow,
  rowsOf,
  unfolded,
} from './run-rows.ts';

interface Page {
  readonly items: readonly RunLine[];
  readonly next?: string;
}

/** What the list of runs shows, and what changes it. */
interface RunList {
  readonly lines: ReadonlySignal<ReadonlyMap<string, RunLine>>;
  /** New runs that wait for a click. */
  readonly fresh: ReadonlySignal<readonly RunLine[]>;
  readonly next: ReadonlySignal<string | undefined>;
  readonly trouble: ReadonlySignal<Trouble | undefined>;
  readonly isLoaded: ReadonlySignal<boolean>;
  readonly filter: ReadonlySignal<Filter>;
  /** Counts what was added because the reader asked for it. */
  readonly added: ReadonlySignal<number>;
  load(): void;
  more(): void;
  showFresh(): void;
}

/** The lines of the list: the first pages from the server, then what changes. New runs wait for a click. */
export function useRunList(): RunList {
  const lines = useSignal<ReadonlyMap<string, RunLine>>(new Map());
  const fresh = useSignal<readonly RunLine[]>([]);
  const next = useSignal<string | undefined>(undefined);
  const trouble = useSignal<Trouble | undefined>(undefined);
  const isLoaded = useSignal(false);
  const added = useSignal(0);
  const turn = useRef(0);
  const filter = useComputed<Filter>(() => ({
    states: place.value.query.getAll('state') as RunState[],
    text: place.value.query.get('q') ?? '',
  }));
  const add = (found: readonly RunLine[]) => {
    lines.value = bounded(new Map([...lines.peek(), ...found.map((line) => [line.runId, line] as const)]));
    added.value = added.peek() + 1;
  };
  const page = async (after?: string) => {
    turn.current += 1;
    const own = turn.current;
    const answer = await get<Page>(`runs?${queryOf(filter.value, after)}`);
    if (own !== turn.current) return;
    isLoaded.value = true;
    trouble.value = answer.trouble;
    if (answer.trouble) return;
    if (after === undefined) [lines.value, fresh.value] = [new Map(), []];
    add(answer.value.items);
    next.value = answer.value.next;
  };
  const filtered = () => {
    // Each filter is asked of the server: it knows runs that this tab has not seen.
    filter.value;
    if (turn.current === 0) return void page();
    const timer = setTimeout(() => void page(), 150);
    return () => clearTimeout(timer);
  };
  // The first page is asked for before anything is drawn.
  useLayoutEffect(() => effect(filtered), []);
  useSignalEffect(() => {
    const { isFirst, lines: changed } = changes.value;
    const { lines: now, fresh: all } = merged(lines.peek(), changed);
    const found = all.filter((line) => fits(line, filter.peek()));
    lines.value = now;
    // An empty list has nothing that could move.
    if (now.size === 0 || isFirst) add(found);
    else if (found.length > 0) {
      const ids = new Set(found.map(({ runId }) => runId));
      fresh.value = [...fresh.peek().filter(({ runId }) => !ids.has(runId)), ...found].slice(-MAX_LINES);
    }
  });
  useSignalEffect(() => {
    if (gone.value.length > 0) lines.value = without(lines.peek(), gone.value);
  });
  return {
    lines,
    fresh,
    next,
    trouble,
    isLoaded,
    filter,
    added,
    load: () => void page(),
    more: () => {
      if (next.value !== undefined && lines.value.size < MAX_LINES) void page(next.value);
    },
    showFresh: () => {
      add(fresh.value);
      fresh.value = [];
    },
  };
}

function without(lines: ReadonlyMap<string, RunLine>, ids: readonly string[]): ReadonlyMap<string, RunLine> {
  return new Map([...lines].filter(([runId]) => !ids.includes(runId)));
}

function queryOf({ states, text }: Filter, after: string | undefined): URLSearchParams {
  const query = new URLSearchParams({ limit: '100' });
  for (const state of states) query.append('state', state);
  const { label, rest } = labelIn(text);
  if (label) query.append('label', label.join('='));
  if (rest !== '') query.set('q', rest);
  if (after !== undefined) query.set('after', after);
  return query;
}

/** Returns whether a filter hides any run. */
export function isFiltered({ states, text }: Filter): boolean {
  return states.length > 0 || text !== '';
}

interface ShownRows {
  readonly rows: ReadonlySignal<readonly RunRow[]>;
  /** The runs below those that are unfolded. */
  readonly children: ReadonlySignal<ReadonlyMap<string, readonly RunLine[]>>;
  /** Whether the pointer is over the rows: then none of them moves. */
  readonly isPointed: Signal<boolean>;
  fold(runId: string): Promise<void>;
}

/** The rows of a list. */
export function useRows(list: RunList): ShownRows {
  const children = useSignal<ReadonlyMap<string, readonly RunLine[]>>(new Map());
  const before = useRef<{ readonly rows: readonly RunRow[]; readonly asked: readonly unknown[] }>({
    rows: [],
    asked: [],
  });
  const isPointed = useSignal(false);
  const rows = useComputed(() => {
    // What the reader asks for is shown at once, also under the pointer.
    const asked = [list.filter.value, list.added.value, children.value];
    const isSame = before.current.rows.length > 0 && asked.every((each, at) => each === before.current.asked[at]);
    const now =
      isPointed.value && isSame
        ? held(before.current.rows, list.lines.value)
        : unfolded(rowsOf(list.lines.value.values(), list.filter.value), children.value);
    before.current = { rows: now, asked };
    return now;
  });
  const fold = async (runId: string) => {
    const next = new Map(children.value);
    if (!next.delete(runId)) next.set(runId, await linesBelow(runId));
    children.value = next;
  };
  return { rows, children, isPointed, fold };
}

/** The lines of the runs below a run; none if it cannot be read. */
async function linesBelow(runId: string): Promise<readonly RunLine[]> {
  const answer = await get<RecordView>(`${pathOf('runs', runId)}/record`);
  return answer.trouble ? [] : answer.value.children.flatMap(({ line }) => line ?? []);
}
