import { createHash } from 'node:crypto';
import type { Executor, Message } from '../index.ts';
import { isPawlError, PawlError } from '../index.ts';
import { escaped } from '../values/texts/escaped-json.ts';
import { type KeptFields, readStoredRun } from './read-run.ts';
import type { RecordedRun } from './recorded-run.ts';
import { endsOf } from './recording.ts';

/** The version of the form that this code writes. It reads those of the three versions before. */
export const FILE_VERSION = 1;
/** Most bytes of one run in a file. */
export const MAX_RUN_BYTES = 64 * 2 ** 20;
/** Most steps of one run in a file. */
export const MAX_RUN_STEPS = 10_000;

/**
 * Gives runs as lines of a file, each with its line end: one run after the other, and after each the runs that its calls began, as far as
 * their records are kept. Texts are redacted as the executor's `redact` says. One run is in memory at a time.
 * @throws {RUN_NOT_FOUND} and what else `readRun` throws, at the first run that cannot be read @throws {UNSUPPORTED} for a run of more
 *   than 10,000 steps or 64 MiB, which no file gives back
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
  const stored = await readStoredRun(executor, runId).catch((error: unknown) => {
    // A child may have ended long before its parent, or its call has begun none.
    if (isAsked || !isPawlError(error, 'RUN_NOT_FOUND')) throw error;
  });
  if (!stored) return;
  const children = stored.run.steps.flatMap(({ calls }) => calls.flatMap(({ childRunId }) => childRunId ?? []));
  yield* linesOf(stored.run, stored.kept);
  for (const child of children) yield* exportTree(executor, child, { seen, isAsked: false });
}

/** The lines of one run: its head, a line for what came before, one for each step, and the checksum. */
function linesOf({ earlier, messages, steps, ...run }: RecordedRun, kept: KeptFields): readonly string[] {
  if (steps.length > MAX_RUN_STEPS) throw tooLarge(run, `${steps.length} steps; a file takes up to ${MAX_RUN_STEPS}`);
  const sum = createHash('sha256');
  const lines: string[] = [];
  let bytes = 0;
  const add = (value: object): void => {
    // A terminal or a log that shows the file obeys none of its texts.
    const line = `${escaped(JSON.stringify(value))}\n`;
    bytes += Buffer.byteLength(line) - 1;
    if (bytes > MAX_RUN_BYTES) throw tooLarge(run, `more than the ${MAX_RUN_BYTES} bytes that a file takes`);
    sum.update(line);
    lines.push(line);
  };
  const { opening, rest } = endsOf({ messages, steps });
  add({ pawl: 'run', version: FILE_VERSION, ...run, kept });
  add({ earlier, opening });
  let at = opening.length;
  for (const { phase, before, calls } of steps) {
    const until = endOfStep(messages, at + before.length);
    const children = calls.flatMap(({ id, childRunId }) => (childRunId === undefined ? [] : [[id, childRunId]]));
    add({
      ...(phase === undefined ? {} : { phase }),
      step: messages.slice(at, until),
      ...(children.length > 0 ? { children } : {}),
    });
    at = until;
  }
  add({ rest });
  return [...lines, `${escaped(JSON.stringify({ end: run.runId, lines: lines.length, sha256: sum.digest('hex') }))}\n`];
}

/** A reader takes no such run: a file with it would be found damaged when it is needed. */
function tooLarge({ runId }: Pick<RecordedRun, 'runId'>, what: string): PawlError {
  return new PawlError('UNSUPPORTED', `run ${runId} cannot be exported: it has ${what} a run`);
}

/** The index after an answer and its results. */
function endOfStep(messages: readonly Message[], answer: number): number {
  return messages[answer + 1]?.role === 'tool' ? answer + 2 : answer + 1;
}
