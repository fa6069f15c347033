import type { ModelCallInput } from '../../../machines/actors.ts';
import type { FailedAnswer, ModelAnswer } from '../../../machines/context.ts';
import { callModel, type ModelRequest } from '../../model/call.ts';
import { checkedReply } from '../../model/checked-reply.ts';
import { failureOf, isSetupFailure } from '../../model/failure.ts';
import type { Retry, RetryOptions } from '../../model/retry.ts';
import { modelCallKeyOf, waitIdOf } from '../../run/identity.ts';
import type { ModelSettings } from '../../run/model-settings.ts';
import { effectsIn, type Progress } from '../../run/progress.ts';
import { isFinishReason, type ModelReply } from '../../run/reply.ts';
import type { Transcript } from '../../run/transcript.ts';
import { afterModelFailure, type FailedTurn, type ModelFailure } from '../../run/waits/outage.ts';
import { retryOf } from '../../run/waits/wait-rules.ts';
import { systemClock } from '../../values/clock.ts';
import { untilAborted } from '../../values/deadline.ts';
import { type ErrorData, readProperty, toErrorData } from '../../values/error-data.ts';
import { ModelError } from '../../values/errors.ts';
import { yieldToEventLoop } from '../../values/event-loop.ts';
import { frozenJson, MESSAGE_DEPTH } from '../../values/json.ts';
import type { AssistantMessage, Message } from '../../values/message.ts';
import { enterAnswer } from '../../values/message-mark.ts';
import { estimateTokens } from '../../values/texts/token-estimate.ts';
import { addUsage, countedUse, noUsage, type Usage } from '../../values/usage.ts';
import { callThrough, type Layers, type ModelCallInfo, noLabels } from '../host/middleware.ts';
import type { ActiveRun } from '../run/active-run.ts';
import { isHandleSpared, sparingHandle } from '../run/record/recording.ts';
import { hasRecorded, isStoredHere, setupError } from '../run/record/setup-fault.ts';
import { type BudgetedCall, Spending } from '../run/spending.ts';
import type { CompactedView } from '../services/compacted-view.ts';
import type { LoopContext } from '../services/loop-context.ts';
import { RequestEstimate, warnOfEstimate } from '../services/request-estimate.ts';
import { askModel } from './ask-model.ts';

/**
 * Makes the model call of one turn, with budget, middleware and retries: sends the transcript, returns one reply or one
 * error. Never rejects.
 */
export async function callModelOnce(input: ModelCallInput, run: ActiveRun): Promise<ModelAnswer> {
  try {
    const loop = run.resources.loops[input.phase ?? 0];
    if (!loop) throw new ModelError('this run has no model');
    // A host with its own clock decides itself when time passes.
    const turn = run.services.config.clock === systemClock ? yieldToEventLoop() : undefined;
    if (turn) await turn;
    // Other code ran meanwhile and may have stopped the run.
    run.signal.throwIfAborted();
    return await new Turn(run, loop, input).answer();
  } catch (error) {
    return { error: toErrorData(error, 'MODEL') };
  }
}

/** One turn of the model: reserves the budget, calls with retries, and pays in each case. */
class Turn {
  readonly #run: ActiveRun;
  readonly #loop: LoopContext;
  readonly #input: ModelCallInput;
  /** The cost of failed attempts. */
  #lost: Usage | undefined;
  /** The messages that replace a history which is too long for the window. */
  #shorter: readonly Message[] | undefined;
  /** The model's reply, which a middleware may still drop. */
  #paid: ModelReply | undefined;
  /** A middleware answered, and the model was not asked. */
  #isUnasked = false;

  constructor(run: ActiveRun, loop: LoopContext, input: ModelCallInput) {
    this.#run = run;
    this.#loop = loop;
    this.#input = input;
  }

  /** Without a budget the turn adds no promise to its call: a thousand runs a second would notice it. */
  async answer(): Promise<ModelAnswer> {
    const { budget, clock } = this.#run.services.config;
    let spending: Spending | undefined;
    try {
      if (budget) spending = await Spending.reserve(this.#run, this.#estimate());
    } catch (error) {
      return this.#afterRefusal(toErrorData(error, 'MODEL'));
    }
    const step = this.#input.iteration + 1;
    this.#run.replies.begin(step);
    this.#run.publish({ type: 'step.started', step });
    try {
      const { view } = this.#loop;
      this.#shorter = view && (await this.#shortened(view));
      const askedAt = clock.monotonic();
      const reply = await this.#ask(step, this.#shorter ?? this.#input.transcript);
      const ms = clock.monotonic() - askedAt;
      this.#loop.lastInputTokens = reply.usage.inputTokens;
      this.#loop.lastSize = this.#input.transcript.size;
      this.#run.replies.complete(step, reply.message, this.#paid?.message);
      const usage = this.#lost ? addUsage(reply.usage, this.#lost) : reply.usage;
      const spend = spending && (await spending.commit(this.#counted(reply)));
      const model = this.#loop.modelName;
      const effects = effectsIn(reply.message, this.#run.resources.facts);
      const message = enterAnswer(reply.message, { model, usage, ms, ...(effects ? { effects } : {}) });
      return { reply: { ...reply, message, usage, model, ...(spend ? { spend } : {}) } };
    } catch (error) {
      const data = toErrorData(error, 'MODEL');
      const reason = readProperty(error, 'finishReason');
      return {
        ...this.#afterFailure(error, data),
        ...(isFinishReason(reason) ? { finishReason: reason } : {}),
        ...(await this.#costOf(spending, data)),
      };
    }
  }

  /** What the run does after a failed turn: it waits for the model, parks, or ends. A turn that was stopped only ends. */
  #afterFailure(thrown: unknown, error: ErrorData): Pick<FailedAnswer, 'error' | 'wait' | 'parks' | 'leaves'> {
    const { signal, progress, services } = this.#run;
    if (signal.aborted || !progress) return { error };
    if (isSetupFailure(thrown)) return this.#afterFault(progress, error);
    return this.#afterOutage(progress, error, failureOf(thrown, services.config.clock));
  }

  #afterOutage(
    progress: Progress,
    error: ErrorData,
    kind: ModelFailure,
  ): Pick<FailedAnswer, 'error' | 'wait' | 'parks'> {
    const { runId, services, agent, isDurable } = this.#run;
    const { clock, random, defaults, onModelOutage } = services.config;
    const { iteration, phase } = this.#input;
    const failure = { ...kind, at: clock.now(), random: random() };
    const [step, previous] = [iteration + 1, retryOf(progress)];
    const turn: FailedTurn = {
      ...{ error, failure, step, isDurable, previous },
      id: waitIdOf([runId, 'retry', step, failure.at, previous?.failures ?? 0]),
      isOptional: phase !== undefined && agent.phases?.[phase]?.optional === true,
      hasTurn: iteration > 0,
    };
    const after = afterModelFailure(turn, { modelOutageMs: defaults.modelOutageMs, onModelOutage });
    if (after.kind === 'wait') return { error, wait: after.wait };
    this.#run.endFacts.isContentRefused =
      failure.kind === 'final' && error.code !== 'REPLY_TOO_LARGE' && !turn.isOptional;
    return { error: after.error, ...(after.how === 'park' ? { parks: true } : {}) };
  }

  /**
   * The budget refuses the call: what the run has recorded waits until the limit is raised. A budget that does not answer refuses
   * nothing: the run waits for it as for its model.
   */
  #afterRefusal(error: ErrorData): Pick<FailedAnswer, 'error' | 'wait' | 'parks' | 'leaves'> {
    const run = this.#run;
    const { progress, services } = run;
    if (isHandleSpared(run, error)) return { error: sparingHandle(error) };
    const isKept = run.isDurable && isStoredHere(run) && progress !== undefined && hasRecorded(progress);
    if (!isKept || run.signal.aborted) return { error };
    if (error.code !== 'BUDGET_EXCEEDED') return this.#afterOutage(progress, error, { kind: 'passing' });
    return { error, ...(services.config.onBudgetExceeded === 'park' ? { leaves: true } : {}) };
  }

  /** The key or a setting is missing in this process: another one continues the run. The caller of a first start has the error. */
  #afterFault(progress: Progress, error: ErrorData): Pick<FailedAnswer, 'error' | 'leaves'> {
    const run = this.#run;
    const isUnbegun = run.startFacts.isFirst && !hasRecorded(progress);
    if (isUnbegun) run.endFacts.isUnbegun = progress.thread === undefined;
    if (isUnbegun || !run.isDurable || !isStoredHere(run)) {
      run.startFacts.setupFault = error;
      return { error };
    }
    return { error: toErrorData(setupError(run, error)), leaves: true };
  }

  /** Pays for a failed turn as far as it was used. For an interrupted reply, all of it that was read is paid for. */
  async #costOf(
    spending: Spending | undefined,
    error: ErrorData,
  ): Promise<Pick<FailedAnswer, 'usage' | 'spend' | 'model'>> {
    const paid = this.#paid;
    const usage = paid && this.#lost ? addUsage(paid.usage, this.#lost) : (paid?.usage ?? this.#lost);
    const isCut = error.code === 'REPLY_TOO_LARGE';
    if (!usage && !isCut) {
      await spending?.refund();
      return {};
    }
    const spend = await spending?.commit(this.#countedOf(isCut, paid));
    return { model: this.#loop.modelName, ...(usage ? { usage } : {}), ...(spend ? { spend } : {}) };
  }

  /**
   * The usage of this turn as a budget counts it: the failed attempts, and the reply with an estimate of unreported tokens.
   */
  #counted({ usage, message }: ModelReply): Usage {
    // A middleware that answered for the model knows its cost.
    if (this.#isUnasked) return usage;
    const use = countedUse(usage, { input: () => this.#inputTokens(), output: () => estimateTokens([message]) });
    if (use !== usage) this.#warnOfEstimate();
    return this.#lost ? addUsage(use, this.#lost) : use;
  }

  #countedOf(isCut: boolean, paid: ModelReply | undefined): Usage {
    if (paid) return this.#counted(paid);
    return isCut ? this.#countedCut() : (this.#lost ?? noUsage);
  }

  #countedCut(): Usage {
    const { maxReplyChars } = this.#run.services.config.defaults;
    this.#warnOfEstimate();
    const use = { ...noUsage, inputTokens: this.#inputTokens(), outputTokens: Math.ceil(maxReplyChars / 4) };
    return this.#lost ? addUsage(use, this.#lost) : use;
  }

  #inputTokens(): number {
    const { toolbox, system } = this.#loop;
    const { transcript, completedPhases } = this.#input;
    this.#loop.estimate ??= new RequestEstimate();
    const request = { system: system(completedPhases), tools: toolbox.definitions, transcript };
    return this.#loop.estimate.of({ ...request, shortened: this.#shorter });
  }

  #warnOfEstimate(): void {
    const { services, runId } = this.#run;
    const { provider, modelId } = this.#loop.model;
    warnOfEstimate(services, { runId, model: `${provider}/${modelId}` });
  }

  #estimate(): BudgetedCall {
    const { tier, model } = this.#loop;
    const { transcript, iteration, phase } = this.#input;
    // The provider's last count, and the messages since: a compacted history is shorter than the transcript.
    const { lastInputTokens, lastSize = 0 } = this.#loop;
    const known = lastInputTokens ? lastInputTokens - lastSize / 4 : 0;
    const inputTokens = Math.ceil(known + transcript.size / 4);
    return { turn: iteration + 1, phase, modelTier: tier, model: `${model.provider}/${model.modelId}`, inputTokens };
  }

  #ask(step: number, messages: Transcript | readonly Message[]): Promise<ModelReply> {
    const request = this.#request(step, messages);
    const layers = this.#run.services.config.layers.model;
    if (!layers) return this.#askModel(step, request);
    return this.#askThrough(layers, step, request);
  }

  /** A reply of the host's middleware is checked like a provider's reply, unless it is that reply. */
  async #askThrough(layers: NonNullable<Layers['model']>, step: number, request: ModelRequest): Promise<ModelReply> {
    const { signal, services } = this.#run;
    let asking: Promise<ModelReply> | undefined;
    const ask = async (): Promise<ModelReply> => {
      const { message, ...rest } = await this.#askModel(step, request);
      this.#paid = Object.freeze({
        ...rest,
        usage: Object.freeze({ ...rest.usage }),
        message: frozenJson(message, 'reply.message', MESSAGE_DEPTH) as unknown as AssistantMessage,
      });
      return this.#paid;
    };
    const answer = callThrough(layers, this.#info(step, request), () => {
      asking = ask();
      return asking;
    });
    // A running model call ends by itself when the run is aborted, and reports its cost.
    const reply = await untilAborted(answer, signal, () => asking);
    this.#isUnasked = asking === undefined;
    return this.#paid && reply === this.#paid ? reply : checkedReply(reply, services.config.defaults, request.needs);
  }

  #info(step: number, { messages, tools, signal }: ModelRequest): ModelCallInfo {
    const { runId, agent, progress, born } = this.#run;
    const { tier, model } = this.#loop;
    const key = modelCallKeyOf(born, step, this.#input.phase);
    const { provider, modelId } = model;
    return Object.freeze({
      ...{ runId, step, agentId: agent.id, tier, key, signal, labels: progress?.labels ?? noLabels },
      ...{ provider, modelId, messages: Object.freeze([...messages]), tools: Object.freeze([...tools]) },
    });
  }

  #askModel(step: number, request: ModelRequest): Promise<ModelReply> {
    const run = this.#run;
    return askModel({
      ...{ model: this.#loop.model, request, retries: () => this.#retries(step), call: this.#calling(step) },
      onCutAnswer: run.agent.onCutAnswer ?? run.services.config.defaults.onCutAnswer,
      maxPauses: run.agent.maxSteps ?? run.services.config.defaults.maxSteps,
      begin: (standing) => run.replies.begin(step, standing),
      shorten: () => this.#shortenedAgain(),
    });
  }

  /** Each request of a traced run has a span. */
  #calling(step: number): typeof callModel {
    const run = this.#run;
    const { tracing } = run.services.config;
    if (!tracing) return callModel;
    const { provider, modelId } = this.#loop.model;
    const call = { kind: 'model', run: run.observed, step, provider, modelId } as const;
    return (model, request) => tracing.enter(call, () => callModel(model, request));
  }

  #retries(step: number): RetryOptions {
    const run = this.#run;
    const { progress } = run;
    const { clock, defaults, random } = run.services.config;
    return {
      signal: run.signal,
      clock,
      // Each wake is one attempt.
      attempts: progress && retryOf(progress) ? 1 : defaults.modelAttempts,
      answerAttempts: defaults.modelAttempts,
      withinMs: defaults.modelRetryMs,
      random,
      onRetry: (retry: Retry) => run.publish({ type: 'model.retry', step, ...retry }),
      onSpent: (usage) => {
        this.#lost = this.#lost ? addUsage(this.#lost, usage) : usage;
      },
    };
  }

  /** The stored history stays whole; the model may get a shorter one. */
  #shortened(view: CompactedView): Promise<readonly Message[]> {
    const { tier, model, lastInputTokens } = this.#loop;
    const messages = this.#input.transcript.slice();
    return view.messagesFor(messages, { tier, model, signal: this.#run.signal, lastInputTokens });
  }

  /** The provider found the history too long: its window is smaller than was thought. */
  async #shortenedAgain(): Promise<readonly Message[] | undefined> {
    const { tier, model, view, lastInputTokens } = this.#loop;
    const messages = this.#input.transcript.slice();
    this.#shorter = await view?.shorterFor(messages, { tier, model, signal: this.#run.signal, lastInputTokens });
    return this.#shorter && this.#loop.requests.of(this.#shorter);
  }

  #request(step: number, messages: Transcript | readonly Message[]): ModelRequest {
    const { signal, agent, services, resources } = this.#run;
    const { clock, defaults } = services.config;
    const { transcript, completedPhases, phase = 0 } = this.#input;
    const schema = phase + 1 >= resources.loops.length ? agent.outputSchema?.jsonSchema : undefined;
    return {
      system: this.#loop.system(completedPhases),
      messages: this.#loop.requests.of(messages),
      // A compactor may add files of its own.
      hasUrls: transcript.hasUrls || this.#loop.view !== undefined,
      tools: this.#loop.toolbox.definitions,
      settings: settingsFor(this.#loop, this.#input.turn),
      needs: agent.phases?.[phase]?.bare === true ? 'text' : 'text-or-calls',
      ...(schema ? { outputSchema: schema } : {}),
      signal,
      clock,
      firstChunkMs: defaults.firstChunkMs,
      chunkGapMs: defaults.chunkGapMs,
      limits: defaults,
      onPiece: (piece) => this.#run.replies.take(step, piece),
    };
  }
}

/**
 * The settings of one turn of a loop. A tool choice that forces a call applies to the first turn only: a model that must call
 * a tool in each turn never answers. If the tool is absent, no choice is sent.
 */
function settingsFor({ settings, toolbox }: LoopContext, turn: number): ModelSettings {
  const { toolChoice, ...rest } = settings;
  if (toolChoice === undefined || toolbox.tools.size === 0) return rest;
  if (toolChoice === 'auto' || toolChoice === 'none') return settings;
  const isThere = toolChoice === 'required' || toolbox.tools.has(toolChoice.toolName);
  return isThere && turn === 1 ? settings : rest;
}
