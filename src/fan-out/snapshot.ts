import type { WriteSnapshot } from '../edits/index.ts';

/** The answer of one model, or the part that exists so far, as the checkpoint file stores it. */
export interface ResponseSnapshot {
  readonly modelId: string;
  /** The answer, or the newest text of the current turn. */
  readonly text?: string;
  /** Working time over all processes, ms. */
  readonly latencyMs: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens?: number;
  /** US dollars, by the prices of the fan-out; 0 without prices. */
  readonly costUsd: number;
  readonly proposedWrites?: readonly WriteSnapshot[];
  /** How often each tool was called, by name. */
  readonly toolCalls?: { readonly [name: string]: number };
  /** Why there is no answer. */
  readonly error?: string;
  /** Cancelled, or past its deadline: the model continues when it is asked again. */
  readonly interrupted: boolean;
  /** The answer is complete: this model is not asked again. Never together with `interrupted` or `error`. */
  readonly completed: boolean;
  /** `answered`, `cancelled`, `deadline`, `interrupted`, or the code of the error; '' while the model works; absent = not known. */
  readonly stopReason?: string;
  /** Completed model turns; absent = not known. */
  readonly steps?: number;
}

/** The response of one model of a fan-out. */
export interface ModelResponse extends Omit<ResponseSnapshot, 'completed'> {
  /** The answer; if there is none, the text so far. */
  readonly text: string;
  readonly proposedWrites: readonly WriteSnapshot[];
  readonly toolCalls: { readonly [name: string]: number };
  readonly stopReason: string;
  readonly steps: number;
}

/** The most characters of proposed writes that the file stores during a turn. */
const MAX_IN_PROGRESS = 65_536;

/**
 * Returns the snapshot of a model that still works, without proposed writes that are too long for each save. The file is
 * rewritten with every turn. The record of the run has all proposed writes meanwhile.
 */
export function inProgress(snapshot: ResponseSnapshot): ResponseSnapshot {
  const { proposedWrites = [], ...rest } = snapshot;
  const size = proposedWrites.reduce((sum, { path, content }) => sum + path.length + content.length, 0);
  return size > MAX_IN_PROGRESS ? rest : snapshot;
}

/** The part of an answer that exists while its model works. An absent field counts as empty. */
export type PartialResponse = Partial<Omit<ModelResponse, 'modelId' | 'error'>>;

/**
 * Converts a model's answer to the snapshot that the checkpoint file stores. Without an error or an interruption it is
 * completed.
 */
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

/** Converts a partial answer of a working model to the snapshot that the checkpoint file stores: not completed. */
export function snapshotFromPartial(modelId: string, partial: PartialResponse): ResponseSnapshot {
  return { ...partOf(partial), modelId, interrupted: partial.interrupted ?? false, completed: false };
}

/**
 * Converts a snapshot of the checkpoint file to a model's answer, the inverse of `fromModelResponse`. If the process died
 * while a model worked, its response is interrupted. A file of the reference format has no stop reason and no steps: the
 * stop reason follows from the flags, and the steps are 0.
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

/** Copies a response, so that the host may change it. Strings cannot change. */
export function copyOf<R extends Pick<ResponseSnapshot, 'proposedWrites' | 'toolCalls'>>(response: R): R {
  const { proposedWrites, toolCalls } = response;
  return {
    ...response,
    ...(proposedWrites ? { proposedWrites: proposedWrites.map((write) => ({ ...write })) } : {}),
    ...(toolCalls ? { toolCalls: { ...toolCalls } } : {}),
  };
}

/** The fields that answers and partial ones share, without empty ones. */
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
