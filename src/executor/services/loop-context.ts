import type { Agent } from '../../agent/agent.ts';
import type { Phase } from '../../agent/phase.ts';
import type { Model, ModelChoice, Models } from '../../model/port.ts';
import { RequestView } from '../../model/request-view.ts';
import { modelFor, modelOf, tierOf } from '../../model/tier.ts';
import { type ModelSettings, mergeSettings } from '../../run/model-settings.ts';
import type { PhaseOutput } from '../../run/phase.ts';
import { toldAnswer } from '../../run/reply.ts';
import { restrict, type Toolbox } from '../../tool/toolbox.ts';
import { toErrorData } from '../../values/error-data.ts';
import { modelName } from '../../values/model-use.ts';
import { fillTemplate } from '../../values/texts/template.ts';
import { isWorkflow } from '../../workflow/program.ts';
import type { Config } from '../host/config.ts';
import { CompactedView } from './compacted-view.ts';
import type { RequestEstimate } from './request-estimate.ts';

/** The resources of one loop of a run: a pipeline has one for each phase. */
export interface LoopContext {
  /** '' for a model of the agent's own. */
  readonly tier: string;
  readonly model: Model;
  /** The name of the model as records keep it: read once, because a host's model may have getters. */
  readonly modelName: string;
  readonly toolbox: Toolbox;
  /** The messages as the model takes them. */
  readonly requests: RequestView;
  readonly settings: ModelSettings;
  /** The part of a long conversation that the model gets; absent without a compactor. */
  readonly view?: CompactedView;
  /** The provider's token count of the last request, and the transcript's size at that time, bytes. */
  lastInputTokens?: number;
  lastSize?: number;
  /** Estimates the size of its requests if the provider reports none; made at first use. */
  estimate?: RequestEstimate;
  /** The system prompt. @param completed the outputs of the phases before it */
  system(completed: readonly PhaseOutput[]): string;
}

/** The parts of a run that its loops depend on. */
interface LoopedRun {
  readonly runId: string;
  readonly agent: Agent;
  readonly prompt: string;
  readonly config: Config;
}

/**
 * Makes the context of each loop of a run, one for each phase: model, tools, system prompt, settings, compaction.
 * @throws {UNKNOWN_TIER} for the agent's own tier; it replaces a phase's tier that no model serves
 * @throws {UNKNOWN_TOOL} if a phase names a tool that its agent does not have
 */
export function loopsFor(run: LoopedRun, toolbox: Toolbox): readonly LoopContext[] {
  const { agent, config } = run;
  // No model works for a workflow: its calls are tools, and agents with models of their own.
  if (isWorkflow(agent)) return [{ toolbox, tier: '', modelName: '' } as unknown as LoopContext];
  const whole = { ...served(config.models, agent.model ?? config.defaults.model), toolbox };
  if (!agent.phases?.length) return [agentLoop(run, whole)];
  return agent.phases.map((phase) => phaseLoop(run, phase, whole));
}

type Resources = Pick<LoopContext, 'tier' | 'model' | 'modelName' | 'toolbox'>;

function served(models: Models, choice: ModelChoice): Omit<Resources, 'toolbox'> {
  const tier = tierOf(choice);
  const model = typeof choice === 'string' ? modelFor(models, tier) : modelOf(choice, 'the model of the agent');
  return { tier, model, modelName: modelName(model) };
}

function agentLoop({ agent, config }: LoopedRun, whole: Resources): LoopContext {
  const settings = mergeSettings(agent.settings);
  const requests = new RequestView(whole.modelName);
  return { ...whole, requests, settings, ...viewOf(config), system: () => headed(config, agent.instructions) };
}

function phaseLoop(run: LoopedRun, phase: Phase, whole: Resources): LoopContext {
  const { agent, config } = run;
  const isWhole = !phase.bare && phase.tools === undefined;
  let system: string | undefined;
  const served = servedBy(run, phase, whole);
  return {
    ...served,
    requests: new RequestView(served.modelName),
    ...viewOf(config),
    settings: mergeSettings(agent.settings, phase.settings),
    toolbox: isWhole ? whole.toolbox : restrict(whole.toolbox, phase.bare ? [] : (phase.tools ?? [])),
    system: (completed) => {
      system ??= headed(config, instructionsOf(run, phase, completed));
      return system;
    },
  };
}

function headed({ systemHeader }: Config, text: string): string {
  return systemHeader === '' ? text : `${systemHeader}\n\n${text}`;
}

function viewOf({ compactor, contextTokens, defaults, clock, warn }: Config): { view?: CompactedView } {
  if (!compactor) return {};
  return { view: new CompactedView({ compactor, contextTokens, portMs: defaults.portMs, clock, warn }) };
}

function servedBy(
  { runId, config }: LoopedRun,
  { name, model }: Phase,
  { toolbox: _, ...base }: Resources,
): Omit<Resources, 'toolbox'> {
  if (model === undefined || (model !== '' && model === base.tier)) return base;
  const { models, warn } = config;
  try {
    return served(models, model);
  } catch (error) {
    const fields = { runId, phase: name, error: toErrorData(error) };
    warn(`run: no model for the tier of a phase; the agent's (${base.tier || base.modelName}) is used`, fields);
    return base;
  }
}

/** Braces that name no phase are text: instructions may be about templates, or hold code. */
function instructionsOf(
  { agent, prompt }: LoopedRun,
  { instructions }: Phase,
  completed: readonly PhaseOutput[],
): string {
  const names = (agent.phases ?? []).map(({ name }) => [name, ''] as const);
  const outputs = completed.map((phase) => [phase.name, toldAnswer(phase.output, phase.finishReason)] as const);
  return fillTemplate(
    instructions,
    { ...Object.fromEntries([...names, ...outputs]), Query: prompt },
    { unknown: 'text' },
  );
}
