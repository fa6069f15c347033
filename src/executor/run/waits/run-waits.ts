import type { RunEmitted, RunMachineEvent } from '../../../../machines/context.ts';
import { callOf, inputOf } from '../../../run/open-step.ts';
import type { Progress } from '../../../run/progress.ts';
import { answeredBefore } from '../../../run/waits/sent-answer.ts';
import { isForModel, type Person, type Wait } from '../../../run/waits/wait.ts';
import { type GivenAnswer, noteOf, voteKind, votesOf, type WaitAnswer } from '../../../run/waits/wait-answer.ts';
import { waitOf, waitsOf } from '../../../run/waits/wait-rules.ts';
import { MAX_TRANSITIONS } from '../../../run/workflow/state.ts';
import { systemClock } from '../../../values/clock.ts';
import { toErrorData } from '../../../values/error-data.ts';
import { AlreadyAnsweredError, AnswerRefusedError, WaitGoneError } from '../../../values/errors.ts';
import { yieldToEventLoop } from '../../../values/event-loop.ts';
import { programOf } from '../../../workflow/program.ts';
import { restOf } from '../../../workflow/view.ts';
import type { ActiveRun } from '../active-run.ts';
import type { Entered, RunWaiting } from '../run-state.ts';
import { admitAnswer } from './admit-answer.ts';
import { DueWaits, isTaking } from './due-waits.ts';
import { ExpectedEvents } from './expected-events.ts';
import { forwardEvent, forwardSteering } from './left-run.ts';
import { WorkingTime } from './working-time.ts';

/** So many transitions without a rest are probably a loop. */
const RESTLESS = 1_000;

type Emitted<Type extends RunEmitted['type']> = Extract<RunEmitted, { type: Type }>;
type Recorded = 'durable' | 'queued';

interface Pending {
  readonly given: GivenAnswer;
  readonly settle: PromiseWithResolvers<Recorded>;
}

/**
 * The waits of a live run: answers on their way into it, the time at which the next wait ends by itself, and their events. An
 * event follows when the record has what it reports.
 */
export class RunWaits implements RunWaiting {
  readonly #run: ActiveRun;
  #pending: Map<string, Pending> | undefined;
  /** The last answer to each wait that is being checked. */
  #turns: Map<string, Promise<void>> | undefined;
  /** Open waits that are not in the record yet. */
  #hidden: Set<string> | undefined;
  /** Made with the first wait for an event. */
  #events: ExpectedEvents | undefined;
  #count = 0;
  /** Made with the first wait, or the first answer. */
  #dueWaits: DueWaits | undefined;
  readonly time: WorkingTime;
  #isWaiting = false;
  /** The transition after which a workflow rested; of one that has not, the last one before this process. */
  #restedAt: number | undefined;
  #isRestless = false;
  /** `run.waiting` was published, and `run.woken` was not. */
  #hasSaidWaiting = false;
  /** Counts the times that the run began to wait: an effect of an earlier time is over. */
  turn = 0;

  constructor(run: ActiveRun) {
    this.#run = run;
    this.time = new WorkingTime(run);
  }

  /**
   * Takes an answer: checks who gives it and whether it fits, and passes it to the machine.
   * @returns when the record has its effect, or, without a record, the machine
   * @throws {WAIT_GONE} @throws {ALREADY_ANSWERED} @throws {ANSWER_REFUSED} @throws {ANSWER_REDACTED}
   */
  async take(given: GivenAnswer): Promise<Recorded> {
    const { waitId, at, answer } = given;
    const known = () => this.#run.progress && waitOf(this.#run.progress, waitId);
    let wait: Wait | undefined;
    const enter = async () => {
      wait ??= known();
      return this.#inTurn(given);
    };
    try {
      // A late answer does not beat an expiry, although no process was there to record it. A child's end is never late.
      return await this.inOrder(at, enter, answer.how === 'ended' ? undefined : waitId);
    } catch (error) {
      if (wait && !(error instanceof AlreadyAnsweredError)) this.#onRefused(given, error);
      throw error;
    }
  }

  get #due(): DueWaits {
    this.#dueWaits ??= new DueWaits(this.#run, {
      tellStore: () => this.tellStore(),
      expire: (wait) => this.#expire(wait),
      isWaiting: () => this.#isWaiting,
    });
    return this.#dueWaits;
  }

  /** Takes what was sent at a time after the waits that were due before: see `DueWaits`. */
  inOrder<T>(at: number, enter: () => Promise<Entered<T>>, waitId?: string): Promise<T> {
    return this.#due.inOrder(at, enter, waitId);
  }

  /**
   * Checks the answers to one wait one after the other, in the order in which they came: a denial must not overtake an approval
   * whose check takes longer.
   * @returns what the machine makes of this one, wrapped: the next answer does not wait for it
   */
  async #inTurn(given: GivenAnswer): Promise<Entered<Recorded>> {
    const { waitId } = given;
    this.#begin();
    this.#turns ??= new Map();
    const turns = this.#turns;
    const before = turns.get(waitId);
    const turn = Promise.withResolvers<void>();
    turns.set(waitId, turn.promise);
    try {
      await before;
      const answer = await admitAnswer(this.#run, given);
      await this.#letOthersRun();
      const recorded = this.#pass(given, answer);
      recorded.catch(() => {});
      return { recorded };
    } finally {
      turn.resolve();
      if (turns.get(waitId) === turn.promise) turns.delete(waitId);
    }
  }

  forward(event: RunMachineEvent): void {
    forwardEvent(this.#run, event);
  }

  forwardSteering(text: string, by?: Person): Promise<'durable'> {
    return forwardSteering(this.#run, text, by);
  }

  /** Thousands of answers may come at once, and each costs as much as there are open waits. */
  async #letOthersRun(): Promise<void> {
    if (this.#run.services.config.clock !== systemClock) return;
    await yieldToEventLoop();
  }

  /** Most runs never wait: they need none of this. */
  #begin(): Map<string, Pending> {
    if (!this.#pending) this.#run.onEnd(() => this.#end());
    this.#pending ??= new Map();
    return this.#pending;
  }

  #pass(given: GivenAnswer, answer: WaitAnswer): Promise<Recorded> {
    // A run that must stop leaves the answer to the next process.
    if (!isTaking(this.#run)) return Promise.reject(this.#tooLate(given.waitId));
    this.#count += 1;
    const receipt = String(this.#count);
    const settle = Promise.withResolvers<Recorded>();
    this.#begin().set(receipt, { given, settle });
    this.#run.send({ type: 'wait.answer', answer, receipt });
    return settle.promise;
  }

  async #expire(wait: Wait): Promise<void> {
    const at = this.#run.services.config.clock.now();
    await this.#pass({ waitId: wait.id, answer: { how: 'expire' }, at }, { waitId: wait.id, how: 'expire', at }).catch(
      () => {},
    );
  }

  /** These waits are open once their boundary is stored. */
  onOpened({ waits, boundary }: Emitted<'waits.opened'>): void {
    this.#hide(waits);
    this.#whenRecorded(boundary, () => {
      this.#show(waits);
      this.arm();
      this.#updateEvents();
    });
  }

  /** Returns whether a wait may be shown: the record has it. After a crash before that it would have another id. */
  isShown({ id }: Pick<Wait, 'id'>): boolean {
    return !this.#hidden?.has(id);
  }

  #hide(waits: readonly Wait[]): void {
    if (!this.#run.isDurable) return;
    this.#hidden ??= new Set();
    for (const { id } of waits) this.#hidden.add(id);
  }

  #show(waits: readonly Wait[]): void {
    for (const wait of waits) {
      this.#hidden?.delete(wait.id);
      this.#publishOpened(wait);
    }
  }

  /** The run continues with the waits of its record. */
  onResumed(): void {
    if (waitsOf(this.#run.progress ?? {}).length === 0) return;
    this.arm();
    this.#updateEvents({ isAgain: true });
  }

  /** Reports the events that the run waits for to its store. Never rejects. @returns whether the store knows them all */
  async tellStore(): Promise<boolean> {
    return (await this.#events?.tellStore()) ?? true;
  }

  /** The wait for an event is still open although a signal was delivered to it. */
  again(waitId: string): void {
    this.#events?.again(waitId);
  }

  #updateEvents(options?: { readonly isAgain?: boolean }): void {
    if (!this.#events && !waitsOf(this.#run.progress ?? {}).some(({ kind }) => kind === 'event')) return;
    this.#events ??= new ExpectedEvents(this.#run);
    this.#events.update(options);
  }

  #publishOpened(wait: Wait): void {
    const step = this.#run.progress?.openStep;
    const call = step && wait.callId !== undefined ? callOf(step, wait.callId) : undefined;
    this.#run.publish({ type: 'wait.opened', wait, ...(call ? { input: inputOf(call) } : {}) });
  }

  /** The machine has applied an answer. */
  onTaken({ receipt, boundary, wait, settled, opened, reason }: Emitted<'answer.taken'>): void {
    const { id: waitId, kind, callId } = wait;
    const call = callId === undefined ? {} : { callId };
    const given = this.#pending?.get(receipt)?.given;
    const by = given?.by;
    if (given) this.#publishDone(wait, given);
    if (opened) this.#hide([opened]);
    this.#whenRecorded(boundary, () => {
      if (settled?.how === 'signal') this.#events?.onServed(waitId);
      this.#updateEvents();
      if (opened || reason !== undefined) {
        this.#run.publish({ type: 'wait.withdrawn', waitId, kind, ...call });
        if (opened) this.#show([opened]);
      } else if (settled?.how === 'expire' && kind !== 'timer' && !isForModel(wait))
        this.#run.publish({ type: 'wait.expired', waitId, kind, ...call });
      else {
        const votes = settled ? {} : votesOf(wait, given);
        const how = settled?.how ?? voteKind(kind);
        const said = { ...(by ? { by } : {}), ...noteOf(wait, settled) };
        this.#run.publish({ type: 'wait.answered', waitId, kind, how, ...said, ...votes, ...call });
      }
      this.#settle(receipt, (settle) => {
        const again = opened && `asked about an earlier input, tool or version: wait ${opened.id} asks again`;
        const gone = again ?? (reason === undefined ? undefined : `is over: its call cannot run, since ${reason}`);
        if (gone !== undefined) settle.reject(new WaitGoneError(`wait ${waitId} ${gone}`));
        else settle.resolve(this.#run.isDurable ? 'durable' : 'queued');
      });
    });
    this.arm();
  }

  /** The call of a child that has ended is done, without another start. Before the event of its step. */
  #publishDone({ callId = '', createdAt, step, tool = '' }: Wait, { answer, at }: GivenAnswer): void {
    if (answer.how !== 'ended') return;
    const ms = Math.max(0, at - createdAt);
    this.#run.publish({ type: 'tool.done', step, callId, name: tool, effect: 'idempotent', output: answer.output, ms });
  }

  /** The machine has not applied an answer. */
  notTaken({ receipt, why, settled }: Emitted<'answer.refused'>): void {
    this.#settle(receipt, (settle, { waitId }) => {
      const { requested } = this.#run.actor.getSnapshot().context;
      // The first of two equal answers may still be on its way into the record.
      if (why === 'known')
        this.#whenRecorded(requested, () => settle.resolve(this.#run.isDurable ? 'durable' : 'queued'));
      else if (why === 'other' && settled) settle.reject(answeredBefore(settled));
      else if (why === 'unfit')
        settle.reject(new AnswerRefusedError(`wait ${waitId} takes no such answer, or asks about another input`));
      else settle.reject(this.#tooLate(waitId));
    });
  }

  #tooLate(waitId: string): WaitGoneError {
    return new WaitGoneError(`run ${this.#run.runId} has no open wait ${waitId}`);
  }

  #settle(receipt: string, how: (settle: PromiseWithResolvers<Recorded>, given: GivenAnswer) => void): void {
    const pending = this.#pending?.get(receipt);
    this.#pending?.delete(receipt);
    if (pending) how(pending.settle, pending.given);
  }

  /** The wait stays open. */
  #onRefused({ waitId, by }: GivenAnswer, error: unknown): void {
    const { code, message: reason } = toErrorData(error);
    this.#run.publish({ type: 'wait.refused', waitId, code, reason, ...(by ? { by } : {}) });
  }

  /** The machine of a workflow has taken an event. A loop of it is said long before it meets the limit of transitions. */
  onTransition(step: number): void {
    this.#restedAt ??= step - 1;
    const count = step - this.#restedAt;
    if (count < RESTLESS || this.#isRestless) return;
    this.#isRestless = true;
    const { services, runId } = this.#run;
    services.config.warn('workflow.restless', { runId, count, most: MAX_TRANSITIONS });
  }

  /** Nothing but waits is left: working time, and with it the deadline, stops. */
  began(progress: Progress): void {
    const run = this.#run;
    this.turn += 1;
    this.#isWaiting = true;
    this.#restedAt = progress.iteration;
    this.#isRestless = false;
    this.time.stop();
    const { waits = [], wakeAt } = progress.waiting ?? {};
    const { requested } = run.actor.getSnapshot().context;
    const turn = this.turn;
    const say = () => {
      if (this.turn !== turn || !this.#isWaiting) return;
      this.#hasSaidWaiting = true;
      run.publish({ type: 'run.waiting', waits: waits.length, ...(wakeAt === undefined ? {} : { wakeAt }) });
      const state = restOf(programOf(run.agent), progress);
      if (state?.isDeadEnd) run.services.config.warn('workflow.dead-end', { runId: run.runId, why: state.text });
    };
    const { inbox } = run.services;
    // A process that continues the run for an answer has read it by now. The process before has said that the run waits.
    const isAnswered = turn === 1 && run.startFacts.resumedFrom !== undefined && inbox.isDelivering(run.runId);
    this.#hasSaidWaiting = isAnswered;
    this.#whenRecorded(requested, isAnswered ? () => void inbox.settleDelivered(run.runId).then(say) : say);
    this.arm();
  }

  /** The run works again, or ends. */
  onEnded(): void {
    const run = this.#run;
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    this.time.start();
    const { cause, requested } = run.actor.getSnapshot().context;
    // A run that leaves, or is stopped, does not work again.
    if (run.life.isOver || cause || !this.#hasSaidWaiting) return;
    this.#hasSaidWaiting = false;
    this.#whenRecorded(requested, () => run.publish({ type: 'run.woken' }));
  }

  /** One of its children waits, or works again, or ended. */
  look(): void {
    this.time.look();
  }

  withdraw(waits: readonly Wait[]): void {
    for (const { id: waitId, kind, callId } of waits)
      this.#run.publish({ type: 'wait.withdrawn', waitId, kind, ...(callId === undefined ? {} : { callId }) });
    if (this.#pending) this.arm();
  }

  /** Arms the timer for the next wait that ends by itself. */
  arm(): void {
    this.#begin();
    this.#due.arm();
  }

  #whenRecorded(boundary: number, then: () => void): void {
    if (this.#run.isDurable) this.#run.checkpointing.whenPersisted(boundary, then);
    else then();
  }

  #end(): void {
    this.#due.stop();
    for (const { given, settle } of this.#pending?.values() ?? []) settle.reject(this.#tooLate(given.waitId));
    this.#pending?.clear();
  }
}
