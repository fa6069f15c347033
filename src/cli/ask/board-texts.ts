import { count, dollars, duration } from '../ui/format.ts';
import type { Style } from '../ui/output.ts';
import { cutToWidth, drawableLine } from '../ui/terminal-text.ts';
import { isAtWork, type ModelState, type ModelView } from './board-state.ts';

/** Colours a part of a line; the width must not change. */
export type Paint = (style: Style, text: string) => string;

const spinner = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

const styles: Readonly<Record<ModelState, Style>> = {
  waiting: 'dim',
  thinking: 'cyan',
  'calling-tools': 'cyan',
  leaving: 'yellow',
  answered: 'green',
  failed: 'red',
  interrupted: 'yellow',
};
const marks: Readonly<Partial<Record<ModelState, string>>> = {
  waiting: '·',
  answered: '✓',
  failed: '✗',
  interrupted: '■',
};

/** Returns the symbol of a model's state on the board, one column wide; a spinner while it works. */
export function markOfBoard({ state }: ModelView, frame: number): { readonly style: Style; readonly text: string } {
  return { style: styles[state], text: marks[state] ?? spinner[frame % spinner.length] ?? '' };
}

/** Returns the name of a model on the board, safe to draw. */
export function nameOnBoard({ id }: ModelView): string {
  return drawableLine(id.slice(0, 200)) || '?';
}

/** Returns what a model on the board does now, in words. */
export function doingOf(view: ModelView): string {
  const { activity } = view;
  const doing = isAtWork(view) && activity ? drawableLine(activity.slice(0, 500)) : '';
  return doing || stateOnBoard(view);
}

/** Returns the state of a model on the board, in words. */
export function stateOnBoard({ state }: ModelView): string {
  return state.replaceAll('-', ' ');
}

/** Returns the tokens that a model on the board has used, in words. */
export function tokensOnBoard({ inputTokens, outputTokens }: ModelView): string {
  return count(inputTokens + outputTokens, 'token');
}

/** Returns the usage of a model on the board as texts: steps, tokens and money. */
export function spendingOf(view: ModelView): string[] {
  return [count(view.steps, 'step'), tokensOnBoard(view), ...(view.costUsd > 0 ? [dollars(view.costUsd)] : [])];
}

/** Returns the tool calls of a model on the board, and how many writes it proposes, as texts. */
export function deedsOf({ toolCalls, writes }: ModelView): string[] {
  const called = callsOf(toolCalls);
  return [...(writes > 0 ? [`${count(writes, 'write')} proposed`] : []), ...(called === '' ? [] : [called])];
}

/**
 * Returns the tools that a model has called, and how often, as a text for the board.
 * @example callsOf({ read_file: 2, grep: 1 }) // 'read_file ×2, grep'
 */
export function callsOf(toolCalls: ModelView['toolCalls']): string {
  const called = Object.entries(toolCalls).filter(([, calls]) => calls > 0);
  return called.map(([name, calls]) => drawableLine(name) + (calls === 1 ? '' : ` ×${calls}`)).join(', ');
}

/** Returns how a model on the board ended, in one line. */
export function summaryOnBoard(view: ModelView, separator: string): string {
  const why = view.error === undefined ? '' : `: ${cutToWidth(drawableLine(view.error.slice(0, 2_000)), 500)}`;
  return [
    `${nameOnBoard(view)}: ${stateOnBoard(view)}${why}`,
    ...spendingOf(view),
    duration(view.latencyMs),
    ...deedsOf(view),
  ].join(separator);
}
