// The drawing of a workflow's machine: what its states and transitions say, and where all is. Pure.
import type { StateOutline, TransitionOutline } from '../../index.ts';
import { roundPath } from '../page/chart/round.ts';
import { type Arrow, DOT, type Drawing, type DrawnBox, nested } from './nested.ts';
import type { DrawnArrow, DrawnLabel, DrawnState, MachineDrawing } from './wire.ts';
import { columnsOf, shortenedWord, wordsOf } from './words.ts';

/** Most states, and most transitions, that are drawn: more would hold up the process that serves the page. */
const MAX_STATES = 150;
const MAX_TRANSITIONS = 400;

/** Sizes in px. The letters of the page's fixed-width fonts have 0.6 of their size. */
const NAME = { letter: 7.3, height: 34 };
const SMALL = { letter: 6.65, line: 16 };
const SIDE = 12;
/** Room for how often a state was entered. */
const COUNT = 34;
/** Room for a clock with the time that is left. */
const CLOCK = 74;
const LABEL = { side: 8, padding: 2 };
/** An arrow to its own state: how far it runs to the right. */
const LOOP = 18;

const drawings = new WeakMap<StateOutline, MachineDrawing>();

/** Returns the drawing of a machine, the same object for the same one; of a machine that is too large only its first states. */
export function drawingOf(machine: StateOutline): MachineDrawing {
  const known = drawings.get(machine);
  if (known !== undefined) return known;
  const states = statesIn(machine);
  const transitions = states.reduce((sum, { state }) => sum + state.transitions.length, 0);
  const isLarge = states.length > MAX_STATES || transitions > MAX_TRANSITIONS;
  const drawing = isLarge ? undrawn(states.slice(0, MAX_STATES)) : drawn(states);
  drawings.set(machine, drawing);
  return drawing;
}

function undrawn(states: readonly Located[]): MachineDrawing {
  return { width: 0, height: 0, states: states.map((each) => stateOf(each)), arrows: [], dots: [] };
}

/** A state, and its path: '' for the machine itself. */
interface Located {
  readonly path: string;
  readonly state: StateOutline;
  readonly isRegion: boolean;
}

function statesIn(state: StateOutline, path = '', isRegion = false): readonly Located[] {
  const below = state.states.flatMap((inner) =>
    statesIn(inner, path === '' ? inner.key : `${path}.${inner.key}`, state.type === 'parallel'),
  );
  return [{ path, state, isRegion }, ...below];
}

/** Transitions that lead from one state to the same other one are one arrow, with a line for each. */
interface Way {
  readonly from: string;
  readonly to: string;
  readonly lines: DrawnLabel['lines'][number][];
}

function drawn(states: readonly Located[]): MachineDrawing {
  const ways = states.flatMap(waysOf);
  const loops = new Map(ways.filter(({ from, to }) => from === to).map((way) => [way.from, way]));
  const arrows = ways.filter(({ from, to }) => from !== to);
  const [root] = states as [Located];
  const drawing = nested(
    boxOf(root, { loops, known: new Map(states.map((each) => [each.path, each])) }),
    arrows.map(({ from, to, lines }): Arrow => ({ from, to, ...(lines.length === 0 ? {} : { label: sizeOf(lines) }) })),
  );
  return {
    width: Math.ceil(drawing.width),
    height: Math.ceil(drawing.height),
    states: states.map((each) => stateOf(each, drawing)),
    arrows: [
      ...arrows.map((way, index) => arrowOf(way, drawing.arrows[index] as Drawing['arrows'][number])),
      ...[...loops.values()].map((way) => loopOf(way, drawing)),
      ...drawing.dots.map(({ points }) => ({ path: roundPath(points) })),
    ],
    dots: drawing.dots.map(({ x, y }) => [x + DOT / 2, y + DOT / 2] as const),
  };
}

function waysOf({ path, state }: Located): readonly Way[] {
  const ways = new Map<string, Way>();
  const guarded = new Set<string>();
  for (const transition of state.transitions) {
    for (const to of new Set(transition.targets)) {
      const way = ways.get(to) ?? { from: path, to, lines: [] };
      ways.set(to, way);
      if (state.type !== 'history') way.lines.push(lineOf(transition, state, guarded.has(transition.event)));
    }
    if (transition.guard !== undefined) guarded.add(transition.event);
  }
  return [...ways.values()];
}

function lineOf(transition: TransitionOutline, state: StateOutline, isOtherwise: boolean): DrawnLabel['lines'][number] {
  const { id, event } = transition;
  const text = shortenedWord(wordsOf(transition, state, isOtherwise));
  return { id, text, ...(event.startsWith('xstate.after.') ? { timer: event } : {}) };
}

function sizeOf(lines: DrawnLabel['lines']): { readonly width: number; readonly height: number } {
  const widths = lines.map(({ text, timer }) => columnsOf(text) * SMALL.letter + (timer === undefined ? 0 : CLOCK));
  return {
    width: Math.ceil(Math.max(...widths)) + 2 * LABEL.side,
    height: lines.length * SMALL.line + 2 * LABEL.padding,
  };
}

interface Around {
  readonly loops: ReadonlyMap<string, Way>;
  readonly known: ReadonlyMap<string, Located>;
}

function boxOf({ path, state }: Located, around: Around): DrawnBox {
  const loop = around.loops.get(path);
  const { initial } = state;
  const label = loop && sizeOf(loop.lines);
  const child = initial === undefined ? undefined : around.known.get(initial);
  return {
    id: path,
    title: titleSize(state),
    aside: label && { width: LOOP + label.width, height: label.height + 2 },
    boxes: state.states.map((inner) => {
      const at = path === '' ? inner.key : `${path}.${inner.key}`;
      return boxOf(around.known.get(at) as Located, around);
    }),
    initial: child && firstBelow(path, child.path),
  };
}

/** The state directly in one state that has another one in it. */
function firstBelow(path: string, inner: string): string {
  const depth = path === '' ? 1 : path.split('.').length + 1;
  return inner.split('.').slice(0, depth).join('.');
}

/** A history is a circle. */
const HISTORY = 26;

function titleSize(state: StateOutline): { readonly width: number; readonly height: number } {
  if (state.type === 'history') return { width: HISTORY, height: HISTORY };
  const name = columnsOf(shortenedWord(state.key)) * NAME.letter + COUNT;
  const small = smallLines(state).map(({ text }) => columnsOf(text) * SMALL.letter);
  const height = NAME.height + small.length * SMALL.line + (small.length > 0 ? 4 : 0);
  return { width: Math.ceil(Math.max(72, name, ...small)) + 2 * SIDE, height };
}

/** What a state calls, and the events that it takes without leaving. */
function smallLines(state: StateOutline): NonNullable<DrawnState['lines']> {
  const calls = state.invokes.map(({ id, src }) => ({ text: shortenedWord(`calls ${src}`), actorId: id }));
  const stays = state.transitions.filter(({ targets }) => targets.length === 0);
  return [
    ...calls,
    ...stays.map((each) => ({ text: shortenedWord(`on ${wordsOf(each, state, false)}`), id: each.id })),
  ];
}

function boxIn({ boxes }: Drawing, path: string): readonly [x: number, y: number, width: number, height: number] {
  const { x, y, width, height } = boxes.get(path) as NonNullable<ReturnType<Drawing['boxes']['get']>>;
  return [x, y, width, height];
}

function stateOf({ path, state, isRegion }: Located, drawing?: Drawing): DrawnState {
  const lines = smallLines(state);
  const name = state.type === 'history' ? (state.isDeep ? 'H*' : 'H') : shortenedWord(state.key);
  const about = [state.key === name ? '' : state.key, state.description ?? ''].filter((text) => text !== '');
  return {
    path,
    name,
    type: state.type,
    ...(isRegion ? { isRegion } : {}),
    ...(drawing ? { box: boxIn(drawing, path) } : {}),
    ...(lines.length > 0 ? { lines } : {}),
    ...(about.length > 0 ? { about: about.join(': ') } : {}),
  };
}

function arrowOf({ from, to, lines }: Way, { points, label }: Drawing['arrows'][number]): DrawnArrow {
  const size = lines.length === 0 ? undefined : sizeOf(lines);
  return {
    from,
    to,
    path: roundPath(points),
    ...(label && size ? { label: { box: [label.x, label.y, size.width, size.height], lines } } : {}),
  };
}

/** Out of the right side, behind its label, and in again. */
function loopOf({ from, to, lines }: Way, drawing: Drawing): DrawnArrow {
  const [x, y, width, height] = boxIn(drawing, from);
  const size = sizeOf(lines);
  const middle = y + Math.min(height, Math.max(NAME.height, size.height + 2)) / 2;
  const [right, turn] = [x + width, x + width + LOOP + 10];
  return {
    from,
    to,
    path: roundPath([right, middle - 5, turn, middle - 5, turn, middle + 5, right, middle + 5]),
    label: { box: [right + LOOP, middle - size.height / 2, size.width, size.height], lines },
  };
}
