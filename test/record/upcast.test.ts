import { describe, expect, test } from 'vitest';
import { isRewritten, type Upcasts, upcast } from '../../src/record/upcast.ts';

/** The first version counted turns, the second has a name for them, the third counts from zero. */
const steps: Upcasts = {
  0: ({ turns, ...record }) => ({ ...record, iteration: turns }),
  1: ({ iteration, ...record }) => ({ ...record, steps: iteration }),
  2: (record) => ({ ...record, steps: Number(record.steps) - 1 }),
};

describe('upcasting (checkpoint 6)', () => {
  test('takes one step a version, whichever version it begins at', () => {
    expect(upcast({ version: 0, turns: 3 }, steps, 3)).toEqual(expect.objectContaining({ version: 3, steps: 2 }));
    expect(upcast({ version: 1, iteration: 3 }, steps, 3)).toMatchObject({ version: 3, steps: 2 });
    expect(upcast({ version: 2, steps: 3 }, steps, 3)).toMatchObject({ version: 3, steps: 2 });
  });

  test('takes a step that changes its draft as one that returns the next record, and leaves what it was given as it is', () => {
    const inPlace: Upcasts = {
      0: (draft) => {
        draft.iteration = draft.turns;
        delete draft.turns;
      },
      1: (draft) => void Object.assign(draft.meta as object, { guildId: '' }),
    };
    const record = { version: 0, turns: 3, meta: { runId: 'r' }, messages: [{ role: 'user' }] };
    const brought = upcast(record, inPlace, 2);
    expect(brought).toEqual(expect.objectContaining({ version: 2, iteration: 3, meta: { runId: 'r', guildId: '' } }));
    expect(brought).not.toHaveProperty('turns');
    expect(brought.messages).toBe(record.messages);
    expect(record.meta).toEqual({ runId: 'r' });
    expect(isRewritten(brought)).toBe(true);
  });

  test('leaves a record of the version it aims at as it is, and marks what it has changed', () => {
    const record = { version: 3, steps: 2 };
    expect(upcast(record, steps, 3)).toBe(record);
    expect(isRewritten(record)).toBe(false);
    const changed = upcast({ version: 2, steps: 3 }, steps, 3);
    expect(isRewritten({ ...changed, messages: [] })).toBe(true);
    expect(JSON.stringify(changed)).toBe('{"version":3,"steps":2}');
  });

  test('changes nothing of what it was given', () => {
    const record = Object.freeze({ version: 0, turns: 3 });
    upcast(record, steps, 3);
    expect(record).toEqual({ version: 0, turns: 3 });
  });

  test('ends, and says so, where a step is missing', () => {
    expect(() => upcast({ version: 0, turns: 3 }, { 1: (record) => record }, 2)).toThrow(
      expect.objectContaining({ code: 'CHECKPOINT_CORRUPT', message: expect.stringContaining('version 0') }),
    );
  });

  test('counts the versions itself: a step that forgets to does no harm', () => {
    expect(upcast({ version: 1 }, { 1: (record) => ({ ...record, version: 1 }) }, 2).version).toBe(2);
  });
});
