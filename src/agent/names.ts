import type { ModelSettings } from '../run/model-settings.ts';
import { nameOfEntry, type ToolEntries } from '../tool/toolbox.ts';
import { nearest } from '../values/known-options.ts';
import { placeholdersOf } from '../values/texts/template.ts';
import type { Phase } from './phase.ts';

/** How the names of the tools begin whose calls are runs of their own. */
export const childToolPrefixes: readonly string[] = ['agent__', 'skill__'];

/**
 * Returns the name of the tool by which an agent calls another agent, or a skill. Models accept up to 64 letters, digits,
 * `_` and `-`.
 */
export function childToolName(kind: 'agent' | 'skill', name: string): string {
  return `${kind}__${name.replaceAll(/[^A-Za-z0-9_-]/g, '_')}`.slice(0, 64);
}

interface Named {
  readonly id: string;
  readonly tools?: ToolEntries;
  readonly subAgents?: readonly string[];
  readonly skills?: readonly string[];
  readonly phases?: readonly Phase[];
  readonly settings?: ModelSettings;
}

/**
 * Checks that the tools and placeholders that an agent, its settings and its phases name are known, and that no tool is
 * named twice. The start of a run checks that the registry and the palette have them.
 * @throws {TypeError} that names the phase, the name, and the most similar known one
 */
export function checkNames(agent: Named): void {
  const of = `agent ${agent.id}`;
  const tools = toolNamesOf(agent);
  const twice = tools.find((name, i) => tools.indexOf(name) !== i);
  if (twice !== undefined) throw new TypeError(`${of}: there are two tools named "${twice}"`);
  checkChoice(`${of}: settings`, agent.settings, { names: tools, owner: 'agent' });
  for (const [i, phase] of (agent.phases ?? []).entries()) {
    const where = `${of}: phases[${i}] (${phase.name})`;
    const phases = agent.phases ?? [];
    const later = phases.map(({ name }) => name);
    checkTemplate(where, phase.instructions, { names: ['Query', ...outputsBefore(phases, i)], later });
    for (const name of phase.tools ?? []) checkTool(`${where}: tools`, name, { names: tools, owner: 'agent' });
    const own = phase.bare ? [] : (phase.tools ?? tools);
    checkChoice(`${where}: settings`, phase.settings, { names: own, owner: 'phase' });
  }
}

/** Names of the phases before this one, and its own if phases share it: the first of them finds no output yet. */
function outputsBefore(phases: readonly Phase[], index: number): readonly string[] {
  const earlier = phases.slice(0, index).map(({ name }) => name);
  const later = phases.slice(index + 1).map(({ name }) => name);
  const own = phases[index]?.name ?? '';
  return later.includes(own) ? [...earlier, own] : earlier;
}

function toolNamesOf({ tools = [], subAgents = [], skills = [] }: Named): readonly string[] {
  const own = Array.isArray(tools) ? tools.map(nameOfEntry) : Object.keys(tools);
  const agents = subAgents.map((name) => childToolName('agent', name));
  return [...own, ...agents, ...skills.map((name) => childToolName('skill', name))];
}

const word = /^\s*\.?([A-Za-z_][A-Za-z0-9_]*)\s*$/;

interface TemplateNames {
  readonly names: readonly string[];
  /** Names of phases that may have no output yet. */
  readonly later: readonly string[];
}

/**
 * Refuses what looks like the name of a phase and is none: the model would read it as it stands there. Other braces are text, as the
 * instructions may hold code or templates of their own.
 */
function checkTemplate(where: string, template: string, { names, later }: TemplateNames): void {
  for (const { text, name } of placeholdersOf(template)) {
    if (name !== undefined && names.includes(name)) continue;
    const meant = word.exec(text)?.[1];
    if (meant === undefined) continue;
    const near = nearest(meant, names);
    if (near === undefined && !later.includes(meant)) continue;
    const known = [...new Set(names.map((each) => `{{.${each}}}`))].join(', ');
    const hint = near === undefined ? `known: ${known}` : `did you mean {{.${near}}}?`;
    throw new TypeError(
      `${where}: {{${text}}} is neither Query nor an earlier phase; ${hint} (as a text, it is written {{{{${text}}})`,
    );
  }
}

interface ToolNames {
  readonly names: readonly string[];
  /** The owner of the names. */
  readonly owner: 'agent' | 'phase';
}

function checkChoice(where: string, settings: ModelSettings | undefined, tools: ToolNames): void {
  const choice = settings?.toolChoice;
  if (typeof choice === 'object') checkTool(`${where}.toolChoice`, choice.toolName, tools);
}

function checkTool(where: string, name: string, { names, owner }: ToolNames): void {
  if (names.includes(name)) return;
  const near = nearest(name, names);
  const has = names.length === 0 ? 'it has none' : `it has ${names.join(', ')}`;
  const hint = near === undefined ? has : `did you mean ${near}?`;
  throw new TypeError(`${where} names ${JSON.stringify(name)}, which the ${owner} does not have; ${hint}`);
}
