import { type AppliedWrites, applyWrites, WriteConflictError } from '../../edits/index.ts';
import { jsonAnswer, RequestError } from '../../http/problem.ts';
import type { GrantedCall, Route } from '../../http/route.ts';
import { answerOf, anything, count, objectOf, text } from '../../http/schemas.ts';
import type { Studio } from '../studio.ts';
import type { AppliedFiles, FanOutList } from '../wire.ts';
import { FanOutFiles } from './fan-out-files.ts';
import { answersOf, digestOf, fanOutView } from './fan-out-view.ts';

const list = { type: 'array', items: anything };

/** The routes of fan-outs. They belong to no caller: only a reader of all runs sees them. */
export function fanOutRoutes({ fanOuts, apply }: Studio): readonly Route[] {
  const files = new FanOutFiles(fanOuts);
  const reading: readonly Route[] = [
    {
      method: 'GET',
      path: '/fan-outs',
      summary: 'Lists the fan-outs below the folder of fan-outs, the newest first.',
      action: 'inspect',
      answers: { 200: { description: 'The fan-outs.', schema: answerOf({ items: list, folder: text }) } },
      handle: async ({ grant }: GrantedCall) => {
        const nothing: FanOutList = { items: [], folder: '', isPartial: false };
        return jsonAnswer(grant.all ? await files.list() : nothing);
      },
    },
    {
      method: 'GET',
      path: '/fan-outs/:fanOutId',
      summary: 'Shows a fan-out: what each model answered, and the changes of files that it proposes.',
      action: 'inspect',
      answers: { 200: { description: 'The fan-out.', schema: answerOf({ id: text, models: count, answers: list }) } },
      handle: async (call: GrantedCall) => {
        const { line, fanOut } = await files.read(idIn(call));
        return jsonAnswer(await fanOutView(line, fanOut, apply?.root));
      },
    },
  ];
  return apply ? [...reading, applyRoute(files, apply.root)] : reading;
}

/** Applied changes that can be taken back here. */
const MAX_TAKEN_BACK = 20;

function applyRoute(files: FanOutFiles, root: string): Route {
  // Of this process: `rewind` without a name would take back the newest changes of the root, also those of others.
  const done = new Map<string, AppliedWrites>();
  return {
    method: 'POST',
    path: '/fan-outs/:fanOutId/apply',
    summary:
      'Applies the changes that a model proposes: all of them, or none. With `undo` it takes back what was applied of this fan-out last.',
    action: 'apply',
    body: objectOf({ modelId: text, digest: text, undo: { type: 'boolean' } }),
    answers: { 200: { description: 'The changed files.', schema: answerOf({ files: list }) } },
    problems: ['WRITE_CONFLICT', 'WRITE_FAILED', 'WRITE_OUTSIDE_ROOT'],
    handle: async (call: GrantedCall) => {
      const id = idIn(call);
      const { modelId, digest, undo } = call.body;
      if (undo === true) {
        await files.read(id);
        return jsonAnswer({ files: await takenBack(done, id) } satisfies AppliedFiles);
      }
      const writes = await applied(files, { id, modelId, digest, root });
      done.delete(id);
      if (writes.files.length > 0) done.set(id, writes);
      for (const first of [...done.keys()].slice(0, -MAX_TAKEN_BACK)) done.delete(first);
      return jsonAnswer({ files: writes.files } satisfies AppliedFiles);
    },
  };
}

async function takenBack(done: Map<string, AppliedWrites>, id: string): Promise<AppliedFiles['files']> {
  const writes = done.get(id);
  if (!writes)
    throw new WriteConflictError(
      'this Studio has applied nothing of the fan-out; use `pawl ask rewind` for the newest changes',
    );
  const { files } = await writes.rewind();
  done.delete(id);
  return files;
}

interface Wanted {
  readonly id: string;
  readonly modelId: unknown;
  readonly digest: unknown;
  readonly root: string;
}

/** What is applied is what was shown: the model may have proposed more since. */
async function applied(files: FanOutFiles, { id, modelId, digest, root }: Wanted): Promise<AppliedWrites> {
  const { fanOut } = await files.read(id);
  const answer = answersOf(fanOut).find((each) => each.modelId === modelId);
  if (!answer) throw new RequestError('BAD_REQUEST', 'the fan-out has no such model');
  if (digestOf(answer) !== digest)
    throw new WriteConflictError('the proposed changes are not those that were shown; load the fan-out again');
  return applyWrites(answer, { root });
}

function idIn({ grant, params }: GrantedCall): string {
  if (!grant.all) throw new RequestError('NOT_FOUND');
  return params.fanOutId ?? '';
}
