import type { JsonObject, JsonValue } from '../values/json.ts';
import type { AuditedPhase, AuditedStep, AuditedTool } from './port.ts';
import type { AuditedAt, AuditedRunDetail } from './queries.ts';
import type { EntryRow, FoundRun } from './sqlite-reads.ts';

/** What is written of a run, sorted by what it is. */
export function detailOf(
  { run, inputs, end }: FoundRun,
  entries: readonly EntryRow[],
  isCut: boolean,
): AuditedRunDetail {
  const of = <T>(type: string) => {
    const those = entries.filter((entry) => entry.type === type);
    return those.map(({ at, fields }) => ({ at, ...(parsed(fields) as object) }) as AuditedAt & T);
  };
  const steps = new Map(of<AuditedStep>('step').map((step) => [step.step, step]));
  const error = end?.error ?? null;
  return {
    ...run,
    inputs: parsed(inputs),
    output: end?.output ?? '',
    ...(error === null ? {} : { error: parsed(error) as unknown as NonNullable<AuditedRunDetail['error']> }),
    steps: [...steps.values()].sort((a, b) => a.step - b.step),
    tools: of<AuditedTool>('tool'),
    phases: of<AuditedPhase>('phase'),
    events: of<{ readonly type: string; readonly fields: JsonObject }>('event'),
    isCut,
  };
}

/** A text that somebody has tampered with must not hide the others. */
function parsed(text: string): JsonValue {
  try {
    return JSON.parse(text);
  } catch {
    return { clipped: text };
  }
}
