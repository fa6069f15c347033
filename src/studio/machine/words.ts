// What the drawing of a machine says: names of events as people read them, and how wide texts are. Pure.
import type { StateOutline, TransitionOutline } from '../../index.ts';

/** Longest text in the drawing, in columns. */
const MAX_COLUMNS = 34;

/** The width of a text in columns of a font whose letters are equally wide: letters of East Asia take two. */
export function columnsOf(text: string): number {
  let columns = 0;
  for (const char of text) columns += isWide(char.codePointAt(0) ?? 0) ? 2 : 1;
  return columns;
}

function isWide(code: number): boolean {
  return (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xff60) || code >= 0x1f300;
}

/** Letters that hide, or change the order of others: a name with them is in the list of states, in escapes. */
const hiding = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;

/** Returns a text without hidden letters, cut to what the drawing has room for. */
export function shortenedWord(text: string, most: number = MAX_COLUMNS): string {
  let short = '';
  let columns = 0;
  for (const char of text.replace(hiding, '\ufffd')) {
    columns += columnsOf(char);
    if (columns > most) return `${short.slice(0, -1)}…`;
    short += char;
  }
  return short;
}

/** Returns what starts a transition, and its guard, as people say it. */
export function wordsOf(transition: TransitionOutline, state: StateOutline, isOtherwise: boolean): string {
  const cause = causeOf(transition, state);
  const { guard } = transition;
  const condition = guard === undefined ? (isOtherwise ? 'else' : '') : `if ${guard === '' ? '…' : guard}`;
  if (transition.event === '') return condition === '' ? 'always' : condition;
  return condition === '' ? cause : `${cause}, ${condition}`;
}

const DONE = 'xstate.done.actor.';
const FAILED = 'xstate.error.actor.';
const AFTER = 'xstate.after.';

function causeOf({ event, delayMs }: TransitionOutline, { invokes, key }: StateOutline): string {
  const actor = (id: string) => invokes.find((invoke) => invoke.id === id)?.src ?? id;
  if (event.startsWith(DONE)) return `${actor(event.slice(DONE.length))} done`;
  if (event.startsWith(FAILED)) return `${actor(event.slice(FAILED.length))} failed`;
  if (event.startsWith('xstate.done.state.')) return `${key} done`;
  if (event.startsWith(AFTER)) return `after ${delayOf(event, delayMs)}`;
  return event === '*' ? 'any event' : event;
}

/** The name of a delay, or how long it is. */
function delayOf(event: string, ms: number | undefined): string {
  const [name = ''] = event.slice(AFTER.length).split('.');
  return ms === undefined || Number.isNaN(Number(name)) ? name : spanOf(ms);
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

function spanOf(ms: number): string {
  const [unit, size] = units.find(([, each]) => ms >= each) ?? ['ms', 1];
  return `${Number((ms / size).toFixed(1))} ${unit}`;
}
