import { fromPromise } from 'xstate';
import type { ModelAnswer } from '../../../machines/context.ts';
import type { ModelCallInput } from '../../../machines/setup.ts';
import { callModel, type ModelRequest } from '../../model/call.ts';
import { type Retry, withRetries } from '../../model/retry.ts';
import { toErrorData } from '../../run/error-data.ts';
import { ModelError } from '../../run/errors.ts';
import type { Message } from '../../run/message.ts';
import type { ModelReply } from '../../run/reply.ts';
import { addUsage, noUsage, type Usage } from '../../run/usage.ts';
import { type Kernel, type RunScope, scopeOf } from '../scope.ts';
import { Spending } from '../spending.ts';
import type { Stage } from '../stage.ts';

/** One model call, with its retries: the transcript goes out, one reply or one error comes back. It never rejects. */
export function callModelActor(kernel: Kernel) {
  return fromPromise<ModelAnswer, ModelCallInput>(async ({ input, self }) => {
    try {
      const scope = scopeOf(kernel, self);
      const stage = scope.stages[input.phase ?? 0];
      if (!stage) throw new ModelError('this run has no model');
      return await new Turn(scope, stage, input).answer();
    } catch (error) {
      return { error: toErrorData(error, 'MODEL') };
    }
  });
}

/** One turn of the model: reserved with the budget, asked for with retries, and paid for however it ends. */
class Turn {
  readonly #scope: RunScope;
  readonly #stage: Stage;
  readonly #input: ModelCallInput;
  /** What failed attempts have cost. */
  #lost: Usage = noUsage;

  constructor(scope: RunScope, stage: Stage, input: ModelCallInput) {
    this.#scope = scope;
    this.#stage = stage;
    this.#input = input;
  }

  async answer(): Promise<ModelAnswer> {
    const { tier, model } = this.#stage;
    const step = this.#input.iteration + 1;
    const inputTokens = Math.ceil(this.#input.transcript.size / 4);
    const call = { turn: step, modelTier: tier, model: `${model.provider}/${model.modelId}`, inputTokens };
    const spending = await Spending.reserve(this.#scope, call);
    this.#scope.publish({ type: 'step.started', step });
    try {
      const reply = await this.#ask(step);
      this.#stage.lastInputTokens = reply.usage.inputTokens;
      const usage = addUsage(reply.usage, this.#lost);
      const spend = await spending.commit(usage);
      return { reply: { ...reply, usage, ...(spend ? { spend } : {}) } };
    } catch (error) {
      if (this.#lost === noUsage) {
        await spending.refund();
        return { error: toErrorData(error, 'MODEL') };
      }
      const spend = await spending.commit(this.#lost);
      return { error: toErrorData(error, 'MODEL'), usage: this.#lost, ...(spend ? { spend } : {}) };
    }
  }

  async #ask(step: number): Promise<ModelReply> {
    const [scope, { model }, request] = [this.#scope, this.#stage, await this.#request(step)];
    const { clock, defaults, random } = scope.kernel.config;
    return withRetries(() => callModel(model, request), {
      signal: scope.signal,
      clock,
      attempts: defaults.modelAttempts,
      random,
      onRetry: (retry: Retry) => scope.publish({ type: 'model.retry', step, ...retry }),
      onSpent: (usage) => {
        this.#lost = addUsage(this.#lost, usage);
      },
    });
  }

  /** What is stored stays whole; what the model sees of it may be shorter. */
  async #history(): Promise<readonly Message[]> {
    const { view, tier, model, lastInputTokens } = this.#stage;
    const messages = this.#input.transcript.slice();
    return view ? view.messagesFor(messages, { tier, model, signal: this.#scope.signal, lastInputTokens }) : messages;
  }

  async #request(step: number): Promise<ModelRequest> {
    const { signal, agent, kernel } = this.#scope;
    const { clock, defaults } = kernel.config;
    const { transcript, completedPhases, phase = 0 } = this.#input;
    const isLast = phase + 1 >= this.#scope.stages.length;
    const schema = isLast ? agent.outputSchema?.jsonSchema : undefined;
    return {
      system: this.#stage.system(completedPhases),
      messages: await this.#history(),
      hasUrls: transcript.hasUrls,
      tools: this.#stage.toolbox.definitions,
      ...(schema ? { outputSchema: schema } : {}),
      signal,
      clock,
      firstChunkMs: defaults.firstChunkMs,
      chunkGapMs: defaults.chunkGapMs,
      onDelta: ({ type: kind, text }) => this.#scope.publish({ type: 'model.delta', step, kind, text }),
    };
  }
}
