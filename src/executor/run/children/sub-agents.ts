import type { Agent } from '../../../agent/agent.ts';
import { childToolName } from '../../../agent/names.ts';
import { type Skill, textsOfSkill } from '../../../agent/skill.ts';
import { defineTool, type Tool, type ToolContext } from '../../../tool/define-tool.ts';
import { readSchema } from '../../../tool/schema.ts';
import { withDeadline } from '../../../values/deadline.ts';
import { toErrorData } from '../../../values/error-data.ts';
import type { JsonObject } from '../../../values/json.ts';
import { fillTemplate } from '../../../values/texts/template.ts';
import { isThenable } from '../../../values/thenable.ts';
import { isWorkflow, programOf } from '../../../workflow/program.ts';
import type { ActiveRun } from '../active-run.ts';
import { answerOfChild } from './child-run.ts';

const promptSchema = {
  type: 'object',
  properties: { prompt: { type: 'string', description: 'The task, with everything that is needed to do it.' } },
  required: ['prompt'],
  additionalProperties: false,
} as const;

/**
 * Makes the tools by which an agent calls other agents and skills: each call is a run of its own, under an id that the call
 * determines. So the call may be repeated after a crash: a child that ended returns its answer again, an interrupted one
 * continues.
 */
export function childTools(run: ActiveRun): readonly Tool[] {
  const { subAgents = [], skills = [] } = run.agent;
  const named = subAgents.map((name) => find(run, 'agent', name)).filter((agent) => agent !== null);
  const agents = programOf(run.agent)?.agents ?? named;
  const known = skills.map((name) => find(run, 'skill', name)).filter((skill) => skill !== null);
  const tools = [...agents.map((agent) => agentTool(run, agent)), ...known.map((skill) => skillTool(run, skill))];
  return tools.map((tool) => Object.freeze({ ...tool, isRun: true }));
}

/** Entries that the palette does not have, or fails to return, are left out. */
function find(run: ActiveRun, kind: 'agent', name: string): Agent | null;
function find(run: ActiveRun, kind: 'skill', name: string): Skill | null;
function find(run: ActiveRun, kind: 'agent' | 'skill', name: string): Agent | Skill | null {
  const { palette } = run.services;
  const { warn } = run.services.config;
  const left = (error?: unknown) => {
    const why = error === undefined ? {} : { error: toErrorData(error) };
    warn('palette.entry.missing', { runId: run.runId, kind, name, ...why });
    return null;
  };
  try {
    return (kind === 'agent' ? palette.agent(name) : palette.skill(name)) ?? left();
  } catch (error) {
    return left(error);
  }
}

/** A workflow that another one calls: its input is checked by its machine. */
function workflowTool(run: ActiveRun, agent: Agent): Tool {
  return Object.freeze({
    name: childToolName('agent', agent.id),
    description: '',
    input: readSchema({}, agent.id),
    effect: 'idempotent' as const,
    timeoutMs: Number.POSITIVE_INFINITY,
    execute: (input: unknown, context: ToolContext) => answerOfChild(run, { agent, prompt: '', input, context }),
  });
}

function agentTool(run: ActiveRun, agent: Agent): Tool {
  if (isWorkflow(agent)) return workflowTool(run, agent);
  return defineTool({
    name: childToolName('agent', agent.id),
    description: agent.description ?? `Gives the agent ${agent.name} a task and returns its answer.`,
    input: promptSchema,
    effect: 'idempotent',
    timeoutMs: Number.POSITIVE_INFINITY,
    execute: ({ prompt }, context) => answerOfChild(run, { agent, prompt: String(prompt), context }),
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
      const agent = run.services.palette.agentOf(skill, skill.model ?? run.agent.model);
      const prompt = fillTemplate(skill.instructions, textsOfSkill(input as JsonObject), { unknown: 'empty' });
      return answerOfChild(run, { agent, prompt, context });
    },
  });
}

/** A call of a skill has no time limit; the check of its input must have one. */
function checked({ services: { config } }: ActiveRun, { name, input: { validate } }: Skill, input: unknown) {
  const validation = validate(input);
  const limit = { ms: config.defaults.portMs, clock: config.clock, what: `the input schema of skill ${name}` };
  return isThenable(validation) ? withDeadline(validation, limit) : validation;
}
