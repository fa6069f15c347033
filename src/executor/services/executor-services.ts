import type { AnyActorLogic, AnyActorRef } from 'xstate';
import type { Agent } from '../../agent/agent.ts';
import { ModelRests } from '../../model/lists/rests.ts';
import type { Invocation, ParentCall, WorkflowInvocation } from '../../run/request.ts';
import type { RunResult } from '../../run/result.ts';
import type { Scheduler } from '../../schedules/scheduler.ts';
import type { BegunTurn } from '../../store/thread-port.ts';
import type { Toolbox } from '../../tool/toolbox.ts';
import type { JsonObject } from '../../values/json.ts';
import type { Config } from '../host/config.ts';
import type { RunOptions } from '../host/run-options.ts';
import type { CommandInbox } from './command-inbox.ts';
import { Deliveries } from './deliveries.ts';
import type { DueSweep } from './due/due-sweep.ts';
import { NoticeSweep } from './due/notice-sweep.ts';
import { PausedAgents } from './due/paused-agents.ts';
import type { StuckRuns } from './due/stuck-runs.ts';
import { UnknownAgents } from './due/unknown-agents.ts';
import { EventFeeds } from './event-feeds.ts';
import { HeldCalls } from './held-calls.ts';
import { LeaseRenewal } from './lease-renewal.ts';
import { LeftRuns } from './left-runs.ts';
import { LocalSignals } from './local-signals.ts';
import { ownPalette, PaletteEntries } from './palette-entries.ts';
import { Recovery } from './recovery-limits.ts';
import { type LiveRun, Registry } from './registry.ts';

/** A run that a tool call of another run begins. */
interface ChildStart {
  readonly invocation: Invocation | WorkflowInvocation<unknown>;
  readonly options: RunOptions;
  readonly parent: ParentCall;
  readonly depth: number;
  readonly maxAttempts: number | undefined;
}

/** Starts a run of another agent for a call. */
type StartChild = (
  agent: Agent,
  call: ChildStart,
) => Promise<{ readonly actor: AnyActorRef; readonly accepted: string; readonly result: Promise<RunResult> }>;

/** Cancels a child run whose parent has ended, and returns when its record is deleted, or another process was asked. */
export type EndChild = (childRunId: string, reason?: string) => Promise<void>;

/** Starts the run of a turn that has begun in the store, if this executor has its agent. Never rejects. */
type StartTurn = (turn: BegunTurn) => Promise<void>;

/** Ends a turn that was parked, if messages of its thread wait behind it. Never rejects. */
type PassParked = (runId: string) => Promise<void>;

/** Sends an event to the machine of a workflow's run, in any process; it resolves when a record or an inbox has it. */
type SendEvent = (runId: string, sent: { readonly id: string; readonly event: JsonObject }) => Promise<unknown>;

interface Parts {
  readonly owner: string;
  readonly inbox: CommandInbox;
  readonly startChild: StartChild;
  readonly endChild: EndChild;
  readonly sendEvent: SendEvent;
  readonly sweep: DueSweep;
  readonly stuck: StuckRuns;
  readonly startTurn: StartTurn;
  readonly passParked: PassParked;
  readonly scheduler: Scheduler | undefined;
}

const MAX_SEEN = 1_000;

/**
 * The state that all runs of one executor share: registry, leases, inbox, palette, running work. `Run` is the object with
 * the parts of one run that cannot be serialised.
 */
export class Services<Run extends LiveRun> {
  readonly config: Config;
  /** Names this process and this executor in claims. */
  readonly owner: string;
  readonly registry: Registry<Run>;
  readonly leases: LeaseRenewal;
  readonly inbox: CommandInbox;
  /** The agents and skills of the host's palette, or of the executor itself. */
  readonly palette: PaletteEntries;
  readonly startChild: StartChild;
  readonly endChild: EndChild;
  readonly sendEvent: SendEvent;
  readonly startTurn: StartTurn;
  readonly passParked: PassParked;
  /** Settles the ticks of its schedules; undefined: it was not given any. */
  readonly scheduler: Scheduler | undefined;
  /** The agents that this executor has begun runs or threads of, by id. */
  readonly seenAgents: Map<string, Agent> = new Map();
  isShutDown = false;
  /** When parked turns are looked for that hold up messages, monotonic ms. */
  heldUpAt = Number.NEGATIVE_INFINITY;
  /** When the store last refused to save a run for want of room, monotonic ms. */
  fullAt = Number.NEGATIVE_INFINITY;
  /** Whether the host was warned that its budget counts estimates. */
  hasWarnedOfEstimate = false;
  /** Whether the host was warned that runs without a caller share one budget. */
  hasWarnedOfCaller = false;
  readonly #closing: Set<Promise<unknown>> = new Set();
  /** The logic of each agent's runs: its chart, with the effects of this executor. */
  readonly logics: WeakMap<Agent, AnyActorLogic> = new WeakMap();
  /** The tools of each agent. */
  readonly toolboxes: WeakMap<Agent, Toolbox> = new WeakMap();
  /** The methods of each run's actor that are not XState's. */
  actorMethods: object | undefined;
  /** The running cancels of stored runs, by run id. */
  readonly cancels: Map<string, Promise<void>> = new Map();
  /** This executor's running work on stored runs, by run id: each promise resolves at its end. */
  readonly storedWork: Map<string, Promise<void>> = new Map();
  readonly recovery: Recovery = new Recovery();
  /** The models of lists that failed. */
  readonly modelRests: ModelRests;
  readonly heldCalls: HeldCalls;
  /** Takes up the runs that are due. */
  readonly sweep: DueSweep;
  /** The runs that it could not continue. */
  readonly stuck: StuckRuns;
  /** The agents whose runs the setup of this process cannot continue. */
  readonly paused: PausedAgents;
  /** Reports the due runs of agents that it does not have. */
  readonly unknownAgents: UnknownAgents;
  /** Finds the runs that only a person moves. */
  readonly noticeSweep: NoticeSweep;
  /** The runs of hosts' machines that this process has left, and tries again. */
  readonly leftRuns: LeftRuns;
  /** Delivers the ends that no process has delivered. */
  readonly deliveries: Deliveries;
  /** The events that live runs wait for and no store knows. */
  readonly signals: LocalSignals;
  /** The journals that readers of this process follow. */
  readonly feeds: EventFeeds;
  readonly #runs: WeakMap<AnyActorRef, Run> = new WeakMap();

  constructor(config: Config, parts: Parts) {
    this.config = config;
    this.owner = parts.owner;
    this.inbox = parts.inbox;
    this.startChild = parts.startChild;
    this.endChild = parts.endChild;
    this.sendEvent = parts.sendEvent;
    this.sweep = parts.sweep;
    this.stuck = parts.stuck;
    this.paused = new PausedAgents(config.clock, config.warn);
    this.feeds = new EventFeeds(config.store, config.clock);
    this.modelRests = new ModelRests(config.clock, config.cooldownMs);
    this.heldCalls = new HeldCalls(config.clock);
    this.startTurn = parts.startTurn;
    this.passParked = parts.passParked;
    this.scheduler = parts.scheduler;
    this.leftRuns = new LeftRuns(config, parts.endChild);
    this.signals = new LocalSignals(() => config.clock.now());
    this.palette = new PaletteEntries(config.palette ?? ownPalette(config), [config.agents, this.seenAgents]);
    this.noticeSweep = new NoticeSweep(config);
    this.unknownAgents = new UnknownAgents(
      config,
      (id) => config.agents.has(id) || this.seenAgents.has(id) || this.palette.agentById(id) !== undefined,
    );
    this.deliveries = new Deliveries({ config, palette: this.palette, seenAgents: this.seenAgents });
    this.registry = new Registry(config.warn);
    config.lines.namesOf = (runId) => this.registry.live(runId)?.names;
    this.leases = new LeaseRenewal(config.store, config.clock, config.defaults.leaseMs);
  }

  /** Notes an agent: from now on this executor continues its stored runs. The last 1,000 are known. */
  see(agent: Agent): void {
    this.seenAgents.set(agent.id, agent);
    const [oldest] = this.seenAgents.keys();
    if (this.seenAgents.size > MAX_SEEN && oldest !== undefined) this.seenAgents.delete(oldest);
  }

  /** Registers work that needs no live run, as the release of a claim: a shutdown waits for it. @returns its promise */
  outlive<T>(work: Promise<T>): Promise<T> {
    const over: Promise<unknown> = work.catch(() => {}).then(() => this.#closing.delete(over));
    this.#closing.add(over);
    return work;
  }

  /** Resolves when no such work is left. Never rejects. */
  async close(): Promise<void> {
    while (this.#closing.size > 0) await Promise.all(this.#closing);
  }

  /** Connects a run and its actor. */
  add(actor: AnyActorRef, run: Run): void {
    this.#runs.set(actor, run);
  }

  /** The run of an actor; undefined for an actor that is not a run of this executor. */
  runBehind(actor: AnyActorRef): Run | undefined {
    return this.#runs.get(actor);
  }

  /**
   * The run whose machine started this actor.
   * @throws {Error} for any other actor
   */
  runOf(child: AnyActorRef): Run {
    const run = child._parent && this.#runs.get(child._parent);
    if (!run) throw new Error('this actor belongs to no run of this executor');
    return run;
  }
}
