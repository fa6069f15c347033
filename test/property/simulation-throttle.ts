import type { CheckpointStore } from 'pawl';
import { createCheckpointerFactory } from 'pawl/stores/kit';
import type { ProcessJob } from '../../src/testing/crash-test/process.ts';
import { hasCode } from '../../src/values/error-data.ts';
import { type Fired, fire } from './simulation-store.ts';

/** How the processes of a history record their runs, where a throttle is set. */
export type Recording = (throttleMs: number, fired: Fired) => NonNullable<ProcessJob['checkpointer']>;

/** A factory whose checkpointers write no more than they must, and that counts the saves it put off. */
export const throttled: Recording = (throttleMs, fired) => {
  return (store, clock) => {
    let writes = 0;
    const counting = new Proxy(store, {
      get(_, key) {
        if (key === 'save' || key === 'append') writes += 1;
        return Reflect.get(store, key);
      },
    });
    const factory = createCheckpointerFactory(counting, { throttleMs, clock });
    return around(store, factory, async (save) => {
      const before = writes;
      await save();
      if (writes === before) fire(fired, 'put off');
    });
  };
};

/** One that lies: what it put off is never written, unless something newer is. */
export const forgetful: Recording = (throttleMs, fired) => {
  return (store, clock) => throttled(throttleMs, fired)(store, { ...clock, setTimeout: () => undefined });
};

/** One that lies: a save that was not answered in time counts as landed. */
export const trusting: Recording = (throttleMs, fired) => {
  return (store, clock) => {
    return around(store, throttled(throttleMs, fired)(store, clock), (save) =>
      save().catch((error: unknown) => {
        if (!hasCode(error, 'PORT_TIMEOUT')) throw error;
      }),
    );
  };
};

type Factory = ReturnType<ReturnType<Recording>>;

/** The same factory, with something around each save. */
function around(
  store: CheckpointStore,
  factory: Pick<Factory, 'begin'>,
  wrap: (save: () => Promise<void>) => Promise<void>,
): Factory {
  return {
    store,
    begin: async (info, options) => {
      const checkpointer = await factory.begin(info, options);
      const save = checkpointer?.save.bind(checkpointer);
      if (!checkpointer || !save) return checkpointer;
      return Object.assign(checkpointer, {
        save: (...args: Parameters<typeof save>) => wrap(async () => save(...args)),
      });
    },
  };
}
