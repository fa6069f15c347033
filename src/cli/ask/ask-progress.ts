import type { Output } from '../ui/output.ts';
import type { ModelView } from './board-state.ts';
import { type BoardStart, LiveBoard } from './live-board.ts';
import { PlainBoard } from './plain-board.ts';

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
