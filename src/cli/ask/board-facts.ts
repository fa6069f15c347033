import { count, dollars, duration } from '../figures.ts';
import type { Style } from '../output.ts';
import { drawableLine } from '../terminal-text.ts';
import { isAtWork, type ModelState, type ModelView } from './board-state.ts';

/** Colours a piece of a line; what it returns is as wide as what it was given. */
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

/** The sign of a model's state, one column wide. */
export function markOf({ state }: ModelView, frame: number): { readonly style: Style; readonly text: string } {
  return { style: styles[state], text: marks[state] ?? spinner[frame % spinner.length] ?? '' };
}

export function nameOf({ id }: ModelView): string {
  return drawableLine(id.slice(0, 200)) || '?';
}

/** What a model is doing, in words. */
export function doingOf(view: ModelView): string {
  const { activity } = view;
  const doing = isAtWork(view) && activity ? drawableLine(activity.slice(0, 500)) : '';
  return doing || stateOf(view);
}

export function stateOf({ state }: ModelView): string {
  return state.replaceAll('-', ' ');
}

export function tokensOf({ inputTokens, outputTokens }: ModelView): string {
  return count(inputTokens + outputTokens, 'token');
}

/** Steps, tokens and money. */
export function spendingOf(view: ModelView): string[] {
  return [count(view.steps, 'step'), tokensOf(view), ...(view.costUsd > 0 ? [dollars(view.costUsd)] : [])];
}

/** What it did with its tools: how often each was called, and what it proposes. */
export function deedsOf({ toolCalls, writes }: ModelView): string[] {
  const tools = Object.entries(toolCalls).filter(([, calls]) => calls > 0);
  const called = tools.map(([name, calls]) => (calls === 1 ? drawableLine(name) : `${drawableLine(name)} ×${calls}`));
  return [
    ...(writes > 0 ? [`${count(writes, 'write')} proposed`] : []),
    ...(called.length > 0 ? [called.join(', ')] : []),
  ];
}

/** All of it in one line. */
export function factsOf(view: ModelView): string {
  return [...spendingOf(view), duration(view.latencyMs), ...deedsOf(view)].join(' · ');
}
