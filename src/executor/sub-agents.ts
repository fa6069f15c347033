import { createHash } from 'node:crypto';
import { type Agent, defineAgent } from '../agent/agent.ts';
import { type Skill, textsOf } from '../agent/skill.ts';
import type { Palette } from '../palette/port.ts';
import { hasCode, readProperty, toErrorData } from '../run/error-data.ts';
import { CancelledError, ShutdownError } from '../run/errors.ts';
import { isShutdown } from '../run/finalize.ts';
import type { JsonObject } from '../run/json.ts';
import type { RunResult } from '../run/result.ts';
import { MAX_RUN_ID_BYTES } from '../run/run-id.ts';
import { fillTemplate } from '../run/template.ts';
import { letGo } from '../run/thenable.ts';
import { defineTool, type Tool, type ToolContext } from '../tool/define.ts';
import { askStore } from './ownership.ts';
import type { Kernel, RunScope } from './scope.ts';

/** Agents that put agents to work may be nested so deep. */
export const MAX_DEPTH = 8;

const promptSchema = {
  type: 'object',
  properties: { prompt: { type: 'string', description: 'What to do, with everything that is needed to do it.' } },
  required: ['prompt'],
  additionalProperties: false,
} as const;

/**
 * The tools by which an agent puts others to work: each call is a run of its own, under an id that the call determines.
 * So the call may be repeated after a crash: a child that ended gives its answer again, one that was interrupted goes on.
 */
export function childTools(scope: RunScope): readonly Tool[] {
  const { subAgents = [], skills = [] } = scope.agent;
  const agents = subAgents.map((name) => find(scope, 'agent', name)).filter((agent) => agent !== null);
  const known = skills.map((name) => find(scope, 'skill', name)).filter((skill) => skill !== null);
  const tools = [...agents.map((agent) => agentTool(scope, agent)), ...known.map((skill) => skillTool(scope, skill))];
  return tools.map((tool) => Object.freeze({ ...tool, isRun: true }));
}

/** What the palette does not have, or cannot be asked for, is left out. */
function find(scope: RunScope, kind: 'agent', name: string): Agent | null;
function find(scope: RunScope, kind: 'skill', name: string): Skill | null;
function find(scope: RunScope, kind: 'agent' | 'skill', name: string): Agent | Skill | null {
  const { palette, warn } = scope.kernel.config;
  const left = (error?: unknown) => {
    const why = error === undefined ? {} : { error: toErrorData(error) };
    warn(`run: no ${kind} ${name} in the palette; the agent goes without`, { runId: scope.runId, ...why });
    return null;
  };
  if (!palette) return null;
  try {
    return (kind === 'agent' ? lookUp(palette, kind, name) : lookUp(palette, kind, name)) ?? left();
  } catch (error) {
    return left(error);
  }
}

/** Parts without which an entry cannot be put to work; a host's palette may answer anything. */
const parts = { agent: ['id', 'name', 'instructions'], skill: ['name', 'description', 'instructions'] } as const;

function lookUp(palette: Palette, kind: 'agent', name: string): Agent | undefined;
function lookUp(palette: Palette, kind: 'skill', name: string): Skill | undefined;
function lookUp(palette: Palette, kind: 'agent' | 'skill', name: string): Agent | Skill | undefined {
  const found = kind === 'agent' ? palette.resolve(kind, name) : palette.resolve(kind, name);
  letGo(found);
  const isWhole = parts[kind].every((part) => typeof readProperty(found, part) === 'string');
  const takesInput = kind === 'agent' || typeof readProperty(readProperty(found, 'input'), 'validate') === 'function';
  return found && isWhole && takesInput ? found : undefined;
}

function agentTool(scope: RunScope, agent: Agent): Tool {
  return defineTool({
    name: toolName('agent', agent.id),
    description: agent.description ?? `Puts the agent ${agent.name} to work and gives its answer.`,
    input: promptSchema,
    effect: 'idempotent',
    timeoutMs: Number.POSITIVE_INFINITY,
    execute: ({ prompt }, context) => answerOf(scope, { agent, prompt: String(prompt), context }),
  }) as Tool;
}

function skillTool(scope: RunScope, skill: Skill): Tool {
  return Object.freeze({
    name: toolName('skill', skill.name),
    description: skill.description,
    input: skill.input,
    effect: 'idempotent' as const,
    timeoutMs: Number.POSITIVE_INFINITY,
    execute: async (input: unknown, context: ToolContext) => {
      const agent = agentOf(skill, skill.modelTier ?? scope.agent.modelTier);
      const asked = context.attempt > 1 ? await askedBefore(scope, context) : undefined;
      const prompt = asked ?? fillTemplate(skill.instructions, textsOf(input as JsonObject));
      return answerOf(scope, { agent, prompt, context });
    },
  });
}

/** What an interrupted child was asked. A deploy may have changed the text of its skill; it goes on with what it began. */
async function askedBefore(scope: RunScope, { callId }: ToolContext): Promise<string | undefined> {
  const { store } = scope.kernel.config;
  if (!store) return undefined;
  try {
    const record = await askStore(scope, 'store.load', store.load(childId(scope.runId, callId)));
    return record?.meta.prompt;
  } catch {
    // Starting the child will meet the same trouble, and say so.
    return undefined;
  }
}

/** Models take names of up to 64 letters, digits, `_` and `-`. */
function toolName(kind: 'agent' | 'skill', name: string): string {
  return `${kind}__${name.replaceAll(/[^A-Za-z0-9_-]/g, '_')}`.slice(0, 64);
}

const agents = new WeakMap<Skill, Map<string | undefined, Agent>>();

/** The agent that a skill is run by: made once for each tier, because what runs share is found by it. */
function agentOf(skill: Skill, modelTier: string | undefined): Agent {
  const byTier = agents.get(skill) ?? new Map<string | undefined, Agent>();
  agents.set(skill, byTier);
  const agent =
    byTier.get(modelTier) ??
    defineAgent({
      id: `${SKILL}${skill.name}`,
      instructions: '',
      tools: skill.tools,
      ...(modelTier === undefined ? {} : { modelTier }),
      ...(skill.bare ? { maxIterations: 1 } : {}),
      ...(skill.maxIterations === undefined ? {} : { maxIterations: skill.maxIterations }),
    });
  byTier.set(modelTier, agent);
  return agent;
}

const SKILL = 'skill:';

/** The agent behind a stored child run, as the palette has it today. */
export function paletteAgent({ config: { palette } }: Kernel, agentId: string): Agent | undefined {
  if (!palette) return undefined;
  try {
    if (!agentId.startsWith(SKILL)) return lookUp(palette, 'agent', agentId);
    const skill = lookUp(palette, 'skill', agentId.slice(SKILL.length));
    return skill && agentOf(skill, skill.modelTier);
  } catch {
    return undefined;
  }
}

/** Whether a stored run was begun by a call of another run, which goes on with it. */
export function isChild({ runId, meta }: { runId: string; meta: { parentRunId: string } }): boolean {
  return meta.parentRunId !== '' && (runId.startsWith(`${meta.parentRunId}~`) || runId.startsWith('~'));
}

interface Task {
  readonly agent: Agent;
  readonly prompt: string;
  readonly context: ToolContext;
}

/** @throws what became of a child that did not end well, with what it had so far: the parent's model decides */
async function answerOf(scope: RunScope, task: Task): Promise<unknown> {
  const depth = (scope.seed.depth ?? 0) + 1;
  if (depth > MAX_DEPTH) throw new Error(`agents may be nested ${MAX_DEPTH} deep: this one is not put to work`);
  const result = await resultOf(scope, task, depth);
  if (result.status === 'ok') return result.data ?? result.output;
  const why = result.error ? `: ${result.error.code}: ${result.error.message}` : '';
  const rest = result.output === '' ? '' : `\nIts last words: ${result.output}`;
  throw new Error(`${task.agent.id} ended with status ${result.status}${why}${rest}`);
}

/**
 * A child that another process holds on to is waited for: that process is dead, or about to let it go. One that was
 * interrupted here goes on, unless the executor shuts down: then there is no answer, and the parent is left as well.
 */
async function resultOf(scope: RunScope, task: Task, depth: number): Promise<RunResult> {
  const { kernel, signal } = scope;
  for (;;) {
    const result = await runOnce(scope, task, depth);
    if (signal.aborted || !isUnfinished(result)) return result;
    if (kernel.isShutDown) await pause(scope, Number.POSITIVE_INFINITY);
    else if (result.status !== 'interrupted') await pause(scope, kernel.config.defaults.leaseMs / 3);
  }
}

function isUnfinished({ status, durable, error }: RunResult): boolean {
  const isElsewhere = error?.code === 'RUN_OWNED_ELSEWHERE' || error?.code === 'LEASE_LOST';
  return isElsewhere || (error?.code === 'ERR_SHUTDOWN' && (durable || status !== 'interrupted'));
}

/** Waits so many ms, or until the parent is stopped. */
function pause({ signal, kernel }: RunScope, ms: number): Promise<void> {
  const { clock } = kernel.config;
  return new Promise((resolve) => {
    const end = () => {
      clock.clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = ms === Number.POSITIVE_INFINITY ? undefined : clock.setTimeout(end, ms);
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
}

async function runOnce(scope: RunScope, { agent, prompt, context }: Task, depth: number): Promise<RunResult> {
  const { kernel, signal } = scope;
  const { callerId, channelId, guildId, inputs } = context.invocation;
  const runId = childId(scope.runId, context.callId);
  const invocation = { runId, prompt, callerId, channelId, guildId, inputs, parentRunId: scope.runId };
  // Nobody would read its answer.
  signal.throwIfAborted();
  const controller = new AbortController();
  const follow = () => controller.abort(forChild(signal.reason));
  signal.addEventListener('abort', follow);
  try {
    const run = await kernel.start(agent, { invocation, options: { signal: controller.signal }, depth });
    const child = kernel.scopes.get(run.actor);
    if (child) scope.children.add(child);
    void child?.progressed.promise.then(() => scope.send({ type: 'run.progressed' }));
    try {
      return await run.result;
    } finally {
      if (child) scope.children.delete(child);
    }
  } finally {
    signal.removeEventListener('abort', follow);
  }
}

/**
 * What another process goes on with, it has to find: then the children are left as their parent is. Otherwise they are
 * cancelled, whatever ended the parent: a child was not killed, and had no deadline of its own.
 */
function forChild(reason: unknown): unknown {
  if (isShutdown(reason) || hasCode(reason, 'LEASE_LOST'))
    return new ShutdownError('the parent run is left for another process', { cause: reason });
  return new CancelledError(`the parent run was stopped: ${toErrorData(reason).message}`);
}

/** The id of the run that a call begins; whoever repeats the call finds the same run. */
export function childId(parentRunId: string, callId: string): string {
  const id = `${parentRunId}~${callId}`;
  if (Buffer.byteLength(id) <= MAX_RUN_ID_BYTES && id.isWellFormed()) return id;
  return `~${createHash('sha256').update(id).digest('base64url')}`;
}
