import type { Overlay } from '../edits/overlay.ts';
import type { ErrorData, FinishReason, RunCheckpoint, RunEvent, RunOutput, StepInfo, Usage } from '../index.ts';
import { noText, type TextView, textAfter } from '../run/journal/reply-view.ts';
import { policyOf } from '../values/error-codes.ts';
import { textOf, toolCallsOf } from '../values/message.ts';
import { addDecimals, noUsage } from '../values/usage.ts';
import { spentBefore } from './earlier-spend.ts';
import type { ModelResponse, PartialResponse, ResponseSnapshot } from './snapshot.ts';

/** Follows the run events of one model of a fan-out while it answers: its streamed text, and its usage so far. */
export class ModelWatch {
  readonly modelId: string;
  readonly overlay: Overlay | undefined;
  readonly #now: () => number;
  #said: TextView = noText;
  #steps = 0;
  #usage: Usage = noUsage;
  #costUsd = 0;
  readonly #toolCalls = new Map<string, number>();
  /** The usage of earlier attempts; steps and tools are those of the last attempt. */
  #spent = spentBefore(undefined);
  /** Working time of its run before this process, ms. */
  #beforeMs = 0;
  #startedAt: number | undefined;
  #ended: ModelResponse | undefined;

  /** @param now monotonic, ms */
  constructor(modelId: string, overlay: Overlay | undefined, now: () => number) {
    this.modelId = modelId;
    this.overlay = overlay;
    this.#now = now;
  }

  /** Adds the usage of earlier attempts. @param inputs of its run */
  carry(inputs: RunCheckpoint['inputs']): void {
    this.#spent = spentBefore(inputs);
  }

  /**
   * Continues from the record of its run. It reads the transcript once, before the run starts.
   * @param before the model's turn in the file: it may have newer text than the record
   */
  restore(record: RunCheckpoint, before?: ResponseSnapshot): void {
    this.carry(record.inputs);
    this.#steps = record.iteration;
    this.#usage = record.usage;
    this.#costUsd = record.spend?.usd ?? 0;
    this.#beforeMs = record.elapsedMs ?? 0;
    for (const message of record.messages) {
      if (message.role === 'assistant') this.#said = { ...noText, text: textOf(message) || this.#said.text };
      this.#count(toolCallsOf(message).map((call) => call.toolName));
    }
    if (before?.steps === record.iteration && before.text) this.#said = { ...noText, text: before.text };
    this.overlay?.replay(record);
  }

  begin(): void {
    this.#startedAt = this.#now();
  }

  /** Adds an event of the run. */
  heed(event: RunEvent): void {
    this.#said = textAfter(this.#said, event);
  }

  /** A step is done. */
  noteStep({ iteration, usage, tools }: StepInfo): void {
    this.#steps = iteration;
    this.#usage = usage;
    this.#count(tools);
  }

  paid(usd: number): void {
    this.#costUsd = addDecimals(this.#costUsd, usd);
  }

  partial(): PartialResponse {
    return { ...this.#figures(this.#usage, this.#costUsd), text: this.#said.text, steps: this.#steps };
  }

  /** Returns the answer of an ended run. @param cause why it was interrupted */
  end(output: Omit<RunOutput, 'durable' | 'saveErrors'>, cause?: ErrorData): ModelResponse {
    this.#ended ??= this.#response(output, cause);
    // Without an answer, the streamed text is newer than the record; its last deltas may arrive after the end.
    if (output.status !== 'ok') this.#ended = { ...this.#ended, text: this.#said.text || output.output };
    return this.#ended;
  }

  #response(
    { status, output, usage, spend, iterations, error, finishReason }: Parameters<ModelWatch['end']>[0],
    cause?: ErrorData,
  ) {
    const isOut =
      status === 'interrupted' || status === 'cancelled' || status === 'timeout' || isUndecided(error?.code);
    return {
      ...this.#figures(usage, spend?.usd ?? this.#costUsd),
      modelId: this.modelId,
      text: output,
      ...(status === 'ok' || isOut ? {} : { error: error?.message ?? status }),
      interrupted: isOut,
      stopReason:
        status === 'ok'
          ? answerEnd(finishReason)
          : isOut
            ? stopReasonOf(status, cause ?? error)
            : error?.code || status,
      steps: iterations,
    };
  }

  #count(names: readonly string[]): void {
    for (const name of names) this.#toolCalls.set(name, (this.#toolCalls.get(name) ?? 0) + 1);
  }

  /** The usage of all attempts. @param usage of its run @param usd of its run */
  #figures({ inputTokens, outputTokens, reasoningTokens: ofRun }: Usage, usd: number) {
    const spent = this.#spent;
    const reasoningTokens = spent.reasoningTokens + ofRun;
    const hereMs = this.#startedAt === undefined ? 0 : this.#now() - this.#startedAt;
    return {
      latencyMs: Math.round(spent.latencyMs + this.#beforeMs + hereMs),
      inputTokens: spent.inputTokens + inputTokens,
      outputTokens: spent.outputTokens + outputTokens,
      ...(reasoningTokens > 0 ? { reasoningTokens } : {}),
      costUsd: addDecimals(spent.costUsd, usd),
      proposedWrites: this.overlay?.writes() ?? [],
      toolCalls: Object.fromEntries(this.#toolCalls),
    };
  }
}

/** Whether an error of a run leaves its model for the next call. */
function isUndecided(code: unknown): boolean {
  const { ownership, isStoreAway } = policyOf(code) ?? {};
  return ownership !== undefined || isStoreAway === true || undecided.has(code);
}

const undecided: ReadonlySet<unknown> = new Set(['NOT_DURABLE', 'RUN_ID_CONFLICT', 'BUDGET_EXCEEDED']);

/**
 * Returns why a model of a fan-out was interrupted, in a word: deadline, cancelled, interrupted, or an error's code.
 * @param error the cause
 */
export function stopReasonOf(status: RunOutput['status'], error: ErrorData | undefined): string {
  // For a shutdown the reason is in the cause; for an error of the store the cause is an error of the system.
  const why = error?.code === 'ERR_SHUTDOWN' ? error.cause?.code : error?.code;
  if (status === 'timeout' || why === 'DEADLINE_EXCEEDED') return 'deadline';
  if (status === 'cancelled' || why === 'CANCELLED') return 'cancelled';
  return why === undefined || why === 'ERR_SHUTDOWN' ? 'interrupted' : why;
}

/** An answer that was not finished is none to rely on: its end is named. */
function answerEnd(reason: FinishReason | undefined): string {
  return reason === undefined || reason === 'stop' || reason === 'other' ? 'answered' : reason;
}
