import type { Agent } from '../../agent/agent.ts';
import type { Phase } from '../../agent/phase.ts';
import type { ListedModel } from '../../model/lists/lineup.ts';
import type { ModelChoice, Models } from '../../model/port.ts';
import { RequestView } from '../../model/request-view.ts';
import { modelOf, modelsFor, type ServedModel, tierOf } from '../../model/tier.ts';
import { type ModelSettings, mergeSettings } from '../../run/model-settings.ts';
import type { PhaseOutput } from '../../run/phase.ts';
import { toldAnswer } from '../../run/reply.ts';
import { restrict, type Toolbox } from '../../tool/toolbox.ts';
import { modelName } from '../../values/model-use.ts';
import { fillTemplate } from '../../values/texts/template.ts';
import { isWorkflow } from '../../workflow/program.ts';
import type { Config } from '../host/config.ts';
import { CompactedView } from './compacted-view.ts';
import type { RequestEstimate } from './request-estimate.ts';

/** A model of a loop. Its name is read once, because a host's model may have getters. */
export interface LoopModel extends ListedModel {
  /** The messages as the model takes them. */
  readonly requests: RequestView;
  /** Those of the agent, the phase and the entry of the list together. */
  readonly settings: ModelSettings;
}

/** The resources of one loop of a run: a pipeline has one for each phase. */
export interface LoopContext {
  /** '' for a model of the agent's own. */
  readonly tier: string;
  /** One, or those of a list: the next one is asked when one fails. */
  readonly models: readonly [LoopModel, ...LoopModel[]];
  readonly toolbox: Toolbox;
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
  if (isWorkflow(agent)) return [{ toolbox, tier: '' } as unknown as LoopContext];
  const whole = { ...served(config.models, agent.model ?? config.defaults.model), toolbox };
  if (!agent.phases?.length) return [agentLoop(run, whole)];
  return agent.phases.map((phase) => phaseLoop(run, phase, whole));
}

interface Served {
  readonly tier: string;
  readonly served: readonly ServedModel[];
}

type Resources = Served & Pick<LoopContext, 'toolbox'>;

function served(models: Models, choice: ModelChoice): Served {
  const tier = tierOf(choice);
  if (typeof choice === 'string') return { tier, served: modelsFor(models, tier) };
  return { tier, served: [{ model: modelOf(choice, 'the model of the agent') }] };
}

function loopModels(served: readonly ServedModel[], settings: ModelSettings): LoopContext['models'] {
  const models = served.map((each): LoopModel => {
    const name = modelName(each.model);
    return {
      ...each,
      name,
      requests: new RequestView(name, each.key),
      settings: mergeSettings(settings, each.settings),
    };
  });
  return models as unknown as LoopContext['models'];
}

function agentLoop({ agent, config }: LoopedRun, { served, ...whole }: Resources): LoopContext {
  const models = loopModels(served, mergeSettings(agent.settings));
  return { ...whole, models, ...viewOf(config), system: () => headed(config, agent.instructions) };
}

function phaseLoop(run: LoopedRun, phase: Phase, whole: Resources): LoopContext {
  const { agent, config } = run;
  const isWhole = !phase.bare && phase.tools === undefined;
  let system: string | undefined;
  const { tier, served } = servedBy(run, phase, whole);
  return {
    tier,
    models: loopModels(served, mergeSettings(agent.settings, phase.settings)),
    ...viewOf(config),
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

function servedBy({ runId, config }: LoopedRun, { name, model }: Phase, base: Served): Served {
  if (model === undefined || (model !== '' && model === base.tier)) return base;
  const { models, warn } = config;
  try {
    return served(models, model);
  } catch (error) {
    const instead = base.tier || base.served.map((each) => modelName(each.model)).join();
    warn('phase.model.missing', { runId, phase: name, instead, error });
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
