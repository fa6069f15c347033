import { type AppliedWrites, applyWrites } from '../../edits/index.ts';
import { jsonAnswer, RequestError } from '../../http/problem.ts';
import type { GrantedCall, Route } from '../../http/route.ts';
import { answerSchemaOf, anything, countSchema, objectOf, text } from '../../http/schemas.ts';
import { PawlError } from '../../index.ts';
import type { AppliedFiles, FanOutList, FanOutView } from '../fan-out-wire.ts';
import type { Studio } from '../studio.ts';
import { AppliedLog } from './applied-log.ts';
import { FanOutFiles } from './fan-out-files.ts';
import { answersOfFanOut, digestOfFanOut, fanOutView } from './fan-out-view.ts';

const list = { type: 'array', items: anything };

/** The routes of fan-outs. They belong to no caller: only a reader of all runs sees them. */
export function fanOutRoutes({ fanOuts, apply, served: { web } }: Studio): readonly Route[] {
  const files = new FanOutFiles(fanOuts);
  const logOf: LogOf = (path) => new AppliedLog(path, { now: () => web.clock.now(), warn: web.warn });
  const reading: readonly Route[] = [
    {
      method: 'GET',
      path: '/fan-outs',
      summary: 'Lists the fan-outs below the folder of fan-outs, the newest first.',
      action: 'inspect',
      answers: { 200: { description: 'The fan-outs.', schema: answerSchemaOf({ items: list, folder: text }) } },
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
      answers: {
        200: { description: 'The fan-out.', schema: answerSchemaOf({ id: text, models: countSchema, answers: list }) },
      },
      handle: async (call: GrantedCall) => {
        const { line, fanOut, path } = await files.read(idIn(call));
        const actions = await logOf(path).read();
        return jsonAnswer({ ...(await fanOutView(line, fanOut, apply?.root)), actions } satisfies FanOutView);
      },
    },
  ];
  return apply ? [...reading, applyRoute(files, apply.root, logOf)] : reading;
}

/** Applied changes that can be taken back here. */
const MAX_TAKEN_BACK = 20;

/** What was applied of a fan-out last. */
interface Done {
  readonly modelId: string;
  readonly writes: AppliedWrites;
}

/** Where changes are applied, and recorded. */
interface Place {
  readonly files: FanOutFiles;
  readonly root: string;
  readonly logOf: LogOf;
  /** Of this process: `rewind` without a name would take back the newest changes of the root, also those of others. */
  readonly done: Map<string, Done>;
}

type LogOf = (path: string) => AppliedLog;

function applyRoute(files: FanOutFiles, root: string, logOf: LogOf): Route {
  const place: Place = { files, root, logOf, done: new Map() };
  return {
    method: 'POST',
    path: '/fan-outs/:fanOutId/apply',
    summary:
      'Applies the changes that a model proposes: all of them, or none. With `undo` it takes back what was applied of this fan-out last.',
    action: 'apply',
    body: objectOf({ modelId: text, digest: text, undo: { type: 'boolean' } }),
    answers: { 200: { description: 'The changed files.', schema: answerSchemaOf({ files: list }) } },
    problems: ['WRITE_CONFLICT', 'WRITE_FAILED', 'WRITE_OUTSIDE_ROOT'],
    handle: async (call: GrantedCall) => {
      const { files: changed } =
        call.body.undo === true ? await takeBackFiles(place, call) : await applyFiles(place, call);
      return jsonAnswer({ files: changed } satisfies AppliedFiles);
    },
  };
}

async function takeBackFiles({ files, logOf, done }: Place, call: GrantedCall): Promise<AppliedFiles> {
  const id = idIn(call);
  const { path } = await files.read(id);
  const last = done.get(id);
  if (!last)
    throw new PawlError(
      'WRITE_CONFLICT',
      'this Studio has applied nothing of the fan-out; use `pawl ask rewind` for the newest changes',
    );
  const asked = { action: 'take-back', modelId: last.modelId, by: call.grant.by } as const;
  const rewound = await logOf(path).during(asked, () => last.writes.rewind());
  done.delete(id);
  return rewound;
}

/** What is applied is what was shown: the model may have proposed more since. */
async function applyFiles({ files, root, logOf, done }: Place, call: GrantedCall): Promise<AppliedFiles> {
  const id = idIn(call);
  const { fanOut, path } = await files.read(id);
  const { modelId, digest } = call.body;
  const answer = answersOfFanOut(fanOut).find((each) => each.modelId === modelId);
  if (!answer) throw new RequestError('BAD_REQUEST', 'the fan-out has no such model');
  if (digestOfFanOut(answer) !== digest)
    throw new PawlError('WRITE_CONFLICT', 'the proposed changes are not those that were shown; load the fan-out again');
  const asked = { action: 'apply', modelId: answer.modelId, by: call.grant.by } as const;
  const writes = await logOf(path).during(asked, () => applyWrites(answer, { root }));
  done.delete(id);
  if (writes.files.length > 0) done.set(id, { modelId: answer.modelId, writes });
  for (const first of [...done.keys()].slice(0, -MAX_TAKEN_BACK)) done.delete(first);
  return writes;
}

function idIn({ grant, params }: GrantedCall): string {
  if (!grant.all) throw new RequestError('NOT_FOUND');
  return params.fanOutId ?? '';
}
