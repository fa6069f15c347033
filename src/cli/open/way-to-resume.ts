import { lineFor, quoted } from '../ui/shell-words.ts';
import { KnownModules, type RunPlace } from './known-modules.ts';
import type { RunStore } from './open-store.ts';

type Place = Pick<RunStore, 'identity' | 'option'>;

/** Stands for the module in a command that a person has to complete. */
const SOME_MODULE = '<agent module>';

/**
 * Returns a function that gives the command to continue a run: it needs the agent module of the run, which this machine knows,
 * or `agent` names. The function returns undefined without a module.
 */
export function commandToResume(store: Place, agent: string | undefined): (runId: string) => string | undefined {
  const modules = new KnownModules();
  const given = agent === undefined ? undefined : quoted(agent);
  return (runId) => {
    if (isKnown(modules, { store: store.identity, runId })) return resume(store, runId);
    return given === undefined ? undefined : resume(store, runId, given);
  };
}

/** Says what continues a run that has its answer: a process, or a command. */
export function whatContinues(store: Place, runId: string): string {
  const known = commandToResume(store, undefined)(runId);
  if (known !== undefined) return `the run continues when a process takes it up: ${known}`;
  return `the run continues when a process that has its agent takes it up, or with: ${resume(store, runId, SOME_MODULE)}`;
}

/** Returns what continues a run, for the end of a line: a command, or also a process that has its agent. */
export function wayToResume(store: Place, runId: string): string {
  const known = commandToResume(store, undefined)(runId);
  return known ?? `a process that has its agent, or ${resume(store, runId, SOME_MODULE)}`;
}

function resume({ option }: Place, runId: string, agent?: string): string {
  return lineFor('resume', [runId], `${agent === undefined ? '' : ` --agent ${agent}`}${option}`);
}

function isKnown(modules: KnownModules, place: RunPlace): boolean {
  try {
    return modules.find(place) !== undefined;
  } catch {
    return false;
  }
}
