import type { Agent } from '../agent/agent.ts';
import type { Skill } from '../agent/skill.ts';

/** Finds the agents and skills that others name as theirs. */
export interface Palette {
  /** @returns null = there is none of this name: the entry is left out of the toolbox */
  resolve(kind: 'agent', name: string): Agent | null;
  resolve(kind: 'skill', name: string): Skill | null;
}
