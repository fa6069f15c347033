import type { RunEvent } from '../events/body.ts';
import type { TextPlace } from './entry.ts';

/** A piece of a text, or of the arguments of a call, with its place in the message. */
export type ViewPiece = TextPlace & { readonly text: string };

/**
 * Returns what a piece adds to what its reader has: the rest of the piece, or '' if the reader has all of it. A piece after a gap
 * adds nothing, so that a reader always has the beginning of a text. The recorded message brings what is missing.
 * @param had where the text of the reader ends; a number of characters is a place in the block of the piece
 */
export function unread(had: TextPlace | number, { block, offset, text }: ViewPiece): string {
  const read = typeof had === 'number' ? had : charsOf(had, block);
  return offset > read ? '' : text.slice(read - offset);
}

/** The characters of a block that a reader has. Texts come in the order of blocks. */
function charsOf(had: TextPlace, block: number): number {
  if (block < had.block) return Number.POSITIVE_INFINITY;
  return block === had.block ? had.offset : 0;
}

/** The place after a piece. */
export const placeAfter = ({ block, offset, text }: ViewPiece): TextPlace => ({ block, offset: offset + text.length });

/** What a model says in one step, as far as its pieces have come: the text of all blocks, without reasoning. */
export interface TextView extends TextPlace {
  /** 0 = the pieces of no step. */
  readonly step: number;
  readonly text: string;
}

/** Before the first piece. */
export const noText: TextView = { step: 0, block: 0, offset: 0, text: '' };

/** Returns the text after one more event. It stays after a step, and after a reset, until the next piece comes. */
export function textAfter(view: TextView, event: RunEvent): TextView {
  if (event.type === 'step.reset') return { ...noText, text: view.text };
  if (event.type !== 'model.delta' || event.kind !== 'text') return view;
  const { step } = event;
  const known = step === view.step ? view : { ...noText, step };
  const more = unread(known, event);
  return more === '' ? view : { step, ...placeAfter(event), text: known.text + more };
}
