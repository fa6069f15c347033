import type { ModelChoice } from '../model/port.ts';
import { checkModelChoice, tierOf } from '../model/tier.ts';
import { checkSettings, type ModelSettings, settingNames } from '../run/model-settings.ts';
import type { PhaseFacts } from '../run/phase.ts';
import { sha256 } from '../values/digest.ts';
import { earlierNames, isWholeBound, type KnownKeys, readOptions } from '../values/known-options.ts';

/** One stage of a multi-phase agent: a loop with its own conversation. */
export interface Phase {
  /**
   * Names its output for later instructions, and the phase in events and results: letters A-Z a-z, digits, `_`, no digit at
   * the beginning. `Query` is reserved. Two phases may share a name.
   * @example name: 'plan'
   */
  readonly name: string;
  /**
   * The system prompt, a template: `{{.Query}}` is the run's prompt, `{{.name}}` the output of the phase of that name (the
   * latest of several). Other names are refused; a template has no code and no paths.
   * @example instructions: 'Write an answer to {{.Query}} by this plan: {{.plan}}'
   */
  readonly instructions: string;
  /**
   * As in an agent. If no model serves a tier, the agent's model replaces it, with a warning.
   * @default the agent's
   * @example model: 'smart'
   */
  readonly model?: ModelChoice;
  /**
   * Names of the agent's tools that this phase may use.
   * @default all tools of the agent
   * @example tools: ['search']
   */
  readonly tools?: readonly string[];
  /**
   * Most steps. A phase that uses them up passes its last text to the next phase.
   * @default the agent's
   * @example maxSteps: 10
   */
  readonly maxSteps?: number;
  /**
   * If the phase fails, `fallback` replaces its output, and the pipeline continues.
   * @default false
   */
  readonly optional?: boolean;
  /**
   * The output of an optional phase that failed.
   * @default ''
   * @example fallback: 'No facts were found.'
   */
  readonly fallback?: string;
  /**
   * One plain model call, without tools.
   * @default false
   */
  readonly bare?: boolean;
  /**
   * Where another process continues after a crash. `step`: at the last step. `boundary`: at the beginning of the
   * phase; its steps are not stored, as long as it has started only `read` tools.
   * @default 'step'
   */
  readonly recovery?: 'step' | 'boundary';
  /**
   * Overrides the agent's `settings`, key by key.
   * @default the agent's
   * @example settings: { temperature: 0.7 }
   */
  readonly settings?: ModelSettings;
}

const phaseKeys: KnownKeys<Phase> = {
  name: true,
  instructions: true,
  model: true,
  tools: true,
  maxSteps: true,
  optional: true,
  fallback: true,
  bare: true,
  recovery: true,
  settings: true,
};

/** Names that a template can use. */
const templateName = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Reads an agent's phases, each once.
 * @param of names the agent in errors @throws {TypeError} naming the agent, the phase and the problem
 */
export function readPhases(of: string, phases: readonly Phase[]): readonly Phase[] {
  if (!Array.isArray(phases)) throw new TypeError(`${of}: phases must be a list`);
  if (phases.length === 0) throw new TypeError(`${of}: phases is empty: leave it out for an agent with one loop`);
  return Object.freeze(phases.map((phase, i) => readPhase(phase, { of, at: `phases[${i}]` })));
}

function readPhase(given: Phase, place: { readonly of: string; readonly at: string }): Phase {
  const elsewhere = settingNames(`${place.at}.settings`);
  const phase = readOptions(given, phaseKeys, { ...place, elsewhere, foreign: earlierNames });
  const problem = problemOf(phase);
  if (problem !== undefined) throw new TypeError(`${place.of}: ${place.at}${problem}`);
  const { tools, settings } = phase;
  checkModelChoice(`${place.of}: ${place.at} (${phase.name}): model`, phase.model);
  if (!tools && !settings) return phase;
  return Object.freeze({
    ...phase,
    ...(tools && { tools: Object.freeze([...tools]) }),
    ...(settings && { settings: checkSettings(settings, { ...place, at: `${place.at}.settings` }) }),
  });
}

/** Checked here, not when a run begins: by then a stored run may depend on it. */
function problemOf(phase: Partial<Phase>): string | undefined {
  const { name, instructions, maxSteps, recovery = 'step', tools = [] } = phase;
  if (typeof name !== 'string' || name === '') return ' needs a name: a string that is not empty';
  if (name === 'Query') return " must not be named Query: that is the run's prompt in templates";
  if (!templateName.test(name)) {
    const not = JSON.stringify(name.slice(0, 64));
    return `: its name must be of the characters A-Z a-z 0-9 _ and not begin with a digit, because templates name it: not ${not}`;
  }
  if (typeof instructions !== 'string') return ` (${name}) needs instructions: a string`;
  if (maxSteps !== undefined && !isWholeBound(maxSteps))
    return ` (${name}): maxSteps must be a whole number above 0, not ${maxSteps}`;
  if (recovery !== 'step' && recovery !== 'boundary') return ` (${name}): recovery must be 'step' or 'boundary'`;
  if (!Array.isArray(tools) || tools.some((tool) => typeof tool !== 'string'))
    return ` (${name}): tools must be a list of names`;
  return typeof (phase.fallback ?? '') === 'string' ? undefined : ` (${name}): fallback must be a string`;
}

/** Returns what runs need to know of an agent's phases. @param maxSteps for phases without a limit of their own */
export function phaseFactsOf(phases: readonly Phase[] | undefined, maxSteps: number): readonly PhaseFacts[] {
  return (phases ?? []).map((phase) => ({
    name: phase.name,
    hash: hashOf(phase),
    maxSteps: phase.bare ? 1 : (phase.maxSteps ?? maxSteps),
    isBare: phase.bare ?? false,
    isOptional: phase.optional ?? false,
    fallback: phase.fallback ?? '',
    recovery: phase.recovery ?? 'step',
  }));
}

/** Returns a phase with the names of its fields as stored hashes have them. */
export function hashedPhase(phase: Phase): object {
  const fields = Object.entries(phase).map(([name, value]) => {
    if (name === 'model') return ['modelTier', tierOf(value as ModelChoice)];
    return [name === 'maxSteps' ? 'maxIterations' : name, value];
  });
  return Object.fromEntries(fields);
}

/** A hash of what a phase does, and with what; its time limits and its recovery are not part of it. */
function hashOf({ name, instructions, model = '', tools, optional, fallback, bare }: Phase): string {
  const text = JSON.stringify([name, instructions, tierOf(model), tools ?? null, !!optional, fallback ?? '', !!bare]);
  return sha256(text).slice(0, 16);
}
