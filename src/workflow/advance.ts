import { waitIdOf } from '../run/identity.ts';
import type { OpenCall } from '../run/open-step.ts';
import type { Progress } from '../run/progress.ts';
import type { Wait } from '../run/waits/wait.ts';
import { openWaits, withdrawWaitsOf } from '../run/waits/wait-rules.ts';
import {
  type InspectedStep,
  type MachineAction,
  outboxOf,
  type WorkflowAdvance,
  type WorkflowEvent,
  withOutbox,
} from '../run/workflow/advanced.ts';
import { byTime, MAX_TRANSITIONS, type MessageReceiver, type WorkflowState } from '../run/workflow/state.ts';
import { toErrorData } from '../values/error-data.ts';
import { WorkflowError, WorkflowLoopError } from '../values/errors.ts';
import { frozenJson, type JsonObject } from '../values/json.ts';
import { entryOf, isInvoked } from './fit.ts';
import { asWorkflowError, eventOf, keptSnapshot } from './kept-snapshot.ts';
import type { BegunActor, Effect, SentMessage, SetTimer, Transition } from './kernel.ts';
import { checkedMessage, checkParent, messageIdFor, receiverOf, undelivered, withMessage } from './messages.ts';
import { nextOf, OWN, withCalls, withState } from './next-event.ts';
import { callFor, callIdOf, type Program } from './program.ts';

/** Most transitions of one save: a machine that sends itself events leaves the event loop between them. */
const MAX_AT_ONCE = 64;
const MAX_TIMERS = 1_000;
const MAX_OPEN_CALLS = 1_000;

/**
 * Lets a workflow take what is there: events of other runs, results of calls in the order in which they ended, timers by their time, then
 * events as they came. All of it is one save, with the calls and timers that it asks for. Nothing has begun yet.
 * @param now wall clock, ms
 */
export function advance(program: Program, progress: Progress, now: number): WorkflowAdvance {
  const at = new Advance(program, progress, now);
  try {
    return at.run();
  } catch (error) {
    return at.failed(error);
  }
}

class Advance {
  readonly #program: Program;
  readonly #now: number;
  #progress: Progress;
  #told: WorkflowEvent[] = [];
  #steps: InspectedStep[] = [];
  #acts: MachineAction[] = [];
  #stopped: OpenCall[] = [];
  /** The calls that this advance has begun, by their actors. */
  #begun = new Map<string, OpenCall>();
  #place = 0;
  /** What the transition sends to actors that have not begun. */
  #unsent: SentMessage[] = [];
  /** As it was before. What an earlier save has sent arrives also if the machine fails now. */
  readonly #given: Progress;

  constructor(program: Program, progress: Progress, now: number) {
    this.#program = program;
    this.#progress = progress;
    this.#now = now;
    this.#given = progress;
  }

  run(): WorkflowAdvance {
    if (this.#progress.workflow?.snapshot.status === undefined) {
      checkParent(this.#program, this.#progress);
      this.#begin();
    }
    if (this.#state.isMigrated) this.#enterMigrated();
    for (let taken = 0; !this.#isOver; taken++) {
      const { event, progress } = nextOf(this.#progress);
      if (!event) {
        this.#progress = progress;
        break;
      }
      if (taken === MAX_AT_ONCE) return this.#result({ isMore: true });
      this.#take(event, progress);
    }
    const { status, output = null } = this.#state.snapshot;
    if (status !== 'done') return this.#result();
    return this.#end({ data: frozenJson(output ?? null, 'output') });
  }

  /**
   * The machine, or Pawl's own check of it, refused: before the save nothing has happened. All that it was to take stays, and its open calls:
   * a run that is retried takes it again. A machine that an error of an actor has ended takes nothing more.
   */
  failed(thrown: unknown): WorkflowAdvance {
    const state = this.#progress.workflow;
    const where = state ? ` in state ${JSON.stringify(state.snapshot.value)}` : '';
    const end = { error: toErrorData(asWorkflowError(thrown, `the workflow failed${where}`)) };
    if (state?.snapshot.status === 'error') {
      this.#progress = withOutbox(this.#progress, outboxOf(this.#given));
      return this.#end(end);
    }
    const stopped = (this.#given.openStep?.calls ?? []).filter((call) => call.state !== 'done');
    return { progress: this.#given, told: [], steps: [], acts: [], stopped, isMore: false, end };
  }

  get #state(): WorkflowState {
    return this.#progress.workflow as WorkflowState;
  }

  get #isOver(): boolean {
    return this.#state.snapshot.status !== 'active';
  }

  #begin(): void {
    const { input = null } = this.#progress.inputs.value;
    const transition = this.#program.kernel.begin(input ?? undefined);
    // Events may have come before the machine began.
    const { events = [], seen = '' } = this.#progress.workflow ?? {};
    const empty = { snapshot: {}, hash: this.#program.hash, calls: {}, timers: [], armed: [], events, seen };
    this.#progress = { ...this.#progress, workflow: empty };
    this.#apply(transition, { type: 'xstate.init', input });
  }

  /** What the states of a migration begin, and what those before have left, is one save with the migration. */
  #enterMigrated(): void {
    const { begin, timers, leaves, children } = entryOf(this.#program, this.#progress);
    const { isMigrated: _, ...state } = this.#state;
    const iteration = this.#progress.iteration + 1;
    this.#progress = { ...this.#progress, iteration, workflow: state };
    for (const id of leaves) {
      this.#stopCall(id);
      this.#cancelTimer(id);
    }
    for (const actor of begin) this.#beginCall(actor);
    for (const timer of timers) this.#setTimer(timer);
    this.#change({ snapshot: { ...this.#state.snapshot, children } });
    const settled = this.#program.kernel.settle(this.#state.snapshot);
    if (settled.isTaken || settled.snapshot.status !== 'active') this.#apply(settled, { type: 'xstate.init' });
  }

  #take(event: JsonObject, without: Progress): void {
    const transition = this.#program.kernel.take(this.#state.snapshot, event);
    this.#progress = without;
    this.#apply(transition, event);
  }

  #apply({ snapshot, effects, isTaken, took, failure }: Transition, taken: JsonObject): void {
    const event = String(taken.type);
    const iteration = this.#progress.iteration + 1;
    if (iteration > MAX_TRANSITIONS)
      throw new WorkflowLoopError(`the workflow has made ${MAX_TRANSITIONS} transitions, which is the limit`);
    const from = this.#state.snapshot.value ?? null;
    const kept = keptSnapshot(snapshot);
    this.#progress = {
      ...this.#progress,
      iteration,
      attempts: 0,
      workflow: { ...this.#state, snapshot: kept, hash: this.#program.hash },
    };
    this.#place = 0;
    if (isTaken || event === 'xstate.init')
      this.#told.push({ type: 'workflow.transition', step: iteration, from, to: kept.value ?? null, event, took });
    else if (!event.startsWith('xstate.')) this.#told.push({ type: 'workflow.ignored', step: iteration, event });
    for (const effect of effects) this.#perform(effect);
    // An event for an actor that the same transition begins stands before it.
    for (const message of this.#unsent.splice(0))
      if (!this.#isSent(message)) this.#told.push(undelivered(message, iteration));
    this.#steps.push({ event: taken, workflow: this.#state });
    if (failure !== undefined) throw untaken(taken, failure);
  }

  #perform(effect: Effect): void {
    if (effect.kind === 'begin') this.#beginCall(effect.actor);
    else if (effect.kind === 'stop') this.#stopCall(effect.id);
    else if (effect.kind === 'cancel') this.#cancelTimer(effect.sendId);
    else if (effect.kind === 'timer') this.#setTimer(effect.timer);
    else if (effect.kind === 'act') this.#acts.push(effect.act);
    else if (effect.kind === 'message') {
      if (!this.#isSent(effect.message)) this.#unsent.push(effect.message);
    } else if (effect.kind === 'send') this.#sendSelf(eventOf(effect));
    else this.#told.push({ type: 'workflow.emitted', step: this.#progress.iteration, event: eventOf(effect) });
  }

  #sendSelf(event: JsonObject): void {
    const [own, others] = [this.#state.events.filter(({ id }) => id === OWN), this.#state.events];
    this.#change({ events: [...own, { id: OWN, event }, ...others.slice(own.length)] });
  }

  /** Sends an event to another run, now or by a timer. @returns false if no run gets it, or its actor has not begun yet */
  #isSent({ to, event, timer }: SentMessage): boolean {
    const receiver = receiverOf(this.#program, this.#progress, to);
    if (!receiver) return false;
    const { meta, birth = '' } = this.#progress;
    if (timer) this.#setTimer({ ...timer, event: checkedMessage(event), to: receiver });
    else {
      const id = messageIdFor([meta.runId, birth, this.#nextId()]);
      this.#progress = withMessage(this.#progress, { id, to: receiver, event });
    }
    return true;
  }

  #change(changed: Partial<WorkflowState>): void {
    this.#progress = withState(this.#progress, changed);
  }

  /** The id of what this transition asks for next: unique in the run, and equal in each process. */
  #nextId(): string {
    this.#place += 1;
    return callIdOf(this.#progress.iteration, this.#place);
  }

  /** An actor that is started again under an open id stops the one before. */
  #beginCall(actor: BegunActor): void {
    this.#stopCall(actor.id);
    const isSpawned = !isInvoked(this.#program, this.#state.snapshot.value, actor.id);
    const call = callFor(this.#program, { ...actor, isSpawned }, this.#nextId());
    this.#begun.set(actor.id, call);
    this.#change({ calls: { ...this.#state.calls, [actor.id]: call.callId } });
    const calls = [...(this.#progress.openStep?.calls ?? []), call];
    if (calls.length > MAX_OPEN_CALLS)
      throw new WorkflowError(`a workflow may have ${MAX_OPEN_CALLS} open calls, and ${actor.id} is one more`);
    this.#progress = withCalls(this.#progress, calls);
  }

  /** A call that is begun and stopped within one save never begins. */
  #stopCall(actorId: string): void {
    const { [actorId]: callId, ...calls } = this.#state.calls;
    if (callId === undefined) return;
    const { openStep } = this.#progress;
    const call = openStep?.calls.find((each) => each.callId === callId);
    this.#change({ calls });
    if (!openStep || !call) return;
    if (this.#begun.get(actorId) !== call) this.#stopped.push(call);
    this.#progress = withdrawWaitsOf(
      withCalls(
        this.#progress,
        openStep.calls.filter((each) => each !== call),
      ),
      (wait) => wait.callId === callId,
    );
  }

  /** A timer that is set again under an id that is pending replaces the one before. */
  #setTimer({ delayMs, to, ...timer }: SetTimer & { readonly to?: MessageReceiver }): void {
    const { meta, iteration } = this.#progress;
    const place = this.#nextId();
    const sendId = timer.sendId ?? `${String(timer.event.type)}.${place}`;
    this.#cancelTimer(sendId);
    if (this.#state.timers.length >= MAX_TIMERS)
      throw new WorkflowLoopError(`a workflow may have ${MAX_TIMERS} timers, and ${sendId} is one more`);
    const waitId = waitIdOf([meta.runId, 'timer', place]);
    const dueAt = Math.min(this.#now + delayMs, LAST_TIME_MS);
    const wait: Wait = { id: waitId, kind: 'timer', createdAt: this.#now, dueAt, step: iteration };
    this.#change({
      timers: byTime([...this.#state.timers, { waitId, sendId, dueAt, event: eventOf(timer), ...(to ? { to } : {}) }]),
      armed: [...this.#state.armed, ...(sendId.startsWith(AFTER) ? [sendId] : [])],
    });
    this.#progress = openWaits(this.#progress, [wait]);
  }

  #cancelTimer(sendId: string): void {
    this.#unsent = this.#unsent.filter(({ timer }) => timer?.sendId !== sendId);
    if (this.#state.armed.includes(sendId)) this.#change({ armed: this.#state.armed.filter((id) => id !== sendId) });
    const gone = new Set(this.#state.timers.flatMap((timer) => (timer.sendId === sendId ? [timer.waitId] : [])));
    if (gone.size === 0) return;
    this.#change({ timers: this.#state.timers.filter(({ waitId }) => !gone.has(waitId)) });
    this.#progress = withdrawWaitsOf(this.#progress, ({ id }) => gone.has(id));
  }

  #end(end: NonNullable<WorkflowAdvance['end']>): WorkflowAdvance {
    const { openStep, ...rest } = this.#progress;
    const begun = new Set([...this.#begun.values()].map(({ callId }) => callId));
    const open = (openStep?.calls ?? []).filter(({ state, callId }) => state !== 'done' && !begun.has(callId));
    this.#stopped.push(...open);
    this.#progress = withdrawWaitsOf(rest, () => true);
    return this.#result({ end });
  }

  #result(more: Partial<WorkflowAdvance> = {}): WorkflowAdvance {
    const said = { told: this.#told, steps: this.#steps, acts: this.#acts, stopped: this.#stopped };
    return { progress: this.#progress, ...said, isMore: false, ...more };
  }
}

/** An error that no state takes is that of an actor, and not of the machine. */
function untaken({ type, actorId }: JsonObject, failure: unknown): unknown {
  if (!String(type).startsWith('xstate.error.actor.')) return failure;
  const message = `actor ${String(actorId)} failed, and no onError takes it: ${toErrorData(failure).message}`;
  return new Error(message, { cause: failure });
}

/** XState names the timers of `after` so. */
const AFTER = 'xstate.after.';

/** The latest time that a date can hold, ms. */
const LAST_TIME_MS = 8.64e15;
