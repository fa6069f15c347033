import { useComputed, useSignal, useSignalEffect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { RecordView, RunLine, RunState } from '../../wire.ts';
import { get, pathOf, type Trouble } from '../frame/api.ts';
import { onKey } from '../frame/keys.ts';
import { changes, gone, store } from '../frame/live.ts';
import { addressOf, place, setQuery, show } from '../frame/route.ts';
import { age, short, usd } from '../parts/amounts.ts';
import { Empty, Failed } from '../parts/empty.tsx';
import { escaped } from '../parts/escaped.ts';
import { Icon, State, words } from '../parts/glyph.tsx';
import { now } from '../parts/now.ts';
import { Rows } from '../parts/rows.tsx';
import { Mono, Plain } from '../parts/text.tsx';
import { bounded, type Filter, held, labelIn, MAX_LINES, merged, type RunRow, rowsOf, unfolded } from './run-rows.ts';

interface Page {
  readonly items: readonly RunLine[];
  readonly next?: string;
}

/** The list of runs. */
export function Runs() {
  const list = useRunList();
  const selected = useSignal(0);
  const children = useSignal<ReadonlyMap<string, readonly RunLine[]>>(new Map());
  const before = useRef<readonly RunRow[]>([]);
  const isPointed = useSignal(false);
  const rows = useComputed(() => {
    const now = isPointed.value
      ? held(before.current, list.lines.value)
      : unfolded(rowsOf(list.lines.value.values(), list.filter.value), children.value);
    before.current = now;
    return now;
  });
  const fold = async (runId: string) => {
    const next = new Map(children.value);
    if (!next.delete(runId)) next.set(runId, await linesBelow(runId));
    isPointed.value = false;
    children.value = next;
  };
  useEffect(
    () =>
      onKey((key) => {
        const next = key === 'j' ? 1 : key === 'k' ? -1 : 0;
        if (next !== 0) {
          selected.value = nextRun(rows.value, selected.value, next);
          return true;
        }
        const line = rows.value[selected.value]?.line;
        if (key !== 'Enter' || !line || isControl(document.activeElement)) return false;
        show(addressOf('run', line.runId));
        return true;
      }),
    [],
  );
  const isSmall = matchMedia('(max-width: 760px)').matches;
  return (
    <>
      <Head count={list.lines.value.size} isMore={list.next.value !== undefined} />
      <Filters />
      {list.trouble.value && <Failed trouble={list.trouble.value} again={list.load} />}
      {list.fresh.value.length > 0 && (
        <button type="button" class="fresh" onClick={list.showFresh}>
          {list.fresh.value.length} new
        </button>
      )}
      {rows.value.length === 0 && list.isLoaded.value ? (
        <NoRuns isFiltered={list.lines.value.size > 0 || isFiltered(list.filter.value)} />
      ) : (
        <Rows
          label="Runs"
          items={rows.value}
          heightOf={(row) => (row.line ? (isSmall ? 78 : 34) : 39)}
          keyOf={(row) => (row.line ? `${row.below ?? ''} ${row.line.runId}` : `group ${row.group}`)}
          shown={selected.value}
          onEnd={list.more}
          head={<Columns />}
          onPointed={(isOver) => {
            isPointed.value = isOver;
          }}
          draw={(row, at) =>
            row.line ? (
              <Line
                row={row}
                isSelected={at === selected.value}
                isOpen={children.value.has(row.line.runId)}
                fold={fold}
              />
            ) : (
              <GroupHead row={row} />
            )
          }
        />
      )}
    </>
  );
}

/** The lines of the list: the first pages from the server, then what changes. New runs wait for a click. */
function useRunList() {
  const lines = useSignal<ReadonlyMap<string, RunLine>>(new Map());
  const fresh = useSignal<readonly RunLine[]>([]);
  const next = useSignal<string | undefined>(undefined);
  const trouble = useSignal<Trouble | undefined>(undefined);
  const isLoaded = useSignal(false);
  const turn = useRef(0);
  const filter = useComputed<Filter>(() => ({
    states: place.value.query.getAll('state') as RunState[],
    text: place.value.query.get('q') ?? '',
  }));
  const add = (found: readonly RunLine[]) => {
    lines.value = bounded(new Map([...lines.value, ...found.map((line) => [line.runId, line] as const)]));
  };
  const page = async (after?: string) => {
    turn.current += 1;
    const own = turn.current;
    const answer = await get<Page>(`runs?${queryOf(filter.value, after)}`);
    if (own !== turn.current) return;
    isLoaded.value = true;
    trouble.value = answer.trouble;
    if (answer.trouble) return;
    if (after === undefined) lines.value = new Map();
    add(answer.value.items);
    next.value = answer.value.next;
  };
  useSignalEffect(() => {
    // Each filter is asked of the server: it knows runs that this tab has not seen.
    filter.value;
    const timer = setTimeout(() => void page(), isLoaded.peek() ? 150 : 0);
    return () => clearTimeout(timer);
  });
  useSignalEffect(() => {
    const { lines: now, fresh: found } = merged(lines.peek(), changes.value);
    lines.value = now;
    // An empty list has nothing that could move.
    if (now.size === 0) add(found);
    else if (found.length > 0) {
      const ids = new Set(found.map(({ runId }) => runId));
      fresh.value = [...fresh.peek().filter(({ runId }) => !ids.has(runId)), ...found].slice(-MAX_LINES);
    }
  });
  useSignalEffect(() => {
    if (gone.value.length === 0) return;
    const left = new Map(lines.peek());
    for (const runId of gone.value) left.delete(runId);
    lines.value = left;
  });
  return {
    lines,
    fresh,
    next,
    trouble,
    isLoaded,
    filter,
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

function queryOf({ states, text }: Filter, after: string | undefined): URLSearchParams {
  const query = new URLSearchParams({ limit: '100' });
  for (const state of states) query.append('state', state);
  const { label, rest } = labelIn(text);
  if (label) query.append('label', label.join('='));
  if (rest !== '') query.set('q', rest);
  if (after !== undefined) query.set('after', after);
  return query;
}

function isFiltered({ states, text }: Filter): boolean {
  return states.length > 0 || text !== '';
}

function nextRun(rows: readonly RunRow[], from: number, by: 1 | -1): number {
  for (let at = from + by; at >= 0 && at < rows.length; at += by) if (rows[at]?.line) return at;
  return rows[from]?.line ? from : rows.findIndex(({ line }) => line !== undefined);
}

function Head({ count, isMore }: { readonly count: number; readonly isMore: boolean }) {
  const input = useRef<HTMLInputElement>(null);
  const typed = (text: string) => {
    const query = new URLSearchParams(place.value.query);
    if (text === '') query.delete('q');
    else query.set('q', text);
    setQuery(query);
  };
  useEffect(
    () =>
      onKey((key) => {
        if (key !== '/') return false;
        input.current?.focus();
        return true;
      }),
    [],
  );
  return (
    <header class="head">
      <h1>Runs</h1>
      <span class="faint only-l">
        {count}
        {isMore ? ' and more' : ''} · live first
      </span>
      <span class="grow" />
      <span class="search">
        <Icon name="search" />
        <input
          ref={input}
          aria-label="Filter runs"
          placeholder="Run id, agent, label:tenant=acme"
          value={place.value.query.get('q') ?? ''}
          onInput={({ currentTarget }) => typed(currentTarget.value)}
        />
        <kbd class="only-l">/</kbd>
      </span>
    </header>
  );
}

const chips: readonly (readonly [name: string, ...states: RunState[]])[] = [
  ['All'],
  ['Needs you', 'you'],
  ['Running', 'run'],
  ['Waiting', 'wait'],
  ['Interrupted', 'idle'],
  ['Parked', 'park'],
  ['Unreadable', 'bad'],
  ['Ended', 'ok', 'fail', 'cut'],
];

function Filters() {
  const chosen = place.value.query.getAll('state').join();
  const counts = store.value?.counts ?? {};
  return (
    <div class="filters">
      {chips.map(([name, ...states]) => {
        const count = states.length === 1 ? counts[states[0] ?? 'run'] : undefined;
        const choose = () => {
          const query = new URLSearchParams(place.value.query);
          query.delete('state');
          for (const state of states) query.append('state', state);
          setQuery(query);
        };
        return (
          <button key={name} type="button" class="chip" aria-pressed={chosen === states.join()} onClick={choose}>
            {name}
            {count ? ` ${count}` : ''}
          </button>
        );
      })}
      <button type="button" class="chip" onClick={askForLabel}>
        + Label
      </button>
    </div>
  );
}

/** Begins a filter by label where the reader types the rest. */
function askForLabel(): void {
  const input = document.querySelector<HTMLInputElement>('.search input');
  if (!input) return;
  if (!input.value.includes('label:')) input.value = `${input.value} label:`.trimStart();
  input.focus();
}

function Columns() {
  return (
    <div class="row th">
      {['State', 'Run', 'Agent · prompt', 'Where and why'].map((name) => (
        <span key={name}>{name}</span>
      ))}
      {['Steps', 'Tokens', 'USD', 'Last'].map((name) => (
        <span key={name} class="num">
          {name}
        </span>
      ))}
    </div>
  );
}

function GroupHead({ row }: { readonly row: RunRow }) {
  return (
    <h2 class="group">
      {row.group}
      <span class="faint">{row.group === undefined ? '' : row.count}</span>
    </h2>
  );
}

interface LineProps {
  readonly row: Extract<RunRow, { line: RunLine }>;
  readonly isSelected: boolean;
  /** Whether the runs below it are shown. */
  readonly isOpen: boolean;
  fold(runId: string): void;
}

function Line({ row: { line, below }, isSelected, isOpen, fold }: LineProps) {
  const { runId, state, agentName, prompt, children, steps, maxSteps, tokens, updatedAt } = line;
  const why = whereAndWhy(line);
  return (
    <div class={`row${isSelected ? ' sel' : ''}${below === undefined ? '' : ' below'}`}>
      <State state={state} word={words[state]} />
      <span class="cut1">
        <a class="cover" href={addressOf('run', runId)}>
          <Mono text={runId} />
        </a>
        {children > 0 && (
          <button type="button" class="kids" aria-expanded={isOpen} onClick={() => fold(runId)}>
            {isOpen ? '−' : '+'}
            {children} runs
          </button>
        )}
      </span>
      <span class="cut1">
        <Plain text={agentName || '—'} />
        <span class="faint">
          {' · '}
          <Plain text={prompt || '—'} />
        </span>
      </span>
      <span class="cut1 dim" title={escaped(why)}>
        <Plain text={why} />
      </span>
      <span class="num dim">{maxSteps === undefined ? steps : `${steps}/${maxSteps}`}</span>
      <span class="num dim">{short(tokens)}</span>
      <span class="num dim">{line.usd === undefined ? '—' : usd(line.usd)}</span>
      <span class="num faint">{updatedAt === undefined ? 'now' : age(now.value - updatedAt)}</span>
    </div>
  );
}

/** The lines of the runs below a run; none if it cannot be read. */
async function linesBelow(runId: string): Promise<readonly RunLine[]> {
  const answer = await get<RecordView>(`${pathOf('runs', runId)}/record`);
  return answer.trouble ? [] : answer.value.children.flatMap(({ line }) => line ?? []);
}

/** Enter presses what has the focus. */
function isControl(element: Element | null): boolean {
  return element instanceof HTMLButtonElement || element instanceof HTMLAnchorElement;
}

/** Where a run is and why, with the code of the reason. */
function whereAndWhy({ where, why, code }: RunLine): string {
  return [code, where, why].filter((part) => part !== undefined && part !== '').join(' · ');
}

function NoRuns({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) return <Empty text="No run fits the filter">Clear the filter to see all runs.</Empty>;
  return (
    <Empty text="No run yet" call="await executor.start(agent, { runId: 'first', prompt: 'Hello' })">
      Runs are here as soon as this store has one. Ended ones stay with history.keepMs.
    </Empty>
  );
}
