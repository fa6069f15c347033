import { askForRepair, beginPhase, closePhase, currentPhase } from '../src/run/pipeline.ts';
import type { OutputCheck, RunContext } from './context.ts';
import type { Enqueue } from './tool-calls.ts';

/** Begins a phase, or goes on with the one that was in progress. */
export function enterPhase({ progress, phases }: RunContext, enqueue: Enqueue): void {
  const facts = currentPhase(progress, phases);
  if (!facts) return;
  const index = progress.completedPhases.length;
  enqueue.emit({ type: 'run.working', state: `phase(${index})` });
  if (progress.openPhase) return;
  enqueue.assign({ progress: beginPhase(progress, facts) });
  enqueue.emit({ type: 'phase.started', index, name: facts.name });
}

/** Takes the phase's output down. What ended it is forgotten: a pipeline that comes here goes on. */
export function leavePhase(context: RunContext, enqueue: Enqueue): void {
  const facts = currentPhase(context.progress, context.phases);
  if (!facts) return;
  const hasFailed = context.error !== undefined && context.error.code !== 'STEP_LIMIT';
  const progress = closePhase(context.progress, facts, { hasFailed, data: context.data });
  const index = progress.completedPhases.length - 1;
  const boundary = context.announced + 1;
  enqueue.assign({
    progress,
    error: undefined as never,
    announced: context.isDurable ? boundary : context.announced,
  });
  const output = progress.completedPhases[index]?.output ?? '';
  enqueue.emit({ type: 'phase.done', index, name: facts.name, output });
  if (context.isDurable) enqueue.emit({ type: 'boundary', boundary, kind: 'phase', force: true, progress });
}

/** The answer stays in the conversation; what is wrong with it follows it, and the model has another turn. */
export function repairAnswer(context: RunContext, check: OutputCheck, enqueue: Enqueue): void {
  const progress = askForRepair(context.progress, 'problem' in check ? check.problem : '');
  const boundary = context.announced + 1;
  enqueue.assign({ progress, announced: context.isDurable ? boundary : context.announced });
  if (context.isDurable) enqueue.emit({ type: 'boundary', boundary, kind: 'step', force: false, progress });
}
