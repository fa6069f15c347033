import { Immer } from 'immer';
import type { Hidden } from '../values/hidden.ts';
import type { JsonObject } from '../values/json.ts';
import type { Message, ToolOutput } from '../values/message.ts';
import type { ImagePart } from './request.ts';
import type { Transcript } from './transcript.ts';

/**
 * A separate instance: settings that a host makes on immer's shared one do not affect it. It freezes nothing: messages are
 * frozen once, at entry, and the rest of a run's state is not walked at each change.
 */
const immer = new Immer({ autoFreeze: false });

/** Values that a recipe replaces as a whole, and never changes. */
export type WholeValue = string | Message | ToolOutput | ImagePart | Transcript | Hidden<object>;

/** The draft of a value: its fields can be assigned, pushed to and deleted. Messages and JSON are replaced as a whole. */
export type Writable<T> = JsonObject extends T
  ? T
  : T extends WholeValue
    ? T
    : { -readonly [Key in keyof T]: Writable<T[Key]> };

/** Changes a draft and returns nothing, or leaves it alone and returns the next state. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function without a return statement must fit
export type Recipe<Draft, Next = Draft> = (draft: Draft) => Next | void;

/**
 * Changes an immutable state by a recipe on a draft of it (immer), and returns the new state, or what the recipe returns.
 * Unchanged parts are shared with the old state; without a change the result is the old state itself.
 *
 * A Transcript is not part of a draft: immer passes it through unchanged. A recipe appends to the transcript of the old state,
 * and adds nothing to it that it read from the draft.
 * @example change(progress, (draft) => { draft.commands.push(id); })
 */
export function change<T extends object>(state: T, recipe: Recipe<Writable<T>, T | Writable<T>>): T {
  return immer.produce(state, recipe as (draft: unknown) => T | undefined);
}
