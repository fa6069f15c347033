import type { Agent } from '../../agent/agent.ts';
import type { Skill } from '../../agent/skill.ts';
import type { Audit } from '../../audit/port.ts';
import type { Budget } from '../../budget/port.ts';
import type { Compactor } from '../../compaction/port.ts';
import type { Critic } from '../../critic/port.ts';
import type { CallLimits } from '../../limits/port.ts';
import type { Logger } from '../../log/log.ts';
import type { Models } from '../../model/port.ts';
import type { Palette } from '../../palette/port.ts';
import type { Migrate } from '../../record/migrate.ts';
import type { RunOutcome } from '../../run/result.ts';
import type { Schedule } from '../../schedules/definition.ts';
import type { CheckpointerFactory } from '../../store/factory.ts';
import type { CheckpointStore } from '../../store/port.ts';
import type { Verdict } from '../../tool/approval.ts';
import type { Tool } from '../../tool/define-tool.ts';
import type { Clock } from '../../values/clock.ts';
import type { Redaction } from '../../values/redact.ts';
import type { Workflow } from '../../workflow/workflow.ts';
import type { Defaults } from './defaults.ts';
import type { OnDue } from './due-hints.ts';
import type { JournalOption } from './journal-options.ts';
import type { CallInfo, Middleware, ToolCallInfo } from './middleware.ts';
import type { Notify } from './notices.ts';
import type { RunObserver } from './observers.ts';
import type { Inspect, StepInfo } from './run-options.ts';
import type { Tracing } from './tracing.ts';

/** A tool call that is judged before its first start. */
export interface JudgedCall extends Omit<CallInfo, 'signal'>, Omit<ToolCallInfo, 'signal'> {
  /** The verdict of the tool itself. */
  readonly verdict: Verdict;
}

/** Decides about a tool call: see `createExecutor({ approvals })`. */
export type ApprovalPolicy = (call: JudgedCall) => Verdict | undefined | Promise<Verdict | undefined>;

/**
 * The ports of a host, each optional. A failing port never keeps a run from ending: its error is logged, or becomes the
 * result.
 */
export interface Ports {
  /**
   * Decides run by run whether it is recorded, and how.
   * @default that of `store`
   * @example checkpointer: createCheckpointerFactory(store)
   */
  readonly checkpointer?: CheckpointerFactory;
  /**
   * Limits and counts what runs spend.
   * @default none
   * @example budget: createBudget({ tokens: 1_000_000 })
   */
  readonly budget?: Budget;
  /**
   * Keeps a history of runs after their records are deleted.
   * @default none
   * @example audit: { startRun: (run) => recorderOf(run) }
   */
  readonly audit?: Audit;
  /**
   * Watches long runs.
   * @default none
   * @example critic: createCritic({ escalator: createEscalator() })
   */
  readonly critic?: Critic;
  /**
   * The agents and skills that agents may call, in place of the executor's `agents` and `skills`.
   * @default the executor's `agents` and `skills`
   * @example palette: createPalette({ agents, skills })
   */
  readonly palette?: Palette;
}

/** How long an executor keeps what it has of runs that ended: ms, or a text such as `'7d'`. */
export interface RetentionOptions {
  /**
   * Their records. The default deletes the record of a run that ended `ok`, and keeps that of any other as long as its outcome, so that
   * `executor.retry` can continue it. One value is for both; 0 keeps none, Infinity keeps them until they are erased. With the option
   * `journal` they are kept for `events` at least. Needs a store with the group `history`; other stores delete, with one warning.
   * @default 0 for runs that ended `ok`, `outcomes` for others
   * @example records: '30d'
   */
  readonly records?: number | string;
  /**
   * Their answers, after the record is deleted.
   * @default '7d'
   */
  readonly outcomes?: number | string;
  /**
   * A signal that no run waits for, above 0. Its id counts once for as long.
   * @default '1d'
   */
  readonly signals?: number | string;
  /**
   * With `journal`: their events, for readers.
   * @default '10m'
   */
  readonly events?: number | string;
  /**
   * With `audit`: how long it can be asked about a run, above 0. Infinity = until it is erased.
   * @default '90d'
   */
  readonly audit?: number | string;
}

/** What happens to a model of a list that failed. */
export interface FailoverOptions {
  /**
   * How long a model that failed is left alone in this process, above 0. It doubles up to 10 minutes, and is longer
   * where the provider asks for that. Then one call tries it.
   * @default 30_000
   */
  readonly cooldownMs?: number;
}

export interface ExecutorOptions {
  /**
   * AI SDK language models by tier (spec v4; v3 and v2 are adapted), or a function that finds them. Of a list the next model is asked when
   * one fails. An agent with a `model` of its own needs none, and so does an executor that only reads and answers.
   * @default none: each agent needs a `model` of its own
   * @example models: { fast: openai('gpt-5-mini'), smart: [openai('gpt-5'), anthropic('claude-sonnet-4-5')] }
   */
  readonly models?: Models | undefined;
  /**
   * What happens to a model of a list that failed.
   * @example failover: { cooldownMs: 10_000 }
   */
  readonly failover?: FailoverOptions;
  /**
   * Limits on the requests and tokens of a minute, by model, tier, caller or label, for all processes of a store together. Each request waits
   * for its turn: a short time in the process, a longer one suspended. See `rateLimits`.
   * @default none
   * @example limits: rateLimits({ store, rules: [{ by: 'label:tenant', requestsPerMinute: 60 }] })
   */
  readonly limits?: CallLimits;
  /**
   * Tools that agents name as texts, and that a recovered run finds again.
   * @default none
   * @example tools: [searchOrders, sendMail]
   */
  readonly tools?: readonly Tool[];
  /**
   * Agents that `recover` may continue, besides those that `start`, `run`, `logic` and `thread` are given, and that other agents may call
   * as sub-agents.
   * @default none
   * @example agents: [support, researcher]
   */
  readonly agents?: readonly Agent[];
  /**
   * Workflows that `recover` may continue.
   * @default none
   * @example workflows: [refund]
   */
  readonly workflows?: readonly Workflow[];
  /**
   * Skills that agents may call.
   * @default none
   * @example skills: [summarise]
   */
  readonly skills?: readonly Skill[];
  /**
   * Where runs are recorded. With a store a run survives its process; without one it ends with it. Open the store once, and share it
   * with budget, audit and Studio. Shorthand for `ports.checkpointer = createCheckpointerFactory(store)`.
   * @default none: no run is durable
   * @example store: sqliteStore({ path: 'runs.db' })
   */
  readonly store?: CheckpointStore;
  /**
   * What the application provides in place of parts of Pawl, and parts that are off without it.
   * @default none
   * @example ports: { budget: createBudget({ tokens: 50_000 }) }
   */
  readonly ports?: Ports;
  /**
   * Limits and times of every run whose agent or tool sets none.
   * @example defaults: { maxSteps: 40, toolTimeoutMs: 30_000 }
   */
  readonly defaults?: Partial<Defaults>;
  /**
   * Refuses runs that cannot be recorded, instead of running them without a record.
   * @default false
   */
  readonly requireDurable?: boolean;
  /**
   * While saves fail: how many finished steps and ends of phases may be unsaved, and whether the run then waits or fails.
   * @default { maxUnsavedSteps: 8, then: 'wait' }
   * @example onSaveError: { maxUnsavedSteps: 0, then: 'fail' }
   */
  readonly onSaveError?: { readonly maxUnsavedSteps?: number; readonly then?: 'wait' | 'fail' };
  /**
   * A `once` call was running when the process died, or got no answer (its connection broke, its time was over): tell the model so, or
   * park the run for a person.
   * @default 'tell'
   */
  readonly onUnknownOutcome?: 'tell' | 'park';
  /**
   * The model was away for `defaults.modelOutageMs`: park the run for a person, or end it with MODEL_OUTAGE.
   * @default 'park'
   */
  readonly onModelOutage?: 'park' | 'fail';
  /**
   * The budget refuses the next model call of a run that has recorded a step: park it until the limit is raised, or
   * end it with BUDGET_EXCEEDED. A first start is refused in both cases.
   * @default 'park'
   */
  readonly onBudgetExceeded?: 'park' | 'fail';
  /**
   * What a run does while its budget is away, or does not answer within `portMs`. `wait`: it waits as for a model that is
   * away, once it has recorded a step; a first start fails. `allow`: it makes its call, which no limit counts. `refuse`: as
   * `onBudgetExceeded`.
   * @default 'wait'
   */
  readonly onBudgetAway?: 'wait' | 'allow' | 'refuse';
  /**
   * An agent's list of phases no longer matches a record: park the run for a person (`refuse`), begin it again
   * (`restart`), or keep the completed phases that still match (`continue-matching`).
   * @default 'refuse'
   */
  readonly onDefinitionChange?: 'refuse' | 'restart' | 'continue-matching';
  /**
   * Changes a stored record before its run continues, after a deploy that renamed something in it.
   * @default none
   * @example migrate: ({ meta }) => void (meta.agentId = meta.agentId.replace(/^help$/, 'support'))
   */
  readonly migrate?: Migrate;
  /**
   * Removes secrets from texts before they are written to records, events, the audit, logs and inspectors. The live run, its
   * result and its callbacks keep the full texts; a run that continues in another process has the redacted ones.
   * @default none: texts are written as they are
   * @example redact: (text) => text.replaceAll(/sk-\w+/g, '[key]')
   */
  readonly redact?: Redaction;
  /**
   * The executor's own rule for tool calls, after that of the tool (`call.verdict`): its verdict wins. `undefined` keeps that of
   * the tool. A throw, no answer within `portMs`, or another value means that a person must approve.
   * @default the verdict of the tool
   * @example approvals: ({ name, verdict }) => (name === 'refund' ? 'ask' : verdict)
   */
  readonly approvals?: ApprovalPolicy;
  /**
   * Comes before the instructions of every agent.
   * @default ''
   * @example systemHeader: 'Answer in the language of the user.'
   */
  readonly systemHeader?: string;
  /**
   * Shortens a history that is too long for the model's context window. Only the model sees the short form; see
   * `contextTokens`.
   * @default none: a history is sent whole
   * @example compactor: createCompactor({ model })
   */
  readonly compactor?: Compactor;
  /**
   * Context windows by tier, in tokens; for a model of an agent's own by `provider/modelId`. Without a number a history is sent whole.
   * @default none
   * @example contextTokens: { fast: 128_000, 'openai/gpt-5': 400_000 }
   */
  readonly contextTokens?: { readonly [tier: string]: number } | ((tier: string) => number | undefined);
  /**
   * Gets the end of each run of the agents that this executor knows, at least once, with a stable `outcomeId`: also of runs that
   * another process ended or cancelled. A rejection ends the run all the same, and the end is delivered again after a pause that grows
   * to 10 minutes, for a week. On a store without the group `deliveries` it gets the ends of this process only.
   * @default none
   * @example onOutcome: async ({ outcomeId, runId, status }) => table.insertOnce(outcomeId, { runId, status })
   */
  readonly onOutcome?: (outcome: RunOutcome) => Promise<void> | void;
  /**
   * Called with a run and the time at which it is due (wall clock, ms) after each commit of this process that makes a run due
   * earlier: an admission, a suspension, an answer or another command, a signal, the end of a child, an unpark. A queue or an engine then
   * calls `executor.drive(runId)`; `drive` reports the runs that it leaves itself. It is a hint: no caller waits for it, it has
   * `portMs`, and a failure is logged and changes nothing. A run whose hint is lost is found by `executor.drive('due')`.
   * @default none
   * @example onDue: (runId, at) => queue.send(runId, { startAfter: at })
   */
  readonly onDue?: OnDue;
  /**
   * Gets what only a person moves, to page one: a run is `parked`, the effect of a call is unknown (`unknown-outcome`), an end was not
   * accepted (`undelivered`), or a run is `waiting` for a person for longer than `defaults.notifyAfterMs`. Each comes at least once, with
   * a stable `noticeId`: each process with `notify` that works or recovers looks at the store each minute, and gives the notices that
   * it has not given. No caller waits for it; it has `portMs`, 100 calls at a time, and a failure is logged and changes nothing.
   * @default none
   * @example notify: ({ noticeId, kind, runId }) => pager.send({ key: noticeId, text: `${kind}: ${runId}` })
   */
  readonly notify?: Notify;
  /**
   * Keeps of each run that ends what `createAudit` reads: its record and its events for `retention.audit`, and the totals of its day
   * without an end. Needs a store with `end`, `totals` and a journal: all of Pawl's have them.
   * @default false
   */
  readonly audit?: boolean;
  /**
   * How long what is left of ended runs is kept.
   * @example retention: { outcomes: '30d', records: 0 }
   */
  readonly retention?: RetentionOptions;
  /**
   * Keeps the events of runs in the store, for readers in any process (`executor.events`). With `true`, text is
   * published each 100 ms, and an ended run can be read for 10 minutes. Needs a store with a journal: all of Pawl's have one.
   * @default false
   * @example journal: true
   */
  readonly journal?: JournalOption;
  /**
   * The number of this deployment, a whole number from 0 on: a new one for each release, also for a rollback. A store keeps the
   * highest one that has claimed a run; executors of a lower one leave that run alone (NEWER_DEPLOYMENT).
   * @default none: it is not compared
   * @example deployment: Number(process.env.RELEASE)
   */
  readonly deployment?: number;
  /**
   * The label by whose value due runs are taken in turn: the k-th due run of each value before the (k+1)-th of any, so that one
   * tenant with ten thousand runs delays no other. Runs without the label are one value. The same for all processes of a fleet.
   * @default none: the oldest due run first
   * @example fairBy: 'tenant'
   */
  readonly fairBy?: string;
  /**
   * Runs that start by the clock, each tick once for all processes of the store. Executors that take up due runs (`recover`, `work`) look
   * after them. An executor with an empty list defines none, and one without the option does not say. Needs a store that keeps schedules: all of Pawl's do.
   * @default none
   * @example schedules: [{ id: 'digest', cron: '0 7 * * 1-5', timeZone: 'Europe/Berlin', start: () => ({ agent, invocation: { prompt } }) }]
   */
  readonly schedules?: readonly Schedule[];
  /**
   * The wall clock, the clock of durations, and timers; tests set one.
   * @default the computer's
   * @example clock: testClock()
   */
  readonly clock?: Clock;
  /**
   * For the jitter of retries: returns a number from 0 to 1.
   * @default `Math.random`
   * @example random: () => 0.5
   */
  readonly random?: () => number;
  /**
   * Makes run ids, each one new. The id of another run that is live, stored or kept is RUN_ID_CONFLICT.
   * If it throws, or returns an invalid run id, a random one is used, with a warning.
   * @default random UUIDs
   * @example ids: () => ulid()
   */
  readonly ids?: () => string;
  /**
   * Gets the log lines: see `docs/log-lines.md`.
   * @default the console
   * @example logger: jsonLogger()
   */
  readonly logger?: Logger;
  /**
   * Gets XState's inspection events of every run. Its errors are logged and change nothing.
   * @default none
   * @example inspect: createBrowserInspector().inspect
   */
  readonly inspect?: Inspect;
  /**
   * Called after each finished step of each run; no caller waits for it. For a page or a queue, use `observers` or `executor.events`.
   * @default none
   * @example onStep: ({ runId, iteration }) => console.log(runId, iteration)
   */
  readonly onStep?: (step: StepInfo) => void;
  /**
   * Functions around each model call and each tool call of every run; the first is the outermost.
   * @default none
   * @example middleware: [{ tool: async (call, next) => timed(call.name, next) }]
   */
  readonly middleware?: readonly Middleware[];
  /**
   * Each gets the events of every run, after `redact`.
   * @default none
   * @example observers: [{ onEvent: (event) => events.push(event) }]
   */
  readonly observers?: readonly RunObserver[];
  /**
   * Where traces go: what `openTelemetry()` of `pawl/otel` returns.
   * @default none: no run is traced
   * @example tracing: openTelemetry()
   */
  readonly tracing?: Tracing;
}
