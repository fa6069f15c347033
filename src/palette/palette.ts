import type { Agent } from '../agent/agent.ts';
import type { Skill } from '../agent/skill.ts';
import { checkKeys } from '../values/known-options.ts';
import type { Palette } from './port.ts';

/**
 * A palette of agents (by id) and skills (by name).
 * @throws {TypeError} if two agents have the same id, or two skills the same name
 * @example createExecutor({ models, ports: { palette: createPalette({ agents: [reviewer], skills: [summarise] }) } })
 */
export function createPalette(entries: {
  readonly agents?: readonly Agent[];
  readonly skills?: readonly Skill[];
}): Palette {
  checkKeys(entries, { agents: true, skills: true }, { of: 'createPalette' });
  const agents = byName('agent', entries.agents ?? [], ({ id }) => id);
  const skills = byName('skill', entries.skills ?? [], ({ name }) => name);
  const resolve = (kind: 'agent' | 'skill', name: string) =>
    (kind === 'agent' ? agents.get(name) : skills.get(name)) ?? null;
  return { resolve: resolve as Palette['resolve'] };
}

function byName<T>(kind: string, entries: readonly T[], nameOf: (entry: T) => string): ReadonlyMap<string, T> {
  const named = new Map<string, T>();
  for (const entry of entries) {
    const name = nameOf(entry);
    if (named.has(name)) throw new TypeError(`the palette has two of the ${kind} "${name}"`);
    named.set(name, entry);
  }
  return named;
}
