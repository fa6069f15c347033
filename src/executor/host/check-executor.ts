import { checkModelChoice, listed } from '../../model/tier.ts';
import { MAX_LEVELS } from '../../run/limits.ts';
import { cutAnswers } from '../../run/reply.ts';
import { checkStore } from '../../store/capabilities.ts';
import { isTool } from '../../tool/toolbox.ts';
import { durationMs } from '../../values/clock.ts';
import { readProperty } from '../../values/error-data.ts';
import {
  checkKeys,
  checkMethods,
  checkWord,
  earlierNames,
  isWholeBound,
  type KnownKeys,
  kindOf,
} from '../../values/known-options.ts';
import type { Defaults } from './defaults.ts';
import { checkMiddleware } from './middleware.ts';
import { checkObservers } from './observers.ts';
import type { ExecutorOptions, FailoverOptions, Ports, RetentionOptions } from './options.ts';
import { checkTracing } from './tracing.ts';

const optionKeys: KnownKeys<ExecutorOptions> = {
  models: true,
  failover: true,
  limits: true,
  tools: true,
  agents: true,
  workflows: true,
  skills: true,
  store: true,
  ports: true,
  defaults: true,
  requireDurable: true,
  onSaveError: true,
  onUnknownOutcome: true,
  onModelOutage: true,
  onBudgetExceeded: true,
  onBudgetAway: true,
  onDefinitionChange: true,
  migrate: true,
  redact: true,
  approvals: true,
  systemHeader: true,
  compactor: true,
  contextTokens: true,
  onOutcome: true,
  onDue: true,
  notify: true,
  audit: true,
  retention: true,
  journal: true,
  deployment: true,
  fairBy: true,
  schedules: true,
  clock: true,
  random: true,
  ids: true,
  logger: true,
  inspect: true,
  onStep: true,
  middleware: true,
  observers: true,
  tracing: true,
};

const portKeys: KnownKeys<Ports> = { checkpointer: true, budget: true, audit: true, critic: true, palette: true };

// biome-ignore lint/suspicious/noThenProperty: the name of a policy's field
const saveErrorKeys: KnownKeys<NonNullable<ExecutorOptions['onSaveError']>> = { maxUnsavedSteps: true, then: true };

const failoverKeys: KnownKeys<FailoverOptions> = { cooldownMs: true };

const retentionKeys: KnownKeys<RetentionOptions> = {
  records: true,
  outcomes: true,
  signals: true,
  events: true,
  audit: true,
};

/** What is kept for a time above 0. */
const mustBeKept: ReadonlySet<string> = new Set<keyof RetentionOptions>(['signals', 'audit']);

/** Defaults whose 0 switches something off. */
const mayBeZero: ReadonlySet<string> = new Set<keyof Defaults>(['modelOutageMs']);

const callbacks = [
  'redact',
  'approvals',
  'migrate',
  'compactor',
  'onOutcome',
  'onDue',
  'notify',
  'ids',
  'random',
  'onStep',
] as const satisfies readonly (keyof ExecutorOptions)[];

const of = 'createExecutor';

const takesStore = "store takes the store: sqliteStore({ path: 'runs.db' })";
const getsEnds = 'onOutcome gets the end of each run';
const traces = 'tracing takes openTelemetry() of pawl/otel';

/** Names that options had before or have elsewhere, each with the name of today. */
const otherNames = {
  checkpoints: 'store takes the store',
  history: 'retention.records takes the time of records',
  keepOutcomesMs: 'retention.outcomes takes this time',
  keepSignalsMs: 'retention.signals takes this time',
  version: 'deployment is the number of this deployment; version is of an agent',
  ...{ db: takesStore, database: takesStore },
  maxRetries: 'defaults.modelAttempts is the most attempts of a model call',
  concurrency:
    'executor.work({ concurrency }) bounds the runs of a worker, defaults.toolConcurrency the calls of a message',
  ...{ onFinish: getsEnds, onError: getsEnds },
  ...{ telemetry: traces, experimental_telemetry: traces },
} as const;

/**
 * Checks the options of createExecutor: names, ports, limits. Without this check an unknown name, or a port that cannot do
 * its work, would show only when a run is not durable, not bounded or not charged.
 * @throws {TypeError} that names the option and its valid values
 */
export function checkExecutor(options: ExecutorOptions, defaults: Defaults): void {
  const elsewhere = [
    ...names('defaults', defaults),
    ...names('ports', portKeys),
    ...names('onSaveError', saveErrorKeys),
    ...names('retention', retentionKeys),
  ];
  checkKeys(options, optionKeys, { of, elsewhere, foreign: otherNames });
  checkModels(options.models);
  checkFailover(options.failover);
  checkMethods(`${of}: limits`, options.limits, {
    methods: ['take', 'report'],
    advice: ': use rateLimits({ store, rules })',
  });
  checkPorts(options.ports);
  checkDefaults(options.defaults, defaults);
  checkPolicies(options);
  checkCallbacks(options);
  checkRegistries(options);
  checkMiddleware(options.middleware, of);
  checkObservers(options.observers, of);
  checkTracing(options.tracing, of);
  if (options.store !== undefined) checkStore(`${of}: store`, options.store);
}

const names = (at: string, keys: object) => Object.keys(keys).map((key) => `${at}.${key}`);

function checkModels(models: unknown): void {
  if (models === undefined) return;
  if (typeof readProperty(models, 'doStream') === 'function')
    throw new TypeError(`${of}: models must be { tier: model, … }, not a model; write { fast: model }`);
  const isUsable =
    typeof models === 'function' || (typeof models === 'object' && models !== null && Object.keys(models).length > 0);
  if (!isUsable)
    throw new TypeError(`${of}: models must be { tier: model, … } with a tier, or a function (tier) => model`);
  for (const tier of Object.keys(models)) {
    const found = readProperty(models, tier);
    if (typeof found === 'string') checkModelChoice(`${of}: models.${tier}`, found);
    else if (Array.isArray(found)) listed(found, `models.${tier}`);
  }
}

function checkFailover(failover: FailoverOptions | undefined): void {
  if (failover === undefined) return;
  checkKeys(failover, failoverKeys, { of, at: 'failover' });
  const { cooldownMs } = failover;
  if (cooldownMs !== undefined && !(typeof cooldownMs === 'number' && cooldownMs > 0))
    throw new TypeError(`${of}: failover.cooldownMs must be a number of ms above 0, not ${kindOf(cooldownMs)}`);
}

const portMethods: { readonly [Port in keyof Ports]-?: readonly string[] } = {
  checkpointer: ['begin'],
  budget: ['check', 'reserve', 'commit', 'refund'],
  audit: ['startRun'],
  critic: ['monitor'],
  palette: ['resolve'],
};

function checkPorts(ports: Ports | undefined): void {
  if (ports === undefined) return;
  checkKeys(ports, portKeys, { of, at: 'ports' });
  for (const [name, methods] of Object.entries(portMethods)) {
    const advice = name === 'checkpointer' ? ': use createCheckpointerFactory(store)' : '';
    checkMethods(`${of}: ports.${name}`, ports[name as keyof Ports], { methods, advice });
  }
  const store = readProperty(ports.checkpointer, 'store');
  if (store !== undefined) checkStore(`${of}: ports.checkpointer.store`, store);
}

function checkDefaults(given: Partial<Defaults> | undefined, defaults: Defaults): void {
  if (given === undefined) return;
  const known = Object.fromEntries(Object.keys(defaults).map((name) => [name, true] as const));
  checkKeys(given, known, { of, at: 'defaults', elsewhere: Object.keys(optionKeys), foreign: earlierNames });
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    if (name === 'model') {
      checkModelChoice(`${of}: defaults.model`, value);
    } else if (name === 'onCutAnswer') {
      checkWord(`${of}: defaults.onCutAnswer`, value, cutAnswers);
    } else if (!(typeof value === 'number' && (value > 0 || (value === 0 && mayBeZero.has(name))))) {
      const got = typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : kindOf(value);
      const least = mayBeZero.has(name) ? 'of 0 or more' : 'above 0';
      throw new TypeError(`${of}: defaults.${name} must be a number ${least}, not ${got}`);
    } else if (!name.endsWith('Ms') && !isWholeBound(value)) {
      throw new TypeError(`${of}: defaults.${name} must be a whole number, not ${value}`);
    } else if (name === 'maxDepth' && value > MAX_LEVELS) {
      throw new TypeError(`${of}: defaults.maxDepth must be ${MAX_LEVELS} or less`);
    }
  }
}

function checkPolicies(options: ExecutorOptions): void {
  const { onSaveError, onUnknownOutcome, onModelOutage, onDefinitionChange, requireDurable } = options;
  checkWord(`${of}: onUnknownOutcome`, onUnknownOutcome, ['tell', 'park']);
  checkWord(`${of}: onModelOutage`, onModelOutage, ['park', 'fail']);
  checkWord(`${of}: onBudgetExceeded`, options.onBudgetExceeded, ['park', 'fail']);
  checkWord(`${of}: onBudgetAway`, options.onBudgetAway, ['wait', 'allow', 'refuse']);
  checkWord(`${of}: onDefinitionChange`, onDefinitionChange, ['refuse', 'restart', 'continue-matching']);
  if (requireDurable !== undefined && typeof requireDurable !== 'boolean')
    throw new TypeError(`${of}: requireDurable must be true or false, not ${kindOf(requireDurable)}`);
  checkAudit(options.audit);
  checkRetention(options.retention);
  checkFleet(options);
  if (onSaveError === undefined) return;
  checkKeys(onSaveError, saveErrorKeys, { of, at: 'onSaveError' });
  checkWord(`${of}: onSaveError.then`, onSaveError.then, ['wait', 'fail']);
  const { maxUnsavedSteps: steps } = onSaveError;
  if (steps !== undefined && !(typeof steps === 'number' && steps >= 0))
    throw new TypeError(`${of}: onSaveError.maxUnsavedSteps must be a number of 0 or more, not ${kindOf(steps)}`);
}

function checkFleet({ deployment, fairBy }: ExecutorOptions): void {
  if (deployment !== undefined && !(Number.isSafeInteger(deployment) && deployment >= 0))
    throw new TypeError(`${of}: deployment must be a whole number from 0 on, not ${kindOf(deployment)}`);
  if (fairBy !== undefined && (typeof fairBy !== 'string' || fairBy === ''))
    throw new TypeError(`${of}: fairBy must be the name of a label, not ${kindOf(fairBy)}`);
}

function checkAudit(audit: unknown): void {
  const advice = 'an audit of your own is ports.audit';
  if (audit !== undefined && typeof audit !== 'boolean')
    throw new TypeError(`${of}: audit must be true or false, not ${kindOf(audit)}; ${advice}`);
}

function checkRetention(retention: RetentionOptions | undefined): void {
  if (retention === undefined) return;
  checkKeys(retention, retentionKeys, { of, at: 'retention' });
  for (const [name, value] of Object.entries(retention)) {
    const ms = retainedMs(value);
    const isTime = ms > 0 || (ms === 0 && !mustBeKept.has(name));
    // The store sorts signals by the time until which it keeps them.
    if (value === undefined || (isTime && (name !== 'signals' || Number.isFinite(ms)))) continue;
    const least = mustBeKept.has(name) ? 'above 0' : 'of 0 or more';
    const got = typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : kindOf(value);
    throw new TypeError(`${of}: retention.${name} must be ms ${least}, or a text such as '7d', not ${got}`);
  }
}

/** Returns the ms of a retention; NaN if it is no time. */
export function retainedMs(time: unknown): number {
  if (typeof time === 'string') return durationMs(time) ?? Number.NaN;
  return typeof time === 'number' ? time : Number.NaN;
}

function checkCallbacks(options: ExecutorOptions): void {
  for (const name of callbacks) {
    const given: unknown = options[name];
    if (given !== undefined && typeof given !== 'function')
      throw new TypeError(`${of}: ${name} must be a function, not ${kindOf(given)}`);
  }
  checkMethods(`${of}: logger`, options.logger, { methods: ['warn'] });
  checkMethods(`${of}: clock`, options.clock, { methods: ['now', 'monotonic', 'setTimeout', 'clearTimeout'] });
}

function checkRegistries({ tools = [], agents = [], skills = [] }: ExecutorOptions): void {
  if (!Array.isArray(tools)) throw new TypeError(`${of}: tools must be a list of tools, not ${kindOf(tools)}`);
  if (!Array.isArray(agents)) throw new TypeError(`${of}: agents must be a list of agents, not ${kindOf(agents)}`);
  for (const [i, tool] of tools.entries()) {
    if (!isTool(tool)) throw new TypeError(`${of}: tools[${i}] is not a tool made with defineTool`);
  }
  if (!Array.isArray(skills)) throw new TypeError(`${of}: skills must be a list of skills, not ${kindOf(skills)}`);
  for (const [i, skill] of skills.entries()) {
    if (typeof readProperty(skill, 'name') !== 'string')
      throw new TypeError(`${of}: skills[${i}] is not a skill made with defineSkill`);
  }
  checkDistinct('agents', agents, 'id');
  checkDistinct('skills', skills, 'name');
  checkDistinct('tools', tools, 'name');
}

/** Stored runs and other agents name an agent, a skill or a tool: of two with one name, one would never be found. */
function checkDistinct(option: 'agents' | 'skills' | 'tools', entries: readonly unknown[], key: 'id' | 'name'): void {
  const found = new Map<unknown, unknown>();
  for (const entry of entries) {
    const name = readProperty(entry, key);
    if (typeof name === 'string' && found.has(name) && found.get(name) !== entry)
      throw new TypeError(`${of}: ${option} has two with the ${key} "${name}"; each needs its own`);
    found.set(name, entry);
  }
}
