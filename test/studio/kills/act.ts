import { join } from 'node:path';
import { createExecutor } from 'pawl';
import { studioHandler } from 'pawl/studio';
import { openStudioStore } from '../../../src/cli/studio/studio-store.ts';

/** One action of a person. */
export interface Job {
  readonly store: string;
  /** The folder of the files, with a fan-out in `.pawl`. */
  readonly root: string;
  readonly path: string;
  readonly body: object;
}

export interface Answered {
  readonly status: number;
  readonly body: { readonly code?: string; readonly state?: string };
}

/** Does an action as `pawl studio --write --apply` does it: on a store that it opens for reading, and for writing at the action. */
export async function act({ store: path, root, path: route, body }: Job): Promise<Answered> {
  const store = await openStudioStore(path, { codec: undefined, write: true });
  const executor = createExecutor({ models: () => undefined, store, journal: true });
  const studio = studioHandler(executor, {
    authorize: () => ({ callerId: 'studio', by: { id: 'ada' }, all: true }),
    write: true,
    fanOuts: join(root, '.pawl'),
    apply: { root },
  });
  const headers = { 'content-type': 'application/json' };
  const request = new Request(`http://localhost${route}`, { method: 'POST', headers, body: JSON.stringify(body) });
  const answer = await studio(request);
  const text = await answer.text();
  await executor.shutdown();
  await store.close();
  return { status: answer.status, body: JSON.parse(text) };
}
