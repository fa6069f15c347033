import type { Output } from '../ui/output.ts';
import { callsOf, nameOf, summaryOf, tokensOf } from './board-facts.ts';
import { isAtWork, type ModelView } from './board-state.ts';
import { type BoardStart, LiveBoard } from './live-board.ts';

/**
 * Shows how several models answer, on stderr. Tell it everything that changes, as often as it changes: it draws when it is
 * time. It holds a timer and the cursor of the terminal: `end` it on every way out.
 * @example
 * const progress = askProgressFor(output, { prompt, models: ['sonnet', 'gpt'] });
 * progress.update({ ...view, text: view.text + delta });
 * output.say('pawl: stopping once this is saved'); // stands above the board
 * progress.end();
 */
export interface AskProgress {
  /** What a model is doing now; the text may be of any length. A model that nobody has named yet is added. */
  update(view: ModelView): void;
  /** Puts another model in front: 1 the next, -1 the one before. Seen where there is no room for all of them. */
  moveFocus(by: number): void;
  /** Takes the board away and leaves how each model ended. May be called again, which does nothing. */
  end(): void;
}

/** A board that lives on a terminal, or plain lines in a pipe. */
export function askProgressFor(output: Output, start: BoardStart): AskProgress {
  return output.isLive ? new LiveBoard(output, start) : new PlainBoard(output);
}

/** Where nothing can be rewritten: a line when a model begins, when it has finished a step, and when it ends. */
export class PlainBoard {
  readonly #output: Pick<Output, 'say'>;
  /** Of each model what was told last. */
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

/** What is to be told of a model; undefined = nothing new. */
function lineOf(view: ModelView, told: ModelView | undefined): string | undefined {
  if (!isAtWork(view)) return summaryOf(view, ', ');
  if (told === undefined) return `${nameOf(view)}: ${view.steps === 0 ? 'begins' : `goes on after step ${view.steps}`}`;
  if (view.steps <= told.steps) return undefined;
  const tools = callsOf(callsSince(told, view));
  return `${nameOf(view)}: step ${view.steps}${tools === '' ? '' : `: ${tools}`}; ${tokensOf(view)} so far`;
}

function callsSince(told: ModelView, { toolCalls }: ModelView): ModelView['toolCalls'] {
  return Object.fromEntries(
    Object.entries(toolCalls).map(([name, calls]) => [name, calls - (told.toolCalls[name] ?? 0)]),
  );
}
