/** What a model is doing: at work (the first four; the last of them until it is saved), or at its end. */
export type ModelState = 'waiting' | 'thinking' | 'calling-tools' | 'leaving' | 'answered' | 'failed' | 'interrupted';

/** How far one model is. */
export interface ModelView {
  readonly id: string;
  readonly state: ModelState;
  /** What it is doing just now, for example `read_file src/a.ts`. */
  readonly activity?: string;
  /** The answer, as far as it has come. May be of any length: only its end is looked at. */
  readonly text: string;
  /** Finished model turns. */
  readonly steps: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** US dollars; 0 = not known, and not shown. */
  readonly costUsd: number;
  /** Working time, ms. */
  readonly latencyMs: number;
  /** How often each tool was called, by name; those of a step are in it once `steps` counts that step. */
  readonly toolCalls: { readonly [name: string]: number };
  /** How many changes of files it proposes. */
  readonly writes: number;
  /** Why there is no answer. */
  readonly error?: string;
}

/** Everything that the board shows. */
export interface BoardState {
  readonly prompt: string;
  readonly models: readonly ModelView[];
  /** Since the command began, ms. */
  readonly elapsedMs: number;
  /** Which picture of the spinner; counts on without end. */
  readonly frame: number;
  /** The index of the model whose text is shown where there is no room for all. */
  readonly focus: number;
}

/** Of a terminal, in characters. */
export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** Whether a model on the board is still at work. */
export function isAtWork({ state }: Pick<ModelView, 'state'>): boolean {
  return state !== 'answered' && state !== 'failed' && state !== 'interrupted';
}
