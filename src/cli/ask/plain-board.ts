import type { Output } from '../ui/output.ts';
import { callsOf, nameOf, summaryOf, tokensOf } from './board-facts.ts';
import { isAtWork, type ModelView } from './board-state.ts';

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
