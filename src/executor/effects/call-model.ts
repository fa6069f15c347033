import type { ModelCallInput } from '../../../machines/actors.ts';
import type { FailedAnswer, ModelAnswer } from '../../../machines/context.ts';
import type { ModelRequest } from '../../model/call.ts';
import { checkedReply } from '../../model/checked-reply.ts';
import { failureOf, isSetupFailure, statusOfError } from '../../model/failure.ts';
import type { CallModel } from '../../model/given-calls.ts';
import { Lineup } from '../../model/lists/lineup.ts';
import type { Retry, RetryOptions } from '../../model/retry.ts';
import { modelCallKeyOf, waitIdOf } from '../../run/identity.ts';
import type { ModelSettings } from '../../run/model-settings.ts';
import { allMessagesOf, effectsIn, ownFrom, type Progress } from '../../run/progress.ts';
import { isFinishReason, type ModelReply } from '../../run/reply.ts';
import { retryWaitOf } from '../../run/waits/model-waits.ts';
import { afterModelFailure, type FailedTurn, type ModelFailure } from '../../run/waits/outage.ts';
import type { Toolbox } from '../../tool/toolbox.ts';
import { systemClock } from '../../values/clock.ts';
import { untilAborted } from '../../values/deadline.ts';
import { type ErrorData, readProperty, toErrorData } from '../../values/error-data.ts';
import { ModelError } from '../../values/errors.ts';
import { yieldToEventLoop } from '../../values/event-loop.ts';
import { frozenJson, MESSAGE_DEPTH } from '../../values/json.ts';
import type { AssistantMessage, Message } from '../../values/message.ts';
import { enterAnswer, keyOf, makerOf } from '../../values/message-mark.ts';
import { callThrough, type Layers, type ModelCallInfo, noLabels } from '../host/middleware.ts';
import { callTraced } from '../host/tracing.ts';
import type { ActiveRun } from '../run/active-run.ts';
import { isHandleSpared, sparingHandle } from '../run/record/recording.ts';
import { hasRecorded, isStoredHere, setupError } from '../run/record/setup-fault.ts';
import type { CompactedView, ViewedCall } from '../services/compacted-view.ts';
import type { LoopContext, LoopModel } from '../services/loop-context.ts';
import { askModel } from './ask-model.ts';
import { TurnCost } from './turn-cost.ts';
import { TurnLimit } from './turn-limit.ts';

/** The most requests of a step to a model of a list, for failures that may pass. */
const LISTED_ATTEMPTS = 2;
/** A provider that asks for a longer wait is not waited for while another model may be asked, ms. */
const LONGEST_ASKED_MS = 1_000;

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

/** The models of a list for one turn. A run stays with the one that answered last: its next step has the same tone, and a warm cache. */
function lineupOf({ services, progress, runId }: ActiveRun, models: readonly LoopModel[]): Lineup<LoopModel> {
  const { config, modelRests } = services;
  const answer = progress && progress.iteration > 0 ? lastAnswer(progress) : undefined;
  return new Lineup(models, {
    last: answer && models.find(({ name, key }) => name === makerOf(answer) && key === keyOf(answer)),
    isResting: ({ model }) => modelRests.isResting(model),
    clock: config.clock,
    onThrow: (error) => config.warn('callback.threw', { runId, what: "a list's `when`", error }),
  });
}

function lastAnswer(progress: Progress): Message | undefined {
  const messages = allMessagesOf(progress);
  for (let i = messages.length - 1; i >= 0; i--) {
    const message = messages.at(i);
    if (message?.role === 'assistant') return message;
  }
  return undefined;
}

/** One turn of the model: reserves the budget, asks the models of its loop, and pays in each case. */
class Turn {
  readonly #run: ActiveRun;
  readonly #loop: LoopContext;
  readonly #input: ModelCallInput;
  readonly #cost: TurnCost;
  /** Undefined: the executor has no limits. */
  readonly #limit: TurnLimit | undefined;
  /** The models of the turn, where the loop has a list. */
  readonly #lineup: Lineup<LoopModel> | undefined;
  /** The budget refuses the model that is to be asked. */
  #isRefused = false;

  constructor(run: ActiveRun, loop: LoopContext, input: ModelCallInput) {
    this.#run = run;
    this.#loop = loop;
    this.#input = input;
    this.#cost = new TurnCost(run, loop, input);
    if (loop.models.length > 1) this.#lineup = lineupOf(run, loop.models);
    if (!run.services.config.limits) return;
    const facts = { input, tier: loop.tier, asked: () => this.#asked, inputTokens: () => this.#cost.estimate() };
    this.#limit = new TurnLimit(run, facts);
  }

  /** The model that is asked now. */
  get #asked(): LoopModel {
    return this.#lineup?.asked ?? this.#loop.models[0];
  }

  /** Without a budget the turn adds no promise to its call: a thousand runs a second would notice it. */
  async answer(): Promise<ModelAnswer> {
    const { budget, clock } = this.#run.services.config;
    try {
      if (budget) await this.#cost.reserve(this.#asked);
    } catch (error) {
      return this.#afterRefusal(toErrorData(error, 'MODEL'));
    }
    const cost = this.#cost;
    const step = this.#input.iteration + 1;
    this.#run.replies.begin(step);
    this.#run.publish({ type: 'step.started', step });
    try {
      const { view } = this.#loop;
      cost.shorter = view && (await this.#shorten(view));
      const askedAt = clock.monotonic();
      const reply = await this.#ask(step);
      const ms = clock.monotonic() - askedAt - (this.#limit?.heldMs ?? 0);
      this.#loop.lastInputTokens = reply.usage.inputTokens;
      this.#loop.lastSize = this.#input.transcript.size;
      this.#run.replies.complete(step, reply.message, cost.paid?.message);
      const usage = cost.usageOf(reply);
      const paid = cost.isShared ? await cost.commit(reply) : undefined;
      const { name, key } = this.#asked;
      const model = reply.model ?? name;
      const effects = effectsIn(reply.message, this.#run.resources.facts);
      const account = key === undefined || model !== name ? {} : { key };
      const made = { model, usage, ms, ...account, effects, compacted: view?.takeUnmarked() };
      const message = enterAnswer(reply.message, made);
      return { reply: { ...reply, message, usage, model, ...paid } };
    } catch (error) {
      const data = toErrorData(error, 'MODEL');
      const reason = readProperty(error, 'finishReason');
      const wait = this.#limit?.wait;
      if (wait && !this.#run.signal.aborted) return { error: data, wait, ...(await cost.fail(data)) };
      return {
        ...(this.#isRefused ? this.#afterRefusal(data) : this.#afterFailure(error, data)),
        ...(isFinishReason(reason) ? { finishReason: reason } : {}),
        ...(await cost.fail(data)),
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
    const [step, previous] = [iteration + 1, retryWaitOf(progress)];
    const turn: FailedTurn = {
      ...{ error, failure, step, isDurable, previous },
      id: waitIdOf([runId, 'retry', step, failure.at, previous?.failures ?? 0]),
      isOptional: phase !== undefined && agent.phases?.[phase]?.optional === true,
      hasTurn: iteration > 0,
    };
    const after = afterModelFailure(turn, { modelOutageMs: defaults.modelOutageMs, onModelOutage });
    if (after.kind === 'wait') return { error, wait: after.wait };
    this.#run.endFacts.isContentRefused =
      failure.kind === 'final' && !failure.isBug && error.code !== 'REPLY_TOO_LARGE' && !turn.isOptional;
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

  #ask(step: number): Promise<ModelReply> {
    const request = this.#request(step);
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
      const paid: ModelReply = Object.freeze({
        model: this.#asked.name,
        ...rest,
        usage: Object.freeze({ ...rest.usage }),
        message: frozenJson(message, 'reply.message', MESSAGE_DEPTH) as unknown as AssistantMessage,
      });
      this.#cost.paid = paid;
      return paid;
    };
    const answer = callThrough(layers, this.#info(step, request), () => {
      asking = ask();
      return asking;
    });
    // A running model call ends by itself when the run is aborted, and reports its cost.
    const reply = await untilAborted(answer, signal, () => asking);
    this.#cost.isUnasked = asking === undefined;
    return this.#cost.paid && reply === this.#cost.paid
      ? reply
      : checkedReply(reply, services.config.defaults, request.needs);
  }

  #info(step: number, { messages, tools, signal }: ModelRequest): ModelCallInfo {
    const { runId, agent, progress, born } = this.#run;
    const { tier } = this.#loop;
    const key = modelCallKeyOf(born, step, this.#input.phase);
    const { provider, modelId } = this.#asked.model;
    return Object.freeze({
      ...{ runId, step, agentId: agent.id, tier, key, signal, labels: progress?.labels ?? noLabels },
      ...{ provider, modelId, messages: Object.freeze([...messages]), tools: Object.freeze([...tools]) },
    });
  }

  #askModel(step: number, request: ModelRequest): Promise<ModelReply> {
    return this.#lineup ? this.#askInTurn(this.#lineup, step, request) : this.#askOne(step, request);
  }

  /** Asks the models of a list, one after the other, until one answers. No record is written in between. */
  async #askInTurn(lineup: Lineup<LoopModel>, step: number, first: ModelRequest): Promise<ModelReply> {
    const { services, signal } = this.#run;
    for (let request = first; ; ) {
      const from = lineup.asked;
      const end = services.modelRests.begin(from.model);
      try {
        const reply = await this.#askOne(step, request);
        end(undefined);
        return reply;
      } catch (error) {
        const isOver = signal.aborted || this.#limit?.wait !== undefined;
        end(isOver ? null : error);
        if (isOver) throw error;
        const to = lineup.next(error);
        if (to === undefined) throw lineup.failure;
        const status = statusOfError(error);
        this.#run.publish({
          ...{ type: 'model.fallback', step, attempt: lineup.attempt, from: from.name, to: to.name },
          error: toErrorData(error, 'MODEL'),
          ...(status === undefined ? {} : { status }),
        });
        await this.#passTo(to);
        request = { ...request, ...this.#requestTo(to) };
      }
    }
  }

  async #passTo(model: LoopModel): Promise<void> {
    try {
      await this.#cost.passTo(model);
    } catch (error) {
      this.#isRefused = true;
      throw error;
    }
  }

  #askOne(step: number, request: ModelRequest): Promise<ModelReply> {
    const run = this.#run;
    const call: CallModel = (...asked) => callTraced(run, { step }, asked);
    return askModel({
      ...{ model: this.#asked.model, request, retries: () => this.#retries(step) },
      call: this.#limit?.limiting(call) ?? call,
      onCutAnswer: run.agent.onCutAnswer ?? run.services.config.defaults.onCutAnswer,
      maxPauses: run.agent.maxSteps ?? run.services.config.defaults.maxSteps,
      begin: (standing) => run.replies.begin(step, standing),
      shorten: () => this.#shortenAgain(),
    });
  }

  #retries(step: number): RetryOptions {
    const run = this.#run;
    const { progress } = run;
    const { clock, defaults, random } = run.services.config;
    return {
      signal: run.signal,
      clock,
      // Each wake is one attempt.
      attempts: progress && retryWaitOf(progress) ? 1 : this.#attempts(),
      answerAttempts: defaults.modelAttempts,
      withinMs: defaults.modelRetryMs,
      random,
      onRetry: (retry: Retry) => run.publish({ type: 'model.retry', step, model: this.#asked.name, ...retry }),
      onSpent: (usage) => this.#cost.lose(usage),
      ...(this.#lineup ? { passesOn: this.#passesOn } : {}),
    };
  }

  /** A model that failed before, and may be well again, is asked once. */
  #attempts(): number {
    const { services } = this.#run;
    const { maxAttempts, model } = this.#asked;
    if (!this.#lineup) return maxAttempts ?? services.config.defaults.modelAttempts;
    return services.modelRests.hasFailed(model) ? 1 : (maxAttempts ?? LISTED_ATTEMPTS);
  }

  readonly #passesOn = (error: unknown, retryAfterMs: number): boolean =>
    retryAfterMs > LONGEST_ASKED_MS && this.#lineup?.hasNext(error) === true;

  /** The stored history stays whole; the model may get a shorter one. */
  #shorten(view: CompactedView): Promise<readonly Message[]> {
    return view.messagesFor(this.#input.transcript.slice(), this.#viewed);
  }

  get #viewed(): ViewedCall {
    const { tier, lastInputTokens } = this.#loop;
    const { progress, signal } = this.#run;
    const step = this.#input.iteration + 1;
    const ask: CallModel = (...asked) => callTraced(this.#run, { step, purpose: 'compactor' }, asked);
    return { tier, model: this.#asked.model, signal, ask, lastInputTokens, ownFrom: progress && ownFrom(progress) };
  }

  /** The provider found the history too long: its window is smaller than was thought. */
  async #shortenAgain(): Promise<readonly Message[] | undefined> {
    this.#cost.shorter = await this.#loop.view?.shorterFor(this.#input.transcript.slice(), this.#viewed);
    return this.#cost.shorter && this.#asked.requests.of(this.#cost.shorter);
  }

  /** The part of a request that depends on the model. */
  #requestTo({ requests, settings }: LoopModel): Pick<ModelRequest, 'messages' | 'settings'> {
    const messages = requests.of(this.#cost.shorter ?? this.#input.transcript);
    return { messages, settings: settingsFor(settings, this.#loop.toolbox, this.#input.turn) };
  }

  #request(step: number): ModelRequest {
    const { signal, agent, services, resources } = this.#run;
    const { clock, defaults } = services.config;
    const { transcript, completedPhases, phase = 0 } = this.#input;
    const schema = phase + 1 >= resources.loops.length ? agent.outputSchema?.jsonSchema : undefined;
    return {
      system: this.#loop.system(completedPhases),
      ...this.#requestTo(this.#asked),
      // A compactor may add files of its own.
      hasUrls: transcript.hasUrls || this.#loop.view !== undefined,
      tools: this.#loop.toolbox.definitions,
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
function settingsFor(settings: ModelSettings, toolbox: Toolbox, turn: number): ModelSettings {
  const { toolChoice, ...rest } = settings;
  if (toolChoice === undefined || toolbox.tools.size === 0) return rest;
  if (toolChoice === 'auto' || toolChoice === 'none') return settings;
  const isThere = toolChoice === 'required' || toolbox.tools.has(toolChoice.toolName);
  return isThere && turn === 1 ? settings : rest;
}
