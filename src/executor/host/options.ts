import type { InspectionEvent, Observer } from 'xstate';
import type { Agent } from '../../agent/agent.ts';
import type { Skill } from '../../agent/skill.ts';
import type { Audit } from '../../audit/port.ts';
import type { Budget } from '../../budget/port.ts';
import type { Compactor } from '../../compaction/port.ts';
import type { Critic } from '../../critic/port.ts';
import type { CallLimits } from '../../limits/port.ts';
import type { Logger } from '../../log/log.ts';
import type { ModelChoice, Models } from '../../model/port.ts';
import type { Palette } from '../../palette/port.ts';
import type { Migrate } from '../../record/migrate.ts';
import type { CutAnswer } from '../../run/reply.ts';
import type { RunOutcome } from '../../run/result.ts';
import type { ResumeState } from '../../run/resume.ts';
import type { Schedule } from '../../schedules/definition.ts';
import type { Checkpointer } from '../../store/checkpointer.ts';
import type { CheckpointerFactory } from '../../store/factory.ts';
import type { CheckpointStore } from '../../store/port.ts';
import type { Verdict } from '../../tool/approval.ts';
import type { Tool } from '../../tool/define-tool.ts';
import type { Clock } from '../../values/clock.ts';
import type { Redaction } from '../../values/redact.ts';
import type { Usage } from '../../values/usage.ts';
import type { Workflow } from '../../workflow/workflow.ts';
import type { OnDue } from './due-hints.ts';
import type { JournalOption } from './journal-options.ts';
import type { CallInfo, Middleware, ToolCallInfo } from './middleware.ts';
import type { Notify } from './notices.ts';
import type { RunObserver } from './observers.ts';
import type { Tracing } from './tracing.ts';

/** A tool call that is judged before its first start. */
export interface JudgedCall extends Omit<CallInfo, 'signal'>, Omit<ToolCallInfo, 'signal'> {
  /** The verdict of the tool itself. */
  readonly verdict: Verdict;
}

/** Decides about a tool call: see `createExecutor({ approvals })`. */
export type ApprovalPolicy = (call: JudgedCall) => Verdict | undefined | Promise<Verdict | undefined>;

/** Values for everything that neither the agent nor the invocation sets. Times in milliseconds. */
export interface Defaults {
  /** The model, or the tier, of an agent that names none. */
  readonly model: ModelChoice;
  readonly maxSteps: number;
  readonly maxRuntimeMs: number;
  readonly maxConsecutiveToolErrors: number;
  readonly maxSameToolCallRepeats: number;
  readonly toolConcurrency: number;
  /** How deep agents that call agents may be nested, 32 at most. The call of a deeper one fails, and its model reads why. */
  readonly maxDepth: number;
  /** Most runs below one run, at all levels, ended ones included. The call of a further one fails, and its model reads why. */
  readonly maxTreeRuns: number;
  /** How many times a model call is made in one process while its errors may pass, the first time included. */
  readonly modelAttempts: number;
  /** Longest time for those attempts, from the first failure; a longer `retry-after` of the provider ends them at once. */
  readonly modelRetryMs: number;
  /** How long a durable run then waits for its model, from the first failure; 0 = it fails at once. */
  readonly modelOutageMs: number;
  /** How long processes try a run that the setup of none of them can continue, before it is parked. */
  readonly setupMs: number;
  /** Longest wait for the first chunk of a model's answer. */
  readonly firstChunkMs: number;
  /** Longest silence between two chunks. */
  readonly chunkGapMs: number;
  /** What a run does with an answer that reached its length limit, if its agent does not say. */
  readonly onCutAnswer: CutAnswer;
  /** Most characters of one reply: text, reasoning, arguments, sources, files and metadata count. */
  readonly maxReplyChars: number;
  /** Most bytes of the arguments of one call. A call with more is not run; the model reads why. */
  readonly maxCallInputBytes: number;
  /** Most tool calls of one reply. */
  readonly maxCallsPerMessage: number;
  readonly toolTimeoutMs: number;
  /** Longest wait for any port or store call. */
  readonly portMs: number;
  /** Longest time that finalising a run may take. */
  readonly finalizeMs: number;
  /** How long a claim is valid without renewal; it is renewed every third of that. */
  readonly leaseMs: number;
  /** How often the store is asked for commands of other processes to the runs that are live here. */
  readonly controlMs: number;
  /** Starts of a run in a row without progress before it is parked; the option of `recover` has precedence. */
  readonly maxAttempts: number;
  /** How long a run that waits stays in its process before it rests in the store. */
  readonly waitLingerMs: number;
  /** How long a run waits for a person before `notify` gets a notice of it. */
  readonly notifyAfterMs: number;
  /** How often the store is asked for runs that are due. */
  readonly dueMs: number;
}

/**
 * The ports of a host, each optional. A failing port never keeps a run from ending: its error is logged, or becomes the
 * result.
 */
export interface Ports {
  /** Decides run by run whether it is recorded, and how. */
  readonly checkpointer?: CheckpointerFactory;
  /** Limits and counts what runs spend. */
  readonly budget?: Budget;
  /** Keeps a history of runs after their records are deleted. */
  readonly audit?: Audit;
  /** Watches long runs. */
  readonly critic?: Critic;
  /** The agents and skills that agents may call, in place of the executor's `agents` and `skills`. */
  readonly palette?: Palette;
}

/** Gets XState's inspection events: a function, or an observer as inspectors provide it. */
export type Inspect = ((event: InspectionEvent) => void) | Observer<InspectionEvent>;

/** How long an executor keeps what it has of runs that ended: ms, or a text such as `'7d'`. */
export interface RetentionOptions {
  /**
   * Their records. Default: that of a run that ended `ok` is deleted at the end, that of any other is kept as long as its outcome, so that
   * `executor.retry` can continue it. One value is for both; 0 keeps none, Infinity keeps them until they are erased. With the option
   * `journal` they are kept for `events` at least. Needs a store with `end`, `listEnded` and `erase`; other stores delete, with one warning.
   */
  readonly records?: number | string;
  /** Their answers, after the record is deleted; default 7 days. */
  readonly outcomes?: number | string;
  /** A signal that no run waits for, above 0; default 1 day. Its id counts once for as long. */
  readonly signals?: number | string;
  /** With `journal`: their events, for readers; default 10 minutes. */
  readonly events?: number | string;
  /** With `audit`: how long it can be asked about a run, above 0; default 90 days. Infinity = until it is erased. */
  readonly audit?: number | string;
}

/** What happens to a model of a list that failed. */
export interface FailoverOptions {
  /**
   * How long a model that failed is left alone in this process, ms, above 0; default 30,000. It doubles up to 10 minutes, and is longer
   * where the provider asks for that. Then one call tries it.
   */
  readonly cooldownMs?: number;
}

export interface ExecutorOptions {
  /**
   * AI SDK language models by tier (spec v4; v3 and v2 are adapted), or a function that finds them. Of a list the next model is asked when
   * one fails. An agent with a `model` of its own needs none, and so does an executor that only reads and answers.
   */
  readonly models?: Models | undefined;
  /** What happens to a model of a list that failed. */
  readonly failover?: FailoverOptions;
  /**
   * Limits on the requests and tokens of a minute, by model, tier, caller or label, for all processes of a store together. Each request waits
   * for its turn: a short time in the process, a longer one at rest. See `rateLimits`.
   * @example limits: rateLimits({ store, rules: [{ by: 'label:tenant', requestsPerMinute: 60 }] })
   */
  readonly limits?: CallLimits;
  /** Tools that agents name, and that a recovered run finds again. */
  readonly tools?: readonly Tool[];
  /**
   * Agents that `recover` may continue, besides those that `start`, `run`, `logic` and `thread` are given, and that other agents may call
   * as sub-agents.
   */
  readonly agents?: readonly Agent[];
  /** Workflows that `recover` may continue. */
  readonly workflows?: readonly Workflow[];
  /** Skills that agents may call. */
  readonly skills?: readonly Skill[];
  /** Shorthand for `ports.checkpointer = createCheckpointerFactory(store)`. Without either no run is durable. */
  readonly store?: CheckpointStore;
  readonly ports?: Ports;
  readonly defaults?: Partial<Defaults>;
  /** Refuses runs that cannot be recorded, instead of running them without a record. */
  readonly requireDurable?: boolean;
  /** While saves fail: how many finished steps and ends of phases may be unsaved, and whether the run then waits or fails. */
  readonly onSaveError?: { readonly maxUnsavedSteps?: number; readonly then?: 'wait' | 'fail' };
  /** A `once` call was running when the process died, or its connection broke: tell the model so, or park the run for a person. */
  readonly onUnknownOutcome?: 'tell' | 'park';
  /** The model was away for `defaults.modelOutageMs`: park the run for a person (the default), or end it with MODEL_OUTAGE. */
  readonly onModelOutage?: 'park' | 'fail';
  /**
   * The budget refuses the next model call of a run that has recorded a step: park it until the limit is raised (the default), or
   * end it with BUDGET_EXCEEDED. A first start is refused in both cases.
   */
  readonly onBudgetExceeded?: 'park' | 'fail';
  /**
   * What a run does while its budget is away, or does not answer within `portMs`. `wait` (the default): it waits as for a model that is
   * away, once it has recorded a step; a first start fails. `allow`: it makes its call, which no limit counts. `refuse`: as
   * `onBudgetExceeded`.
   */
  readonly onBudgetAway?: 'wait' | 'allow' | 'refuse';
  /**
   * An agent's list of phases no longer matches a record: park the run for a person (`refuse`, the default), begin it again
   * (`restart`), or keep the completed phases that still match (`continue-matching`).
   */
  readonly onDefinitionChange?: 'refuse' | 'restart' | 'continue-matching';
  /** Changes a stored record before its run continues, after a deploy that renamed something in it. */
  readonly migrate?: Migrate;
  /**
   * Removes secrets from texts before they are written to records, events, the audit, logs and inspectors. The live run, its
   * result and its callbacks keep the full texts; a run that continues in another process has the redacted ones.
   */
  readonly redact?: Redaction;
  /**
   * The executor's own rule for tool calls, after that of the tool (`call.verdict`): its verdict wins. `undefined` keeps that of
   * the tool. A throw, no answer within `portMs`, or another value means that a person must approve.
   */
  readonly approvals?: ApprovalPolicy;
  /** Comes before the instructions of every agent. */
  readonly systemHeader?: string;
  /**
   * Shortens a history that is too long for the model's context window. Only the model sees the short form; see
   * `contextTokens`.
   */
  readonly compactor?: Compactor;
  /**
   * Context windows by tier, in tokens; for a model of an agent's own by `provider/modelId`. Without a number a history is sent whole.
   */
  readonly contextTokens?: { readonly [tier: string]: number } | ((tier: string) => number | undefined);
  /**
   * Gets the end of each run of the agents that this executor knows, at least once, with a stable `outcomeId`: also of runs that
   * another process ended or cancelled. A rejection ends the run all the same, and the end is delivered again after a pause that grows
   * to 10 minutes, for a week. On a store without `takeUndelivered` it gets the ends of this process only.
   */
  readonly onOutcome?: (outcome: RunOutcome) => Promise<void> | void;
  /**
   * Called with a run and the time at which it is due (wall clock, ms) after each commit of this process that makes a run due
   * earlier: an admission, a rest, an answer or another command, a signal, the end of a child, an unpark. A queue or an engine then
   * calls `executor.drive(runId)`; `drive` reports the runs that it leaves itself. It is a hint: no caller waits for it, it has
   * `portMs`, and a failure is logged and changes nothing. A run whose hint is lost is found by `executor.drive('due')`.
   * @example onDue: (runId, at) => queue.send(runId, { startAfter: at })
   */
  readonly onDue?: OnDue;
  /**
   * Gets what only a person moves, to page one: a run is `parked`, the effect of a call is unknown (`unknown-outcome`), an end was not
   * accepted (`undelivered`), or a run is `waiting` for a person for longer than `defaults.notifyAfterMs`. Each comes at least once, with
   * a stable `noticeId`: each process with `notify` that works or recovers looks at the store each minute, and gives the notices that
   * it has not given. No caller waits for it; it has `portMs`, 100 calls at a time, and a failure is logged and changes nothing.
   * @example notify: ({ noticeId, kind, runId }) => pager.send({ key: noticeId, text: `${kind}: ${runId}` })
   */
  readonly notify?: Notify;
  /**
   * Keeps of each run that ends what `createAudit` reads: its record and its events for `retention.audit`, and the totals of its day
   * without an end. Default `false`. Needs a store with `end`, `totals` and a journal: all of Pawl's have them.
   */
  readonly audit?: boolean;
  /** How long what is left of ended runs is kept. */
  readonly retention?: RetentionOptions;
  /**
   * Keeps the events of runs in the store, for readers in any process (`executor.events`); default `false`. With `true`, text is
   * published each 100 ms, and an ended run can be read for 10 minutes. Needs a store with a journal: all of Pawl's have one.
   */
  readonly journal?: JournalOption;
  /**
   * The number of this deployment, a whole number from 0 on: a new one for each release, also for a rollback. A store keeps the
   * highest one that has claimed a run; executors of a lower one leave that run alone (NEWER_DEPLOYMENT). Absent: it is not compared.
   */
  readonly deployment?: number;
  /**
   * The label by whose value due runs are taken in turn: the k-th due run of each value before the (k+1)-th of any, so that one
   * tenant with ten thousand runs delays no other. Runs without the label are one value. The same for all processes of a fleet.
   * @example createExecutor({ models, store, fairBy: 'tenant' })
   */
  readonly fairBy?: string;
  /**
   * Runs that start by the clock, each tick once for all processes of the store. Executors that take up due runs (`recover`, `work`) look
   * after them. An executor with an empty list defines none, and one without the option does not say. Needs a store that keeps schedules: all of Pawl's do.
   * @example schedules: [{ id: 'digest', cron: '0 7 * * 1-5', timeZone: 'Europe/Berlin', start: () => ({ agent, invocation: { prompt } }) }]
   */
  readonly schedules?: readonly Schedule[];
  readonly clock?: Clock;
  /** For the jitter of retries: a number from 0 to 1; default Math.random. */
  readonly random?: () => number;
  /**
   * Makes run ids, each one new; default: random UUIDs. The id of another run that is live, stored or kept is RUN_ID_CONFLICT.
   * If it throws, or returns an invalid run id, a random one is used, with a warning.
   */
  readonly ids?: () => string;
  readonly logger?: Logger;
  /** Gets XState's inspection events of every run. Its errors are logged and change nothing. */
  readonly inspect?: Inspect;
  readonly onStep?: (step: StepInfo) => void;
  /** Functions around each model call and each tool call of every run; the first is the outermost. */
  readonly middleware?: readonly Middleware[];
  /** Each gets the events of every run, after `redact`. */
  readonly observers?: readonly RunObserver[];
  /**
   * Where traces go: what `openTelemetry()` of `pawl/otel` returns. Absent = no run is traced.
   * @example createExecutor({ models, store, tracing: openTelemetry() })
   */
  readonly tracing?: Tracing;
}

/** The argument of `onStep`, after each finished step. */
export interface StepInfo {
  readonly runId: string;
  readonly iteration: number;
  readonly usage: Usage;
  /** Names of the tools that the step called. */
  readonly tools: readonly string[];
}

/** Options of one run besides its invocation. */
export interface RunOptions {
  /** An abort stops the run: a reason with code ERR_SHUTDOWN leaves it for the next process, any other cancels it. */
  readonly signal?: AbortSignal;
  /**
   * Continues from this state instead of from the prompt. Its `history` is sent as it is, and the prompt, the images and the
   * `history` of the invocation are ignored. Without a `history`, for example `{ completedPhases }`, the run (or its next phase)
   * begins with the prompt. If a run is stored under this `runId`, it continues from its record and ignores this state: a
   * repeated start must not make recorded calls again. To begin a new run with an earlier conversation, use `invocation.history`.
   */
  readonly resume?: ResumeState;
  /** An existing checkpointer; the factory is not called. */
  readonly checkpointer?: Checkpointer;
  /**
   * `later`: admits the run, and works on none of it. Request and budget are checked, the first record is stored, and the run is due:
   * `executor.drive`, another process, or the sweep of this one works on it. Needs a store; without one the start is refused with
   * NOT_DURABLE. The handle follows the store (`onStep`, `inspect` are not called): see `Run`.
   */
  readonly drive?: 'later';
  /** `retry`: a run of this request that has ended badly continues, as with `executor.retry`. Default: the start returns its end. */
  readonly ifFailed?: 'retry';
  readonly inspect?: Inspect;
  readonly onStep?: (step: StepInfo) => void;
}
