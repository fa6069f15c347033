import type { ModelCallInput } from '../../../machines/actors.ts';
import type { CallTurn, LimitedCall } from '../../limits/port.ts';
import type { callModel, ModelRequest } from '../../model/call.ts';
import { spentBy } from '../../model/failed-call-usage.ts';
import type { Model } from '../../model/port.ts';
import { waitIdOf } from '../../run/identity.ts';
import type { ModelReply } from '../../run/reply.ts';
import { limitWaitOf } from '../../run/waits/model-waits.ts';
import type { Wait } from '../../run/waits/wait.ts';
import { type Backoff, backoffMs, pause } from '../../values/backoff.ts';
import { untilAborted, withDeadline } from '../../values/deadline.ts';
import { RunWaitsError } from '../../values/errors.ts';
import { letGo } from '../../values/thenable.ts';
import type { Usage } from '../../values/usage.ts';
import { noLabels } from '../host/middleware.ts';
import type { ActiveRun } from '../run/active-run.ts';
import type { LoopModel } from '../services/loop-context.ts';
import { mayRest } from './rest.ts';
import { fullName } from './turn-cost.ts';

/** The wait of a run for the turn of its next model call. */
type LimitWait = Extract<Wait, { kind: 'limit' }>;

/** A run that rests is due this long before its turn, ms. */
const EARLY_MS = 1_000;
/**
 * A turn that is later than this is lost, ms. No span has more requests than its limit and two seconds' worth; one of these seconds is
 * for late turns. The rest of it is for the way from the turn to the request, which takes some time on a busy machine.
 */
const LATE_MS = 900;

/** The most characters of a rule in a record: more than a label's name has. */
const MAX_RULE = 300;

/** The pauses after a store that gave no turn. */
const away: Backoff = { firstMs: 250, maxMs: 30_000, jitter: 'around' };

/** What a turn of a model tells its limits. */
interface Limited {
  readonly input: ModelCallInput;
  readonly tier: string;
  /** The model that is asked now. */
  readonly asked: () => LoopModel;
  readonly inputTokens: () => number;
}

/** The limits of one turn of a model: each of its requests waits for a turn, in this process or at rest. */
export class TurnLimit {
  readonly #run: ActiveRun;
  readonly #limited: Limited;
  /** The turn that the run has rested for. */
  #ready: LimitWait | undefined;
  /** How long its requests waited, ms. */
  heldMs = 0;
  /** The request has a later turn: the run rests with this wait. */
  wait: LimitWait | undefined;

  constructor(run: ActiveRun, limited: Limited) {
    this.#run = run;
    this.#limited = limited;
    this.#ready = run.progress && limitWaitOf(run.progress);
  }

  /** Returns a call that takes a turn before it is made, and says then what it used. @throws {RUN_WAITS} if the run rests */
  limiting(call: typeof callModel): typeof callModel {
    return async (model: Model, request: ModelRequest): Promise<ModelReply> => {
      const limited = this.#call();
      await this.#take(limited);
      try {
        const reply = await call(model, request);
        this.#report(limited, reply.usage);
        return reply;
      } catch (error) {
        this.#report(limited, spentBy(error));
        throw error;
      }
    };
  }

  #call(): LimitedCall {
    const { progress, seed } = this.#run;
    const { tier, asked, inputTokens } = this.#limited;
    const { key } = asked();
    const name = fullName(asked());
    const model = key === undefined ? name : `${name}#${key}`;
    const { callerId } = progress?.meta ?? seed.request;
    return { model, tier, callerId, labels: progress?.labels ?? noLabels, inputTokens: inputTokens() };
  }

  #report(call: LimitedCall, usage: Usage | undefined): void {
    const used = (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0);
    const { services, runId } = this.#run;
    const { limits, warn } = services.config;
    try {
      // Many compatible servers report nothing: the estimate stands.
      if (used > 0) letGo(limits?.report(call, used));
    } catch (error) {
      warn('callback.threw', { runId, what: 'limits.report', error });
    }
  }

  /** A run cannot rest for less than the time by which it is due before its turn. */
  get #holdMs(): number {
    return Math.max(EARLY_MS, this.#run.services.config.limits?.holdMs ?? 0);
  }

  /** Waits for the turn of a request. Its time is no working time. @throws {RUN_WAITS} if the run rests */
  async #take(call: LimitedCall): Promise<void> {
    const { waits, services } = this.#run;
    const { clock } = services.config;
    const since = clock.monotonic();
    waits.time.hold(true);
    try {
      for (let after: string | undefined; ; ) {
        const { waitMs, rule, isPart } = await this.#turnOf(call, after);
        if (this.#isForRest(waitMs)) throw this.#rest(call.model, { waitMs, rule, isPart });
        const isLate = (await this.#pause(waitMs)) > LATE_MS;
        if (!isLate && !(isPart && rule !== after)) return;
        after = isLate ? undefined : rule;
      }
    } finally {
      waits.time.hold(false);
      this.heldMs += clock.monotonic() - since;
    }
  }

  /** Waits for a time, and returns how much longer than that it was, ms: a process may stand still. */
  async #pause(ms: number): Promise<number> {
    const { services, signal } = this.#run;
    const { clock } = services.config;
    const until = clock.monotonic() + ms;
    const left = () => until - clock.monotonic();
    while (left() > 0 && !signal.aborted)
      await services.heldCalls.hold(until, (call) => {
        this.#run.heldCall = call;
      });
    this.#run.heldCall = undefined;
    signal.throwIfAborted();
    return -left();
  }

  /** Returns the turn of a request: that of the run's rest, unless it is over, or a new one. @param after the rule whose turn has come */
  async #turnOf(call: LimitedCall, after: string | undefined): Promise<CallTurn> {
    const { clock } = this.#run.services.config;
    const ready = this.#ready?.model === call.model ? this.#ready : undefined;
    if (!ready) return this.#newTurn(call, after);
    this.#ready = undefined;
    const { rule, isPart } = ready;
    const leftMs = ready.turnAt - clock.now();
    const own = { waitMs: Math.max(0, leftMs), rule, isPart };
    if (leftMs >= -LATE_MS && leftMs <= this.#holdMs) return own;
    const other = await this.#newTurn(call);
    // A person woke it long before its turn, which is still its own.
    return leftMs > 0 && leftMs < other.waitMs ? own : other;
  }

  /** Takes a turn. A store that is away gives none: it is asked until it answers. @throws the reason of the run's signal */
  async #newTurn(call: LimitedCall, after?: string): Promise<CallTurn> {
    const { services, signal, runId } = this.#run;
    const { clock, random, warn } = services.config;
    for (let failures = 1; ; failures++) {
      try {
        return await untilAborted(this.#askFor(call, after), signal);
      } catch (error) {
        signal.throwIfAborted();
        if (failures === 1) warn('limit.failed', { runId, error });
        await pause(backoffMs(failures, away, random), clock, signal);
        signal.throwIfAborted();
      }
    }
  }

  async #askFor(call: LimitedCall, after: string | undefined): Promise<CallTurn> {
    const { services, signal, runId } = this.#run;
    const { clock, limits, defaults, warn } = services.config;
    if (!limits) return { waitMs: 0 };
    const what = 'limits.take';
    // A call that asks again takes no turn for the time before.
    const given = new AbortController();
    const taking = limits.take(call, { signal: AbortSignal.any([signal, given.signal]), after });
    const turn = await withDeadline(taking, { ms: defaults.portMs, clock, what }).catch((error: unknown) => {
      given.abort(error);
      throw error;
    });
    const { waitMs, exceeds, rule } = turn;
    if (!(Number.isFinite(waitMs) && waitMs >= 0))
      throw new TypeError(`${what}: waitMs must be a number of ms, not ${waitMs}`);
    if (rule !== undefined && typeof rule !== 'string') throw new TypeError(`${what}: rule must be a text`);
    if (exceeds) warn('limit.exceeded', { runId, model: call.model, ...exceeds });
    return turn;
  }

  /** A run that cannot rest is held, however long; so is a request that continues a reply, which a rest would lose. */
  #isForRest(waitMs: number): boolean {
    return waitMs > this.#holdMs && !this.#run.replies.hasPart && mayRest(this.#run);
  }

  #rest(model: string, { waitMs, rule, isPart }: CallTurn): RunWaitsError {
    const { runId, services } = this.#run;
    const createdAt = services.config.clock.now();
    const turnAt = Math.ceil(createdAt + waitMs);
    const step = this.#limited.input.iteration + 1;
    const id = waitIdOf([runId, 'limit', step, createdAt]);
    const held = { ...(rule === undefined ? {} : { rule: rule.slice(0, MAX_RULE) }), ...(isPart ? { isPart } : {}) };
    this.wait = { id, kind: 'limit', createdAt, dueAt: turnAt - EARLY_MS, step, turnAt, model, ...held };
    return new RunWaitsError(`run ${runId} waits for its turn at ${model}`);
  }
}
