import { type Agent, defineAgent } from '../../agent/agent.ts';
import type { Skill } from '../../agent/skill.ts';
import type { Palette } from '../../palette/port.ts';
import { readProperty } from '../../values/error-data.ts';
import { isThenable, letGo } from '../../values/thenable.ts';

/** Parts without which an entry cannot be put to work; a host's palette may answer anything. */
const parts = { agent: ['id', 'name', 'instructions'], skill: ['name', 'description', 'instructions'] } as const;

/** Begins the id of the agent that a skill is run by. */
const SKILL = 'skill:';

/** What a host's palette gives, read once. What runs share (charts, tools) is found by these objects. */
export class PaletteEntries {
  readonly #palette: Palette | undefined;
  /** By the object that the palette gave. */
  readonly #copies: WeakMap<object, object> = new WeakMap();
  /** The agents that skills are run by, for each tier. */
  readonly #agents: WeakMap<Skill, Map<string | undefined, Agent>> = new WeakMap();

  constructor(palette: Palette | undefined) {
    this.#palette = palette;
  }

  get isThere(): boolean {
    return this.#palette !== undefined;
  }

  /** @returns undefined for an agent that the palette does not have, or whose parts are not there @throws what the palette throws */
  agent(name: string): Agent | undefined {
    return this.#entry('agent', this.#palette?.resolve('agent', name));
  }

  /** As `agent`. */
  skill(name: string): Skill | undefined {
    const skill = this.#entry('skill', this.#palette?.resolve('skill', name));
    return typeof readProperty(readProperty(skill, 'input'), 'validate') === 'function' ? skill : undefined;
  }

  /** The agent behind a stored child run, as the palette has it today; undefined where it has none, or throws. */
  agentById(agentId: string): Agent | undefined {
    try {
      if (!agentId.startsWith(SKILL)) return this.agent(agentId);
      const skill = this.skill(agentId.slice(SKILL.length));
      return skill && this.agentOf(skill, skill.modelTier);
    } catch {
      return undefined;
    }
  }

  /** The agent that a skill is run by. */
  agentOf(skill: Skill, modelTier: string | undefined): Agent {
    const byTier = this.#agents.get(skill) ?? new Map<string | undefined, Agent>();
    this.#agents.set(skill, byTier);
    const agent = byTier.get(modelTier) ?? defineAgent(definitionOf(skill, modelTier));
    byTier.set(modelTier, agent);
    return agent;
  }

  /** Read here, where a getter that throws is no harm. */
  #entry<Entry extends object>(kind: keyof typeof parts, found: Entry | null | undefined): Entry | undefined {
    letGo(found);
    if (!found || isThenable(found)) return undefined;
    const copy = this.#copies.get(found) ?? Object.freeze({ ...found });
    this.#copies.set(found, copy);
    return parts[kind].every((part) => typeof readProperty(copy, part) === 'string') ? (copy as Entry) : undefined;
  }
}

function definitionOf(skill: Skill, modelTier: string | undefined) {
  return {
    id: `${SKILL}${skill.name}`,
    instructions: '',
    tools: skill.tools,
    ...(modelTier === undefined ? {} : { modelTier }),
    ...(skill.settings === undefined ? {} : { settings: skill.settings }),
    ...(skill.bare ? { maxIterations: 1 } : {}),
    ...(skill.maxIterations === undefined ? {} : { maxIterations: skill.maxIterations }),
  };
}
