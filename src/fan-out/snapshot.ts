import type { WriteSnapshot } from '../edits/proposed-write.ts';

/** What one model has answered, or has of an answer so far: what the checkpoint file holds of it. */
export interface ResponseSnapshot {
  readonly modelId: string;
  /** The answer, or the newest text of the turn in progress. */
  readonly text?: string;
  /** Working time over all processes, ms. */
  readonly latencyMs: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens?: number;
  /** US dollars, by the prices that the fan-out was given; 0 without. */
  readonly costUsd: number;
  readonly proposedWrites?: readonly WriteSnapshot[];
  /** How often each tool was called, by name. */
  readonly toolCalls?: { readonly [name: string]: number };
  /** Why there is no answer. */
  readonly error?: string;
  /** Cancelled, or past its deadline: it goes on when it is asked again. */
  readonly interrupted: boolean;
  /** There is an answer: this model is not asked again. Never together with `interrupted` or `error`. */
  readonly completed: boolean;
  /** `answered`, `cancelled`, `deadline`, `interrupted`, or the code of the error; '' while the model is at work; absent = not known. */
  readonly stopReason?: string;
  /** Finished model turns; absent = not known. */
  readonly steps?: number;
}

/** What one model of a fan-out has answered. */
export interface ModelResponse {
  readonly modelId: string;
  /** The answer; of a model that gave none, the text it had. */
  readonly text: string;
  readonly latencyMs: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens?: number;
  readonly costUsd: number;
  readonly proposedWrites: readonly WriteSnapshot[];
  readonly toolCalls: { readonly [name: string]: number };
  readonly error?: string;
  readonly interrupted: boolean;
  readonly stopReason: string;
  readonly steps: number;
}

/** How many characters of proposed writes a turn in progress has in the file. */
const MAX_IN_PROGRESS = 65_536;

/**
 * A turn in progress for the file, which is written anew with every turn: many proposed writes are left out until the model
 * ends or leaves off. By then they are in the record of its run.
 */
export function inProgress(snapshot: ResponseSnapshot): ResponseSnapshot {
  const { proposedWrites = [], ...rest } = snapshot;
  const size = proposedWrites.reduce((sum, { path, content }) => sum + path.length + content.length, 0);
  return size > MAX_IN_PROGRESS ? rest : snapshot;
}

/** What there is of an answer while its model is at work. What is left out counts as nothing. */
export type PartialResponse = Partial<Omit<ModelResponse, 'modelId' | 'error'>>;

/** An answer as the checkpoint file holds it. Without an error or an interruption it is completed. */
export function fromModelResponse(response: ModelResponse): ResponseSnapshot {
  const { modelId, error, interrupted } = response;
  return {
    ...partOf(response),
    modelId,
    ...errorOf(error),
    interrupted,
    completed: !interrupted && error === undefined,
  };
}

/** A model at work, as the checkpoint file holds it: not completed. */
export function snapshotFromPartial(modelId: string, partial: PartialResponse): ResponseSnapshot {
  return { ...partOf(partial), modelId, interrupted: partial.interrupted ?? false, completed: false };
}

/**
 * The way back. Of a model that was at work when its process died the answer is interrupted. A file of the reference format
 * has no stop reason and no steps: the stop reason follows from the flags, the steps are 0.
 */
export function toModelResponse(snapshot: ResponseSnapshot): ModelResponse {
  const { modelId, text = '', latencyMs, inputTokens, outputTokens, reasoningTokens, costUsd, error } = snapshot;
  const { proposedWrites = [], toolCalls = {}, completed, steps = 0 } = snapshot;
  const { stopReason = stopReasonFrom(snapshot) } = snapshot;
  return {
    modelId,
    text,
    latencyMs,
    inputTokens,
    outputTokens,
    ...(reasoningTokens === undefined ? {} : { reasoningTokens }),
    costUsd,
    proposedWrites,
    toolCalls,
    ...errorOf(error),
    interrupted: snapshot.interrupted || (!completed && error === undefined),
    stopReason,
    steps,
  };
}

function stopReasonFrom({ completed, interrupted }: ResponseSnapshot): string {
  if (completed) return 'answered';
  return interrupted ? 'interrupted' : '';
}

/** For a host, which may do with it what it likes. Texts stay what they are. */
export function copyOf<R extends Pick<ResponseSnapshot, 'proposedWrites' | 'toolCalls'>>(response: R): R {
  const { proposedWrites, toolCalls } = response;
  return {
    ...response,
    ...(proposedWrites ? { proposedWrites: proposedWrites.map((write) => ({ ...write })) } : {}),
    ...(toolCalls ? { toolCalls: { ...toolCalls } } : {}),
  };
}

/** What answers and partial ones share; what is empty is left out. */
function partOf(response: PartialResponse) {
  const { text = '', latencyMs = 0, inputTokens = 0, outputTokens = 0, reasoningTokens, costUsd = 0 } = response;
  const { proposedWrites = [], toolCalls = {}, stopReason = '', steps = 0 } = response;
  return {
    ...(text === '' ? {} : { text }),
    latencyMs,
    inputTokens,
    outputTokens,
    ...(reasoningTokens === undefined ? {} : { reasoningTokens }),
    costUsd,
    ...(proposedWrites.length === 0 ? {} : { proposedWrites }),
    ...(Object.keys(toolCalls).length === 0 ? {} : { toolCalls }),
    stopReason,
    steps,
  };
}

function errorOf(error: string | undefined): { error?: string } {
  return error === undefined ? {} : { error };
}
