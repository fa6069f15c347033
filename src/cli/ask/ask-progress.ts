import type { Output } from '../ui/output.ts';
import { isAtWork, type ModelView } from './board-state.ts';
import { callsOf, nameOnBoard, summaryOnBoard, tokensOnBoard } from './board-texts.ts';
import { type BoardStart, LiveBoard } from './live-board.ts';

/**
 * Shows on stderr how several models answer. Call `update` for every change: it draws at its own rate. It holds a timer and the
 * cursor of the terminal: call `end` on every way out.
 * @example
 * const progress = askProgressFor(output, { prompt, models: ['sonnet', 'gpt'] });
 * progress.update({ ...view, text: view.text + delta });
 * output.say('pawl: stopping once this is saved'); // appears above the board
 * progress.end();
 */
export interface AskProgress {
  /** The current state of a model; the text may have any length. An unknown model is added. */
  update(view: ModelView): void;
  /** Shows the text of another model: 1 the next, -1 the one before. Visible if there is no room for all. */
  moveFocus(by: number): void;
  /** Removes the board and prints how each model ended. A second call does nothing. */
  end(): void;
}

/** Returns the display of `pawl ask` while the models answer: a live board on a terminal, or plain lines in a pipe. */
export function askProgressFor(output: Output, start: BoardStart): AskProgress {
  return output.isLive ? new LiveBoard(output, start) : new PlainBoard(output);
}

/** Prints the progress of `pawl ask` to a pipe: a line when a model starts, completes a step, and ends. */
export class PlainBoard {
  readonly #output: Pick<Output, 'say'>;
  /** The last state of each model that was printed. */
  readonly #told = new Map<string, ModelView>();

  constructor(output: Pick<Output, 'say'>) {
    this.#output = output;
  }

  update(view: ModelView): void {
    const told = this.#told.get(view.id);
    if (view.state === 'waiting' || (told && !isAtWork(told))) return;
    const line = lineOf(view, told);
    if (line === undefined) return;
    this.#told.set(view.id, view);
    this.#output.say(line);
  }

  moveFocus(_by: number): void {}

  end(): void {}
}

/** The next line about a model; undefined = nothing new. */
function lineOf(view: ModelView, told: ModelView | undefined): string | undefined {
  if (!isAtWork(view)) return summaryOnBoard(view, ', ');
  if (told === undefined)
    return `${nameOnBoard(view)}: ${view.steps === 0 ? 'starts' : `continues after step ${view.steps}`}`;
  if (view.steps <= told.steps) return undefined;
  const tools = callsOf(callsSince(told, view));
  return `${nameOnBoard(view)}: step ${view.steps}${tools === '' ? '' : `: ${tools}`}; ${tokensOnBoard(view)} so far`;
}

function callsSince(told: ModelView, { toolCalls }: ModelView): ModelView['toolCalls'] {
  return Object.fromEntries(
    Object.entries(toolCalls).map(([name, calls]) => [name, calls - (told.toolCalls[name] ?? 0)]),
  );
}
