import type { RunState } from '../../wire.ts';
import { words } from '../frame/words.ts';
import { escapedHtml } from '../parts/escaped.ts';
import { glyphWords } from '../parts/glyph.tsx';
import { type ChartFacts, seenStates, stageOf } from './chart-model.ts';
import { type Box, boxLeft, boxWidth, type Edge, layoutOf, type Node, nodeHeight, stagesOf } from './layout.ts';
import { roundPath } from './round.ts';

interface ChartProps {
  readonly facts: ChartFacts;
  readonly state: RunState;
  /** The phases of its agent, if it has any. */
  readonly phases?: readonly { readonly name: string; readonly isDone: boolean }[] | undefined;
  /** The facts come from the record, not from a journal. */
  readonly isAsSaved?: boolean;
  /** Only its head is shown. */
  readonly isFolded?: boolean;
  /** Folds it, and opens it again. */
  onFold?(): void;
}

/** The machine of a run, and where the run is in it. */
export function Chart({ facts, state, phases = [], isAsSaved = false, isFolded = false, onFold }: ChartProps) {
  const known = { ...facts, phases: Math.max(facts.phases, phases.length) };
  return (
    <section class={`at-${state}`} aria-label="Chart">
      <div class="sec">
        <h2>Chart</h2>
        <span class="end">
          {isFolded ? spoken(facts.at) : `${isAsSaved ? 'as of the last save · ' : ''}↺ a restart continues here`}
          {onFold && (
            <button type="button" class="plain" aria-expanded={!isFolded} onClick={onFold}>
              <kbd>c</kbd> {isFolded ? 'open' : 'fold'}
            </button>
          )}
        </span>
      </div>
      {!isFolded && <Drawing {...{ facts: known, state, phases, isAsSaved }} />}
      <ul class="hidden" aria-label="States of the run">
        {seenStates(facts).map(([id, visits]) => (
          <li key={id}>
            {spoken(id)}, {visits === 1 ? 'once' : `${visits} times`}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Drawing({ facts, state, phases = [], isAsSaved = false }: ChartProps) {
  const stage = stageOf(facts);
  const layout = layoutOf(facts.phases, stagesOf(facts.phases).indexOf(stage));
  const edges = layout.edges.toSorted((a, b) => Number(a.id === facts.last) - Number(b.id === facts.last));
  return (
    <svg
      viewBox={`0 -10 ${layout.width} ${layout.height + 10}`}
      class="chart"
      role="img"
      aria-label={`Statechart of the run: ${glyphWords[state]}, ${inWords(facts, isAsSaved)}`}
    >
      {layout.boxes.map((box) => (
        <Loop key={box.id} box={box} facts={facts} title={titleOf(box.id, phases, stage)} />
      ))}
      {edges.map((edge) => (
        <Line key={edge.id} edge={edge} isHot={edge.id === facts.last} />
      ))}
      {layout.nodes.map((node) => (
        <State key={node.id} node={node} facts={facts} />
      ))}
    </svg>
  );
}

function spoken(id: string): string {
  return id.replace('.', ', ');
}

function inWords({ at }: ChartFacts, isAsSaved: boolean): string {
  if (at === '') return 'no state is known yet';
  return `it ${isAsSaved ? 'was in' : 'is in'} ${spoken(at)}${isAsSaved ? ' as of the last save' : ''}`;
}

const TITLE_CHARS = 44;

/** What stands beside the name of a loop. */
function titleOf(id: string, phases: ChartProps['phases'] = [], stage: string): string {
  if (id === 'running') return words.stages?.oneLoop ?? '';
  const all = stagesOf(phases.length);
  const index = all.indexOf(id);
  const phase = phases[index];
  if (!phase) return '';
  const name = escapedHtml(phase.name);
  const short = name.length > TITLE_CHARS ? `${name.slice(0, TITLE_CHARS - 1)}…` : name;
  if (phase.isDone) return `${short} · done`;
  return index > all.indexOf(stage) ? `${short} · to come` : short;
}

function Loop({ box: { id, y, height }, facts, title }: { box: Box; facts: ChartFacts; title: string }) {
  const isIn = facts.at.startsWith(`${id}.`);
  return (
    <g class={`box${isIn ? ' in' : ''}${facts.visits[id] ? ' seen' : ''}`}>
      <rect x={boxLeft} y={y} width={boxWidth} height={height} rx={8} />
      <text x={boxLeft + 10} y={y + 17}>
        {id}
      </text>
      <text class="sub" x={boxLeft + boxWidth - 10} y={y + 17} text-anchor="end">
        {title}
      </text>
    </g>
  );
}

function Line({ edge: { points, isMain }, isHot }: { edge: Edge; isHot: boolean }) {
  const look = `edge${isMain ? ' main' : ''}${isHot ? ' hot' : ''}`;
  return <path class={look} d={roundPath(points)} marker-end="url(#arrow)" />;
}

function State({ node: { id, label, x, y, width, isFinal }, facts }: { node: Node; facts: ChartFacts }) {
  const visits = facts.visits[id] ?? 0;
  const [left, top] = [x - width / 2, y - nodeHeight / 2];
  return (
    <g class={`node${isFinal ? ' final' : ''}${id === facts.at ? ' at' : ''}${visits > 0 ? ' seen' : ''}`}>
      <rect x={left} y={top} width={width} height={nodeHeight} rx={isFinal ? nodeHeight / 2 : 5} />
      <text x={x} y={y + 4} text-anchor="middle">
        {label}
      </text>
      {visits > 1 && (
        <text class="visits" x={left + width - 1} y={top - 2.5} text-anchor="end">
          ×{visits}
        </text>
      )}
    </g>
  );
}
