import { type MadeCall, sameCallAfter } from '../../../record/steps.ts';
import type { OpenCall } from '../../../run/open-step.ts';
import type { Progress } from '../../../run/progress.ts';
import type { Tool } from '../../../tool/define-tool.ts';
import { withDeadline } from '../../../values/deadline.ts';
import type { JsonValue } from '../../../values/json.ts';
import type { ToolOutput } from '../../../values/message.ts';
import type { JudgedProgress, JudgedRun } from './judge-call.ts';

/* A fork says with its `effects` what calls with an effect do in it, and in the runs below it. */

/** What the model reads of a call in a fork with `effects: 'refuse'`. */
export const REFUSED = 'This run is a fork of another one, and calls that may have an effect are refused in it.';
/** Most characters of a result of the origin in a question. */
const MAX_RESULT_CHARS = 500;

/** Returns whether the run is a fork that may not make calls of this tool by itself. A call that is a run passes that on to it. */
export function isLimited({ effects }: Pick<Progress, 'effects'>, { effect, isRun }: Tool): boolean {
  return effects !== undefined && effect !== 'read' && !isRun;
}

/** Returns what a person reads first of a call in a fork: whether its origin made the same call. Never rejects. */
export async function forkWords(
  run: JudgedRun,
  progress: JudgedProgress,
  call: Pick<OpenCall, 'name' | 'input'>,
): Promise<string | undefined> {
  const { effects, forkedFrom } = progress;
  if (!effects) return undefined;
  if (!forkedFrom) return 'This run is below a fork of another run.';
  const { runId } = forkedFrom;
  const made = await findOfOrigin(run, progress, call);
  return [`This run is a fork of run ${runId}.`, ...(made === undefined ? [] : [wordsOf(runId, made)])].join(' ');
}

/** The call of the origin; null = it made none, undefined = its record is gone, or cannot be read now. */
async function findOfOrigin(
  { runId, services, redaction }: JudgedRun,
  { forkedFrom, beganAt = 0 }: JudgedProgress,
  { name, input }: Pick<OpenCall, 'name' | 'input'>,
): Promise<(MadeCall & { readonly text: string }) | null | undefined> {
  const { store, clock, defaults, warn } = services.config;
  if (!store || !forkedFrom) return undefined;
  try {
    const loaded = store.load(forkedFrom.runId, { ended: true });
    const origin = await withDeadline(loaded, { ms: defaults.portMs, clock, what: 'the record of the origin' });
    // Another run may have begun under the id since.
    if (!origin || (origin.beganAt ?? 0) > beganAt) return undefined;
    const made = sameCallAfter(origin, forkedFrom.at, { name, input: (input ?? null) as JsonValue });
    if (!made) return null;
    const text = textOf(made.output);
    return { ...made, text: redaction?.records.text(text) ?? text };
  } catch (error) {
    warn('fork.source.unreadable', { runId, from: forkedFrom.runId, error });
    return undefined;
  }
}

function wordsOf(runId: string, made: (MadeCall & { readonly text: string }) | null): string {
  if (!made) return `Run ${runId} did not make this call.`;
  const { step, output, text } = made;
  const inStep = `Run ${runId} made the same call in step ${step}`;
  if (!output) return `${inStep}; it has no result.`;
  const cut = text.length > MAX_RESULT_CHARS ? `${text.slice(0, MAX_RESULT_CHARS).toWellFormed()}…` : text;
  if (output.type === 'execution-denied') return `In run ${runId} the same call was denied in step ${step}: ${cut}`;
  return output.type.startsWith('error') ? `${inStep}, and it failed: ${cut}` : `${inStep}. Its result: ${cut}`;
}

function textOf(output: ToolOutput | undefined): string {
  if (!output) return '';
  if (output.type === 'execution-denied') return output.reason ?? '';
  return typeof output.value === 'string' ? output.value : JSON.stringify(output.value);
}
