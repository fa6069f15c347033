import type { Agent } from '../agent/agent.ts';
import type { Skill } from '../agent/skill.ts';

/** Finds the agents and skills that other agents refer to by name. */
export interface Palette {
  /** @returns null if nothing has this name: the toolbox then leaves the entry out */
  resolve(kind: 'agent', name: string): Agent | null;
  resolve(kind: 'skill', name: string): Skill | null;
}
