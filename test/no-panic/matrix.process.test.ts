import { describe, expect, test } from 'vitest';
import { findingOf, play, printed } from './matrix.ts';
import { groups, rowsOf } from './rows.ts';

describe.concurrent('whatever misbehaves, a run has one end, and the process neither dies nor hangs', () => {
  test.for(Object.keys(groups))('%s (executor 1, 7, faults 20)', { timeout: 240_000 }, async (group) => {
    const outcomes = await play(group);
    const findings = outcomes.map(findingOf).filter((finding) => finding !== undefined);
    if (findings.length > 0) console.log(printed(outcomes));
    expect(findings).toEqual([]);
    expect(outcomes).toHaveLength(rowsOf(group).length);
  });
});
