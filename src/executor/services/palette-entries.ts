import { type Agent, defineAgent } from '../../agent/agent.ts';
import type { Skill } from '../../agent/skill.ts';
import type { ModelChoice } from '../../model/port.ts';
import type { Palette } from '../../palette/port.ts';
import { readProperty } from '../../values/error-data.ts';
import { isThenable, letGo } from '../../values/thenable.ts';

/** The fields that an entry must have; a host's palette may return any value. */
const parts = { agent: ['id', 'name', 'instructions'], skill: ['name', 'description', 'instructions'] } as const;

/** The prefix of the id of an agent that runs a skill. */
export const SKILL = 'skill:';

/**
 * Looks up agents and skills in a palette, and reads each entry once. Shared objects (charts, tools) are found by
 * them.
 */
export class PaletteEntries {
  readonly #palette: Palette;
  readonly #users: readonly ReadonlyMap<string, Agent>[];
  /** By the object that the palette returned. */
  readonly #copies: WeakMap<object, object> = new WeakMap();
  /** The agents that run skills, for each model or tier. */
  readonly #agents: WeakMap<Skill, Map<ModelChoice | undefined, Agent>> = new WeakMap();

  /** @param users the agents that this executor has */
  constructor(palette: Palette, users: readonly ReadonlyMap<string, Agent>[]) {
    this.#palette = palette;
    this.#users = users;
  }

  /**
   * The agent of a name in the host's palette.
   * @returns undefined for an agent that the palette does not have, or that lacks a required field @throws the palette's error
   */
  agent(name: string): Agent | undefined {
    return this.#entry('agent', this.#palette.resolve('agent', name));
  }

  /** As `agent`. */
  skill(name: string): Skill | undefined {
    const skill = this.#entry('skill', this.#palette.resolve('skill', name));
    return typeof readProperty(readProperty(skill, 'input'), 'validate') === 'function' ? skill : undefined;
  }

  /** The agent of a stored child run, as the palette has it now; undefined if it has none, or throws. */
  agentById(agentId: string): Agent | undefined {
    try {
      if (!agentId.startsWith(SKILL)) return this.agent(agentId);
      const skill = this.skill(agentId.slice(SKILL.length));
      return skill && this.agentOf(skill, skill.model ?? this.#lentTo(skill));
    } catch {
      return undefined;
    }
  }

  /** The agent that runs a skill. */
  agentOf(skill: Skill, model: ModelChoice | undefined): Agent {
    const byModel = this.#agents.get(skill) ?? new Map<ModelChoice | undefined, Agent>();
    this.#agents.set(skill, byModel);
    const agent = byModel.get(model) ?? defineAgent(definitionOf(skill, model));
    byModel.set(model, agent);
    return agent;
  }

  /** The run that called the skill is not asked when the skill continues alone: the first agent with it gives its model. */
  #lentTo({ name }: Skill): ModelChoice | undefined {
    const users = this.#users.flatMap((agents) => [...agents.values()]);
    return users.find(({ skills, model }) => model && skills?.includes(name))?.model;
  }

  /** Reads the fields here, where a getter that throws does no harm. */
  #entry<Entry extends object>(kind: keyof typeof parts, found: Entry | null | undefined): Entry | undefined {
    letGo(found);
    if (!found || isThenable(found)) return undefined;
    const copy = this.#copies.get(found) ?? Object.freeze({ ...found });
    this.#copies.set(found, copy);
    return parts[kind].every((part) => typeof readProperty(copy, part) === 'string') ? (copy as Entry) : undefined;
  }
}

/** The palette of an executor that has none of its host: its own agents and skills. */
export function ownPalette({ agents, skills }: Registered): Palette {
  const resolve = (kind: 'agent' | 'skill', name: string) =>
    (kind === 'agent' ? agents.get(name) : skills.get(name)) ?? null;
  return { resolve: resolve as Palette['resolve'] };
}

interface Registered {
  readonly agents: ReadonlyMap<string, Agent>;
  readonly skills: ReadonlyMap<string, Skill>;
}

function definitionOf(skill: Skill, model: ModelChoice | undefined) {
  return {
    id: `${SKILL}${skill.name}`,
    instructions: '',
    tools: skill.tools,
    ...(model === undefined ? {} : { model }),
    ...(skill.settings === undefined ? {} : { settings: skill.settings }),
    ...(skill.bare ? { maxSteps: 1 } : {}),
    ...(skill.maxSteps === undefined ? {} : { maxSteps: skill.maxSteps }),
  };
}
