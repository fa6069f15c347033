import type { InspectionEvent } from 'xstate';
import { type Agent, agentFrom } from '../../agent/agent.ts';
import type { Skill } from '../../agent/skill.ts';
import { consoleLogger, LogLines, type Warn } from '../../log/log.ts';
import { FIRST_REST_MS } from '../../model/lists/rests.ts';
import type { Models } from '../../model/port.ts';
import { checkHostRunId } from '../../run/identity.ts';
import { type DefinedSchedule, schedulesIn } from '../../schedules/definition.ts';
import { isShared } from '../../store/capabilities.ts';
import { boundedStore, checkedStore } from '../../store/checked-store.ts';
import { type CheckpointerFactory, createCheckpointerFactory } from '../../store/factory.ts';
import type { CheckpointStore } from '../../store/port.ts';
import type { Tool } from '../../tool/define-tool.ts';
import type { Clock } from '../../values/clock.ts';
import { readProperty } from '../../values/error-data.ts';
import { letGo } from '../../values/thenable.ts';
import { agentOfWorkflow, type Workflow } from '../../workflow/workflow.ts';
import { checkExecutor, retainedMs } from './check-executor.ts';
import { type Defaults, usualDefaults } from './defaults.ts';
import { DueHints } from './due-hints.ts';
import { guarded, readable } from './guard.ts';
import { guardedClock } from './guarded-clock.ts';
import { type Journaling, journalDefaults, journalOptionsOf } from './journal-options.ts';
import { type Layers, layersOf } from './middleware.ts';
import { Notices } from './notices.ts';
import { type Observer, observersOf, runLines } from './observers.ts';
import type { ExecutorOptions, Ports } from './options.ts';
import { redactedInspect, redactedLogger } from './redaction.ts';
import { type GuardedTracing, guardedTracing } from './tracing.ts';

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
const AUDIT_MS = 90 * DAY_MS;
const EVENTS_MS = 600_000;
const RECORDS_MS = 0;

/** An executor's options, checked and completed. */
export interface Config {
  readonly models: Models;
  /** How long a model of a list is left alone after it failed, ms. */
  readonly cooldownMs: number;
  readonly limits: ExecutorOptions['limits'];
  readonly onOutcome: ExecutorOptions['onOutcome'] | undefined;
  readonly tools: readonly Tool[];
  readonly agents: ReadonlyMap<string, Agent>;
  readonly factory: CheckpointerFactory | undefined;
  /** Each of its calls ends within `portMs`. Checkpointers write past it, and bound their saves themselves. */
  readonly store: CheckpointStore | undefined;
  /** Reports the runs that this process makes due. */
  readonly hints: DueHints;
  /** Tells the host what only a person moves. */
  readonly notices: Notices;
  readonly defaults: Defaults;
  readonly requireDurable: boolean;
  readonly onSaveError: { readonly maxUnsavedSteps: number; readonly then: 'wait' | 'fail' };
  readonly onUnknownOutcome: 'tell' | 'park';
  readonly onModelOutage: 'park' | 'fail';
  readonly onBudgetExceeded: 'park' | 'fail';
  readonly onBudgetAway: 'wait' | 'allow' | 'refuse';
  readonly onDefinitionChange: NonNullable<ExecutorOptions['onDefinitionChange']>;
  readonly migrate: ExecutorOptions['migrate'];
  readonly redact: ExecutorOptions['redact'];
  readonly approvals: ExecutorOptions['approvals'];
  readonly systemHeader: string;
  readonly compactor: ExecutorOptions['compactor'];
  readonly contextTokens: ExecutorOptions['contextTokens'];
  readonly budget: Ports['budget'];
  readonly audit: Ports['audit'];
  readonly critic: Ports['critic'];
  readonly palette: Ports['palette'];
  readonly skills: ReadonlyMap<string, Skill>;
  readonly keepOutcomesMs: number;
  readonly keepSignalsMs: number;
  /** How long records of runs that ended `ok` are kept; 0 = they are deleted. */
  readonly keepRecordsMs: number;
  /** How long those of runs with any other end are kept. */
  readonly keepBadEndsMs: number;
  /** Undefined = events cannot be read in other processes. */
  readonly journal: Journaling | undefined;
  /** How the journals of runs are written: all events with the option `journal`, the durable ones for the audit. */
  readonly journaling: Journaling | undefined;
  /** Whether the ends of runs are counted in the totals of their days. */
  readonly isAudited: boolean;
  /** The number of this deployment; undefined = it is not compared. */
  readonly deployment: number | undefined;
  /** The label whose value is the fair key of a run. */
  readonly fairBy: string | undefined;
  /** The schedules that this executor defines; undefined: it does not say which there are. */
  readonly schedules: readonly DefinedSchedule[] | undefined;
  readonly clock: Clock;
  readonly newId: () => string;
  /** Whether `newId` returns ids that no other run can have. */
  readonly hasRandomIds: boolean;
  readonly random: () => number;
  /** What writes the log lines. */
  readonly lines: LogLines;
  readonly warn: Warn;
  readonly layers: Layers;
  readonly observers: readonly Observer[];
  /** Undefined = no run is traced. */
  readonly tracing: GuardedTracing | undefined;
  readonly inspect: ReturnType<typeof guarded<[event: InspectionEvent]>>;
  readonly onStep: ReturnType<typeof guarded<[step: Parameters<NonNullable<ExecutorOptions['onStep']>>[0]]>>;
}

/** Checks the options of createExecutor and adds the defaults. @throws {TypeError} if the options cannot make an executor */
export function configOf(options: ExecutorOptions): Config {
  checkExecutor(options, usualDefaults);
  const lines = new LogLines(redactedLogger(options.logger ?? consoleLogger, options.redact));
  const { warn } = lines;
  const clock = guardedClock(options.clock, warn);
  lines.clock = clock;
  const limits = { ...usualDefaults, ...given(options.defaults) };
  const factory =
    options.ports?.checkpointer ??
    (options.store && createCheckpointerFactory(options.store, { clock, timeoutMs: limits.portMs }));
  const store = factory?.store ?? options.store;
  const journal = journalFor(options, store, warn);
  const auditMs = auditMsOf(options, store, warn);
  if (readProperty(options.ports?.budget, 'isLocal') === true && store && isShared(store)) warn('budget.local');
  const tracing = guardedTracing(options.tracing, warn);
  const hints = new DueHints(options.onDue, { clock, warn, ms: limits.portMs });
  return {
    models: options.models ?? {},
    cooldownMs: options.failover?.cooldownMs ?? FIRST_REST_MS,
    limits: options.limits,
    onOutcome: options.onOutcome,
    tools: options.tools ?? [],
    agents: withWorkflows(agentsById(options.agents ?? []), options.workflows ?? []),
    skills: new Map((options.skills ?? []).map((skill) => [skill.name, skill])),
    factory,
    store: store && hints.listening(boundedStore(checkedStore(store), { ms: limits.portMs, clock })),
    hints,
    notices: new Notices(options.notify, { clock, warn, ms: limits.portMs, redact: options.redact }),
    defaults: limits,
    requireDurable: options.requireDurable ?? false,
    // biome-ignore lint/suspicious/noThenProperty: a policy's field, and no code awaits a policy
    onSaveError: { maxUnsavedSteps: 8, then: 'wait', ...given(options.onSaveError) },
    onUnknownOutcome: options.onUnknownOutcome ?? 'tell',
    onModelOutage: options.onModelOutage ?? 'park',
    onBudgetExceeded: options.onBudgetExceeded ?? 'park',
    onBudgetAway: options.onBudgetAway ?? 'wait',
    onDefinitionChange: options.onDefinitionChange ?? 'refuse',
    migrate: options.migrate,
    redact: options.redact,
    approvals: options.approvals,
    systemHeader: options.systemHeader ?? '',
    compactor: options.compactor,
    contextTokens: options.contextTokens,
    ...portsOf(options),
    ...retentionOf(options, { store, auditMs, warn }),
    journal,
    journaling: journal ?? (auditMs > 0 ? { ...journalDefaults, lingerMs: EVENTS_MS, isDurableOnly: true } : undefined),
    isAudited: auditMs > 0,
    deployment: options.deployment,
    fairBy: options.fairBy,
    schedules: schedulesOn(options, store),
    clock,
    newId: guardedId(options.ids, warn),
    hasRandomIds: options.ids === undefined,
    random: guardedRandom(options.random),
    lines,
    warn,
    layers: layersOf(options.middleware),
    observers: observersIn(options, { lines, tracing, warn }),
    tracing,
    inspect: redactedInspect(guarded('inspect', options.inspect, warn), options.redact),
    onStep: guarded('onStep', options.onStep, warn),
  };
}

interface Listening {
  readonly lines: LogLines;
  readonly tracing: GuardedTracing | undefined;
  readonly warn: Warn;
}

/** A tracing gets the events of runs as an observer does, while something listens to it. */
function observersIn(
  { observers, tracing: given }: ExecutorOptions,
  { lines, tracing, warn }: Listening,
): readonly Observer[] {
  const traced = given ? observersOf([{ onEvent: given.event.bind(given) }], warn) : [];
  return [
    ...observersOf(observers, warn),
    ...traced.map((observer) => ({ ...observer, isIdle: () => tracing?.isIdle() === true })),
    ...(lines.hasInfo ? observersOf([runLines(lines.warn)], warn) : []),
  ];
}

function journalFor({ journal, retention }: ExecutorOptions, store: CheckpointStore | undefined, warn: Warn) {
  const options = journalOptionsOf(journal);
  if (!options) return undefined;
  if (store?.journal) return { ...options, lingerMs: retainedMs(retention?.events ?? EVENTS_MS) };
  warn('option.no-effect', { option: 'journal', why: 'this store has no journal' });
  return undefined;
}

/** Returns the schedules of an executor. @throws {TypeError} for one that cannot be, and for a store that cannot keep it */
function schedulesOn(
  { schedules }: ExecutorOptions,
  store: CheckpointStore | undefined,
): readonly DefinedSchedule[] | undefined {
  if (schedules === undefined) return undefined;
  const defined = schedulesIn(schedules);
  if (store?.schedules) return defined;
  const lack = store ? 'this one has no group schedules' : 'there is none';
  throw new TypeError(`createExecutor: schedules need a store that keeps them and admits their runs; ${lack}`);
}

/** How long is kept what runs leave at their end. A run without its answer may be retried as long as its outcome is known. */
function retentionOf(
  options: ExecutorOptions,
  given: { readonly store: CheckpointStore | undefined; readonly auditMs: number; readonly warn: Warn },
): Pick<Config, 'keepOutcomesMs' | 'keepSignalsMs' | 'keepRecordsMs' | 'keepBadEndsMs'> {
  const { store, auditMs, warn } = given;
  const keepOutcomesMs = retainedMs(options.retention?.outcomes ?? WEEK_MS);
  const keepSignalsMs = retainedMs(options.retention?.signals ?? DAY_MS);
  const keepRecordsMs = Math.max(keepRecordsMsOf(options, store, warn), auditMs);
  const isSaid = options.retention?.records !== undefined;
  return {
    keepOutcomesMs,
    keepSignalsMs,
    keepRecordsMs,
    keepBadEndsMs: isSaid ? keepRecordsMs : Math.max(keepRecordsMs, keepOutcomesMs),
  };
}

/** A store that cannot keep them deletes them, as without the option. */
function keepRecordsMsOf(
  { journal, retention }: ExecutorOptions,
  store: CheckpointStore | undefined,
  warn: Warn,
): number {
  const keepMs = retainedMs(retention?.records ?? RECORDS_MS);
  if (keepMs > 0 && !store?.history) {
    const why = 'this store has no group history; records of ended runs are deleted';
    warn('option.no-effect', { option: 'retention.records', why });
  }
  return journal ? Math.max(keepMs, retainedMs(retention?.events ?? EVENTS_MS)) : keepMs;
}

/** How long the audit keeps what it reads, ms; 0 = there is none, also on a store that cannot keep it. */
function auditMsOf({ audit, retention }: ExecutorOptions, store: CheckpointStore | undefined, warn: Warn): number {
  if (!audit) return 0;
  if (store?.history && store.journal) return retainedMs(retention?.audit ?? AUDIT_MS);
  warn('option.no-effect', { option: 'audit', why: 'this store lacks the group history or journal' });
  return 0;
}

/** The options with a value: an undefined option is absent, and must not replace a default. */
function given<Options extends object>(options: Options | undefined): Options {
  return Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== undefined)) as Options;
}

/**
 * The agents of createExecutor by their ids.
 * @throws {TypeError} for a value that is not an agent, or whose id cannot be read
 */
function agentsById(given: readonly Agent[]): ReadonlyMap<string, Agent> {
  return new Map(given.map((agent, i) => agentById(agent, `createExecutor: agents[${i}]`)));
}

/** The agents and the definitions of workflows, by their ids. @throws {TypeError} for two workflows, or an agent and a workflow, of one id */
function withWorkflows(agents: ReadonlyMap<string, Agent>, workflows: readonly Workflow[]): ReadonlyMap<string, Agent> {
  const all = new Map(agents);
  for (const [i, given] of workflows.entries()) {
    const workflow = definitionOfWorkflow(given, i);
    const other = all.get(workflow.id);
    if (other && other !== workflow)
      throw new TypeError(
        `createExecutor: workflows[${i}] has the id ${JSON.stringify(workflow.id)}, which another ${agents.has(workflow.id) ? 'agent' : 'workflow'} has: a stored run is found by it`,
      );
    all.set(workflow.id, workflow);
  }
  return all;
}

/** The definition of a workflow's runs. @throws {TypeError} for a value that is no workflow */
function definitionOfWorkflow(given: Workflow, i: number): Agent {
  const agent = agentOfWorkflow(given);
  if (agent) return agent;
  throw new TypeError(`createExecutor: workflows[${i}] is not a workflow made with defineWorkflow`);
}

/** An agent that throws when it is read stays as it is: `recover` reports its runs, and recovers those of the other agents. */
function agentById(given: Agent, what: string): readonly [string, Agent] {
  try {
    const agent = readable(what, () => agentFrom(given, `${what} is not`));
    return [agent.id, agent];
  } catch (error) {
    const id = readProperty(given, 'id');
    if (typeof id !== 'string' || !('cause' in (error as TypeError))) throw error;
    return [id, given];
  }
}

function portsOf({ ports = {} }: ExecutorOptions): Pick<Config, 'budget' | 'audit' | 'critic' | 'palette'> {
  const { budget, audit, critic, palette } = ports;
  return { budget, audit, critic, palette };
}

/** Returns run ids from the host's port; a random id if the port throws or returns something else. */
function guardedId(ids: (() => string) | undefined, warn: Warn): () => string {
  return () => {
    if (!ids) return crypto.randomUUID();
    try {
      const id = ids();
      letGo(id);
      return checkHostRunId(id);
    } catch (error) {
      warn('ids.invalid', { error });
      return crypto.randomUUID();
    }
  };
}

/** A host's source of random numbers. If it throws or returns something else, `Math.random` replaces it. */
function guardedRandom(random: (() => number) | undefined): () => number {
  return () => {
    try {
      const number = random?.();
      letGo(number);
      return typeof number === 'number' && number >= 0 && number <= 1 ? number : Math.random();
    } catch {
      return Math.random();
    }
  };
}
