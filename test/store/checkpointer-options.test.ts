import { memoryStore } from 'pawl';
import { createCheckpointer, createCheckpointerFactory } from 'pawl/stores/kit';
import { expect, test } from 'vitest';

const meta = { runId: 'r', agentId: 'a', agentName: 'A', prompt: '', modelTier: 'fast' } as never;
const makers = {
  createCheckpointer: (store: unknown, options: object) => createCheckpointer(store as never, meta, options),
  createCheckpointerFactory: (store: unknown, options: object) => createCheckpointerFactory(store as never, options),
};

test.for(Object.keys(makers) as (keyof typeof makers)[])(
  '%s refuses a number that would disable a limit in silence, with its name and value (faults 20)',
  (name) => {
    const make = (options: object, store: unknown = memoryStore()) => makers[name](store, options);
    for (const wrong of [Number.NaN, '5'])
      for (const option of ['throttleMs', 'timeoutMs', 'maxRecordBytes'])
        for (const store of [memoryStore(), null])
          expect(() => make({ [option]: wrong }, store)).toThrow(`${name}: ${option} must be a number`);
    expect(() => make({ timeoutMs: -1 })).toThrow(TypeError);
    expect(() => make({ throttleMs: 0, timeoutMs: Number.POSITIVE_INFINITY, maxRecordBytes: 1 })).not.toThrow();
  },
);

test('without a store, by null or undefined, a checkpointer and those of a factory record nothing, and are not durable (faults 20)', async () => {
  for (const store of [null, undefined]) {
    const begun = await createCheckpointerFactory(store as never).begin({} as never);
    for (const checkpointer of [createCheckpointer(store as never, meta), begun]) {
      expect(checkpointer?.durable).toBe(false);
      await checkpointer?.save({} as never);
      await checkpointer?.complete();
      await checkpointer?.fail(new Error('x'));
    }
    expect(createCheckpointerFactory(store as never).store).toBeUndefined();
  }
});
