import type { RunCheckpoint } from '../../record/checkpoint.ts';
import type { Limits } from '../../run/limits.ts';
import type { Progress } from '../../run/progress.ts';
import type { RunCheckpointMeta, RunInfo } from '../../run/request.ts';
import type { ObservedRun } from '../host/observers.ts';
import { metaFor } from '../host/request.ts';
import type { ActiveRun } from './active-run.ts';

/** Who asked for a stored run, where and what for is in its record; what it is run with is today's. */
export function metaOf({ meta }: Progress, record: RunCheckpoint): RunCheckpointMeta {
  return { ...record.meta, agentName: meta.agentName, modelTier: meta.modelTier };
}

/** What tells the run from others. Of a stored run the record says it. */
export function identityOf(
  { fingerprint }: Progress,
  record: RunCheckpoint | undefined,
): Pick<Progress, 'fingerprint' | 'parent'> {
  if (!record) return {};
  const known = fingerprint ?? record.fingerprint;
  return {
    ...(known === undefined ? {} : { fingerprint: known }),
    ...(record.parent ? { parent: record.parent } : {}),
  };
}

/** What bounds the run: the agent's own figures, or else the executor's. */
export function limitsOf({ agent, services }: ActiveRun): Limits {
  const { defaults } = services.config;
  return {
    maxIterations: agent.maxIterations ?? defaults.maxIterations,
    maxRuntimeMs: agent.maxRuntimeMs ?? defaults.maxRuntimeMs,
    maxConsecutiveToolErrors: defaults.maxConsecutiveToolErrors,
    maxSameToolCallRepeats: defaults.maxSameToolCallRepeats,
    toolConcurrency: agent.toolConcurrency ?? defaults.toolConcurrency,
  };
}

/** The one object that all ports are told of the run. */
export function infoOf(run: ActiveRun, { meta }: Pick<Progress, 'meta'>, limits: Limits): RunInfo {
  return infoFrom(meta, {
    inputs: run.resources.record?.inputs ?? run.seed.request.inputs,
    startedAt: run.services.config.clock.now(),
    maxIterations: limits.maxIterations,
  });
}

/** A run as its observers see it. Of a start that was refused early only its request is known. */
export function observedRun(run: ActiveRun): ObservedRun {
  const { agent, services, seed, redaction } = run;
  const { attempt } = run.life;
  const meta = () => metaFor(agent, seed.request, agent.modelTier ?? services.config.defaults.modelTier);
  const info = run.info ?? infoOf(run, { meta: meta() }, limitsOf(run));
  const rootRunId = (run.parent ?? seed.request.parent)?.rootRunId ?? run.runId;
  return Object.freeze({ info: redaction?.info(info, 'event') ?? info, origin: seed.origin, attempt, rootRunId });
}

export function infoFrom(
  meta: RunCheckpointMeta,
  rest: Pick<RunInfo, 'inputs' | 'startedAt' | 'maxIterations'>,
): RunInfo {
  const { agentId, agentName, ...same } = meta;
  return Object.freeze({ ...same, subjectId: agentId, name: agentName, ...rest });
}
