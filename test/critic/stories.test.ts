import fc from 'fast-check';
import { expect, test } from 'vitest';
import { torture } from '../crash/random.ts';
import { watched } from './supervised-run.ts';

const [softLimitMs, idleMs] = [100, 20];

/** A wait, then perhaps a sign of life. */
const moments = fc.array(
  fc.record({
    wait: fc.integer({ min: 1, max: 70 }),
    activity: fc.constantFrom(undefined, 'delta', 'tool', 'step'),
  }),
  { minLength: 3, maxLength: 12, size: 'max' },
);
/** What the escalator grants at each alarm; 0 = nothing. */
const grants = fc.array(fc.constantFrom(0, 0, 5, 40, 130), { minLength: 40, maxLength: 40 });

/** When there are alarms, by a clock that ticks every millisecond. */
function alarmsOf(
  story: readonly { wait: number; activity: string | undefined }[],
  granted: readonly number[],
): number[] {
  const alarms: number[] = [];
  let [now, limit, last, isAlarmed] = [0, softLimitMs, 0, false];
  for (const { wait, activity } of story) {
    for (const end = now + wait; now < end; ) {
      now += 1;
      if (isAlarmed || now < limit || now - last < idleMs) continue;
      const extension = granted[alarms.length] ?? 0;
      alarms.push(now);
      isAlarmed = extension === 0;
      limit = Math.max(limit, extension === 0 ? 0 : now + extension);
    }
    if (activity !== undefined) [last, isAlarmed] = [now, false];
  }
  return alarms;
}

test('the alarms of random runs come when a watch that ticks each millisecond would give them (supervision 1)', async () => {
  let count = 0;
  const property = fc.asyncProperty(moments, grants, async (story, granted) => {
    const { run, handle, shown } = watched(({ alarms }) => ({ extendByMs: granted[alarms - 1] || undefined }), {
      softLimitMs,
      options: { idleMs },
    });
    for (const { wait, activity } of story) {
      await run.clock.advance(wait);
      if (activity === 'delta') handle.onActivity({ type: 'delta' });
      if (activity === 'tool') handle.onActivity({ type: 'tool', name: 'look' });
      if (activity === 'step') handle.onActivity({ type: 'step', step: 1, tools: [] });
    }
    expect(shown.map(({ elapsedMs }) => elapsedMs)).toEqual(alarmsOf(story, granted));
    expect(handle.state()).not.toHaveProperty('failures');
    handle.stop();
    expect(run.clock.pending).toBe(0);
    count += shown.length;
  });
  await fc.assert(property, { numRuns: 80 * torture });
  expect(count).toBeGreaterThan(60);
});
