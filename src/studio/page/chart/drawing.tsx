import { useLayoutEffect, useRef } from 'preact/hooks';
import type { DrawnArrow, DrawnState, MachineDrawing } from '../../machine/wire.ts';
import type { MachineView } from '../../wire.ts';
import { span } from '../parts/amounts.ts';
import { useNow } from '../parts/now.ts';
import { activePaths, innermost, type MachineFacts, middleOf, stateWords } from './machine-model.ts';

/** A drawing that is wider than its place is shown this small at least: smaller, no one can read it. */
const LEAST = 0.72;

interface DrawingProps {
  readonly of: MachineDrawing;
  readonly machine: MachineView;
  readonly facts: MachineFacts;
}

/** The machine of a workflow as the server laid it out: where it is, which way it came, and which timers run. */
export function DrawingView({ of, machine, facts }: DrawingProps) {
  const { width, height, states, arrows, dots } = of;
  const state = facts.at ?? machine.state;
  const active = activePaths(state);
  const took = facts.last?.took ?? [];
  const box = useInSight(of, innermost(active));
  const seen = { active: new Set(active), inner: new Set(innermost(active)), facts, machine };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by the keyboard
    <section class="drawing" ref={box} tabIndex={0} aria-label="Drawing of the machine">
      <svg
        viewBox={`-4 -4 ${width + 8} ${height + 8}`}
        width={width + 8}
        style={{ minWidth: `${Math.round(width * LEAST)}px` }}
        role="img"
        aria-label={`Statechart of the workflow: it is in ${stateWords(state) || 'no state yet'}`}
      >
        {states.map((each) => (
          <State key={each.path} of={each} {...seen} />
        ))}
        {arrows.map(({ path, label }) => (
          <path
            key={path}
            class={`edge${label?.lines.some(({ id }) => took.includes(id)) ? ' hot' : ''}`}
            d={path}
            marker-end="url(#arrow)"
          />
        ))}
        {arrows.map(({ path, label }) => label && <Label key={path} of={label} took={took} machine={machine} />)}
        {dots.map(([x, y]) => (
          <circle key={`${x} ${y}`} cx={x} cy={y} r={5} />
        ))}
      </svg>
    </section>
  );
}

/** Moves a drawing so that the state is in sight in which the machine is now; not under the pointer, and not while it has the focus. */
function useInSight({ states, width }: MachineDrawing, paths: readonly string[]) {
  const box = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const [x = 0, y = 0] = middleOf(states, paths) ?? [];
    const at = box.current;
    if (!at || at.matches(':hover, :focus')) return;
    const scale = (at.firstElementChild?.clientWidth ?? 0) / width;
    at.scrollTo(x * scale - at.clientWidth / 2, y * scale - at.clientHeight / 2);
  }, [paths.join()]);
  return box;
}

interface StateProps extends Pick<DrawingProps, 'machine' | 'facts'> {
  readonly of: DrawnState;
  readonly active: ReadonlySet<string>;
  readonly inner: ReadonlySet<string>;
}

function State({ of, active, inner, facts, machine }: StateProps) {
  const { path, name, type, isRegion, box = [0, 0, 0, 0], lines = [], about } = of;
  const [x, y, width, height] = box;
  const visits = facts.visits[path] ?? 0;
  const isOpen = (actorId?: string) => machine.calls.some((call) => call.actorId === actorId);
  const isIn = active.has(path);
  const isHistory = type === 'history';
  const look = `${type}${isRegion ? ' region' : ''}${visits > 0 ? ' seen' : ''}${isIn ? ' in' : ''}${inner.has(path) ? ' at' : ''}`;
  return (
    <g class={`st ${look}`}>
      {about !== undefined && <title>{about}</title>}
      <rect {...{ x, y, width, height }} rx={isHistory ? height / 2 : 8} />
      {type === 'final' && <rect x={x + 3} y={y + 3} width={width - 6} height={height - 6} rx={5.5} />}
      <text
        class="name"
        x={x + (isHistory ? width / 2 : 12)}
        y={y + (isHistory ? 17 : 21)}
        text-anchor={isHistory ? 'middle' : 'start'}
      >
        {name}
      </text>
      {visits > 1 && (
        <text class="sub" x={x + width - 10} y={y + 21} text-anchor="end">
          ×{visits}
        </text>
      )}
      {lines.map(({ text, actorId }, at) => (
        <text key={text} class={`sub${isIn && isOpen(actorId) ? ' open' : ''}`} x={x + 12} y={y + 40 + 16 * at}>
          {text}
        </text>
      ))}
    </g>
  );
}

interface LabelProps extends Pick<DrawingProps, 'machine'> {
  readonly of: NonNullable<DrawnArrow['label']>;
  readonly took: readonly string[];
}

function Label({ of: { box, lines }, took, machine }: LabelProps) {
  const now = useNow();
  const [x, y, width, height] = box;
  const timerOf = (timer?: string) => machine.timers.find(({ sendId }) => sendId === timer);
  const isTimed = lines.some(({ timer }) => timerOf(timer));
  const [at, anchor] = isTimed ? [x + 8, 'start' as const] : [x + width / 2, 'middle' as const];
  return (
    <g class={`lb${lines.some(({ id }) => took.includes(id)) ? ' hot' : ''}`}>
      <rect {...{ x, y, width, height }} rx={9} />
      {lines.map(({ id, text, timer }, index) => {
        const pending = timerOf(timer);
        const line = y + 14 + 16 * index;
        return (
          <g key={id} class={took.includes(id) ? 'took' : ''}>
            <text x={at} y={line} text-anchor={anchor}>
              {text}
            </text>
            {pending && (
              <>
                <path
                  class="clock"
                  d={`M${x + width - 68} ${line - 4}m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0m4.5-2.7v2.7l1.8 1.2`}
                />
                <text class="left" x={x + width - 60} y={line}>
                  {pending.dueAt === undefined || pending.dueAt <= now ? 'due' : span(pending.dueAt - now)}
                </text>
              </>
            )}
          </g>
        );
      })}
    </g>
  );
}
