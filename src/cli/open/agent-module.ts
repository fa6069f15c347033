import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  type Agent,
  type CheckpointStore,
  type Codec,
  type ExecutorOptions,
  type LimitRule,
  type Models,
  memoryStore,
  type Ports,
  rateLimits,
  type Tool,
  type Workflow,
} from '../../index.ts';
import { systemClock } from '../../values/clock.ts';
import { withDeadline } from '../../values/deadline.ts';
import { readProperty, toErrorData } from '../../values/error-data.ts';
import { isThenable, letGo } from '../../values/thenable.ts';
import { agentOfWorkflow } from '../../workflow/workflow.ts';
import { Failure, lineOf } from '../ui/failure.ts';
import type { Output } from '../ui/output.ts';
import { codecOf } from './codec-export.ts';
import { modelFromEnvironment } from './model-from-environment.ts';

/** The exports of an agent module. */
export interface AgentModule {
  /** Absolute. */
  readonly path: string;
  /** Of a workflow: the definition of its runs. */
  readonly agent: Agent;
  /** Undefined: it exports an agent. */
  readonly workflow: Workflow | undefined;
  readonly models: Models | undefined;
  readonly tools: readonly Tool[];
  /** The prompt if the user gives none. */
  readonly prompt: string | undefined;
  /** The input of the workflow if the user gives none. */
  readonly input: unknown;
  readonly options: ModuleOptions;
  /** What a worker starts by the clock. */
  readonly schedules: ExecutorOptions['schedules'];
  /** The limits on its model requests. */
  readonly limits: readonly LimitRule[] | undefined;
  /** The codec of its store. */
  readonly codec: Codec | undefined;
  /** Closes what it has open, at the end of a command that works on runs. */
  readonly close: (() => unknown) | undefined;
}

/** The executor options that an agent module may export; the command sets the others. */
interface ModuleOptions
  extends Pick<ExecutorOptions, 'audit' | 'compactor' | 'contextTokens' | 'migrate' | 'retention' | 'tracing'> {
  readonly ports: Omit<Ports, 'checkpointer'>;
}

/**
 * Imports the agent module that a command names, and checks its exports: agent or workflow, models, tools, codec.
 * @param options.asksModels `false` for a command that runs nothing: the module need not have a model
 * @throws {Failure} that says what is wrong with it
 */
export async function loadAgentModule(
  file: string,
  { asksModels = true }: { readonly asksModels?: boolean } = {},
): Promise<AgentModule> {
  const path = resolve(file);
  checkFile(path);
  refuseProgram(path);
  const exported = await importModule(path);
  const workflow = exported.default as Workflow;
  const definition = agentOfWorkflow(workflow);
  const named = definition ?? agentOf(exported.default, path);
  const { prompt, input, tools = [] } = exported;
  if (prompt !== undefined && typeof prompt !== 'string') {
    throw new Failure(`the export \`prompt\` of ${path} must be a string, not ${typeof prompt}`);
  }
  if (!Array.isArray(tools)) throw new Failure(`the export \`tools\` of ${path} must be an array of tools`);
  const { close, schedules } = exported;
  if (close !== undefined && typeof close !== 'function')
    throw new Failure(`the export \`close\` of ${path} must be a function, not ${typeof close}`);
  if (schedules !== undefined && !Array.isArray(schedules))
    throw new Failure(`the export \`schedules\` of ${path} must be an array of schedules`);
  const limits = limitsOf(exported.limits, path);
  const options = optionsOf(exported, path);
  const codec = codecOf(exported.codec, path);
  const isModelNeeded = asksModels && !definition;
  const asked = asksModels
    ? await modelsOf(exported, named, { path, isModelNeeded })
    : { agent: named, models: undefined };
  return {
    path,
    ...asked,
    workflow: definition && workflow,
    tools,
    prompt,
    input,
    options,
    schedules,
    limits,
    codec,
    close: close as AgentModule['close'],
  };
}

/** Returns the option of an executor that knows the agent, or the workflow, of a module. */
export function knownBy({ agent, workflow }: AgentModule): Pick<ExecutorOptions, 'agents' | 'workflows'> {
  return workflow ? { workflows: [workflow] } : { agents: [agent] };
}

/** How long a module may take to close, ms. */
const CLOSE_MS = 5_000;

/** Calls the module's `close`: what an SDK has not sent yet must go out before the exit. Never rejects. */
export async function closeModule({ close }: AgentModule, output: Output): Promise<void> {
  if (!close) return;
  try {
    const closed = Promise.resolve(close());
    await withDeadline(closed, { ms: CLOSE_MS, clock: systemClock, what: 'close() of the agent module' });
  } catch (error) {
    output.say(`pawl: warning: ${lineOf(error)}`);
  }
}

/** Returns whether the agent of a module may start runs of another agent: its palette has it. */
export function putsToWork({ options: { ports } }: AgentModule, agentId: string): boolean {
  const isSkill = agentId.startsWith('skill:');
  try {
    const entry = isSkill
      ? ports.palette?.resolve('skill', agentId.slice('skill:'.length))
      : ports.palette?.resolve('agent', agentId);
    letGo(entry);
    return Boolean(entry) && !isThenable(entry);
  } catch {
    return false;
  }
}

function checkFile(path: string, what = 'agent module'): void {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) throw new Failure(`there is no ${what} ${path}; check the path`);
  if (stat.isDirectory()) throw new Failure(`${path} is a folder; name the ${what} in it`);
}

/**
 * Importing a module runs its top level: a program that was named by mistake would start its runs. A file that does not contain
 * these words has no default export, and is not imported. @throws {Failure}
 */
function refuseProgram(path: string): void {
  const source = readable(path);
  if (source === undefined || source.includes('default') || source.includes('exports')) return;
  throw new Failure(
    `the module ${path} has no default export, and was not imported: that would run it; name the file that says \`export default defineAgent({ … })\`, or defineWorkflow`,
  );
}

/** Undefined if the file cannot be read: the import then reports why. */
function readable(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/**
 * Imports a JavaScript or TypeScript module of the user by its path.
 * @param what its kind, for errors
 * @throws {Failure} that says what is wrong with it
 */
export async function loadModule(path: string, what: string): Promise<Record<string, unknown>> {
  checkFile(path, what);
  return importModule(path, what);
}

async function importModule(path: string, what = 'agent module'): Promise<Record<string, unknown>> {
  const unfinished = () => {
    process.exitCode = 2;
    process.stderr.write(`pawl: the ${what} ${path} never finishes loading: it awaits a promise that never settles\n`);
  };
  // Node exits when there is nothing left to do, even during an `await`.
  process.once('exit', unfinished);
  try {
    return await import(pathToFileURL(path).href);
  } catch (error) {
    throw new Failure(`the ${what} ${path} could not be loaded: ${reasonOf(error)}`, { cause: error });
  } finally {
    process.off('exit', unfinished);
  }
}

function reasonOf(error: unknown): string {
  const { code, message } = toErrorData(error);
  if (code === 'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING') {
    return 'Node does not load TypeScript under node_modules; compile it to JavaScript';
  }
  // `npm init -y` writes "type": "commonjs": Node then reads a .ts file with imports as CommonJS.
  if (/import statement outside a module|Unexpected token 'export'/.test(message)) {
    return 'its package.json says "type": "commonjs"; set "type": "module" there, or name the file .mts';
  }
  const [line = ''] = message.split('\n');
  const place = /^(?:file:\/\/)?\/?\S+:\d+$/m.exec(String(readProperty(error, 'stack')).split('\n')[0] ?? '')?.[0];
  const where = place === undefined || line.includes(place) ? '' : ` (${place})`;
  const todo = code === 'ERR_MODULE_NOT_FOUND' ? '; install it, or check the import' : '';
  return `${line}${where}${todo}`;
}

function agentOf(exported: unknown, path: string): Agent {
  const isAgent = ['id', 'name', 'version', 'instructions'].every(
    (key) => typeof readProperty(exported, key) === 'string',
  );
  if (isAgent) return exported as Agent;
  const found = exported === undefined ? 'has no default export' : 'has a default export that is not an agent';
  throw new Failure(
    `the module ${path} ${found}; write \`export default defineAgent({ … })\`, or defineWorkflow, in it`,
  );
}

/** A model of the environment answers for the models of the module, and for that of its agent. */
async function modelsOf(
  { models }: Record<string, unknown>,
  agent: Agent,
  { path, isModelNeeded }: { readonly path: string; readonly isModelNeeded: boolean },
): Promise<Pick<AgentModule, 'agent' | 'models'>> {
  const fromEnvironment = await modelFromEnvironment(path);
  const { model, ...rest } = agent;
  const hasOwn = model !== undefined && typeof model !== 'string';
  if (fromEnvironment) return { agent: hasOwn ? rest : agent, models: () => fromEnvironment };
  if (typeof models === 'function' || (typeof models === 'object' && models !== null))
    return { agent, models: models as Models };
  // The agents of a workflow may have models of their own, and it may have no agents.
  if (hasOwn || !isModelNeeded) return { agent, models: undefined };
  throw new Failure(
    `no model: the agent of ${path} has no \`model\`; write defineAgent({ model: … }), export models: { fast: … }, or set PAWL_MODEL=provider/model (for example anthropic/claude-sonnet-4-5)`,
  );
}

/** Returns the rules that a module exports, checked. */
function limitsOf(rules: unknown, path: string): readonly LimitRule[] | undefined {
  if (rules === undefined) return undefined;
  try {
    rateLimits({ store: memoryStore(), rules: rules as readonly LimitRule[] });
  } catch (error) {
    const { message } = toErrorData(error);
    throw new Failure(`the export \`limits\` of ${path} must be a list of rules: ${message}`, { cause: error });
  }
  return rules as readonly LimitRule[];
}

/** Returns the limits of a module, with their turns in this store. */
export function limitsIn({ limits }: AgentModule, store: CheckpointStore): Pick<ExecutorOptions, 'limits'> {
  return limits ? { limits: rateLimits({ store, rules: limits }) } : {};
}

/** The methods of each port. */
const portMethods: Readonly<Record<keyof ModuleOptions['ports'], readonly string[]>> = {
  audit: ['startRun'],
  budget: ['check', 'reserve', 'commit', 'refund'],
  critic: ['monitor'],
  palette: ['resolve'],
};

function optionsOf(
  { ports = {}, audit, compactor, contextTokens, history, migrate, retention, tracing }: Record<string, unknown>,
  path: string,
): ModuleOptions {
  const mustBe = (name: string, what: string) => new Failure(`the export \`${name}\` of ${path} must be ${what}`);
  if (!isRecord(ports)) throw mustBe('ports', `an object with some of: ${Object.keys(portMethods).join(', ')}`);
  if (compactor !== undefined && typeof compactor !== 'function') {
    throw mustBe('compactor', 'a function (messages, request) => messages, for example createCompactor()');
  }
  if (contextTokens !== undefined && typeof contextTokens !== 'function' && !isRecord(contextTokens)) {
    throw mustBe('contextTokens', 'an object { tier: tokens }, or a function (tier) => tokens');
  }
  if (history !== undefined) throw mustBe('history', "retention: export const retention = { records: '7d' }");
  if (audit !== undefined && typeof audit !== 'boolean') throw mustBe('audit', 'true or false');
  if (retention !== undefined && !isRecord(retention)) throw mustBe('retention', "an object { records: '7d' }");
  if (migrate !== undefined && typeof migrate !== 'function') {
    throw mustBe('migrate', 'a function (record) => record');
  }
  checkTracing(tracing, path);
  const checked = Object.keys(ports).map((name) => [name, portOf(ports, name, path)] as const);
  const options: object = {
    ports: Object.fromEntries(checked),
    ...(audit === undefined ? {} : { audit }),
    ...(compactor === undefined ? {} : { compactor }),
    ...(contextTokens === undefined ? {} : { contextTokens }),
    ...(migrate === undefined ? {} : { migrate }),
    ...(retention === undefined ? {} : { retention }),
    ...(tracing === undefined ? {} : { tracing }),
  };
  return options as ModuleOptions;
}

/** Checks the export `tracing`. @throws {Failure} for one that is no tracing */
function checkTracing(tracing: unknown, path: string): void {
  const isTracing = ['begin', 'enter', 'event'].every((name) => typeof readProperty(tracing, name) === 'function');
  if (tracing === undefined || isTracing) return;
  throw new Failure(`the export \`tracing\` of ${path} must be what openTelemetry() of pawl/otel returns`);
}

function portOf(ports: object, name: string, path: string): unknown {
  const where = `the export \`ports\` of ${path}`;
  if (name === 'checkpointer') {
    throw new Failure(`${where} has a checkpointer, but \`pawl\` records the run itself; name its store with --store`);
  }
  const methods = Object.hasOwn(portMethods, name) ? portMethods[name as keyof typeof portMethods] : undefined;
  if (!methods) {
    const known = Object.keys(portMethods).join(', ');
    throw new Failure(`${where} has ${JSON.stringify(name)}, which is not a port; the ports are: ${known}`);
  }
  const port = readProperty(ports, name);
  if (methods.every((method) => typeof readProperty(port, method) === 'function')) return port;
  throw new Failure(`${where} has an invalid ${name}; it needs the methods ${methods.join(', ')}`);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
