import type { RunContext } from '../../../machines/context.ts';
import type { Agent } from '../../agent/agent.ts';
import type { SaveMoment } from '../../record/state.ts';
import { traceIdIn } from '../../run/attempt.ts';
import type { SteeredBy } from '../../run/command.ts';
import type { RunEventBody } from '../../run/events/body.ts';
import { hasOrigin } from '../../run/events/table.ts';
import { causeData } from '../../run/finalize.ts';
import type { BornRun } from '../../run/identity.ts';
import { allMessagesOf, type Progress } from '../../run/progress.ts';
import type { ParentCall, RunInfo } from '../../run/request.ts';
import type { RunOutput } from '../../run/result.ts';
import { revisionOf } from '../../store/checkpointer.ts';
import type { Claim } from '../../store/port.ts';
import { readProperty } from '../../values/error-data.ts';
import { LeaseLostError } from '../../values/errors.ts';
import type { ObservedRun, Observer } from '../host/observers.ts';
import { RunRedaction } from '../host/redaction.ts';
import type { RunOptions } from '../host/run-options.ts';
import type { CommandTarget } from '../services/command-inbox.ts';
import { type EventOrigin, EventStream } from '../services/event-stream.ts';
import type { Services } from '../services/executor-services.ts';
import type { HeldCall } from '../services/held-calls.ts';
import type { Leaseholder } from '../services/lease-renewal.ts';
import { ObserverList } from '../services/observer-list.ts';
import type { LiveRun, LiveTree, RunSummary } from '../services/registry.ts';
import { Checkpointing } from './checkpointing.ts';
import { RunLife } from './life/run-life.ts';
import { Outbox } from './outbox.ts';
import { ReplyStream } from './reply-stream.ts';
import { type RunActor, summaryOf } from './run-actor.ts';
import { observedRun } from './run-info.ts';
import {
  EndFacts,
  type RunJournaling,
  RunResources,
  type RunSlicing,
  type RunWaiting,
  StartFacts,
} from './run-state.ts';
import { RunTime } from './run-time.ts';
import type { RunSeed } from './seed.ts';
import { MachineEvents, Steering } from './steering.ts';

/** The state that all runs of one executor share. */
export type ExecutorServices = Services<ActiveRun>;

/**
 * One live run: what cannot be serialised of it, as model, tools, checkpointer, claim, signal, timers. Only the executor's
 * actors use it. The machine's context, events and inputs of actors never contain any of it.
 */
export class ActiveRun implements LiveRun, Leaseholder {
  readonly services: ExecutorServices;
  readonly agent: Agent;
  readonly seed: RunSeed;
  readonly options: RunOptions;
  readonly actor: RunActor;
  readonly life: RunLife = new RunLife();
  readonly startFacts: StartFacts = new StartFacts();
  readonly endFacts: EndFacts = new EndFacts();
  readonly time: RunTime;
  readonly resources: RunResources = new RunResources();
  readonly steering: Steering;
  readonly checkpointing: Checkpointing;
  readonly machineEvents: MachineEvents = new MachineEvents(this);
  readonly outbox: Outbox = new Outbox(this);
  /** The time that this process has for it; undefined = no end is set. */
  slice: RunSlicing | undefined;
  /** Its waits, and the answers on their way to them; set before any other code reaches the run. */
  waits!: RunWaiting;
  info: RunInfo | undefined;
  /** The call of another run that began it. */
  parent: ParentCall | undefined;
  readonly events: EventStream;
  /** Its journal, once its claim and its store are known; undefined = none. */
  journal: RunJournaling | undefined;
  /** The reply of the model, while it arrives. */
  readonly replies: ReplyStream = new ReplyStream(this);
  /** Undefined = everything is passed on unchanged. */
  readonly redaction: RunRedaction | undefined;
  /** Undefined = none. */
  #observers: ObserverList | undefined;
  #observed: ObservedRun | undefined;
  #tree: LiveTree | undefined;
  /** Its request that is held until its turn. */
  heldCall: HeldCall | undefined;
  /** The last published state of the run. */
  publishedState = '';
  readonly #controller = new AbortController();
  #target: CommandTarget | undefined;
  /** What else must end with the run; most runs have nothing. */
  #cleanups: (() => void)[] | undefined;

  constructor(services: ExecutorServices, agent: Agent, rest: { seed: RunSeed; options: RunOptions; actor: RunActor }) {
    this.services = services;
    this.agent = agent;
    this.seed = rest.seed;
    this.options = rest.options;
    this.actor = rest.actor;
    this.time = new RunTime(services.config.clock);
    const { redact, observers } = services.config;
    if (observers.length > 0) this.#observers = new ObserverList(observers);
    this.redaction = redact && new RunRedaction(redact);
    this.events = new EventStream(rest.seed.request.runId, services.config.clock);
    this.steering = new Steering(this);
    this.checkpointing = new Checkpointing(this, this.steering);
  }

  /** The claim that holds the lease. */
  get claim(): Claim | undefined {
    return this.resources.claim;
  }

  get runId(): string {
    return this.seed.request.runId;
  }

  /** What log lines say of it. */
  get names(): LiveRun['names'] {
    return { agentId: this.agent.id, traceId: traceIdIn(this.progress?.trace) };
  }

  /** What the keys of its calls and the ids of its children are made of; known once it is accepted. */
  get born(): BornRun {
    return { runId: this.runId, birth: (this.progress ?? this.seed.request).birth };
  }

  /** Its tree, as far as this process works on it. A run that has neither a parent nor a child needs none. */
  get tree(): LiveTree {
    if (!this.#tree) {
      const { registry } = this.services;
      const tree = registry.enterTree(this.parent?.rootRunId ?? this.runId);
      this.#tree = tree;
      this.onEnd(() => registry.leaveTree(tree));
    }
    return this.#tree;
  }

  /** Aborted when the run is stopped or over; its reason says why. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether a part of it is stored. A host's own checkpointer may be lazy, and report it only after its first write. */
  get isDurable(): boolean {
    return this.resources.checkpointer !== null && readProperty(this.resources.checkpointer, 'durable') !== false;
  }

  /** The inputs of a save besides the run's progress: its working time over all processes, and its last event. */
  nowOf(progress: Progress): SaveMoment {
    const elapsedMs = progress.elapsedMs + this.time.elapsedMs;
    const critic = this.resources.monitor?.state ?? this.resources.savedCritic;
    const journal = this.journal?.part(progress, this.events.last);
    const treeRuns = this.#tree?.runs;
    return { elapsedMs, seq: this.events.reserved, critic, treeRuns, redaction: this.redaction?.records, journal };
  }

  /** Publishes an event to the consumers of `events` and to all observers. */
  publish(body: RunEventBody): void {
    if (!this.redaction) this.#publish(body);
    else for (const shown of this.redaction.events(body)) this.#publish(shown);
  }

  /** No more text of this block of the model's message comes. */
  endText(block: number): void {
    for (const shown of this.redaction?.endText(block) ?? []) this.#publish(shown);
  }

  #publish(body: RunEventBody): void {
    const { claim } = this.resources;
    const event = this.events.publish(body, claim && hasOrigin(body) ? this.#origin(claim) : undefined);
    if (event) this.journal?.add(event);
    // A start that returns an earlier answer again is not a run of its own.
    if (event && this.#observers && !this.life.isAnswered) this.#observers.pass(event, this.observed);
  }

  #origin({ owner }: Claim): EventOrigin {
    const revision = revisionOf(this.resources.checkpointer);
    return revision === undefined ? { owner } : { owner, revision };
  }

  /** Adds an observer of this run alone. */
  observe(observer: Observer): void {
    this.#observers ??= new ObserverList([]);
    this.#observers.add(observer);
  }

  /** The run as observers see it, from their first event. */
  get observed(): ObservedRun {
    this.#observed ??= observedRun(this);
    return this.#observed;
  }

  /** Where the run is; undefined if its actor could not begin. */
  get progress(): Progress | undefined {
    return (this.actor.getSnapshot().context as RunContext | undefined)?.progress;
  }

  get summary(): RunSummary {
    return summaryOf(this.actor, this.agent, this.isDurable);
  }

  abort(reason: unknown): void {
    if (!this.#controller.signal.aborted) this.#controller.abort(reason);
    if (this.heldCall) this.services.heldCalls.release(this.heldCall);
  }

  /** Whether the actor still works; XState warns about events to an actor that does not. */
  get isActive(): boolean {
    return this.actor.getSnapshot().status === 'active';
  }

  send(event: Parameters<RunActor['send']>[0]): void {
    const { leaving, isOver } = this.life;
    // Its actor may be at the next try of the run already. A cancel is meant for that one too.
    if (isOver && event.type !== 'run.cancel') return;
    // The store may have the run: then this process changes nothing of it.
    if (leaving && event.type !== 'boundary.persisted')
      void leaving.then((hasLeft) => (hasLeft ? this.waits.forward(event) : this.send(event)));
    else if (this.isActive) this.actor.send(event);
  }

  /**
   * Sends a message to this run, and to its children where the caller wants that.
   * @param told.children whether running child runs get the message as well @param told.command the id of the command that
   *   sent it @param told.messageId its id in the thread of the run @param told.by the person who sent it
   */
  steerAll(text: string, told: SteeredBy & { children?: boolean; command?: string }): Promise<'durable' | 'queued'> {
    const { command, messageId, by, children } = told;
    // Not before this run has accepted it: a command without room is delivered again, and the children would get it each time.
    const tellChildren = () => {
      for (const child of this.resources.children) child.steerAll(text, { children: true, by }).catch(() => {});
    };
    return this.steering.send(text, { command, messageId, by, taken: children ? tellChildren : undefined });
  }

  /** Asks the run to stop; the first cause stays. */
  stop(cause: unknown): void {
    this.send({ type: 'run.stop', cause: causeData(cause) });
  }

  /** Another owner has the run: this process writes and announces nothing more. */
  loseLease(cause: unknown): void {
    if (!this.life.isLost) this.publish({ type: 'lease.lost' });
    this.life.lose();
    this.resources.checkpointer = null;
    this.resources.claim = undefined;
    this.services.leases.drop(this);
    this.stop(new LeaseLostError(`run ${this.runId} was taken over by another process`, { cause }));
  }

  /** Called after each wait: another owner may have taken the run meanwhile. @throws {LEASE_LOST} */
  checkOurs(): void {
    if (this.life.isLost) throw new LeaseLostError(`run ${this.runId} was taken over by another process`);
  }

  /** Has the claim renewed, until the run ends or gives it away. @param since when it was last known to be valid, monotonic ms */
  keepLease(since: number): void {
    if (!this.life.isOver) this.services.leases.keep(this, since);
  }

  /** Gets the commands of other processes, until the run ends. */
  takeCommands(target: CommandTarget): void {
    if (this.life.isOver) return;
    this.#target = target;
    this.services.inbox.enter(target);
  }

  /** Calls a cleanup at the end, or at once if the run is over. */
  onEnd(cleanup: () => void): void {
    if (this.life.isOver) this.#attempt(cleanup);
    else {
      this.#cleanups ??= [];
      this.#cleanups.push(cleanup);
    }
  }

  /** Ends the parts of the run. */
  #cleanUp(): void {
    this.#attempt(() => this.checkpointing.end());
    this.#attempt(() => this.time.dropDeadline());
    this.#attempt(() => this.services.leases.drop(this));
    this.#attempt(() => this.#target && this.services.inbox.leave(this.#target));
    for (const cleanup of this.#cleanups ?? []) this.#attempt(cleanup);
    this.#cleanups = undefined;
  }

  /** A host's signal or clock may throw. */
  #attempt(cleanup: () => void): void {
    try {
      cleanup();
    } catch (error) {
      this.services.config.warn('callback.threw', { runId: this.runId, what: 'a cleanup', error });
    }
  }

  /**
   * Closes the audit once: before the record is deleted, so that no crash leaves an ended run open in the audit; or at the
   * end.
   */
  closeAudit(output: RunOutput): Promise<void> | undefined {
    const { audit } = this.resources;
    this.resources.audit = undefined;
    if (!audit) return undefined;
    const closing = audit.close(
      this.redaction?.output(output) ?? output,
      this.progress ? this.nowOf(this.progress).elapsedMs : 0,
    );
    return this.services.outlive(closing);
  }

  /** The end, for any reason; only the first call counts. */
  finish(output: RunOutput): void {
    const { status, error } = output;
    if (!this.life.end(error)) return;
    this.time.end();
    const messages = this.life.isAnswered || !this.progress ? [] : allMessagesOf(this.progress).slice();
    this.abort(new Error('the run is over'));
    this.#cleanUp();
    // `run.parked` was the last word of this process.
    if (!this.endFacts.parked)
      this.publish({ type: 'run.ended', status, output: output.output, ...(error ? { error } : {}) });
    this.events.close();
    void this.closeAudit(output);
    this.life.accepted.resolve();
    this.life.progressed.resolve();
    this.life.ended.resolve({ ...output, messages });
    this.services.registry.leave(this, output);
    if (this.endFacts.parked) void this.services.outlive(this.services.passParked(this.runId));
  }
}
