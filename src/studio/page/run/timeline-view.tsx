import type { RunState } from '../../wire.ts';
import { span, whole } from '../parts/amounts.ts';
import { Glyph, Icon } from '../parts/glyph.tsx';
import { useNow } from '../parts/now.ts';
import { Rows } from '../parts/rows.tsx';
import { placed } from './placed.ts';
import { type Timeline, type TimelineCall, type TimelinePhase, type TimelineStep, workedMs } from './timeline.ts';
import { ownerWords, type TimelineMark } from './timeline-marks.ts';
import { type TimelineRow, toolsOf } from './timeline-rows.ts';

interface TimelineProps {
  readonly timeline: Timeline;
  readonly rows: readonly TimelineRow[];
  readonly picked: string | undefined;
  /** The row that must be in sight. */
  readonly shown: number | undefined;
  readonly state: RunState;
  readonly isTimed: boolean;
  onPick(row: TimelineRow): void;
}

const narrow = matchMedia('(max-width: 760px)');

/** Working time up to now, ms: of a run that works, the clock continues. */
export function workedNow(timeline: Timeline, state: RunState, now: number): number {
  const isWorking = state === 'run' && !timeline.rest && !timeline.isOver && timeline.begin > 0;
  return workedMs(isWorking ? { ...timeline, now: Math.max(timeline.now, now) } : timeline);
}

/** The steps of a run, with their calls. */
export function TimelineView({ timeline, rows, picked, shown, state, isTimed, onPick }: TimelineProps) {
  const total = Math.max(1, workedNow(timeline, state, useNow()));
  const axis = { total, state, isTimed };
  return (
    <Rows
      label="Timeline"
      class="tl"
      items={rows}
      keyOf={({ key }) => key}
      heightOf={heightOf}
      shown={shown}
      draw={(row) => <Row row={row} axis={axis} isPicked={row.key === picked} onPick={() => onPick(row)} />}
    />
  );
}

interface Axis {
  /** Working time of all, ms. */
  readonly total: number;
  readonly state: RunState;
  readonly isTimed: boolean;
}

function heightOf(row: TimelineRow): number {
  if (row.kind === 'mark') {
    const [title, text] = wordsOf(row.mark);
    return 14 + 16 * Math.ceil((title.length + text.length) / (narrow.matches ? 52 : innerWidth < 1_300 ? 88 : 118));
  }
  if (narrow.matches) return row.kind === 'call' ? 36 : 38;
  return row.kind === 'call' ? 26 : 30;
}

interface RowProps {
  readonly row: TimelineRow;
  readonly axis: Axis;
  readonly isPicked: boolean;
  onPick(): void;
}

function Row({ row, axis, isPicked, onPick }: RowProps) {
  switch (row.kind) {
    case 'mark':
      return <Mark mark={row.mark} />;
    case 'phase':
      return <PhaseRow phase={row.phase} axis={axis} />;
    case 'earlier':
      return (
        <button type="button" class="tr step" onClick={onPick}>
          <span class="no" />
          <span />
          <span class="what">{row.to === 1 ? 'Step 1' : `Steps 1 to ${whole(row.to)}`}: show</span>
        </button>
      );
    case 'later':
      return <Later name={row.name} index={row.index} />;
    case 'step':
      return <StepRow step={row.step} isOpen={row.isOpen} {...{ axis, isPicked, onPick }} />;
    default:
      return <CallRow call={row.call} {...{ axis, isPicked, onPick }} />;
  }
}

interface PickProps {
  readonly axis: Axis;
  readonly isPicked: boolean;
  onPick(): void;
}

function StepRow({
  step,
  isOpen,
  axis,
  isPicked,
  onPick,
}: PickProps & { readonly step: TimelineStep; readonly isOpen: boolean }) {
  const { tokens, ms, from, retries, calls, ending } = step;
  const spent = isOpen && tokens && `${whole(tokens.input)} in · ${whole(tokens.output)} out`;
  const said = step.took || spent || toolsOf(step);
  const took = ms ?? axis.total - from;
  return (
    <button
      type="button"
      class="tr step"
      aria-pressed={isPicked}
      aria-expanded={calls.length > 0 ? isOpen : undefined}
      onClick={onPick}
    >
      <span class="no">{step.step}</span>
      <StateGlyph state={stepState(step, axis.state)} />
      <span class="what">
        <span class="name">{stepName(step)}</span>
        <span class="faint cut1">{said}</span>
        {calls.length > 0 && !isOpen && <span class="faint nowrap">▸ folded</span>}
        {retries > 0 && <span class="eff idempotent">{retries + 1} attempts</span>}
        {ending && <span class="eff idempotent">{ending}</span>}
      </span>
      <span />
      <span />
      {axis.isTimed ? <Bar from={from} ms={took} total={axis.total} kind="m" /> : <span />}
      <span class="ms">{axis.isTimed ? span(took) : ''}</span>
    </button>
  );
}

/** What a step of the run is, in words. */
export const stepName = ({ took }: TimelineStep): string => (took === undefined ? 'Model turn' : 'Transition');

function stepState({ isDone, calls }: TimelineStep, run: RunState): RunState | undefined {
  if (calls.some(({ state }) => state === 'asks')) return 'you';
  if (isDone) return calls.some(({ state }) => state === 'unknown') ? 'bad' : 'ok';
  if (calls.some(({ state }) => state === 'waits')) return 'wait';
  return run === 'run' ? 'run' : 'idle';
}

function CallRow({ call, axis, isPicked, onPick }: PickProps & { readonly call: TimelineCall }) {
  const { name, words, effect, attempts, state, wait, end, from } = call;
  const isWaiting = state === 'asks' || state === 'waits';
  const now = useNow();
  const ms = end?.ms ?? (state === 'started' ? axis.total - from : 0);
  return (
    <button type="button" class="tr call" aria-pressed={isPicked} onClick={onPick}>
      <span class="no" />
      <StateGlyph state={callState(call, axis.state)} />
      <span class="what">
        <span class="name cut1">{name}</span>
        <span class="dim cut1">{words}</span>
        {attempts > 1 && <span class="eff idempotent">{attempts} starts</span>}
        {state === 'unknown' && <span class="bad nowrap">outcome unknown</span>}
        {wait?.end?.how === 'deny' && (
          <span class="bad nowrap">denied{wait.end.by === undefined ? '' : ` by ${wait.end.by}`}</span>
        )}
      </span>
      {effect ? <span class={`eff ${effect}`}>{effect}</span> : <span />}
      <Pips state={call.isRefused ? 'refused' : state} />
      {axis.isTimed ? <Bar from={from} ms={ms} total={axis.total} kind={isWaiting ? 'a' : ''} /> : <span />}
      <span class="ms">
        {isWaiting && wait ? (
          <span class={state === 'asks' ? 'you' : 'wait'}>{span(now - wait.since)}</span>
        ) : axis.isTimed && state !== 'planned' && state !== 'unknown' ? (
          span(ms)
        ) : (
          ''
        )}
      </span>
    </button>
  );
}

/** The glyph of a call; none for one that is only planned. */
export function callState({ state }: TimelineCall, run: RunState): RunState | undefined {
  if (state === 'started') return run === 'run' ? 'run' : 'idle';
  return ({ done: 'ok', failed: 'fail', unknown: 'bad', asks: 'you', waits: 'wait', planned: undefined } as const)[
    state
  ];
}

/** A state as its shape, with its word for a screen reader. */
export function StateGlyph({ state }: { readonly state: RunState | undefined }) {
  return state ? <Glyph state={state} /> : <span />;
}

/** The squares of a call, and what they say: planned, intent saved, started, result recorded. */
const pips = {
  planned: ['on - - -', 'planned'],
  asks: ['on ask - -', 'asks a person'],
  waits: ['on ask - -', 'waits'],
  started: ['on on go -', 'started'],
  done: ['on on on on', 'result recorded'],
  failed: ['on on on on', 'an error is recorded'],
  unknown: ['on on on -', 'started, outcome unknown'],
  refused: ['on - - on', 'never started, result recorded'],
} as const;

function Pips({ state }: { readonly state: keyof typeof pips }) {
  const [shapes, text] = pips[state];
  return (
    <span
      class="pips"
      role="img"
      aria-label={`ledger: ${text}`}
      title={`This call: ${text}.\nThe squares: planned, intent saved, started, result recorded.`}
    >
      {placed(shapes.split(' ')).map(({ place, item }) => (
        <i key={place} class={item} />
      ))}
    </span>
  );
}

interface BarProps {
  readonly from: number;
  readonly ms: number;
  readonly total: number;
  readonly kind: string;
}

function Bar({ from, ms, total, kind }: BarProps) {
  const left = Math.min(98, (from / total) * 100);
  const width = Math.min(100 - left, kind === 'a' ? 8 : (ms / total) * 100);
  return (
    <span class="bar">
      <i class={kind} style={{ left: `${left}%`, width: `${width}%` }} />
    </span>
  );
}

function PhaseRow({ phase, axis }: { readonly phase: TimelinePhase; readonly axis: Axis }) {
  const { index, name, isDone, first, last, from } = phase;
  const ms = phase.ms ?? axis.total - from;
  const steps = first === 0 ? '' : first === last ? ` · step ${first}` : ` · steps ${first} to ${last}`;
  return (
    <div class="tr step phase">
      <span class="no">{index + 1}</span>
      <Glyph state={isDone ? 'ok' : axis.state} />
      <span class="what">
        <span class="name">{name}</span>
        <span class="faint cut1">
          phase({index}){steps}
        </span>
      </span>
      <span />
      <span />
      {axis.isTimed ? <Bar from={from} ms={ms} total={axis.total} kind="m" /> : <span />}
      <span class="ms">{axis.isTimed ? span(ms) : ''}</span>
    </div>
  );
}

function Later({ name, index }: { readonly name: string; readonly index: number }) {
  return (
    <div class="tr step phase">
      <span class="no">{index + 1}</span>
      <Glyph state="wait" />
      <span class="what">
        <span class="name">{name}</span>
        <span class="faint cut1">phase({index}) · to come</span>
      </span>
    </div>
  );
}

function Mark({ mark }: { readonly mark: TimelineMark }) {
  const [title, text] = wordsOf(mark);
  return (
    <div class={`mark ${mark.kind}`}>
      {mark.kind === 'steer' ? <Icon name="thread" /> : <Glyph state={markState(mark)} />}
      <span>
        <b>{title}</b>
        {text}
      </span>
    </div>
  );
}

function markState(mark: Exclude<TimelineMark, { kind: 'steer' }>): RunState {
  if (mark.kind === 'parked' || mark.kind === 'unparked') return 'park';
  if (mark.kind === 'vote' || mark.kind === 'refused') return 'you';
  if (mark.kind === 'owner') return mark.why === 'waited' ? 'wait' : 'idle';
  return mark.status === 'ok' ? 'ok' : mark.status === 'cancelled' ? 'cut' : 'fail';
}

const by = (mark: { readonly by: string }) => (mark.by === '' ? '' : ` by ${mark.by}`);

function wordsOf(mark: TimelineMark): readonly [title: string, text: string] {
  switch (mark.kind) {
    case 'owner':
      return ownerWords(mark, span(mark.ms));
    case 'steer':
      return [mark.count > 1 ? `${mark.count} messages: ` : 'Steered: ', mark.texts.join(' · ')];
    case 'parked':
      return ['Parked. ', `${mark.code}: ${mark.text}`];
    case 'vote':
      return [
        `${mark.of === 'question' ? 'Answered' : 'Approved'}${by(mark)}. `,
        `Vote ${mark.votes}. It waits for more.${mark.text ? ` ${mark.text}` : ''}`,
      ];
    case 'refused':
      return [`Answer${by(mark)} refused. `, `${mark.code}: ${mark.text} It still waits.`];
    case 'unparked':
      return [`Unparked${by(mark)}. `, ''];
    default:
      return [`Ended: ${mark.status}. `, [mark.code, mark.text].filter(Boolean).join(': ').slice(0, 400)];
  }
}
