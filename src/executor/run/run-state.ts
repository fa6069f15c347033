import type { RunEmitted, RunMachineEvent } from '../../../machines/context.ts';
import type { RunCheckpoint } from '../../record/checkpoint.ts';
import type { JournalPart } from '../../record/state.ts';
import type { PreviousAttempt } from '../../run/attempt.ts';
import type { RunEvent } from '../../run/events/body.ts';
import type { ParkedReason, SetupFault } from '../../run/fields.ts';
import type { Progress, ToolFacts } from '../../run/progress.ts';
import type { Person, Wait } from '../../run/waits/wait.ts';
import type { GivenAnswer } from '../../run/waits/wait-answer.ts';
import type { InspectedSteps } from '../../run/workflow/advanced.ts';
import type { Checkpointer } from '../../store/checkpointer.ts';
import type { Claim } from '../../store/port.ts';
import type { ErrorData } from '../../values/error-data.ts';
import type { JsonObject } from '../../values/json.ts';
import type { ToolOutput } from '../../values/message.ts';
import type { Auditing } from '../services/auditing.ts';
import type { LoopContext } from '../services/loop-context.ts';
import type { ActiveRun } from './active-run.ts';
import type { CriticMonitor } from './critic-monitor.ts';

/**
 * The resources of a live run: claim, checkpointer, loops, critic. The effect `resolve` fills it; a lost lease removes
 * everything that writes.
 */
export class RunResources {
  claim: Claim | undefined;
  checkpointer: Checkpointer | null = null;
  /** Whether the checkpointer was made, or refused: from then on `null` says that there is none. */
  isCheckpointerMade = false;
  /** One for each loop of the run; a run with a single loop has one. */
  loops: readonly LoopContext[] = [];
  /** The facts of all its tools, for the run's ledger. */
  facts: ToolFacts = {};
  audit: Auditing | undefined;
  monitor: CriticMonitor | undefined;
  /** The critic's state from an earlier process. It stays in the record of a run without a critic. */
  savedCritic: JsonObject | undefined;
  /** The stored record when the run was acquired; until `resolving` is over. */
  record: RunCheckpoint | undefined;
  /** A refused first save may have been stored all the same, and could not be undone. */
  hasLeftover = false;
  // Most runs have no children: both are made with the first one.
  #children: Set<ActiveRun> | undefined;
  /** What ends each running call of a workflow, by the call's id. */
  callSignals: Map<string, AbortController> | undefined;
  /** Of a workflow's run that an inspector watches: what the inspector knows of its machine. */
  inspected: { tell(steps: InspectedSteps): void } | undefined;
  /** The outputs of children that ended while no call of this run waited for them, by their run ids. */
  endedChildren: Map<string, ToolOutput> | undefined;

  /** The live runs that calls of this run began. */
  get children(): ReadonlySet<ActiveRun> {
    return this.#children ?? noChildren;
  }

  addChild(child: ActiveRun): void {
    this.#children ??= new Set();
    this.#children.add(child);
  }

  removeChild(child: ActiveRun): void {
    this.#children?.delete(child);
  }
}

const noChildren: ReadonlySet<ActiveRun> = new Set();

/** A `once` call that may have taken effect. */
export type UnknownCall = Omit<Extract<RunEvent, { type: 'call.unknown' }>, 'type' | 'runId' | 'seq' | 'at'>;

/** What the start of a run found. */
export class StartFacts {
  /** Starts since the run last recorded something new, this one included; 0 until they are known. */
  starts = 0;
  /** The attempt before this one; undefined: this is the first that the record knows. */
  previous: PreviousAttempt | undefined;
  /** What the record of a run that is parked keeps of its trace. */
  parkedTrace: string | undefined;
  /** The `once` calls of which no process knows whether they took effect, since this start. */
  unknown: readonly UnknownCall[] = [];
  /** Where a run that began earlier continues. */
  resumedFrom: { readonly iteration: number; readonly attempts: number } | undefined;
  /** The caller of this start waits for it, and nothing of the run was recorded before: a fault of the setup is its error. */
  isFirst = false;
  /** Another process has the run, and its request is the one of this start. */
  isElsewhere = false;
  /** Since when processes could not continue the run, as its record says. */
  setup: SetupFault | undefined;
  /** What is missing in the setup of this process. */
  setupFault: ErrorData | undefined;
}

/** What this process makes of the end of a run. */
export class EndFacts {
  /** What is aborted now is not continued by another process: the run ends for good. */
  isEnding = false;
  /** The first start ended before its first model call: nothing of the run is kept. */
  isUnbegun = false;
  /** A provider refused the content of the last request for good. */
  isContentRefused = false;
  /** The state in which this process left the run, at a shutdown or at the end of its slice. */
  left: Progress | undefined;
  /** Why the run was set aside: this process parked it, or its start found it parked. */
  parked: ParkedReason | undefined;
  /** The end is stored, and the host has the outcome. */
  isDelivered = false;
}

type Emitted<Type extends RunEmitted['type']> = Extract<RunEmitted, { type: Type }>;

/** The journal of a live run. */
export interface RunJournaling {
  /** Takes an event that was published. */
  add(event: RunEvent): void;
  /** What a save of this state adds. @param upTo the `seq` of the last event before the state was taken */
  part(progress: Progress, upTo: number): JournalPart;
  /** Publishes what may be read now. Never rejects. */
  flush(): Promise<void>;
}

/** The time that this process has for a live run. */
export interface RunSlicing {
  /** Ends the budget now. Calls under way have their grace, and the slice counts as no failed start. */
  end(options?: { readonly graceMs?: number }): void;
  /** Whether the host ended it before its time. */
  readonly isEndedEarly: boolean;
  /** Notes a run that a call of this one began. */
  follow(child: ActiveRun): void;
  /** Returns the state that the slice leaves: with its failed starts, and parked if there were too many. */
  left(progress: Progress): Progress;
}

/** What the machine has got. It is wrapped: what comes later does not wait until it is recorded. */
export interface Entered<T> {
  readonly recorded: Promise<T>;
}

/** The waits of a live run. */
export interface RunWaiting {
  /** Sends a cancel that came after the run had left through the store. */
  forward(event: RunMachineEvent): void;
  /** Sends a message that came after the run had left through the store. @throws {UNDELIVERED} */
  forwardSteering(text: string, by?: Person): Promise<'durable'>;
  /** The working time of the run. */
  readonly time: { hold(isHeld: boolean): void };
  /** Counts the times that the run began to wait: an effect of an earlier time is over. */
  readonly turn: number;
  /**
   * Takes an answer: checks who gives it and whether it fits, and passes it to the machine.
   * @returns when the record has its effect (`durable`), or, without a record, the machine
   * @throws {WAIT_GONE} @throws {ALREADY_ANSWERED} @throws {ANSWER_REFUSED} @throws {ANSWER_REDACTED}
   */
  take(given: GivenAnswer): Promise<'durable' | 'queued'>;
  /** Takes what was sent at a time (wall clock, ms) after the waits that were due before. @throws {STORE_UNAVAILABLE} */
  inOrder<T>(at: number, enter: () => Promise<Entered<T>>): Promise<T>;
  /** Returns whether a wait may be shown: the record has it. */
  isShown(wait: Pick<Wait, 'id'>): boolean;
  /** The run continues with the waits of its record. */
  onResumed(): void;
  /** Reports the events that the run waits for to its store. Never rejects. @returns whether the store knows them all */
  tellStore(): Promise<boolean>;
  /** The wait for an event is still open although a signal was delivered to it. */
  again(waitId: string): void;
  /** The machine of a workflow has taken an event. */
  onTransition(step: number): void;
  /** These waits are open once their boundary is stored. */
  onOpened(event: Emitted<'waits.opened'>): void;
  /** The machine has applied an answer. */
  onTaken(event: Emitted<'answer.taken'>): void;
  /** The machine has not applied an answer. */
  notTaken(event: Emitted<'answer.refused'>): void;
  /** Nothing but waits is left: working time, and with it the deadline, stops. */
  began(progress: Progress): void;
  /** The run works again, or ends. */
  onEnded(): void;
  /** One of its children waits, or works again, or ended. */
  look(): void;
  /** These waits are over without an answer: the run ends, or its workflow needs them no more. */
  withdraw(waits: readonly Wait[]): void;
}
