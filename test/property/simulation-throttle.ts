import { createCheckpointerFactory } from 'pawl';
import { hasCode } from '../../src/run/error-data.ts';
import type { Job } from '../../src/testing/crash-test-process.ts';
import { type Fired, fire } from './simulation-store.ts';

/** How the processes of a history record their runs, where a throttle is set. */
export type Recording = (throttleMs: number, fired: Fired) => NonNullable<Job['checkpointer']>;

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
    return {
      store,
      begin: async (info, options) => {
        const checkpointer = await factory.begin(info, options);
        const save = checkpointer?.save.bind(checkpointer);
        if (!checkpointer || !save) return checkpointer;
        return Object.assign(checkpointer, {
          save: async (...args: Parameters<typeof save>) => {
            const before = writes;
            await save(...args);
            if (writes === before) fire(fired, 'put off');
          },
        });
      },
    };
  };
};

/** One that lies: what it put off is never written, unless something newer is. */
export const forgetful: Recording = (throttleMs, fired) => {
  return (store, clock) => throttled(throttleMs, fired)(store, { ...clock, setTimeout: () => undefined });
};

/** One that lies: a save that was not answered in time counts as landed. */
export const trusting: Recording = (throttleMs, fired) => {
  return (store, clock) => {
    const factory = throttled(throttleMs, fired)(store, clock);
    return {
      store,
      begin: async (info, options) => {
        const checkpointer = await factory.begin(info, options);
        const save = checkpointer?.save.bind(checkpointer);
        if (!checkpointer || !save) return checkpointer;
        return Object.assign(checkpointer, {
          save: (...args: Parameters<typeof save>) =>
            save(...args).catch((error: unknown) => {
              if (!hasCode(error, 'PORT_TIMEOUT')) throw error;
            }),
        });
      },
    };
  };
};
