import type { Resolution, RunContext } from '../../../machines/context.ts';
import type { Agent } from '../../agent/agent.ts';
import type { RunCheckpoint } from '../../record/checkpoint.ts';
import type { SaveMoment } from '../../record/state.ts';
import type { RunEventBody } from '../../run/events.ts';
import { causeData } from '../../run/finalize.ts';
import type { Progress, ToolFacts } from '../../run/progress.ts';
import type { ParentCall, RunInfo } from '../../run/request.ts';
import type { RunOutput, RunResult } from '../../run/result.ts';
import type { Checkpointer } from '../../store/checkpointer.ts';
import type { Claim } from '../../store/port.ts';
import { type ErrorData, readProperty, toErrorData } from '../../values/error-data.ts';
import { LeaseLostError } from '../../values/errors.ts';
import type { JsonObject } from '../../values/json.ts';
import type { ObservedRun, Observer } from '../host/observers.ts';
import type { RunOptions } from '../host/options.ts';
import { RunRedaction } from '../host/redaction.ts';
import type { Auditing } from '../services/auditing.ts';
import { EventStream } from '../services/event-stream.ts';
import type { Services } from '../services/executor-services.ts';
import type { Leaseholder } from '../services/lease-renewal.ts';
import type { LoopContext } from '../services/loop-context.ts';
import { ObserverList } from '../services/observer-list.ts';
import type { LiveRun, RunSummary } from '../services/registry.ts';
import type { CriticMonitor } from './critic-monitor.ts';
import { type RunActor, summaryOf } from './run-actor.ts';
import { observedRun } from './run-info.ts';
import type { RunSeed } from './seed.ts';

/** What all runs of one executor share. */
export type ExecutorServices = Services<ActiveRun>;

/** A promise with its two ends: what `Promise.withResolvers` gives, in types that ES2022 has. */
interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T | PromiseLike<T>) => void;
  readonly reject: (reason?: unknown) => void;
}

/**
 * What belongs to one run and cannot be serialised: model, tools, checkpointer, claim, signal, timers. Only the
 * executor's actors see it; nothing of it ever enters the machine's context, an event or an actor's input.
 */
export class ActiveRun implements LiveRun, Leaseholder {
  readonly services: ExecutorServices;
  readonly agent: Agent;
  readonly seed: RunSeed;
  readonly options: RunOptions;
  readonly actor: RunActor;
  readonly accepted: Deferred<void> = Promise.withResolvers();
  readonly ended: Deferred<RunResult> = Promise.withResolvers();
  /** When this process began to work on the run, monotonic ms. */
  readonly startedAt: number;
  /** When it was over for this process, monotonic ms: from then on no working time is counted. */
  #finishedAt: number | undefined;
  info: RunInfo | undefined;
  /** Starts since it last recorded something new, this one included; 0 until they are known. */
  attempt = 0;
  /** The call of another run that began it. */
  parent: ParentCall | undefined;
  /** What each of its loops works with; one of a single loop. */
  loops: readonly LoopContext[] = [];
  /** What the run's ledger has to know of all its tools. */
  facts: ToolFacts = {};
  /** The runs of the agents that it has put to work just now. */
  readonly children: Set<ActiveRun> = new Set();
  audit: Auditing | undefined;
  monitor: CriticMonitor | undefined;
  /** What the critic of an earlier process left; it stays in the record of one that has none. */
  savedCritic: JsonObject | undefined;
  checkpointer: Checkpointer | null = null;
  claim: Claim | undefined;
  /** Told when the late write of a throttled state failed. */
  onFlushError: (error: unknown) => void = () => {};
  /** What the store held when the run was taken up. */
  record: RunCheckpoint | undefined;
  /** Whether this process may announce the run's end: not before it was accepted, not after it was taken over. */
  isOurs = false;
  /** Another owner has the run. */
  isLost = false;
  /** A first save may have landed although it was refused, and what it left could not be taken back. */
  hasLeftover = false;
  /** The end, once it is being recorded; it goes on when the actor is stopped meanwhile. */
  settling: Promise<RunOutput> | undefined;
  /** Resolves when nothing of its end is under way any more, also past the time for finalising: perhaps never. */
  settledAtLast: Promise<void> | undefined;
  /** Its newest state is on its way into the record, past all boundaries: nothing older may follow. */
  isClosing = false;
  /** Resolves when this process has recorded something new of the run, or the run is over. */
  readonly progressed: Deferred<void> = Promise.withResolvers();
  /** How `resolving` ended. */
  resolution: Resolution['kind'] | undefined;
  /** Why nothing was begun. */
  refusal: ErrorData | undefined;
  /** Another process has the run, and its request is the one of this start. */
  isElsewhere = false;
  /** Failed saves, counted for the result. */
  saveErrors = 0;
  /** Resolves when `resolving` is over, also when the actor was stopped while it went on. */
  resolving: Promise<Resolution | undefined> = Promise.resolve(undefined);
  isFinished = false;
  /** Where a run that was not begun here went on. */
  resumedFrom: { readonly iteration: number; readonly attempts: number } | undefined;
  announcedState = '';
  /** Says something to the model before its next turn. */
  steer: (text: string, command?: string, taken?: () => void) => Promise<'durable' | 'queued'> = async () => 'queued';
  readonly events: EventStream;
  /** Undefined = everything is passed on as it is. */
  readonly redaction: RunRedaction | undefined;
  /** Undefined = none. */
  #observers: ObserverList | undefined;
  #observed: ObservedRun | undefined;
  readonly #controller = new AbortController();
  readonly #cleanups: Cleanups;

  constructor(services: ExecutorServices, agent: Agent, rest: { seed: RunSeed; options: RunOptions; actor: RunActor }) {
    this.services = services;
    this.agent = agent;
    this.seed = rest.seed;
    this.options = rest.options;
    this.actor = rest.actor;
    this.startedAt = services.config.clock.monotonic();
    const { redact, observers } = services.config;
    if (observers.length > 0) this.#observers = new ObserverList(observers);
    this.redaction = redact && new RunRedaction(redact);
    this.events = new EventStream(rest.seed.request.runId, services.config.clock);
    this.#cleanups = new Cleanups((error) => {
      services.config.warn('run: a cleanup threw', { runId: this.runId, error: toErrorData(error) });
    });
  }

  get runId(): string {
    return this.seed.request.runId;
  }

  /** Aborted when the run is stopped or over; its reason says why. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether something of it is stored. A host's own checkpointer may be lazy, and say so only once it has written. */
  get isDurable(): boolean {
    return this.checkpointer !== null && readProperty(this.checkpointer, 'durable') !== false;
  }

  /** What a save must know besides the run's progress: its working time over all processes, and its last event. */
  nowOf(progress: Progress): SaveMoment {
    const until = this.#finishedAt ?? this.services.config.clock.monotonic();
    const elapsedMs = progress.elapsedMs + until - this.startedAt;
    const critic = this.monitor?.state ?? this.savedCritic;
    return { elapsedMs, seq: this.events.reserved, critic, redaction: this.redaction?.records };
  }

  /** Publishes an event to the consumers of `events` and to all observers. */
  publish(body: RunEventBody): void {
    if (!this.redaction) this.#publish(body);
    else for (const shown of this.redaction.events(body)) this.#publish(shown);
  }

  #publish(body: RunEventBody): void {
    const event = this.events.publish(body);
    // A start that gives an earlier answer again is no run of its own.
    if (event && this.#observers && this.resolution !== 'answered') this.#observers.pass(event, this.observed);
  }

  /** Adds an observer of this run alone. */
  observe(observer: Observer): void {
    this.#observers ??= new ObserverList([]);
    this.#observers.add(observer);
  }

  /** The run as observers see it, from the first event that they get. */
  get observed(): ObservedRun {
    this.#observed ??= observedRun(this);
    return this.#observed;
  }

  /** Where the run is; undefined when its actor could not even begin. */
  get progress(): Progress | undefined {
    return (this.actor.getSnapshot().context as RunContext | undefined)?.progress;
  }

  get summary(): RunSummary {
    return summaryOf(this.actor, this.agent, this.isDurable);
  }

  abort(reason: unknown): void {
    if (!this.#controller.signal.aborted) this.#controller.abort(reason);
  }

  /** Whether the actor still works; XState complains of events to one that does not. */
  get isActive(): boolean {
    return this.actor.getSnapshot().status === 'active';
  }

  send(event: Parameters<RunActor['send']>[0]): void {
    if (this.isActive) this.actor.send(event);
  }

  /** @param told.children says it to the runs that it has put to work as well @param told.command the id of the command that says it */
  steerAll(text: string, told: { children?: boolean; command?: string }): Promise<'durable' | 'queued'> {
    // Not before this run has taken it: what finds no place here comes again, and they would hear it each time.
    const tellChildren = () => {
      for (const child of this.children) child.steerAll(text, { children: true }).catch(() => {});
    };
    return this.steer(text, told.command, told.children ? tellChildren : undefined);
  }

  /** Asks the run to stop; the first cause stands. */
  stop(cause: unknown): void {
    this.send({ type: 'run.stop', cause: causeData(cause) });
  }

  /** Another owner has the run: nothing more is written or announced here. */
  loseLease(cause: unknown): void {
    this.isLost = true;
    this.checkpointer = null;
    this.claim = undefined;
    this.services.leases.drop(this);
    this.isOurs = false;
    this.stop(new LeaseLostError(`run ${this.runId} was taken over by another process`, { cause }));
  }

  /** After each wait: meanwhile somebody else may have taken the run. @throws {LeaseLostError} */
  checkOurs(): void {
    if (this.isLost) throw new LeaseLostError(`run ${this.runId} was taken over by another process`);
  }

  onEnd(cleanup: () => void): void {
    this.#cleanups.add(cleanup);
  }

  /** Once: before the record goes, so that no crash leaves a run open in the audit that nobody goes on with; or at the end. */
  closeAudit(output: RunOutput): Promise<void> | undefined {
    const { audit } = this;
    this.audit = undefined;
    if (!audit) return undefined;
    const closing = audit.close(
      this.redaction?.output(output) ?? output,
      this.progress ? this.nowOf(this.progress).elapsedMs : 0,
    );
    return this.outlive(closing);
  }

  /** @param work goes on when the run is over, and never rejects: a shutdown waits for it */
  outlive(work: Promise<void>): Promise<void> {
    const { closing } = this.services;
    closing.add(work);
    void work.then(() => closing.delete(work));
    return work;
  }

  /** The end, however it came about; only the first call counts. */
  finish(output: RunOutput): void {
    if (this.isFinished) return;
    this.isFinished = true;
    this.#finishedAt = this.services.config.clock.monotonic();
    const messages = this.resolution === 'answered' ? [] : (this.progress?.transcript.slice() ?? []);
    this.abort(new Error('the run is over'));
    this.#cleanups.run();
    const { status, error } = output;
    if (this.refusal || this.resolution === undefined) this.refusal = error;
    this.publish({ type: 'run.ended', status, output: output.output, ...(error ? { error } : {}) });
    this.events.close();
    void this.closeAudit(output);
    this.accepted.resolve();
    this.progressed.resolve();
    this.ended.resolve({ ...output, messages });
    this.services.registry.leave(this, output);
  }
}

/** What is let go at an end. A host's signal or clock may refuse even that. */
class Cleanups {
  readonly #onThrow: (error: unknown) => void;
  readonly #waiting: (() => void)[] = [];
  #isOver = false;

  constructor(onThrow: (error: unknown) => void) {
    this.#onThrow = onThrow;
  }

  /** For the end, or at once when that is over. */
  add(cleanup: () => void): void {
    if (this.#isOver) this.#attempt(cleanup);
    else this.#waiting.push(cleanup);
  }

  /** The end is here. */
  run(): void {
    this.#isOver = true;
    for (const cleanup of this.#waiting.splice(0)) this.#attempt(cleanup);
  }

  #attempt(cleanup: () => void): void {
    try {
      cleanup();
    } catch (error) {
      this.#onThrow(error);
    }
  }
}
