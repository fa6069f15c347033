import { createHash } from 'node:crypto';
import { type PreviewedFile, previewWrites } from '../../edits/index.ts';
import { snapshotFromPartial, toModelResponse } from '../../fan-out/index.ts';
import { toErrorData } from '../../values/error-data.ts';
import type { FanOutAnswer, FanOutLine, FanOutView, ProposedFile } from '../fan-out-wire.ts';
import type { FanOut } from './fan-out-files.ts';
import { type DiffWork, lineDiff, workOfView } from './line-diff.ts';
import { sharedPlaces } from './shared-places.ts';

type ModelAnswer = ReturnType<typeof toModelResponse>;

const MAX_TEXT = 65_536;
const MAX_ANSWERS = 100;
const MAX_PROPOSED = 200;

/** Returns the answers of a fan-out: one for each model, in their order. */
export function answersOfFanOut({ adapterIds, responses }: FanOut): readonly ModelAnswer[] {
  const ids = new Set([...adapterIds, ...responses.map(({ modelId }) => modelId)]);
  const all = new Map(responses.map((response) => [response.modelId, response]));
  return [...ids].slice(0, MAX_ANSWERS).map((id) => toModelResponse(all.get(id) ?? snapshotFromPartial(id, {})));
}

/** Names the changes of an answer: those that were shown are those that are applied. */
export function digestOfFanOut({ proposedWrites }: ModelAnswer): string {
  return createHash('sha256').update(JSON.stringify(proposedWrites)).digest('base64url');
}

/**
 * Returns the view of a fan-out.
 * @param root the folder to which changes may be applied; without it they are shown without the files that they change
 */
export async function fanOutView(
  line: FanOutLine,
  fanOut: FanOut,
  root: string | undefined,
): Promise<Omit<FanOutView, 'actions'>> {
  const order = fanOut.ranking?.order ?? [];
  const answers: FanOutAnswer[] = [];
  const work = workOfView();
  for (const answer of answersOfFanOut(fanOut)) answers.push(await answerView(answer, { line, order, root, work }));
  const { reason = '' } = fanOut.ranking ?? {};
  return {
    ...line,
    answers,
    shared: sharedPlaces(answers),
    ...(reason === '' ? {} : { reason: reason.slice(0, MAX_TEXT) }),
  };
}

interface Around {
  readonly line: FanOutLine;
  readonly order: readonly string[];
  readonly root: string | undefined;
  readonly work: DiffWork;
}

async function answerView(answer: ModelAnswer, { line, order, root, work }: Around): Promise<FanOutAnswer> {
  const { modelId, text, latencyMs, inputTokens, outputTokens, costUsd, steps, error, stopReason } = answer;
  const place = order.indexOf(modelId);
  return {
    modelId,
    state: stateOf(answer, line),
    stopReason,
    latencyMs,
    inputTokens,
    outputTokens,
    usd: costUsd,
    steps,
    ...(place < 0 ? {} : { rank: place + 1 }),
    text: text.slice(0, MAX_TEXT).toWellFormed(),
    more: Math.max(0, text.length - MAX_TEXT),
    ...(error === undefined ? {} : { error: error.slice(0, MAX_TEXT) }),
    ...(await readProposed(answer, root, work)),
  };
}

function stateOf({ error, interrupted, stopReason }: ModelAnswer, line: FanOutLine): FanOutAnswer['state'] {
  if (error !== undefined) return 'fail';
  if (!interrupted) return 'ok';
  if (stopReason === 'cancelled') return 'cut';
  return line.state === 'run' && stopReason === '' ? 'run' : 'idle';
}

type Proposed = Pick<FanOutAnswer, 'files' | 'digest' | 'trouble'>;

async function readProposed(answer: ModelAnswer, root: string | undefined, work: DiffWork): Promise<Proposed> {
  if (answer.proposedWrites.length === 0) return { files: [] };
  const digest = digestOfFanOut(answer);
  const known = answer.proposedWrites.slice(0, MAX_PROPOSED);
  const alone = known.map((write) => ({ path: write.path, before: null, after: write.delete ? null : write.content }));
  const shown = (file: PreviewedFile) => fileView(file, work);
  if (root === undefined) return { files: alone.map(shown), digest };
  try {
    const files = await previewWrites(answer, { root });
    return { files: files.slice(0, MAX_PROPOSED).map(shown), digest };
  } catch (error) {
    const { code = 'INTERNAL', message } = toErrorData(error, 'INTERNAL');
    return { files: alone.map(shown), digest, trouble: { code, message } };
  }
}

function fileView({ path, before, after, warning }: PreviewedFile, work: DiffWork): ProposedFile {
  const change = after === null ? 'deleted' : before === null ? 'created' : 'changed';
  const diff = lineDiff(before === null ? '' : Buffer.from(before).toString(), after ?? '', work);
  return { path, change, ...(warning === undefined ? {} : { warning }), ...diff };
}
