import { useRef, useState } from 'preact/hooks';
import type { RunLine, RunState } from '../../wire.ts';
import { UnparkMany } from '../actions/unpark-many.tsx';
import { useKeys } from '../frame/keys.ts';
import { store } from '../frame/live.ts';
import { addressOf, place, setQuery, show } from '../frame/route.ts';
import { useShared } from '../frame/use-shared.ts';
import { age, short, usd } from '../parts/amounts.ts';
import { Failed, Nothing } from '../parts/empty.tsx';
import { escapedHtml } from '../parts/escaped.ts';
import { glyphWords, Icon, State } from '../parts/glyph.tsx';
import { useNow } from '../parts/now.ts';
import { Rows } from '../parts/rows.tsx';
import { Mono } from '../parts/text.tsx';
import { isFiltered, useRows, useRunList } from './run-list.ts';
import { type RunRow, totalsOf } from './run-rows.ts';

/** The list of runs. */
export function Runs() {
  const list = useRunList();
  const [selected, setSelected] = useState(0);
  const { rows, children, setPointed, fold } = useRows(list);
  useKeys((key) => {
    const next = key === 'j' ? 1 : key === 'k' ? -1 : 0;
    if (next !== 0) {
      setSelected(nextRun(rows, selected, next));
      return true;
    }
    const line = rows[selected]?.line;
    if (key !== 'Enter' || !line || isControl(document.activeElement)) return false;
    show(addressOf('run', line.runId));
    return true;
  });
  const isSmall = matchMedia('(max-width: 760px)').matches;
  return (
    <>
      <Head lines={list.lines} isMore={list.next !== undefined} />
      <Filters lines={list.lines} />
      {list.trouble && <Failed trouble={list.trouble} again={list.load} />}
      {list.fresh.length > 0 && (
        <button type="button" class="fresh" onClick={list.showFresh}>
          {list.fresh.length} new
        </button>
      )}
      {rows.length === 0 && !list.isLoaded && list.next !== undefined && <p class="pad faint">Reading more runs…</p>}
      {rows.length === 0 && list.isLoaded ? (
        <Nothing of={list.lines.size > 0 || isFiltered(list.filter) ? 'filtered' : 'runs'} />
      ) : (
        <Rows
          label="Runs"
          items={rows}
          heightOf={(row) => (row.line ? (isSmall ? 78 : 34) : 39)}
          keyOf={(row) => (row.line ? `${row.below ?? ''} ${row.line.runId}` : `group ${row.group}`)}
          shown={selected}
          onEnd={list.more}
          beyond={list.next}
          head={<Columns />}
          onPointed={setPointed}
          draw={(row, at) =>
            row.line ? (
              <Line row={row} isSelected={at === selected} isOpen={children.has(row.line.runId)} fold={fold} />
            ) : (
              <GroupHead row={row} />
            )
          }
        />
      )}
    </>
  );
}

function nextRun(rows: readonly RunRow[], from: number, by: 1 | -1): number {
  for (let at = from + by; at >= 0 && at < rows.length; at += by) if (rows[at]?.line) return at;
  return rows[from]?.line ? from : rows.findIndex(({ line }) => line !== undefined);
}

type Lines = ReadonlyMap<string, RunLine>;

function Head({ lines, isMore }: { readonly lines: Lines; readonly isMore: boolean }) {
  const input = useRef<HTMLInputElement>(null);
  const { query } = useShared(place);
  useKeys((key) => {
    if (key !== '/') return false;
    input.current?.focus();
    return true;
  });
  return (
    <header class="head">
      <h1>Runs</h1>
      <span class="faint only-l">{totalsOf([...lines.values()], isMore)} · live first</span>
      <span class="grow" />
      <span class="search">
        <Icon name="search" />
        <input
          ref={input}
          aria-label="Filter runs"
          placeholder="Run id, agent, label:tenant=acme"
          value={query.get('q') ?? ''}
          onInput={({ currentTarget }) => narrow(query, 'q', currentTarget.value)}
        />
        <kbd class="only-l">/</kbd>
      </span>
    </header>
  );
}

function narrow(query: URLSearchParams, name: string, value: string): void {
  const next = new URLSearchParams(query);
  if (value === '') next.delete(name);
  else next.set(name, value);
  setQuery(next);
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

function Filters({ lines }: { readonly lines: Lines }) {
  const { query } = useShared(place);
  const chosen = query.getAll('state').join();
  const { counts = {}, isPartial } = useShared(store) ?? {};
  return (
    <div class="filters">
      {chips.map(([name, ...states]) => {
        const count = states.length === 1 ? counts[states[0] ?? 'run'] : undefined;
        const choose = () => {
          const next = new URLSearchParams(query);
          for (const name of ['state', 'since', 'until']) next.delete(name);
          for (const state of states) next.append('state', state);
          setQuery(next);
        };
        return (
          <button key={name} type="button" class="chip" aria-pressed={chosen === states.join()} onClick={choose}>
            {name}
            {count ? ` ${count}${isPartial ? '+' : ''}` : ''}
          </button>
        );
      })}
      <button type="button" class="chip" onClick={askForLabel}>
        + Label
      </button>
      {chosen === 'ok,fail,cut' &&
        ['since', 'until'].map((name) => (
          <label key={name} class="chip">
            {name}
            <input
              type="date"
              value={query.get(name) ?? ''}
              onInput={({ currentTarget }) => narrow(query, name, currentTarget.value)}
            />
          </label>
        ))}
      {chosen === 'park' && <UnparkMany lines={lines} />}
    </div>
  );
}

/** Begins a filter by label where the reader types the rest. */
function askForLabel(): void {
  const input = document.querySelector<HTMLInputElement>('.search input');
  if (!input) return;
  if (!input.value.includes('label:')) input.value = `${input.value} label:`.trimStart();
  // The address has it before the list is drawn again, which shows what the address has.
  input.dispatchEvent(new Event('input'));
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
  const now = useNow();
  return (
    <div class={`row${isSelected ? ' sel' : ''}${below === undefined ? '' : ' below'}`}>
      <State state={state} word={glyphWords[state]} />
      <span class="cut1">
        <a class="cover" href={addressOf('run', runId)}>
          <Mono text={runId} />
        </a>
        {children > 0 && (
          <button type="button" class="kids" aria-expanded={isOpen} onClick={() => fold(runId)}>
            {isOpen ? '−' : '+'}
            {children} {children === 1 ? 'run' : 'runs'}
          </button>
        )}
      </span>
      <span class="cut1">
        {agentName || '—'}
        <span class="faint">
          {' · '}
          {prompt || '—'}
        </span>
      </span>
      <span class="cut1 dim" title={escapedHtml(why)}>
        {why}
      </span>
      <span class="num dim">{maxSteps === undefined ? steps : `${steps}/${maxSteps}`}</span>
      <span class="num dim">{short(tokens)}</span>
      <span class="num dim">{line.usd === undefined ? '—' : usd(line.usd)}</span>
      <span class="num faint">{updatedAt === undefined ? 'now' : age(now - updatedAt)}</span>
    </div>
  );
}

/** Enter presses what has the focus. */
function isControl(element: Element | null): boolean {
  return element instanceof HTMLButtonElement || element instanceof HTMLAnchorElement;
}

/** Where a run is and why, with the code of the reason. */
function whereAndWhy({ where, why, code }: RunLine): string {
  return [code, where, why].filter(Boolean).join(' · ');
}
