import type { ErrorData } from '../values/error-data.ts';
import type { JsonValue } from '../values/json.ts';
import type { ToolOutput } from '../values/message.ts';
import type { Usage } from '../values/usage.ts';
import type { RunStatus } from './finalize.ts';

/** What happened, without who, when and in which place. `step` counts from 1 over the whole life of the run. */
export type RunEventBody =
  /** A new run was accepted. */
  | { readonly type: 'run.started' }
  /** A recorded run goes on; nothing that was recorded is announced again. */
  | { readonly type: 'run.resumed'; readonly iteration: number; readonly attempts: number }
  /** The run's machine is in another state, for example `completing`. */
  | { readonly type: 'run.status'; readonly state: string }
  | { readonly type: 'run.ended'; readonly status: RunStatus; readonly output: string; readonly error?: ErrorData }
  | { readonly type: 'step.started'; readonly step: number }
  | { readonly type: 'step.done'; readonly step: number; readonly usage: Usage; readonly tools: readonly string[] }
  /** A piece of the model's answer as it arrives. Of a turn that is retried, the pieces come again. */
  | { readonly type: 'model.delta'; readonly step: number; readonly kind: 'text' | 'reasoning'; readonly text: string }
  | {
      readonly type: 'model.retry';
      readonly step: number;
      readonly attempt: number;
      readonly delayMs: number;
      readonly error: ErrorData;
    }
  | {
      readonly type: 'tool.started';
      readonly step: number;
      readonly callId: string;
      readonly name: string;
      readonly input: JsonValue;
      readonly attempt: number;
    }
  /** What a tool reported of its work; plain JSON. */
  | { readonly type: 'tool.progress'; readonly callId: string; readonly name: string; readonly progress: JsonValue }
  /** `isLate`: nobody waited for it any more; it is not part of the run. */
  | {
      readonly type: 'tool.done';
      readonly callId: string;
      readonly name: string;
      readonly output: ToolOutput;
      readonly isLate?: true;
    }
  /** A phase of a pipeline begins; `index` counts from 0. */
  | { readonly type: 'phase.started'; readonly index: number; readonly name: string }
  | { readonly type: 'phase.done'; readonly index: number; readonly name: string; readonly output: string }
  /** It was complete when this process took the run over. */
  | { readonly type: 'phase.skipped'; readonly index: number; readonly name: string }
  /** A steered message was accepted, and waits for the next turn. */
  | { readonly type: 'steer.queued' }
  /** The messages that waited are in the transcript; the model reads them in the turn that begins. */
  | { readonly type: 'steer.applied'; readonly count: number }
  | { readonly type: 'checkpoint.saved'; readonly iteration: number }
  | { readonly type: 'checkpoint.failed'; readonly error: ErrorData }
  /** This consumer was too slow: so many events before this one are missing for it, pieces of text first. */
  | { readonly type: 'events.dropped'; readonly count: number };

/** One event of a run. `seq` rises by 1, with a jump at a resume and never back; `at` is the wall clock, ms. */
export type RunEvent = RunEventBody & { readonly runId: string; readonly seq: number; readonly at: number };
