import { useEffect, useState } from 'preact/hooks';
import type { MachineDrawing } from '../../machine/wire.ts';
import type { MachineView, RunState } from '../../wire.ts';
import { get, pathOfApi } from '../frame/api.ts';
import { words } from '../frame/words.ts';
import { Pairs } from '../parts/lists.tsx';
import { Mono } from '../parts/text.tsx';
import { DrawingView } from './drawing.tsx';
import { Events } from './events.tsx';
import { activePaths, type MachineFacts, stateWords } from './machine-model.ts';

interface MachineProps {
  readonly runId: string;
  readonly machine: MachineView;
  readonly facts: MachineFacts;
  readonly state: RunState;
}

/** The drawing of a workflow's machine, with what is said of it below it. */
export function Machine(props: MachineProps & { readonly isFolded?: boolean; onFold?(): void }) {
  const { runId, machine, facts, state, isFolded = false, onFold } = props;
  const drawing = useDrawing(runId, machine.chart);
  return (
    <section class={`at-${state}`} aria-label="Chart">
      <div class="sec">
        <h2>Machine</h2>
        <span class="end">
          {onFold && (
            <button type="button" class="plain" aria-expanded={!isFolded} onClick={onFold}>
              <kbd>c</kbd> {isFolded ? 'open' : 'fold'}
            </button>
          )}
        </span>
      </div>
      {machine.chart === undefined && <p class="pad dim">{words.stages?.unknown}</p>}
      {!isFolded && drawing && drawing.width > 0 && <DrawingView of={drawing} machine={machine} facts={facts} />}
    </section>
  );
}

/** What the machine of a workflow takes, its timers and its open calls, and its states as a list. */
export function MachineFactsView({ runId, machine, facts }: MachineProps) {
  const { timers, calls } = machine;
  const { last, at = machine.state } = facts;
  const drawing = useDrawing(runId, machine.chart);
  const lines = drawing?.arrows.flatMap(({ label }) => label?.lines ?? []) ?? [];
  const took = last?.took.flatMap((id) => lines.find((line) => line.id === id)?.text ?? []).join(', ');
  const timer = ({ sendId, dueAt }: MachineView['timers'][number]) =>
    `${lines.find((line) => line.timer === sendId)?.text ?? sendId}: ${dueAt === undefined ? 'due' : new Date(dueAt).toLocaleString('en-GB')}`;
  return (
    <section class="machine" aria-label="Machine">
      <Pairs
        of={[
          ['State', <Mono key="state" text={stateWords(at) || 'it has not begun'} />],
          last && [
            'Last',
            <Mono key="last" text={`${took || last.event}: ${last.from || 'the beginning'} → ${last.to}`} />,
          ],
          timers.length > 0 && ['Timers', <Mono key="timers" text={timers.map(timer).join(', ')} />],
          calls.length > 0 && [
            'Calls',
            <Mono key="calls" text={calls.map(({ name, state }) => `${name}: ${state}`).join(', ')} />,
          ],
        ]}
      />
      <Events runId={runId} machine={machine} />
      {drawing && <States of={drawing} active={new Set(activePaths(at))} visits={facts.visits} />}
    </section>
  );
}

/** The drawings that the page has, by their names. */
const drawings = new Map<string, MachineDrawing>();

function useDrawing(runId: string, chart: string | undefined): MachineDrawing | undefined {
  const [, draw] = useState({});
  useEffect(() => {
    if (chart === undefined || drawings.has(chart)) return;
    void get<MachineDrawing>(pathOfApi('runs', runId, 'chart')).then(({ value }) => {
      if (value) drawings.set(chart, value);
      draw({});
    });
  }, [runId, chart]);
  return drawings.get(chart ?? '');
}

interface StatesProps extends Pick<MachineFacts, 'visits'> {
  readonly of: MachineDrawing;
  readonly active: ReadonlySet<string>;
}

/** The same as a list: for those who do not see the drawing, and for a machine that is too large for one. */
function States({ of: { states, width }, active, visits }: StatesProps) {
  return (
    <details open={width === 0}>
      <summary>States</summary>
      <ul aria-label="States of the workflow">
        {states.slice(1).map(({ path, type, about }) => (
          <li key={path} title={about} aria-current={active.has(path) ? 'step' : undefined}>
            <Mono text={path} />
            <span class="faint">
              {type === 'atomic' || type === 'compound' ? '' : ` ${type}`}
              {visits[path] ? ` ×${visits[path]}` : ''}
            </span>
          </li>
        ))}
      </ul>
    </details>
  );
}
