import { createCheckpointerFactory } from 'pawl';
import type { Job } from '../../src/testing/crash-test-process.ts';
import { type Fired, fire } from './simulation-store.ts';

/** A factory whose checkpointers write no more than they must, and that counts the saves it put off. */
export function throttled(throttleMs: number, fired: Fired): NonNullable<Job['checkpointer']> {
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
}
