import type { RunContext } from '../../../machines/context.ts';
import type { Agent } from '../../agent/agent.ts';
import type { SaveMoment } from '../../record/state.ts';
import type { RunEventBody } from '../../run/events.ts';
import { causeData } from '../../run/finalize.ts';
import type { Progress } from '../../run/progress.ts';
import type { ParentCall, RunInfo } from '../../run/request.ts';
import type { RunOutput } from '../../run/result.ts';
import type { Claim } from '../../store/port.ts';
import { readProperty, toErrorData } from '../../values/error-data.ts';
import { LeaseLostError } from '../../values/errors.ts';
import type { ObservedRun, Observer } from '../host/observers.ts';
import type { RunOptions } from '../host/options.ts';
import { RunRedaction } from '../host/redaction.ts';
import { EventStream } from '../services/event-stream.ts';
import type { Services } from '../services/executor-services.ts';
import type { Leaseholder } from '../services/lease-renewal.ts';
import { ObserverList } from '../services/observer-list.ts';
import type { LiveRun, RunSummary } from '../services/registry.ts';
import { Checkpointing } from './checkpointing.ts';
import { type RunActor, summaryOf } from './run-actor.ts';
import { observedRun } from './run-info.ts';
import { RunLife, RunResources } from './run-state.ts';
import type { RunSeed } from './seed.ts';
import { Steering } from './steering.ts';

/** What all runs of one executor share. */
export type ExecutorServices = Services<ActiveRun>;

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
  readonly life: RunLife;
  readonly resources: RunResources = new RunResources();
  readonly steering: Steering;
  readonly checkpointing: Checkpointing;
  info: RunInfo | undefined;
  /** The call of another run that began it. */
  parent: ParentCall | undefined;
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
    this.life = new RunLife(services.config.clock.monotonic());
    const { redact, observers } = services.config;
    if (observers.length > 0) this.#observers = new ObserverList(observers);
    this.redaction = redact && new RunRedaction(redact);
    this.events = new EventStream(rest.seed.request.runId, services.config.clock);
    this.#cleanups = new Cleanups((error) => {
      services.config.warn('run: a cleanup threw', { runId: this.runId, error: toErrorData(error) });
    });
    this.steering = new Steering(this);
    this.checkpointing = new Checkpointing(this, this.steering);
  }

  /** What holds the lease. */
  get claim(): Claim | undefined {
    return this.resources.claim;
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
    return this.resources.checkpointer !== null && readProperty(this.resources.checkpointer, 'durable') !== false;
  }

  /** What a save must know besides the run's progress: its working time over all processes, and its last event. */
  nowOf(progress: Progress): SaveMoment {
    const until = this.life.finishedAt ?? this.services.config.clock.monotonic();
    const elapsedMs = progress.elapsedMs + until - this.life.startedAt;
    const critic = this.resources.monitor?.state ?? this.resources.savedCritic;
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
    if (event && this.#observers && this.life.resolution !== 'answered') this.#observers.pass(event, this.observed);
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
      for (const child of this.resources.children) child.steerAll(text, { children: true }).catch(() => {});
    };
    return this.steering.send(text, told.command, told.children ? tellChildren : undefined);
  }

  /** Asks the run to stop; the first cause stands. */
  stop(cause: unknown): void {
    this.send({ type: 'run.stop', cause: causeData(cause) });
  }

  /** Another owner has the run: nothing more is written or announced here. */
  loseLease(cause: unknown): void {
    this.life.isLost = true;
    this.resources.checkpointer = null;
    this.resources.claim = undefined;
    this.services.leases.drop(this);
    this.life.isOurs = false;
    this.stop(new LeaseLostError(`run ${this.runId} was taken over by another process`, { cause }));
  }

  /** After each wait: meanwhile somebody else may have taken the run. @throws {LeaseLostError} */
  checkOurs(): void {
    if (this.life.isLost) throw new LeaseLostError(`run ${this.runId} was taken over by another process`);
  }

  onEnd(cleanup: () => void): void {
    this.#cleanups.add(cleanup);
  }

  /** Once: before the record goes, so that no crash leaves a run open in the audit that nobody goes on with; or at the end. */
  closeAudit(output: RunOutput): Promise<void> | undefined {
    const { audit } = this.resources;
    this.resources.audit = undefined;
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
    if (this.life.isFinished) return;
    this.life.isFinished = true;
    this.life.finishedAt = this.services.config.clock.monotonic();
    const messages = this.life.resolution === 'answered' ? [] : (this.progress?.transcript.slice() ?? []);
    this.abort(new Error('the run is over'));
    this.#cleanups.run();
    const { status, error } = output;
    if (this.life.refusal || this.life.resolution === undefined) this.life.refusal = error;
    this.publish({ type: 'run.ended', status, output: output.output, ...(error ? { error } : {}) });
    this.events.close();
    void this.closeAudit(output);
    this.life.accepted.resolve();
    this.life.progressed.resolve();
    this.life.ended.resolve({ ...output, messages });
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
