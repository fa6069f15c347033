import type { AuditedRun, AuditedRunDetail, AuditedTool, AuditedTree, RunCheckpoint, RunOutcome } from '../../index.ts';
import { statePaths } from '../../run/workflow/state.ts';
import type { JsonValue } from '../../values/json.ts';
import { oneLine } from '../ui/failure.ts';
import { ago, count, duration, shortened, tokens } from '../ui/format.ts';
import { field } from '../ui/table.ts';
import { madeBy, resultText, spentLine, WIDTH } from './describe-run.ts';

/** What an audit has of a run. */
export interface Audited {
  readonly run: AuditedRunDetail;
  readonly children: readonly AuditedTree[];
}

/** Describes an audited run as lines: who started it, how it ended, what it used. @param outcome says it where the audit has no end */
export function describeAudited(run: AuditedRunDetail, outcome: RunOutcome | null): string[] {
  const { callerId, parentRunId, events } = run;
  const { status, iterations, usage, spend, error, traceId } = outcome ?? { ...run, traceId: undefined };
  const resumes = events.filter(({ type }) => type === 'run.resumed').length;
  return [
    field('run', oneLine(run.runId)),
    field('status', status === 'open' ? status : `ended: ${status}`),
    field('agent', oneLine(run.agentName)),
    ...(callerId === '' ? [] : [field('caller', oneLine(callerId))]),
    ...(parentRunId === '' ? [] : [field('parent', oneLine(parentRunId))]),
    field('prompt', shortened(oneLine(run.prompt), WIDTH)),
    field('steps', String(iterations)),
    field('tokens', String(usage.inputTokens + usage.outputTokens)),
    ...spentLine(spend),
    field('began', ago(run.startedAt, Date.now())),
    field('worked', duration(run.elapsedMs)),
    ...(traceId === undefined ? [] : [field('trace', oneLine(traceId))]),
    ...(resumes === 0 ? [] : [field('resumed', count(resumes, 'time'))]),
    ...(error ? [field('error', `${oneLine(error.message)} (${error.code})`)] : []),
  ];
}

/** What is said of the steps of a run. */
type StepsOfRun = Pick<AuditedRunDetail, 'iterations' | 'steps' | 'tools' | 'phases' | 'events' | 'isCut'>;

/** Describes the steps of an audited run with their tool calls as lines, grouped by phase. */
export function describeSteps({ iterations, steps, tools, phases, events, isCut }: StepsOfRun): string[] {
  const models = new Map(steps.map(({ step, model }) => [step, model]));
  const unknown = events.flatMap(({ type, fields }) => (type === 'call.unknown' ? [fields] : []));
  const numbers = new Set([...models.keys(), ...[...tools, ...unknown].map(({ step }) => Number(step))]);
  const lines = [...numbers]
    .sort((a, b) => a - b)
    .flatMap((number) => [
      `step ${number}${models.has(number) || number <= iterations ? madeBy(models.get(number)) : ', not finished'}`,
      ...tools.filter(({ step }) => step === number).map(toolLine),
      ...unknown
        .filter(({ step }) => step === number)
        .map(({ name }) => `  ${oneLine(String(name))} → outcome unknown`),
    ]);
  const ends = phases.filter(({ state }) => state !== 'started');
  const phaseLines = ends.map(({ name, state }) => `phase ${oneLine(name)}: ${state}`);
  const more = isCut ? ['… there is more'] : [];
  return lines.length + phaseLines.length === 0 ? [] : ['', ...phaseLines, ...lines, ...more];
}

/** Describes what the machine of an ended workflow did as lines: its last state, and its transitions. */
export function describeMachine(run: AuditedRunDetail | undefined, kept: RunCheckpoint | null | undefined): string[] {
  const taken = (run?.events ?? []).filter(({ type }) => type === 'workflow.transition').map(({ fields }) => fields);
  const last = kept?.workflow?.snapshot.value ?? taken.at(-1)?.to;
  if (last === undefined) return [];
  const ways = taken.map(
    ({ from, to, event }) => `  ${placeIn(from) || 'begun'} → ${placeIn(to)} (${oneLine(String(event))})`,
  );
  return [field('state', placeIn(last)), ...(ways.length === 0 ? [] : ['', 'transitions:', ...ways])];
}

const placeIn = (value: JsonValue | undefined): string => oneLine(statePaths(value ?? null).join(', '));

function toolLine({ name, input, output, ms, attempt, isLate }: AuditedTool): string {
  const given = shortened(oneLine(JSON.stringify(input) ?? ''), WIDTH / 2);
  const notes = [
    ms < 1_000 ? `${Math.round(ms)} ms` : duration(ms),
    ...(attempt > 1 ? [count(attempt, 'start')] : []),
    ...(isLate ? ['too late'] : []),
  ];
  return `  ${oneLine(name)} ${given} → ${shortened(oneLine(resultText(output)), WIDTH / 2)} (${notes.join(', ')})`;
}

/** Describes the child runs of an audited run as lines. */
export function describeChildren({ children }: Audited): string[] {
  return children.length === 0 ? [] : ['', 'runs it began:', ...children.flatMap((child) => branch(child, '  '))];
}

function branch({ run, children }: AuditedTree, indent: string): string[] {
  return [`${indent}${childLine(run)}`, ...children.flatMap((child) => branch(child, `${indent}  `))];
}

function childLine({ runId, agentName, status, iterations, usage }: AuditedRun): string {
  return `${oneLine(runId)}: ${status}, ${oneLine(agentName)}, ${count(iterations, 'step')}, ${tokens(usage)}`;
}
