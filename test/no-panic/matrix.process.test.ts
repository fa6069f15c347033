import { beforeAll, describe, expect, test } from 'vitest';
import { findingOf, type Outcome, play, printed } from './matrix.ts';
import { groups, rowsOf } from './rows.ts';

/** A process compiles what it runs once for all of its groups. These two wait about as long. */
const processes = ['models,tools,callbacks,agents', 'storage,supervision'];

describe('under any fault, a run has one end, and the process neither dies nor hangs', () => {
  let all: readonly Outcome[] = [];
  beforeAll(async () => {
    all = (await Promise.all(processes.map(play))).flat();
  }, 480_000);

  test.for(Object.keys(groups))('%s (executor 1, 7, faults 20)', (group) => {
    const ports = new Set(groups[group]);
    const outcomes = all.filter(({ row }) => ports.has(row.port));
    const findings = outcomes.map(findingOf).filter((finding) => finding !== undefined);
    if (findings.length > 0) console.log(printed(outcomes));
    expect(findings).toEqual([]);
    expect(outcomes).toHaveLength(rowsOf(group).length);
  });
});
