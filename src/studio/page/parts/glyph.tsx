import type { RunState } from '../../wire.ts';

/** The word of each state; its shape has the same name in index.html. */
export const glyphWords: { readonly [state in RunState]: string } = {
  you: 'needs you',
  run: 'running',
  wait: 'waiting',
  idle: 'interrupted',
  park: 'parked',
  bad: 'unreadable',
  ok: 'ok',
  fail: 'error',
  cut: 'cancelled',
};

/** The shape of a state. */
export function Glyph({ state }: { readonly state: RunState }) {
  return (
    <svg class={`glyph ${state}`} aria-hidden="true">
      <use href={`#g-${state}`} />
    </svg>
  );
}

/** A drawing of a control: `runs`, `inbox`, `fan`, `thread`, `store`, `search`, `theme`. */
export function Icon({ name }: { readonly name: string }) {
  return (
    <svg class="icon" aria-hidden="true">
      <use href={`#i-${name}`} />
    </svg>
  );
}

/** A state as shape, colour and word. */
export function State({ state, word = glyphWords[state] }: { readonly state: RunState; readonly word?: string }) {
  return (
    <span class={`state ${state}`}>
      <Glyph state={state} />
      <span>{word}</span>
    </span>
  );
}
