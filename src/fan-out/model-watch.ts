import type { Overlay } from '../edits/overlay.ts';
import type { RunCheckpoint, RunEvent, RunOutput, StepInfo, Usage } from '../index.ts';
import { policyOf } from '../values/error-codes.ts';
import type { ErrorData } from '../values/error-data.ts';
import { textOf, toolCallsOf } from '../values/message.ts';
import { noUsage } from '../values/usage.ts';

import type { ModelResponse, PartialResponse, ResponseSnapshot } from './snapshot.ts';
import { spentBefore } from './spent.ts';

/** What is to be seen of one model while it answers: its text as it streams, and what it has taken so far. */
export class ModelWatch {
  readonly modelId: string;
  readonly overlay: Overlay | undefined;
  readonly #now: () => number;
  #text = '';
  /** The step that the text is of. */
  #textStep = 0;
  #steps = 0;
  #usage: Usage = noUsage;
  #costUsd = 0;
  readonly #toolCalls = new Map<string, number>();
  /** What attempts before this one have taken; steps and tools are those of the last one. */
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

  /** Counts what the model has taken in attempts before this one. @param inputs of its run */
  carry(inputs: RunCheckpoint['inputs']): void {
    this.#spent = spentBefore(inputs);
  }

  /**
   * Goes on from the record of its run. The one walk over the transcript, before the run starts.
   * @param before what the file has of the model: it may have begun to say more than was recorded
   */
  restore(record: RunCheckpoint, before?: ResponseSnapshot): void {
    this.carry(record.inputs);
    this.#steps = record.iteration;
    this.#usage = record.usage;
    this.#costUsd = record.spend?.usd ?? 0;
    this.#beforeMs = record.elapsedMs ?? 0;
    for (const message of record.messages) {
      if (message.role === 'assistant') this.#text = textOf(message) || this.#text;
      this.#count(toolCallsOf(message).map((call) => call.toolName));
    }
    if (before?.steps === record.iteration) this.#text = before.text || this.#text;
    this.overlay?.replay(record);
  }

  begin(): void {
    this.#startedAt = this.#now();
  }

  /** What the model says, as it says it. */
  heed(event: RunEvent): void {
    // Of a turn that is tried again the pieces come again; until then the last try has said most.
    if (event.type === 'model.retry') this.#textStep = 0;
    if (event.type !== 'model.delta' || event.kind !== 'text') return;
    if (event.step !== this.#textStep) this.#text = '';
    this.#textStep = event.step;
    this.#text += event.text;
  }

  /** A turn is over. */
  stepped({ iteration, usage, tools }: StepInfo): void {
    this.#steps = iteration;
    this.#usage = usage;
    this.#count(tools);
  }

  paid(usd: number): void {
    this.#costUsd += usd;
  }

  partial(): PartialResponse {
    return { ...this.#figures(this.#usage, this.#costUsd), text: this.#text, steps: this.#steps };
  }

  /** The answer, from how the run ended. @param cause why it was told to leave off */
  end(output: Omit<RunOutput, 'durable' | 'saveErrors'>, cause?: ErrorData): ModelResponse {
    this.#ended ??= this.#response(output, cause);
    // Without an answer, what streamed is newer than what was recorded; the last of it may be heard after the end.
    if (output.status !== 'ok') this.#ended = { ...this.#ended, text: this.#text || output.output };
    return this.#ended;
  }

  #response({ status, output, usage, spend, iterations, error }: Parameters<ModelWatch['end']>[0], cause?: ErrorData) {
    const isOut =
      status === 'interrupted' || status === 'cancelled' || status === 'timeout' || isUndecided(error?.code);
    return {
      ...this.#figures(usage, spend?.usd ?? this.#costUsd),
      modelId: this.modelId,
      text: output,
      ...(status === 'ok' || isOut ? {} : { error: error?.message ?? status }),
      interrupted: isOut,
      stopReason: status === 'ok' ? 'answered' : isOut ? stopReasonOf(status, cause ?? error) : error?.code || status,
      steps: iterations,
    };
  }

  #count(names: readonly string[]): void {
    for (const name of names) this.#toolCalls.set(name, (this.#toolCalls.get(name) ?? 0) + 1);
  }

  /** What it has taken and done, in all attempts. @param usage of its run @param usd of its run */
  #figures({ inputTokens, outputTokens, reasoningTokens: ofRun }: Usage, usd: number) {
    const spent = this.#spent;
    const reasoningTokens = spent.reasoningTokens + ofRun;
    const hereMs = this.#startedAt === undefined ? 0 : this.#now() - this.#startedAt;
    return {
      latencyMs: Math.round(spent.latencyMs + this.#beforeMs + hereMs),
      inputTokens: spent.inputTokens + inputTokens,
      outputTokens: spent.outputTokens + outputTokens,
      ...(reasoningTokens > 0 ? { reasoningTokens } : {}),
      costUsd: spent.costUsd + usd,
      proposedWrites: this.overlay?.writes() ?? [],
      toolCalls: Object.fromEntries(this.#toolCalls),
    };
  }
}

/** Whether an error of a run leaves its record for the next call: nothing was decided. */
function isUndecided(code: unknown): boolean {
  const { ownership, isStoreAway } = policyOf(code) ?? {};
  return ownership !== undefined || isStoreAway === true || code === 'NOT_DURABLE' || code === 'RUN_ID_CONFLICT';
}

/** Why a model left off, in a word. @param error the cause of its leaving */
export function stopReasonOf(status: RunOutput['status'], error: ErrorData | undefined): string {
  // Whoever was told to leave knows why from the cause; of an error of the store the cause is the system's.
  const why = error?.code === 'ERR_SHUTDOWN' ? error.cause?.code : error?.code;
  if (status === 'timeout' || why === 'DEADLINE_EXCEEDED') return 'deadline';
  if (status === 'cancelled' || why === 'CANCELLED') return 'cancelled';
  return why === undefined || why === 'ERR_SHUTDOWN' ? 'interrupted' : why;
}
