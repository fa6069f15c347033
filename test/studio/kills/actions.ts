import { join } from 'node:path';
import { createExecutor } from 'pawl';
import { AppliedLog } from '../../../src/studio/fan-outs/applied-log.ts';
import { FanOutFiles } from '../../../src/studio/fan-outs/fan-out-files.ts';
import { answersOfFanOut, digestOfFanOut } from '../../../src/studio/fan-outs/fan-out-view.ts';
import { act, type Job } from './act.ts';
import type { RunId, World } from './world.ts';

/** An action of a person, and what must hold after a Studio was killed in the middle of it. */
export interface Action {
  /** The request. */
  requestFor(world: World): Promise<Pick<Job, 'path' | 'body'>>;
  /** How often it is there after the kill: 0 or 1. */
  count(world: World): Promise<number>;
  /** What is wrong once it is there, and processes have worked on. @param again does the action once more */
  wrongs(world: World, again: () => Promise<number>): Promise<readonly string[]>;
}

const SAID = 'Mind the gap.';

/** Commands to a run that no process has read, and its record. */
async function seen(world: World, runId: RunId) {
  const store = world.open();
  const executor = createExecutor({ models: () => undefined, store, journal: true });
  const found = await executor.explain(runId);
  await executor.shutdown();
  await store.close();
  return {
    sent: (kind: string) => found?.commands.filter(({ command }) => command.kind === kind).length ?? 0,
    record: found?.record,
    outcome: found?.outcome,
  };
}

const expected = (isTrue: boolean, what: string) => (isTrue ? [] : [what]);

async function digestIn(world: World) {
  const files = new FanOutFiles(join(world.root, '.pawl'));
  const [line] = (await files.list()).items;
  const { fanOut, path } = await files.read(line?.id ?? '');
  const [answer] = answersOfFanOut(fanOut);
  if (!line || !answer) throw new Error('there is no fan-out');
  return { id: line.id, path, modelId: answer.modelId, digest: digestOfFanOut(answer) };
}

/** The actions by their names. */
export const actions: { readonly [name: string]: Action } = {
  answer: {
    async requestFor(world) {
      const [wait] = (await seen(world, 'wait')).record?.waiting?.waits ?? [];
      return { path: `/runs/wait/answers/${wait?.id}`, body: { how: 'approve' } };
    },
    async count(world) {
      const { sent, record } = await seen(world, 'wait');
      return sent('answer') + (record?.waiting?.settled.length ?? 0);
    },
    async wrongs(world, again) {
      // The page sends an answer that did not arrive once more: it counts once.
      const status = await again();
      const { output, paid } = await world.work('wait');
      return [
        ...expected(status < 300, `again: ${status}`),
        ...expected(output?.status === 'ok', `it ended ${output?.status}`),
        ...expected(paid === 1, `it paid ${paid} times`),
      ];
    },
  },
  steer: {
    requestFor: async () => ({ path: '/runs/left/steer', body: { text: SAID } }),
    count: async (world) => (await seen(world, 'left')).sent('steer'),
    async wrongs(world, again) {
      if ((await seen(world, 'left')).sent('steer') === 0) await again();
      const { output, messages } = await world.work('left');
      const said = messages.split(SAID).length - 1;
      return [
        ...expected(output?.status === 'ok', `it ended ${output?.status}`),
        ...expected(said === 1, `it was said ${said} times`),
      ];
    },
  },
  cancel: {
    requestFor: async () => ({ path: '/runs/left/cancel', body: { reason: 'not needed' } }),
    async count(world) {
      const { sent, outcome } = await seen(world, 'left');
      return Math.max(sent('cancel'), outcome ? 1 : 0);
    },
    async wrongs(world, again) {
      const status = await again();
      const { outcome } = await seen(world, 'left');
      await world.work('left');
      return [
        ...expected(status === 200, `again: ${status}`),
        ...expected(outcome?.status === 'cancelled', `it ended ${outcome?.status}`),
        ...expected(outcome?.error?.message === 'not needed (by ada)', `its error is ${outcome?.error?.message}`),
      ];
    },
  },
  park: {
    requestFor: async () => ({ path: '/runs/left/park', body: { reason: 'a look' } }),
    count: async (world) => ((await seen(world, 'left')).record?.parked ? 1 : 0),
    async wrongs(world, again) {
      const status = await again();
      const { output } = await world.work('left');
      const { record } = await seen(world, 'left');
      return [
        ...expected(status === 200, `again: ${status}`),
        ...expected(output === undefined, `it was continued: ${output?.status}`),
        ...expected(record?.parked?.by?.id === 'ada', `it is parked by ${record?.parked?.by?.id}`),
      ];
    },
  },
  unpark: {
    requestFor: async () => ({ path: '/runs/parked/unpark', body: {} }),
    count: async (world) => ((await seen(world, 'parked')).record?.parked ? 0 : 1),
    async wrongs(world, again) {
      const status = await again();
      const { output } = await world.work('parked');
      return [
        ...expected(status === 200, `again: ${status}`),
        ...expected(output?.status === 'ok', `it ended ${output?.status}`),
      ];
    },
  },
  apply: {
    async requestFor(world) {
      const { id, modelId, digest } = await digestIn(world);
      return { path: `/fan-outs/${id}/apply`, body: { modelId, digest } };
    },
    // A kill between two files leaves what the next action puts back: each file is whole, whichever it is.
    async count(world) {
      const known = world.files().filter((text) => /^(old|new) [ab]\.txt$/.test(text)).length;
      return known === 2 ? 1 : known + 2;
    },
    async wrongs(world, again) {
      const status = await again();
      const { path } = await digestIn(world);
      const log = new AppliedLog(path, { now: () => 0, warn: () => {} });
      const recorded = await log.read();
      return [
        ...expected(status === 200 || status === 409, `again: ${status}`),
        ...expected(world.files().join() === 'new a.txt,new b.txt', `the files are ${world.files()}`),
        ...expected(recorded.every(({ by }) => by?.id === 'ada') && recorded.length > 0, 'no person is recorded'),
      ];
    },
  },
};

/** Does an action in this process, as another Studio would. @returns the status of its answer */
export async function actHere(world: World, request: Pick<Job, 'path' | 'body'>): Promise<number> {
  return (await act({ store: world.store, root: world.root, ...request })).status;
}
