import { createHash } from 'node:crypto';
import type { Executor, Message } from '../index.ts';
import { isPawlError } from '../index.ts';
import { escaped } from '../values/texts/escaped-json.ts';
import { type KeptFields, readStored } from './read-run.ts';
import type { RecordedRun } from './recorded-run.ts';
import { endsOf } from './recording.ts';

/** The version of the form that this code writes. It reads those of the three versions before. */
export const FILE_VERSION = 1;

/**
 * Gives runs as lines of a file, each with its line end: one run after the other, and after each the runs that its calls began, as far as
 * their records are kept. Texts are redacted as the executor's `redact` says. One run is in memory at a time.
 * @throws {RUN_NOT_FOUND} and what else `readRun` throws, at the first run that cannot be read
 * @example for await (const line of exportRuns(executor, ['order-17'])) file.write(line);
 */
export async function* exportRuns(executor: Executor, runIds: Iterable<string>): AsyncGenerator<string, void> {
  const seen = new Set<string>();
  for (const runId of runIds) yield* exportTree(executor, runId, { seen, isAsked: true });
}

async function* exportTree(
  executor: Executor,
  runId: string,
  { seen, isAsked }: { readonly seen: Set<string>; readonly isAsked: boolean },
): AsyncGenerator<string, void> {
  if (seen.has(runId)) return;
  seen.add(runId);
  const stored = await readStored(executor, runId).catch((error: unknown) => {
    // A child may have ended long before its parent, or its call has begun none.
    if (isAsked || !isPawlError(error, 'RUN_NOT_FOUND')) throw error;
  });
  if (!stored) return;
  const children = stored.run.steps.flatMap(({ calls }) => calls.flatMap(({ childRunId }) => childRunId ?? []));
  yield* linesOf(stored.run, stored.kept);
  for (const child of children) yield* exportTree(executor, child, { seen, isAsked: false });
}

/** The lines of one run: its head, a line for what came before, one for each step, and the checksum. */
function* linesOf({ earlier, messages, steps, ...run }: RecordedRun, kept: KeptFields): Generator<string, void> {
  const sum = createHash('sha256');
  let lines = 0;
  const counted = (value: object): string => {
    // A terminal or a log that shows the file obeys none of its texts.
    const line = `${escaped(JSON.stringify(value))}\n`;
    sum.update(line);
    lines += 1;
    return line;
  };
  const { opening, rest } = endsOf({ messages, steps });
  yield counted({ pawl: 'run', version: FILE_VERSION, ...run, kept });
  yield counted({ earlier, opening });
  let at = opening.length;
  for (const { phase, before, calls } of steps) {
    const until = endOfStep(messages, at + before.length);
    const children = calls.flatMap(({ id, childRunId }) => (childRunId === undefined ? [] : [[id, childRunId]]));
    yield counted({
      ...(phase === undefined ? {} : { phase }),
      step: messages.slice(at, until),
      ...(children.length > 0 ? { children } : {}),
    });
    at = until;
  }
  yield counted({ rest });
  yield `${escaped(JSON.stringify({ end: run.runId, lines, sha256: sum.digest('hex') }))}\n`;
}

/** The index after an answer and its results. */
function endOfStep(messages: readonly Message[], answer: number): number {
  return messages[answer + 1]?.role === 'tool' ? answer + 2 : answer + 1;
}
