import { useMemo, useRef, useState } from 'preact/hooks';
import type { RecordView, VerdictText } from '../../wire.ts';
import { RunButtons, Unpark } from '../actions/run-actions.tsx';
import { Chart } from '../chart/chart.tsx';
import { chartFactsOf } from '../chart/chart-model.ts';
import { Machine, MachineFactsView } from '../chart/machine.tsx';
import { useKeys } from '../frame/keys.ts';
import { store } from '../frame/live.ts';
import { addressOf } from '../frame/route.ts';
import { useShared } from '../frame/use-shared.ts';
import { words } from '../frame/words.ts';
import { age, span, usd, whole } from '../parts/amounts.ts';
import { Empty, Failed } from '../parts/empty.tsx';
import { Glyph, State } from '../parts/glyph.tsx';
import { Facts } from '../parts/lists.tsx';
import { useNow } from '../parts/now.ts';
import { Mono } from '../parts/text.tsx';
import { Record } from './record.tsx';
import { withEffects } from './record-timeline.ts';
import { useRunData } from './run-data.ts';
import { Selected } from './selected.tsx';
import type { Timeline } from './timeline.ts';
import { nextRow, rowsOfTimeline, type TimelineRow } from './timeline-rows.ts';
import { TimelineView, workedNow } from './timeline-view.tsx';
import { TranscriptView } from './transcript.tsx';
import { UsageTab } from './usage.tsx';

const tabs = [
  ['', 'Timeline'],
  ['transcript', 'Transcript'],
  ['usage', 'Tokens & cost'],
  ['record', 'Record'],
] as const;

/** How many of the last steps are open when a run is opened. */
const OPEN_STEPS = 3;

/** One run. */
export function RunPage({ runId, part }: { readonly runId: string; readonly part: string }) {
  const run = useRunData(runId);
  // What was erased leaves the page as well.
  const view = run.isGone ? undefined : run.record;
  return (
    <>
      <Head runId={runId} view={view} />
      {run.isGone && <p class="why at-bad">{words.stages?.erased}</p>}
      {run.trouble && <Failed trouble={run.trouble} again={run.again} />}
      {view && <Body {...{ runId, part, view, run }} />}
    </>
  );
}

function Head({ runId, view }: { readonly runId: string; readonly view: RecordView | undefined }) {
  const { parentRunId, line } = view ?? {};
  return (
    <header class="head">
      <a class="crumb" href="#/runs">
        Runs
      </a>
      <span class="faint">/</span>
      {parentRunId !== undefined && (
        <>
          <a class="crumb mono cut1 only-l" href={addressOf('run', parentRunId)}>
            {parentRunId}
          </a>
          <span class="faint only-l">/</span>
        </>
      )}
      <h1 class="mono cut1">{runId}</h1>
      {line && <State state={line.state} />}
      {line && (
        <span class="dim only-l cut1 grow">
          {line.agentName || line.agentId}
          {line.prompt !== '' && ' · '}
          {line.prompt}
        </span>
      )}
      <span class={line ? 'grow only-s' : 'grow'} />
      {view && <RunButtons record={view} />}
    </header>
  );
}

interface BodyProps {
  readonly runId: string;
  readonly part: string;
  readonly view: RecordView;
  readonly run: ReturnType<typeof useRunData>;
}

function Body({ runId, part: asked, view, run }: BodyProps) {
  const { timeline } = run;
  const selection = useSelection(run, view);
  const now = useNow();
  const hasJournal = useShared(store)?.parts.journal !== false && !run.isBare;
  const isNarrow = matchMedia('(max-width: 760px)').matches;
  const fold = { isFolded: selection.isFolded, onFold: selection.foldChart };
  // A wide window has the chart beside each tab; the machine of a workflow may need the room of one.
  const part = asked === 'chart' && !isNarrow && !view.workflow ? '' : asked;
  const machine = view.workflow && { runId, machine: view.workflow, facts: run.machine, state: view.line.state };
  const facts = machine && <MachineFactsView {...machine} />;
  const chart = machine ? (
    <Machine {...machine} {...(part === 'chart' ? {} : fold)} />
  ) : (
    <Chart
      facts={hasJournal && timeline.begin > 0 ? run.chart : chartFactsOf(view)}
      state={view.line.state}
      phases={view.record?.phases}
      isAsSaved={!hasJournal}
      {...(part === 'chart' ? {} : fold)}
    />
  );
  const row = selection.rows[selection.at];
  const selected = part === 'chart' || part === '' || !isNarrow;
  return (
    <>
      <Why view={view} />
      <RunFacts view={view} timeline={timeline} />
      <div class="split">
        <section class="pane">
          <Tabs
            runId={runId}
            part={part}
            chart={view.workflow ? '' : 'only-s'}
            end={
              part === '' && timeline.begin > 0
                ? `bars: working time, ${span(workedNow(timeline, view.line.state, now))}`
                : ''
            }
          />
          {part === '' && !hasJournal && <p class="pad faint">{words.noJournal}</p>}
          {part === '' && <TimelineTab {...{ view, timeline, selection, hasJournal }} />}
          {part === 'transcript' && <TranscriptView key={view.record?.messages} view={view} />}
          {part === 'usage' && <UsageTab view={view} timeline={timeline} />}
          {part === 'record' && <Record view={view} />}
          {part === 'chart' && (
            <div class="scroll">
              {chart}
              {isNarrow && facts}
            </div>
          )}
        </section>
        {!isNarrow && (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by the keyboard
          <aside class="pane side only-l" aria-label="Chart and selection" tabIndex={0}>
            {part !== 'chart' && chart}
            {facts}
            <Selected row={row} view={view} />
          </aside>
        )}
        {isNarrow && selected && selection.isPicked && (
          <aside class="side sheet" aria-label="Selection">
            <Selected row={row} view={view} onClose={selection.close} />
          </aside>
        )}
      </div>
    </>
  );
}

interface TimelineTabProps {
  readonly view: RecordView;
  readonly timeline: Timeline;
  readonly selection: ReturnType<typeof useSelection>;
  readonly hasJournal: boolean;
}

function TimelineTab({ view, timeline, selection, hasJournal }: TimelineTabProps) {
  if (timeline.steps.length === 0 && (timeline.marks.length === 0 || view.missing !== undefined))
    return <NoSteps view={view} />;
  return (
    <TimelineView
      timeline={timeline}
      rows={selection.rows}
      picked={selection.rows[selection.at]?.key}
      shown={selection.at < 0 ? undefined : selection.at}
      state={view.line.state}
      isTimed={hasJournal}
      onPick={selection.pick}
    />
  );
}

function NoSteps({ view }: { readonly view: RecordView }) {
  const { result, missing, line } = view;
  if (missing === undefined) return <p class="pad faint">{words.stages?.noSteps}</p>;
  return (
    <div class="scroll pad">
      <Empty text={result ? `Ended: ${result.status}` : 'No record'}>{missing}</Empty>
      {result && result.output !== '' && <pre class="short">{result.output.slice(0, 16_384)}</pre>}
      <p class="faint">
        {line.steps} steps · {whole(line.tokens)} tokens
      </p>
    </div>
  );
}

/** Whether the chart is folded: also in the next run that is opened. */
let isChartFolded = false;

function useSelection(run: ReturnType<typeof useRunData>, view: RecordView) {
  const [key, setKey] = useState<string>();
  const [isPicked, setPicked] = useState(false);
  const [turned, setTurned] = useState<ReadonlySet<number>>(new Set());
  const openFrom = useRef(0);
  const [isFolded, setFolded] = useState(isChartFolded);
  const names = (view.record?.phases ?? []).map(({ name }) => name);
  const rows = useMemo(() => {
    const timeline = withEffects(run.timeline, view.record);
    // Set once: what is open stays open while new steps come.
    if (openFrom.current === 0 && timeline.steps.length > 0)
      openFrom.current = Math.max(1, (timeline.steps.at(-1)?.step ?? 0) - OPEN_STEPS + 1);
    return rowsOfTimeline(timeline, { openFrom: openFrom.current, turned, hasEarlier: !run.isWhole }, names);
  }, [run.timeline, view.record, turned, run.isWhole, names.join()]);
  // Without a choice, the newest call or turn is shown.
  const at = useMemo(() => {
    const found = key === undefined ? -1 : rows.findIndex((row) => row.key === key);
    return found >= 0 ? found : nextRow(rows, { from: rows.length, by: -1 });
  }, [rows, key]);
  const pick = (row: TimelineRow) => {
    if (row.kind === 'earlier') {
      // The reader stays where the earlier steps end.
      setKey(`${row.to + 1}`);
      run.loadWhole();
      return;
    }
    if (row.kind === 'step' && row.step.calls.length > 0 && key === row.key) turn(row.step.step);
    setKey(row.key);
    setPicked(true);
  };
  const turn = (step: number) => {
    const next = new Set(turned);
    if (!next.delete(step)) next.add(step);
    setTurned(next);
  };
  const foldChart = () => {
    isChartFolded = !isChartFolded;
    setFolded(isChartFolded);
  };
  useKeys((pressed) => {
    const by = pressed === 'j' || pressed === ']' ? 1 : pressed === 'k' || pressed === '[' ? -1 : 0;
    if (by !== 0) setKey(rows[nextRow(rows, { from: at, by, isStep: pressed === '[' || pressed === ']' })]?.key);
    else if (pressed === 'c') foldChart();
    else return false;
    return true;
  });
  return { rows, at, pick, isFolded, foldChart, isPicked, close: () => setPicked(false) };
}

function Why({ view }: { readonly view: RecordView }) {
  const { state, title, name, text, action } = view.says;
  const now = useNow();
  return (
    <div class={`why at-${state}`} role="note">
      <Glyph state={state} />
      <span class="grow">
        <b>{title}</b>
        {name !== undefined && (
          <>
            <Mono text={name} />{' '}
          </>
        )}
        {text.map((part) => (typeof part === 'string' ? part : timeText(part, now)))}
      </span>
      {state === 'park' && <Unpark runId={view.line.runId} />}
      {action && (
        <a class="btn" href={addressOf(action.view, action.id)}>
          {action.word} {action.view === 'inbox' && <kbd>a</kbd>}
        </a>
      )}
    </div>
  );
}

/** A time in the line above a run, as the clock of the reader has it. */
function timeText({ kind, at }: Exclude<VerdictText[number], string>, now: number): string {
  if (kind === 'age') return span(now - at);
  if (kind === 'time') return new Date(at).toLocaleString('en-GB');
  return at < now ? '' : `, its lease lasts ${span(at - now)}`;
}

interface TabsProps {
  readonly runId: string;
  readonly part: string;
  /** How the tab of the chart looks. */
  readonly chart: string;
  readonly end: string;
}

function Tabs({ runId, part, chart, end }: TabsProps) {
  const link = (to: string, name: string, more = '') => (
    <a key={to} class={more} href={addressOf('run', runId, to)} aria-current={part === to ? 'page' : undefined}>
      {name}
    </a>
  );
  return (
    <nav class="tabs" aria-label="Views of the run">
      {tabs.map(([to, name]) => link(to, name))}
      {link('chart', 'Chart', chart)}
      <span class="end">{end}</span>
    </nav>
  );
}

function RunFacts({ view, timeline }: { readonly view: RecordView; readonly timeline: Timeline }) {
  const { line, record, usage, owner } = view;
  const now = useNow();
  const tokens = usage.inputTokens + usage.outputTokens || line.tokens;
  // What is summed over all of its events is not known from the newest ones.
  const isPart = timeline.begins !== undefined;
  const worked = timeline.begin > 0 && !isPart ? workedNow(timeline, line.state, now) : record?.elapsedMs;
  const resting = timeline.rest?.isWait ? Math.max(0, now - timeline.rest.since) : 0;
  const waited = isPart ? 0 : timeline.waited + resting;
  const phase = record?.phases?.findIndex(({ isDone }) => !isDone) ?? -1;
  const labels = Object.entries(line.labels).map(([name, value]) => `${name}=${value}`);
  return (
    <Facts
      of={[
        phase >= 0 && ['Phase', <PhaseFact key="phase" view={view} at={phase} />],
        [
          'Steps done',
          <span key="step">
            {line.steps}
            {line.maxSteps !== undefined && <span class="faint"> of {line.maxSteps}</span>}
          </span>,
        ],
        ['Tokens', whole(tokens)],
        usage.usd !== undefined && ['Cost', `$${usd(usage.usd)}`],
        worked !== undefined && ['Worked', span(worked)],
        waited > 0 && ['Waited', span(waited)],
        ['Owner', owner?.name ?? line.owner ?? 'none'],
        timeline.resumes > 0 && !isPart && ['Resumed', `${timeline.resumes} ×`],
        record && ['Saved', `rev ${record.revision} · ${age(Math.max(1_000, now - record.updatedAt))} ago`],
        labels.length > 0 && ['Labels', <Mono key="labels" text={labels.join(' ')} />],
      ]}
    />
  );
}

function PhaseFact({ view, at }: { readonly view: RecordView; readonly at: number }) {
  const phases = view.record?.phases ?? [];
  const { name = '' } = phases[at] ?? {};
  // Without the agent, the record names the phases that are done, and says that there is one more.
  return <>{name === '' ? at + 1 : `${at + 1} of ${phases.length} · ${name}`}</>;
}
