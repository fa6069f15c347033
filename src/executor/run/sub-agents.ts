import { type Agent, defineAgent } from '../../agent/agent.ts';
import { childToolName } from '../../agent/names.ts';
import { type Skill, textsOf } from '../../agent/skill.ts';
import type { Palette } from '../../palette/port.ts';
import { defineTool, type Tool, type ToolContext } from '../../tool/define.ts';
import { withDeadline } from '../../values/deadline.ts';
import { readProperty, toErrorData } from '../../values/error-data.ts';
import type { JsonObject } from '../../values/json.ts';
import { fillTemplate } from '../../values/template.ts';
import { isThenable, letGo } from '../../values/thenable.ts';
import type { ActiveRun, ExecutorServices } from './active-run.ts';
import { answerOf } from './child-run.ts';

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
export function childTools(run: ActiveRun): readonly Tool[] {
  const { subAgents = [], skills = [] } = run.agent;
  const agents = subAgents.map((name) => find(run, 'agent', name)).filter((agent) => agent !== null);
  const known = skills.map((name) => find(run, 'skill', name)).filter((skill) => skill !== null);
  const tools = [...agents.map((agent) => agentTool(run, agent)), ...known.map((skill) => skillTool(run, skill))];
  return tools.map((tool) => Object.freeze({ ...tool, isRun: true }));
}

/** What the palette does not have, or cannot be asked for, is left out. */
function find(run: ActiveRun, kind: 'agent', name: string): Agent | null;
function find(run: ActiveRun, kind: 'skill', name: string): Skill | null;
function find(run: ActiveRun, kind: 'agent' | 'skill', name: string): Agent | Skill | null {
  const { palette, warn } = run.services.config;
  const left = (error?: unknown) => {
    const why = error === undefined ? {} : { error: toErrorData(error) };
    warn(`run: no ${kind} ${name} in the palette; the agent goes without`, { runId: run.runId, ...why });
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
  const entry = asData(found);
  const isWhole = parts[kind].every((part) => typeof readProperty(entry, part) === 'string');
  const takesInput = kind === 'agent' || typeof readProperty(readProperty(entry, 'input'), 'validate') === 'function';
  return isWhole && takesInput ? entry : undefined;
}

const copies = new WeakMap<object, object>();

/** Read once, here, where a getter that throws is no harm; what runs share is found by the copy. */
function asData<Entry extends object>(found: Entry | null | undefined): Entry | undefined {
  if (!found || isThenable(found)) return undefined;
  const copy = copies.get(found) ?? Object.freeze({ ...found });
  copies.set(found, copy);
  return copy as Entry;
}

function agentTool(run: ActiveRun, agent: Agent): Tool {
  return defineTool({
    name: childToolName('agent', agent.id),
    description: agent.description ?? `Puts the agent ${agent.name} to work and gives its answer.`,
    input: promptSchema,
    effect: 'idempotent',
    timeoutMs: Number.POSITIVE_INFINITY,
    execute: ({ prompt }, context) => answerOf(run, { agent, prompt: String(prompt), context }),
  }) as Tool;
}

function skillTool(run: ActiveRun, skill: Skill): Tool {
  return Object.freeze({
    name: childToolName('skill', skill.name),
    description: skill.description,
    input: { ...skill.input, validate: (input: unknown) => checked(run, skill, input) },
    effect: 'idempotent' as const,
    timeoutMs: Number.POSITIVE_INFINITY,
    execute: async (input: unknown, context: ToolContext) => {
      const agent = agentOf(skill, skill.modelTier ?? run.agent.modelTier);
      const prompt = fillTemplate(skill.instructions, textsOf(input as JsonObject));
      return answerOf(run, { agent, prompt, context });
    },
  });
}

/** A call of a skill takes as long as it takes; a look at its input must not. */
function checked({ services: { config } }: ActiveRun, { name, input: { validate } }: Skill, input: unknown) {
  const validation = validate(input);
  const limit = { ms: config.defaults.portMs, clock: config.clock, what: `the input schema of skill ${name}` };
  return isThenable(validation) ? withDeadline(validation, limit) : validation;
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
      ...(skill.settings === undefined ? {} : { settings: skill.settings }),
      ...(skill.bare ? { maxIterations: 1 } : {}),
      ...(skill.maxIterations === undefined ? {} : { maxIterations: skill.maxIterations }),
    });
  byTier.set(modelTier, agent);
  return agent;
}

const SKILL = 'skill:';

/** The agent behind a stored child run, as the palette has it today. */
export function paletteAgent({ config: { palette } }: ExecutorServices, agentId: string): Agent | undefined {
  if (!palette) return undefined;
  try {
    if (!agentId.startsWith(SKILL)) return lookUp(palette, 'agent', agentId);
    const skill = lookUp(palette, 'skill', agentId.slice(SKILL.length));
    return skill && agentOf(skill, skill.modelTier);
  } catch {
    return undefined;
  }
}
