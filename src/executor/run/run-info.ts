import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { previousAttempt } from '../../run/attempt.ts';
import { identityOf } from '../../run/field-rows.ts';
import type { RunFields } from '../../run/fields.ts';
import type { Limits } from '../../run/limits.ts';
import { callOf } from '../../run/open-step.ts';
import type { Progress } from '../../run/progress.ts';
import type { Labels, ParentCall, RunCheckpointMeta, RunInfo } from '../../run/request.ts';
import type { ResumeState } from '../../run/resume.ts';
import type { Config } from '../host/config.ts';
import type { ObservedRun } from '../host/observers.ts';
import { RunRedaction } from '../host/redaction.ts';
import { metaFor } from '../host/request.ts';
import type { ActiveRun } from './active-run.ts';

/**
 * Returns the attributes of a resumed run. The attributes of the caller come from the stored record; those of the model and
 * agent are the present ones.
 */
export function metaOf({ meta }: Progress, record: RunCheckpoint): RunCheckpointMeta {
  return { ...record.meta, agentName: meta.agentName, modelTier: meta.modelTier };
}

/**
 * Returns the progress of a resumed run with the identity from its record. The fingerprint is that of the start. A state that a host
 * gives has of the identity only how the run was born.
 */
export function identifiedBy(record: RunCheckpoint | undefined, fresh: Progress, given?: ResumeState): Progress {
  const { fingerprint, birth: _, beganAt: __, ...unborn } = fresh;
  if (!record) return given ? { ...unborn, ...bornIn(given) } : fresh;
  const nameless: Partial<Progress> = Object.fromEntries(
    Object.entries(fresh).filter(([key]) => !Object.hasOwn(identityOf(fresh), key)),
  );
  return { ...(nameless as Progress), ...identityOf(record), ...(fingerprint === undefined ? {} : { fingerprint }) };
}

function bornIn({ birth, beganAt }: ResumeState): Pick<ResumeState, 'birth' | 'beganAt'> {
  return { ...(birth === undefined ? {} : { birth }), ...(beganAt === undefined ? {} : { beganAt }) };
}

/** Returns the limits of the run (steps, time, parallel calls): the agent's own, or else the executor's. */
export function limitsOfRun({ agent, services }: ActiveRun): Limits {
  const { defaults } = services.config;
  return {
    maxSteps: agent.maxSteps ?? defaults.maxSteps,
    maxRuntimeMs: agent.maxRuntimeMs ?? defaults.maxRuntimeMs,
    maxConsecutiveToolErrors: defaults.maxConsecutiveToolErrors,
    maxSameToolCallRepeats: defaults.maxSameToolCallRepeats,
    toolConcurrency: agent.toolConcurrency ?? defaults.toolConcurrency,
  };
}

/** Makes the RunInfo of a live run, which all ports get. */
export function infoOf(
  run: ActiveRun,
  identity: Pick<Progress, 'meta' | 'labels' | 'beganAt'>,
  limits: Limits,
): RunInfo {
  return infoFrom(identity, {
    inputs: run.resources.record?.inputs ?? run.seed.request.inputs,
    now: run.services.config.clock.now(),
    maxIterations: limits.maxSteps,
  });
}

/** Returns which start of a call this is, where its run is at work in this process. */
export function startOfCall(
  registry: ActiveRun['services']['registry'],
  { runId, callId }: Pick<ParentCall, 'runId' | 'callId'>,
): { readonly attempt: number; readonly callAttempt: number } | undefined {
  const { attempt, openStep } = registry.live(runId)?.progress ?? {};
  const call = openStep && callOf(openStep, callId);
  return attempt && call ? { attempt: attempt.number, callAttempt: call.attempt } : undefined;
}

/** Returns a run as its observers see it. For a start that was refused early only its request is known. */
export function observedRun(run: ActiveRun): ObservedRun {
  const { agent, services, seed, redaction } = run;
  const { starts, previous, parkedTrace } = run.startFacts;
  const meta = () => metaFor(agent, seed.request, services.config.defaults.model);
  const info = run.info ?? infoOf(run, { ...seed.request, meta: meta() }, limitsOfRun(run));
  const { parent = seed.request.parent, progress } = run;
  const { trace = parkedTrace } = progress ?? {};
  // A run whose end is recorded is only delivered: no process works on it.
  const attempt = progress?.outcome ? undefined : progress?.attempt;
  return Object.freeze({
    info: redaction?.info(info, 'event') ?? info,
    origin: seed.origin,
    starts,
    ...(attempt ? { attempt: attempt.number } : {}),
    ...(trace === undefined ? {} : { trace }),
    ...(previous ? { previous } : {}),
    ...(parent
      ? { parent: { runId: parent.runId, callId: parent.callId, ...startOfCall(services.registry, parent) } }
      : {}),
    rootRunId: parent?.rootRunId ?? run.runId,
  });
}

/** Returns a run as its observers see it, on which no process works. */
export function observedRecord({ config }: ActiveRun['services'], record: RunCheckpoint): ObservedRun {
  const { parent, trace, attempts, inputs = {} } = record;
  const { redact, clock, defaults } = config;
  const info = infoFrom(record, { inputs, now: clock.now(), maxIterations: defaults.maxSteps });
  const previous = previousAttempt(record);
  return Object.freeze({
    info: redact ? new RunRedaction(redact).info(info, 'event') : info,
    origin: 'recovered',
    starts: attempts,
    ...(trace === undefined ? {} : { trace }),
    ...(previous ? { previous } : {}),
    ...(parent ? { parent: { runId: parent.runId, callId: parent.callId } } : {}),
    rootRunId: parent?.rootRunId ?? record.meta.runId,
  });
}

/**
 * Returns the key under which a run is taken in turn with others: the value of its label `fairBy`.
 * @returns '' for a run without the label; undefined without `fairBy`
 */
export function fairKeyOf({ fairBy }: Pick<Config, 'fairBy'>, labels: Labels | undefined): string | undefined {
  if (fairBy === undefined) return undefined;
  return labels && Object.hasOwn(labels, fairBy) ? labels[fairBy] : '';
}

/**
 * Makes the RunInfo of a stored run, from the fields of its record.
 * @param now wall clock, ms: the beginning of a run whose record does not say it
 */
export function infoFrom(
  { meta, labels, beganAt }: Pick<RunFields, 'meta' | 'labels' | 'beganAt'>,
  { now, ...rest }: Pick<RunInfo, 'inputs' | 'maxIterations'> & { readonly now: number },
): RunInfo {
  const { agentId, agentName, ...same } = meta;
  const given = labels && Object.keys(labels).length > 0 ? { labels } : {};
  return Object.freeze({ ...same, subjectId: agentId, name: agentName, ...given, ...rest, startedAt: beganAt ?? now });
}
