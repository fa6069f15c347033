import type { CallView, RecordView, RunState } from '../../wire.ts';
import { Fork } from '../actions/run-actions.tsx';
import { encoded } from '../frame/api.ts';
import { words as texts, words } from '../frame/words.ts';
import { clockTime, span, whole } from '../parts/amounts.ts';
import { Glyph } from '../parts/glyph.tsx';
import { Pairs } from '../parts/lists.tsx';
import { Mono, RunLink } from '../parts/text.tsx';
import { placed } from './placed.ts';
import type { TimelineCall, TimelineStep } from './timeline.ts';
import type { TimelineRow } from './timeline-rows.ts';
import { callState, StateGlyph, stepName } from './timeline-view.tsx';
import { Loaded, Value } from './value.tsx';

interface SelectedProps {
  readonly row: TimelineRow | undefined;
  readonly view: RecordView;
  /** Closes it, where it covers something. */
  onClose?(): void;
}

/** The row that is chosen, in full. */
export function Selected({ row, view, onClose }: SelectedProps) {
  return (
    <section class="insp" aria-label="Selected">
      {onClose && (
        <button type="button" class="close" onClick={onClose}>
          Close
        </button>
      )}
      {row?.kind === 'step' && <Turn step={row.step} view={view} />}
      {row?.kind === 'call' && <Call key={row.key} step={row.step} call={row.call} view={view} />}
      {row === undefined && <p class="pad faint">{words.stages?.choose}</p>}
    </section>
  );
}

function Turn({ step, view }: { readonly step: TimelineStep; readonly view: RecordView }) {
  const { tokens, ms, at, retries, passed, words, calls, ending, took } = step;
  return (
    <>
      <div class="sec">
        <h2>
          Step {step.step} · {stepName(step).toLowerCase()}
        </h2>
      </div>
      <div class="in">
        <Pairs
          of={[
            took !== undefined && ['Takes', took || texts.stages?.callsRun],
            tokens && [
              'Tokens',
              `${whole(tokens.input)} in (${whole(tokens.cached)} cached) · ${whole(tokens.output)} out`,
            ],
            ms !== undefined && ['Took', span(ms)],
            passed && ['Models', passed],
            retries > 0 && ['Attempts', `${retries + 1}`],
            ending && ['Answer', ending],
            ['Calls', calls.length ? whole(calls.length) : 'none'],
            at && ['Message', clockTime(at)],
            words && ['Says', words],
          ]}
        />
        {view.record && <Fork key={step.step} runId={view.line.runId} at={step.step} />}
      </div>
    </>
  );
}

interface CallProps {
  readonly step: TimelineStep;
  readonly call: TimelineCall;
  readonly view: RecordView;
}

function Call({ step, call, view }: CallProps) {
  const { name, effect, callId, attempts } = call;
  const { record, line } = view;
  const { runId } = line;
  const open = record?.openStep?.calls.find((each) => each.callId === callId);
  const child = view.children.find((each) => each.callId === callId);
  const at = `call=${encoded(callId)}`;
  const isEnded = call.state === 'done' || call.state === 'failed';
  return (
    <>
      <div class="sec">
        <StateGlyph state={callState(call, line.state)} />
        <h2 class="mono cut1">{name}</h2>
        {effect && <span class={`eff ${effect}`}>{effect}</span>}
        <Mono class="end cut1" text={callId} />
      </div>
      <div class="in">
        <Pairs
          of={[
            open && ['Key', <Mono key="key" text={open.key} />],
            effect && ['Means', words.effects?.[effect]?.join(' ')],
            attempts > 1 && ['Starts', whole(attempts)],
            child && ['Run', <RunLink key="run" runId={child.runId} />],
          ]}
        />
        <Ledger call={call} isKept={step.at !== undefined} run={line.state} />
        <h3>Input</h3>
        <Content runId={runId} shown={open?.input ?? inputOf(call)} at={`${at}&part=input`} />
        {isEnded && (
          <>
            <h3>{call.state === 'failed' ? 'Error' : 'Output'}</h3>
            <Content runId={runId} shown={open?.output} at={`${at}&part=output`} />
          </>
        )}
      </div>
    </>
  );
}

/** Of a `read` that runs, only the message of its step has the input. */
function inputOf({ input }: TimelineCall): CallView['input'] | undefined {
  return input === undefined ? undefined : { value: input, bytes: 0 };
}

function Content({
  runId,
  shown,
  at,
}: {
  readonly runId: string;
  readonly shown: CallView['input'] | undefined;
  readonly at: string;
}) {
  return shown ? (
    <Value runId={runId} shown={shown} />
  ) : (
    <Loaded key={at} runId={runId} at={at} isAtOnce none={words.stages?.none ?? ''} />
  );
}

interface LedgerProps {
  readonly call: TimelineCall;
  readonly isKept: boolean;
  readonly run: RunState;
}

/** What was stored of a call, and when. */
function Ledger({ call, isKept, run }: LedgerProps) {
  const { plannedAt, starts, attempts, isRefused, wait, end, state } = call;
  const inRevision = (revision: number | undefined) => (revision === undefined ? '' : ` · revision ${revision}`);
  return (
    <ul class="log">
      {isKept && <Entry at={plannedAt} state="ok" text={words.stages?.planned ?? ''} />}
      {wait && (
        <Entry
          at={wait.since}
          state={wait.kind === 'approval' || wait.kind === 'question' ? 'you' : 'wait'}
          text={`asked, and stored${wait.dueAt === undefined ? '' : ` · expires ${clockTime(wait.dueAt)}`}`}
        />
      )}
      {wait?.end && (
        <Entry
          at={wait.end.at}
          state="ok"
          text={`${words.ends?.[wait.end.how] ?? wait.end.how}${wait.end.by ? ` by ${wait.end.by}` : ''}${wait.end.note ? `: ${wait.end.note}` : ''}`}
        />
      )}
      {placed(starts).map(({ place, item: { at, revision } }) => (
        <Entry
          key={`start ${place}`}
          at={at}
          state={state === 'started' && run === 'run' && place === starts.length - 1 ? 'run' : 'ok'}
          text={`started · attempt ${attempts - starts.length + place + 1}${inRevision(revision)}`}
        />
      ))}
      {state === 'unknown' && <Entry state="bad" text={words.stages?.lost ?? ''} />}
      {end?.at !== undefined && (
        <Entry
          at={end.at}
          state={state === 'failed' ? 'fail' : 'ok'}
          text={`${isRefused ? 'never started, result recorded' : `result recorded after ${span(end.ms)}`}${inRevision(end.revision)}`}
        />
      )}
      {wait && !wait.end && run !== 'run' && <Entry state="idle" text={words.stages?.released ?? ''} />}
    </ul>
  );
}

interface EntryProps {
  readonly at?: number | undefined;
  readonly state: RunState;
  readonly text: string;
}

function Entry({ at, state, text }: EntryProps) {
  return (
    <li>
      <span class="mono">{at === undefined ? '' : exact(at)}</span>
      <Glyph state={state} />
      <span>{text}</span>
    </li>
  );
}

/** `12:04:09.114`. */
function exact(at: number): string {
  return `${new Date(at).toLocaleTimeString('en-GB')}.${String(Math.floor(at % 1_000)).padStart(3, '0')}`;
}
