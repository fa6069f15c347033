/// <reference lib="esnext.disposable" preserve="true" />
import type { ReadonlyAtom } from '@xstate/store';
import type { Agent } from '../agent/agent.ts';
import type { KeptRun } from '../record/kept-run.ts';
import { checkRunId } from '../run/identity.ts';
import type { JournalEvent } from '../run/journal/reader.ts';
import type { Invocation, WorkflowInvocation } from '../run/request.ts';
import type { RunResult } from '../run/result.ts';
import { type Schedules, schedulesOf } from '../schedules/schedules.ts';
import type { RunStats } from '../store/counting/port.ts';
import type { DueList } from '../store/due-port.ts';
import type { ListThreadsOptions, ThreadLine } from '../store/thread-port.ts';
import { readProperty } from '../values/error-data.ts';
import type { JsonValue } from '../values/json.ts';
import type { Message } from '../values/message.ts';
import type { Workflow, WorkflowOutput, WorkflowStart } from '../workflow/workflow.ts';
import { admitRun } from './drive/admit.ts';
import { Drives } from './drive/drive.ts';
import type { Driven } from './drive/driven.ts';
import { type DueRunsOptions, listDueRuns } from './drive/due-runs.ts';
import { FollowedRuns } from './drive/followed-runs.ts';
import { type DriveOptions, driveLimitsOf } from './drive/options.ts';
import { Fleet, type Worker } from './fleet/fleet.ts';
import { type Health, watchOver } from './fleet/health.ts';
import type { WorkOptions } from './fleet/options.ts';
import { configOf } from './host/config.ts';
import type { ExecutorOptions } from './host/options.ts';
import type { SignalOptions } from './host/process-signals.ts';
import type { RunOptions } from './host/run-options.ts';
import type { ExecutorInside } from './inside.ts';
import { controlFrom, type RunControl, type WorkflowControl } from './lifecycle/control.ts';
import { type FollowOptions, readEvents } from './lifecycle/read-events.ts';
import { logicFor, type RunLogic } from './lifecycle/run-logic.ts';
import { startRun } from './lifecycle/start.ts';
import { erase } from './lifecycle/stored/erase.ts';
import {
  capabilitiesOf,
  type ExecutorCapabilities,
  type ExplainOptions,
  explainRun,
  type RunExplanation,
} from './lifecycle/stored/explain.ts';
import { type FindRunOptions, type FoundRun, findRun } from './lifecycle/stored/find-run.ts';
import { type ForkOptions, forkRun } from './lifecycle/stored/fork.ts';
import { type HistoryFilter, history, type MessagesOptions, messagesOfRun } from './lifecycle/stored/history.ts';
import { insidePartsOf } from './lifecycle/stored/import-run.ts';
import { type ListedRun, type ListRunsOptions, listRuns } from './lifecycle/stored/list-runs.ts';
import { type ParkOptions, park, unpark } from './lifecycle/stored/parking.ts';
import { type RecoverOptions, type RecoveryReport, recover } from './lifecycle/stored/recover.ts';
import { agentFor } from './lifecycle/stored/recover-one-run.ts';
import { retryRun } from './lifecycle/stored/retry.ts';
import { listThreads, type Thread, type ThreadOptions, threadOf } from './lifecycle/threads/threads.ts';
import { type ListedWait, type ListWaitsOptions, listWaits } from './lifecycle/waits/list-waits.ts';
import { type SignalKeys, signalRuns } from './lifecycle/waits/signal-runs.ts';
import { type EndedRun, handleIn, type Run } from './run/handle.ts';
import type { RunSummary } from './services/registry.ts';
import { endingOf, servicesOf } from './wiring.ts';

/** Runs agents. One per process is enough; any number of executors may share a store. */
export interface Executor {
  /** Starts a run. Rejects with a TypeError for a wrong call; any error of the run is in its `result`. */
  start<Data>(agent: Agent<Data>, invocation: Invocation, options?: RunOptions): Promise<Run<Data>>;
  /** Starts a run of a workflow: its result has the output of the machine as `data`. */
  start<W extends Workflow>(
    workflow: W,
    invocation: WorkflowStart<W>,
    options?: RunOptions,
  ): Promise<Run<WorkflowOutput<W>>>;
  /**
   * Starts a run and resolves to its result, also when the run fails: `status` says how it ended, and only `ok` has an answer.
   * For an error instead, use `(await executor.start(…)).orThrow()`. Rejects with a TypeError for a wrong call, and for nothing else.
   */
  run<Data>(agent: Agent<Data>, invocation: Invocation, options?: RunOptions): Promise<RunResult<Data>>;
  run<W extends Workflow>(
    workflow: W,
    invocation: WorkflowStart<W>,
    options?: RunOptions,
  ): Promise<RunResult<WorkflowOutput<W>>>;
  /** The runs of an agent, or of a workflow, as actor logic for a host's own machine. Give such runs a `runId`. */
  logic<Data>(agent: Agent<Data>): RunLogic<Data>;
  logic<W extends Workflow>(workflow: W): RunLogic<WorkflowOutput<W>, WorkflowStart<W>>;
  /** The handle of a live run, or of one of the last 1,000 that ended. */
  get(runId: string): Run | EndedRun | undefined;
  /**
   * What is known of one run, in any process: a line as in `list`, or how it ended while its record or outcome is kept. It reads
   * the whole record of a stored run.
   * @param options.owner whether to ask who works on it; without, a run that is live in another process looks `interrupted`
   * @returns null if there is no such run, or not any more
   * @throws {CHECKPOINT_CORRUPT} or another error of the store, if its record cannot be read @throws {INVALID_RUN_ID}
   * @example if ((await executor.find(runId))?.status === 'ended') return;
   */
  find(runId: string, options?: FindRunOptions): Promise<FoundRun | null>;
  /**
   * All that is known of one run, in any process: its record, what the next `recover()` does with it and why, who works on it,
   * the commands that it has not read. It reads, and never claims or writes. A record that cannot be read is a part of the answer.
   * @returns null if there is no such run, or not any more
   * @throws {INVALID_RUN_ID}; the store's own error if it does not answer
   * @example
   * const { verdict, reason } = (await executor.explain(runId)) ?? {};
   * if (verdict === 'parked') console.warn(`${runId}: ${reason}`);
   */
  explain(runId: string, options?: ExplainOptions): Promise<RunExplanation | null>;
  /** What this executor can do, by its store and its options. */
  readonly capabilities: ExecutorCapabilities;
  /**
   * A page of runs: first those that are live in this process, by id, then those of the store, by the time of their last
   * record: live in another process, interrupted, waiting, parked, and unreadable records. The list is not a snapshot: a run that moves
   * between two pages may be in both, or in none.
   * @throws {TypeError} for invalid options; the store's own error if its list cannot be read
   * @example
   * let page = await executor.list({ limit: 100, status: 'parked' });
   * while (page.length === 100) page = await executor.list({ limit: 100, status: 'parked', after: page[99] });
   */
  list(options?: ListRunsOptions): Promise<readonly ListedRun[]>;
  /**
   * A page of the open waits: of runs that are live in this process, then of stored runs, also suspended ones and those that
   * live in another process. It reads the heads of records, and no transcripts. Like `list`, it is not a snapshot.
   * @throws {TypeError} for invalid options; the store's own error if its list cannot be read
   * @example
   * for (const wait of await executor.waiting({ kind: 'approval' })) {
   *   console.log(wait.runId, wait.tool, wait.input);
   *   await executor.control(wait.runId).approve(wait.id, { by: { id: 'ada' } });
   * }
   */
  waiting(options?: ListWaitsOptions): Promise<readonly ListedWait[]>;
  /**
   * Follows the events of a run, live in any process, waiting, interrupted or just ended, to its end: each at least 0.1 s after it
   * happened, once its record is stored. Needs the option `journal`.
   *
   * A reader from the beginning gets a recorded step as `step.snapshot`, and the step in progress in pieces. With `after` it
   * continues where it was cut, on any host: it gets the rest of a text, or `step.reset` and the step again. The last event is
   * `run.ended`. While the run waits, is parked, or no process has it, the iterator waits.
   * @throws {TypeError} for a wrong call; the iterator throws {JOURNAL_GONE} if the run cannot be read (any more), {UNSUPPORTED}
   *   without a journal, the store's own error, and {ERR_SHUTDOWN} when this executor shuts down
   * @example
   * for await (const event of executor.events(runId, { after: lastCursor })) show(event);
   */
  events(runId: string, options?: FollowOptions): AsyncIterableIterator<JournalEvent>;
  /**
   * A page of the runs that ended and whose records are kept (`retention: { records }`, or `retention.events` with a journal): the newest
   * end first.
   * @throws {TypeError} for invalid options @throws {UNSUPPORTED} if the store keeps no records of ended runs
   * @throws {NOT_DURABLE} without a store; the store's own error if its list cannot be read
   * @example
   * let page = await executor.history({ limit: 100, callerId: 'ada' });
   * while (page.length === 100) page = await executor.history({ limit: 100, callerId: 'ada', after: page[99] });
   */
  history(options?: HistoryFilter): Promise<readonly KeptRun[]>;
  /**
   * The recorded messages of a run, also of one that ended and whose record is kept: of a pipeline those of its last phase. A
   * redacted record has the redacted ones.
   * @returns null if there is no record
   * @throws {NOT_DURABLE} without a store; the store's own error if the record cannot be read
   */
  messages(runId: string, options?: MessagesOptions): Promise<readonly Message[] | null>;
  /**
   * Removes all that is stored of a run that ended: its record, its outcome, its journal, its commands; and all of the child runs
   * that the calls in its kept record began. A run of which nothing is stored is no error. A turn of a thread is erased by its
   * thread (`rewind`, `delete`).
   * @throws {RUN_OWNED_ELSEWHERE} while a process works on it @throws {RUN_NOT_ENDED} if it has not ended: cancel it first
   * @throws {UNSUPPORTED} for a turn of a thread, and if the store keeps no records of ended runs
   * @throws {NOT_DURABLE} without a store
   */
  erase(runId: string): Promise<void>;
  /** Summaries of the live runs; changes at most once per event-loop turn. */
  readonly runs: ReadonlyAtom<readonly RunSummary[]>;
  /**
   * Counts the runs of the store, of all processes, by one read of an index.
   * @throws {NOT_DURABLE} without a store @throws {UNSUPPORTED} if it cannot count; the store's own error
   */
  stats(): Promise<RunStats>;
  /** Whether this process is live, and ready for work, and why not. It answers within a second, and never rejects. */
  health(): Promise<Health>;
  /** The summary of one live run. */
  run$(runId: string): ReadonlyAtom<RunSummary> | undefined;
  /**
   * Continues the runs of earlier processes, and the suspended ones that are due. Resolves when every listed run was started or
   * parked, or the signal is aborted. From then on this executor takes up runs that become due, each `defaults.dueMs`; that
   * keeps no process alive, unless `follow` is set: then it resolves at the shutdown.
   * @throws the store's own error if its list cannot be read: the runs started before continue, so call it again
   * @throws {TypeError} for a bound that is not a whole number above 0
   */
  recover(options?: RecoverOptions): Promise<RecoveryReport>;
  /**
   * Works on one stored run for the time of a budget, and leaves it in good order: for platforms that end a function after
   * minutes, for queues and for engines. Any slicing gives the record and the answer of one `run`. A call may be repeated at will;
   * it tries at once, also before the `wakeAt` of an earlier call. A second call for a run that is driven here joins the
   * first. `drive('due')` works on due runs one after another; so a run with the id `due` cannot be driven by its id.
   * @param runId a run that is stored: begun by `start`, by an earlier process, or with `drive: 'later'`; or `due`
   * @throws {TypeError} @throws {INVALID_RUN_ID} @throws {NOT_DURABLE} without a store @throws {STORE_UNAVAILABLE} or
   *   another error of the store, if it did not answer: nothing is lost, call again
   * @example
   * const { state, wakeAt } = await executor.drive(runId, { budgetMs: 50_000, graceMs: 20_000 });
   * if (state === 'more') await queue.send(runId);
   * if (state === 'waiting' && wakeAt) await queue.send(runId, { at: wakeAt });
   */
  drive(runId: string, options?: DriveOptions): Promise<Driven>;
  /**
   * A page of the runs that are due and that no process works on, the longest due first. A run of the list may have
   * an owner by now: drive it all the same.
   * @returns the page, the store's wall clock, and when the next run is due after it
   * @throws {TypeError} for invalid options @throws {UNSUPPORTED} if the store has no due runs
   * @throws {NOT_DURABLE} without a store; the store's own error if its list cannot be read
   * @example for (const { runId } of (await executor.due({ limit: 100 })).runs) await queue.send(runId);
   */
  due(options?: DueRunsOptions): Promise<DueList>;
  /**
   * The agent with this id, for a queue or an engine whose messages name agents: of `createExecutor({ agents })`, else of the palette,
   * else the last one that `start`, `run`, `logic` or `thread` was given.
   * @example const agent = executor.agent(job.agentId);
   */
  agent(id: string): Agent | undefined;
  /**
   * Works on the due runs of the store, as one process of a fleet: it takes as many as it has free places, and works on each for a
   * slice. The processes of a fleet share one store, and each due run is taken by one of them. Keeps the process alive until it is
   * drained, or the executor shuts down.
   * @throws {TypeError} @throws {NOT_DURABLE} without a store @throws {UNSUPPORTED} for a store in which no runs rest
   * @throws {ERR_SHUTDOWN} after a shutdown
   * @example
   * const worker = executor.work({ concurrency: 32 });
   * executor.shutdownOnSignals({ drainMs: 25_000 });
   */
  work(options?: WorkOptions): Worker;
  /**
   * The schedules of the store and of this executor (`createExecutor({ schedules })`): a function that lists them, with `pause` and `resume`.
   * @example for (const { id, nextAt, missed } of await executor.schedules()) console.log(id, nextAt, missed.count);
   */
  readonly schedules: Schedules;
  /**
   * Parks a stored run: `recover` skips it, `start` refuses it. `unpark` frees it, with all its attempts.
   * @throws {RUN_OWNED_ELSEWHERE} while it is live, here or elsewhere @throws {RUN_NOT_FOUND} if there is none
   */
  park(runId: string, reason: string, options?: ParkOptions): Promise<void>;
  /** Frees a parked run, with all its attempts: it is due. @throws {RUN_NOT_FOUND} if there is none */
  unpark(runId: string, options?: ParkOptions): Promise<void>;
  /**
   * Continues a run that ended badly (error, limit, cancel, kill) after its last recorded step, here. It is the same run: its results,
   * finished phases, keys, usage and spend stay, and no `once` call that had begun is made again. Its limits begin again; the budget is
   * asked as it stands now. A parked run is unparked; one that waits for its model asks it; any other that has not ended is left as it is.
   * The journal keeps the person of `by`.
   * @returns its handle, as `start` does
   * @throws {RUN_ENDED} for a run that has its answer, a child, a turn of a thread, a run of a host's machine
   * @throws {RECORD_GONE} if its record is not kept any more @throws {RUN_NOT_FOUND}
   * @throws {AGENT_NOT_FOUND} if this executor does not have its agent: then use `control(runId).retry()`
   * @throws {UNSUPPORTED} if the store keeps no records of ended runs @throws {NOT_DURABLE} without a store
   * @example
   * const run = await executor.retry('order-17'); // the key is mended
   * console.log((await run.result).status);
   */
  retry(runId: string, options?: ParkOptions): Promise<Run>;
  /**
   * Starts another run with the first steps of a stored one: live, waiting, parked or ended. The origin does not change. Keys, waits,
   * children, usage and limits of the fork are its own. What was said or decided after the cut is not carried over.
   * @returns its handle, as `start` does: a second call with the same `runId` and options finds the first fork
   * @throws {TypeError} for wrong options: `at` says how many steps there are @throws {RUN_NOT_FOUND}
   * @throws {FORK_EFFECTS} if it may have effects, and `effects` does not say what their calls do
   * @throws {DEFINITION_CHANGED} if the finished phases are not the first ones of the agent @throws {AGENT_NOT_FOUND}
   * @throws {UNSUPPORTED} for a run of a workflow, or if the store keeps no records of ended runs @throws {NOT_DURABLE} without a store
   * @example const what = await executor.fork('order-17', { at: 3, effects: 'refuse', agent: deskV2 });
   */
  fork(runId: string, options: ForkOptions): Promise<Run>;
  /** Controls a run by its id, live in any process or waiting in the store: cancel it, steer it, park it. */
  control(runId: string): RunControl;
  /**
   * Controls a run of this workflow: its `send` takes the events of the workflow, and checks them by their schemas.
   * @example await executor.control(refund, 'refund-42').send({ type: 'cancel', by: 'ada' });
   */
  control<W extends Workflow>(workflow: W, runId: string): WorkflowControl<W>;
  /**
   * Sends an event to the calls that wait for it (`context.waitFor`): to the oldest open wait of its name and key. Without one
   * it is kept for `retention.signals`, for the next such wait. A signal serves one wait. Its value should fit the schema of the
   * wait: one that does not is used up, and the call waits on.
   *
   * In a store with `expect` and `signal` (all of Pawl's have them) the run may be in any process, or rest. In other stores, and
   * for runs without a record, a signal reaches the runs that are live in this process.
   * @param value any JSON
   * @param keys.id names the signal: sent twice with the same id, it counts once
   * @returns the run that got it; none = it is kept
   * @throws {ANSWER_REDACTED} for a value that `redact` would change @throws {NOT_JSON} @throws {TypeError}
   * @throws {UNDELIVERED} if 1,000 signals of this event are kept, or the value is too long @throws {UNSUPPORTED}
   * @example await executor.signal('payment', { cents: 700 }, { key: 'order 7', id: webhook.id })
   */
  signal(name: string, value: JsonValue, keys: SignalKeys): Promise<{ readonly to?: string }>;
  /**
   * A conversation by its id: `send` adds a message, and begins its run or lets it wait for its turn.
   * @throws {TypeError} @throws {INVALID_THREAD_ID} @throws {UNSUPPORTED} if the store keeps no threads
   * @example
   * const thread = executor.thread('t1', { agent, callerId: 'ada' });
   * await thread.send({ id: 'm1', text: 'What is new?' });
   */
  thread<Data>(id: string, options: ThreadOptions<Data>): Thread;
  /**
   * A page of threads, the last changed first; the next page begins after the `cursor` of its last one.
   * @throws {TypeError} for invalid options @throws {UNSUPPORTED} if the store keeps no threads
   */
  threads(options?: ListThreadsOptions): Promise<readonly ThreadLine[]>;
  /**
   * Leaves all live runs for the next boot. Running calls with effects may end first, for three quarters of that time.
   * @param options.drainMs longest time that may take; default 10,000 ms
   */
  shutdown(options?: { readonly drainMs?: number }): Promise<void>;
  /**
   * Shuts down and ends the process on a signal: exit code after SIGTERM 75 where a run was left, else 0;
   * 128 + n after other signals (130 after Ctrl-C); 1 if `drainMs` was too short. A second signal ends it at once, with 128 + n. Other listeners stay as they are. A second call
   * replaces the options; disposing the returned object, or a shutdown, removes the listeners.
   * @throws {TypeError} for a signal that a process cannot listen to
   * @example executor.shutdownOnSignals({ drainMs: 25_000, onSignal: () => server.close() })
   */
  shutdownOnSignals(options?: SignalOptions): Disposable;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Makes an executor, which runs agents and workflows. Decide about the `store` first: with one, each run survives its process; without,
 * none does. Other options have defaults that hold in production.
 * @throws {TypeError} that names the option, for an unknown one and for a wrong value
 * @example
 * const executor = createExecutor({ agents: [agent], store: sqliteStore({ path: 'runs.db' }) })
 * const { output } = await executor.run(agent, { prompt: 'What is new?' })
 */
export function createExecutor(options: ExecutorOptions): Executor {
  const config = configOf(options);
  const services = servicesOf(config);
  const { registry } = services;
  const drives = new Drives(services);
  const fleet = new Fleet(services);
  const followed = new FollowedRuns(services);
  const { signals, end } = endingOf(services, { followed, fleet });
  // The data of a run is the output of its agent's output schema.
  const start = <Data>(
    agent: Agent<Data> | Workflow,
    invocation: Invocation | WorkflowInvocation<unknown>,
    options: RunOptions = {},
  ): Promise<Run<Data>> => {
    const isLater = readProperty(options, 'drive') === 'later';
    const call = { invocation, options };
    const begun = isLater ? admitRun({ services, followed }, agent, call) : startRun(services, agent, call);
    return begun as Promise<Run<Data>>;
  };
  const executor: Executor & ExecutorInside = {
    start: start as Executor['start'],
    run: (async (agent: Agent, invocation: Invocation, runOptions?: RunOptions) =>
      (await start(agent, invocation, runOptions)).result) as Executor['run'],
    logic: ((given: Agent | Workflow) => logicFor(services, given)) as Executor['logic'],
    get: (runId) => handleIn(registry, runId),
    find: async (runId, findOptions = {}) => findRun(services, checkRunId(runId), findOptions),
    explain: async (runId, explainOptions = {}) => explainRun(services, checkRunId(runId), explainOptions),
    capabilities: capabilitiesOf(services),
    list: (listOptions = {}) => listRuns(services, listOptions),
    history: (filter = {}) => history(services, filter),
    messages: (runId, messagesOptions = {}) => messagesOfRun(services, runId, messagesOptions),
    erase: (runId) => erase(services, runId),
    runs: registry.runs,
    ...watchOver(services, fleet),
    run$: (runId) => registry.atomOf(runId),
    ...insidePartsOf(services),
    events: (runId, eventOptions = {}) => readEvents(services, runId, eventOptions),
    waiting: (waitOptions = {}) => listWaits(services, waitOptions),
    recover: (recoverOptions = {}) => recover(services, recoverOptions),
    drive: async (runId, driveOptions = {}) => drives.drive(checkRunId(runId), driveLimitsOf(driveOptions)),
    due: async (dueOptions = {}) => listDueRuns(services, dueOptions),
    agent: (id) => agentFor(services, id),
    work: (workOptions = {}) => fleet.work(workOptions),
    schedules: schedulesOf({
      ...config,
      schedules: config.schedules ?? [],
      store: config.store?.schedules,
      hasStore: config.store !== undefined,
    }),
    park: (runId, reason, options = {}) => park(services, runId, { ...options, reason }),
    unpark: (runId, options = {}) => unpark(services, runId, options),
    fork: async (runId, forkOptions) => forkRun(services, checkRunId(runId), forkOptions),
    retry: async (runId, options = {}) => retryRun(services, checkRunId(runId), options),
    signal: (name, value, keys) => signalRuns(services, { name, value }, keys),
    control: ((...given: readonly unknown[]) => controlFrom(services, given)) as Executor['control'],
    thread: (id, threadOptions) => threadOf(services, id, threadOptions as ThreadOptions),
    threads: async (threadsOptions = {}) => listThreads(services, threadsOptions),
    shutdown: end,
    shutdownOnSignals: (signalOptions = {}) => signals.on(signalOptions),
    [Symbol.asyncDispose]: () => end(),
  };
  return executor;
}
