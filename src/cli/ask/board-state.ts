/** The state of a model: the first four are at work (`leaving` until it is saved), the others are ends. */
export type ModelState = 'waiting' | 'thinking' | 'calling-tools' | 'leaving' | 'answered' | 'failed' | 'interrupted';

/** The progress of one model. */
export interface ModelView {
  readonly id: string;
  readonly state: ModelState;
  /** The current activity, for example `read_file src/a.ts`. */
  readonly activity?: string;
  /** The answer so far. It may have any length: only its end is used. */
  readonly text: string;
  /** Completed model turns. */
  readonly steps: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** US dollars; 0 = not known, and not shown. */
  readonly costUsd: number;
  /** Working time, ms. */
  readonly latencyMs: number;
  /** How often each tool was called, by name; the calls of a step are included once `steps` counts it. */
  readonly toolCalls: { readonly [name: string]: number };
  /** How many file changes it proposes. */
  readonly writes: number;
  /** Why there is no answer. */
  readonly error?: string;
}

/** Everything that the board shows. */
export interface BoardState {
  readonly prompt: string;
  readonly models: readonly ModelView[];
  /** Since the start of the command, ms. */
  readonly elapsedMs: number;
  /** The frame of the spinner; increases without a limit. */
  readonly frame: number;
  /** The index of the model whose text is shown if there is no room for all. */
  readonly focus: number;
}

/** The size of a terminal, in characters. */
export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** Returns whether a model on the board is still at work. */
export function isAtWork({ state }: Pick<ModelView, 'state'>): boolean {
  return state !== 'answered' && state !== 'failed' && state !== 'interrupted';
}
