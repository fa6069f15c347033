import type { ModelCallInput } from '../../../machines/actors.ts';
import type { FailedAnswer } from '../../../machines/context.ts';
import type { LostUse, ModelReply } from '../../run/reply.ts';
import type { ErrorData } from '../../values/error-data.ts';
import type { Message } from '../../values/message.ts';
import { estimateTokens } from '../../values/texts/token-estimate.ts';
import { addSpend, addUsage, countedUse, noUsage, type Spend, type Usage } from '../../values/usage.ts';
import type { ActiveRun } from '../run/active-run.ts';
import { Spending } from '../run/spending.ts';
import type { LoopContext, LoopModel } from '../services/loop-context.ts';
import { RequestEstimate, warnOfEstimate } from '../services/request-estimate.ts';

/** What one turn of a model used, and what its budget counts of it: each model of a list is reserved and paid on its own. */
export class TurnCost {
  readonly #run: ActiveRun;
  readonly #loop: LoopContext;
  readonly #input: ModelCallInput;
  #model: LoopModel;
  #spending: Spending | undefined;
  /** The cost of failed attempts of the model that is asked now. */
  #lost: Usage | undefined;
  /** What the models before it cost. */
  #others: LostUse[] | undefined;
  /** The model's reply, which a middleware may still drop. */
  paid: ModelReply | undefined;
  /** A middleware answered, and the model was not asked. */
  isUnasked = false;
  /** The messages that replace a history which is too long for the window. */
  shorter: readonly Message[] | undefined;

  constructor(run: ActiveRun, loop: LoopContext, input: ModelCallInput) {
    this.#run = run;
    this.#loop = loop;
    this.#input = input;
    [this.#model] = loop.models;
  }

  /** Asks the budget for a call of this model. @throws {BUDGET_EXCEEDED} or another error of the budget: it must not be made */
  async reserve(model: LoopModel): Promise<void> {
    this.#model = model;
    const { tier, models } = this.#loop;
    const { iteration, phase } = this.#input;
    const inputTokens = this.estimate();
    this.#spending = await Spending.reserve(this.#run, {
      ...{ turn: iteration + 1, phase, modelTier: tier, model: fullName(model), inputTokens },
      place: models.indexOf(model),
    });
  }

  /** Estimates the input of a request, in tokens: the provider's last count, and the messages since. */
  estimate(): number {
    const { lastInputTokens, lastSize = 0 } = this.#loop;
    // A compacted history is shorter than the transcript.
    const known = lastInputTokens ? lastInputTokens - lastSize / 4 : 0;
    return Math.max(0, Math.ceil(known + this.#input.transcript.size / 4));
  }

  /** An attempt failed, and was used. */
  lose(usage: Usage): void {
    this.#lost = this.#lost ? addUsage(this.#lost, usage) : usage;
  }

  /** The model that was asked has failed, and this one is asked in its place. @throws what the budget throws */
  async passTo(model: LoopModel): Promise<void> {
    const lost = this.#lost;
    const spend = lost ? await this.#spending?.commit(lost) : await this.#spending?.refund();
    this.#spending = this.#lost = undefined;
    const { name } = this.#model;
    if (lost) this.#others = [...(this.#others ?? []), { model: name, usage: lost, ...(spend ? { spend } : {}) }];
    this.#model = model;
    if (this.#run.services.config.budget) await this.reserve(model);
  }

  /** The usage of the whole turn. */
  usageOf(reply: ModelReply): Usage {
    const usage = this.#lost ? addUsage(reply.usage, this.#lost) : reply.usage;
    return this.#others ? this.#others.reduce((sum, other) => addUsage(sum, other.usage), usage) : usage;
  }

  /** Pays for a reply. */
  async commit(reply: ModelReply): Promise<Pick<ModelReply, 'spend' | 'lost'>> {
    return this.#withOthers(await this.#spending?.commit(this.#counted(reply)));
  }

  /** Whether a reply has a cost beside its usage: without one nothing is awaited. */
  get isShared(): boolean {
    return this.#spending !== undefined || this.#others !== undefined;
  }

  /** Pays for a failed turn as far as it was used. For an interrupted reply, all of it that was read is paid for. */
  async fail(error: ErrorData): Promise<Pick<FailedAnswer, 'usage' | 'spend' | 'model' | 'lost'>> {
    const { paid } = this;
    const own = paid && this.#lost ? addUsage(paid.usage, this.#lost) : (paid?.usage ?? this.#lost);
    const isCut = error.code === 'REPLY_TOO_LARGE';
    const isUsed = own !== undefined || isCut;
    const spend = isUsed ? await this.#spending?.commit(this.#countedOf(isCut, paid)) : await this.#spending?.refund();
    if (!isUsed && !this.#others) return {};
    const used = this.#others ? [...this.#others.map(({ usage }) => usage), own ?? noUsage] : own && [own];
    return {
      ...(isUsed ? { model: this.#model.name } : {}),
      ...(used ? { usage: used.reduce(addUsage) } : {}),
      ...this.#withOthers(spend ?? undefined),
    };
  }

  #withOthers(spend: Spend | undefined): Pick<ModelReply, 'spend' | 'lost'> {
    const lost = this.#others;
    if (!lost) return spend ? { spend } : {};
    const spends = [...lost.flatMap((other) => other.spend ?? []), ...(spend ? [spend] : [])];
    return { lost, ...(spends.length > 0 ? { spend: spends.reduce(addSpend) } : {}) };
  }

  /**
   * The usage of the model that is asked now, as a budget counts it: the failed attempts, and the reply with an estimate of unreported
   * tokens.
   */
  #counted({ usage, message }: ModelReply): Usage {
    // A middleware that answered for the model knows its cost.
    if (this.isUnasked) return usage;
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
    return this.#loop.estimate.of({ ...request, shortened: this.shorter });
  }

  #warnOfEstimate(): void {
    const { services, runId } = this.#run;
    warnOfEstimate(services, { runId, model: fullName(this.#model) });
  }
}

/** Returns the name of a model whole: a budget looks for its price, and a limit for its requests. */
export function fullName({ model }: LoopModel): string {
  return `${model.provider}/${model.modelId}`;
}
