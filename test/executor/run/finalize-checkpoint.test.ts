import { finalizeCheckpoint } from 'pawl/stores/kit';
import { recordingCheckpointer } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { ShutdownError } from '../../../src/values/errors.ts';

describe('finalizeCheckpoint', () => {
  test.for([
    ['completes after a success', undefined, undefined, 'complete', 1, 0],
    ['completes after a success that a shutdown met', null, new ShutdownError(), 'complete', 1, 0],
    ['leaves the record of a run that a shutdown stopped', new Error('x'), new ShutdownError(), 'leave-running', 0, 0],
    ['fails after an error', new Error('x'), undefined, 'fail', 0, 1],
    ['fails after an error that only is a ShutdownError', new ShutdownError(), undefined, 'fail', 0, 1],
  ] as const)('%s, and says so (finalize 1, 2)', async ([, error, cause, outcome, completed, failed]) => {
    const checkpointer = recordingCheckpointer();
    expect(await finalizeCheckpoint(checkpointer, error, cause)).toBe(outcome);
    expect([checkpointer.completed, checkpointer.failed]).toEqual([completed, failed]);
    if (failed) expect(checkpointer.error).toBe(error);
    expect(await finalizeCheckpoint(null, error, cause)).toBe(outcome);
  });

  test('rejects with the checkpointer’s error, for the caller to report (finalize 5)', async () => {
    const broken = { ...recordingCheckpointer(), complete: () => Promise.reject(new Error('read-only')) };
    await expect(finalizeCheckpoint(broken, undefined, undefined)).rejects.toThrow('read-only');
  });
});
