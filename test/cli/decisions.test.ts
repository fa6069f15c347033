import { expect, test } from 'vitest';
import { decisionsIn } from '../../src/cli/commands/describe-run.ts';
import type { RunCheckpoint } from '../../src/record/checkpoint.ts';

const at = Date.now() - 5_000;
const ada = { id: 'ada', name: 'Ada' };
const bob = { id: 'bob' };
const linesOf = (...settled: object[]) => decisionsIn({ waiting: { waits: [], settled } } as unknown as RunCheckpoint);
const approval = { id: 'w', kind: 'approval', how: 'approve', at };

test('`pawl show` says who decided, with each note of an approval, and no control character of it (waiting 7)', () => {
  const noted = linesOf({ ...approval, by: ada, note: 'I rang\u001b\nher' });
  expect(noted).toEqual([expect.stringMatching(/^decided: approval, approve by Ada, .+ ago: I rang.*her$/)]);
  expect(noted.join('')).not.toContain('\u001b');
  const votes = [
    { by: ada, at, note: 'It is due.' },
    { by: bob, at },
  ];
  expect(linesOf({ ...approval, by: bob, votes })).toEqual([
    expect.stringMatching(/^decided: approval, approve by Ada, .+ ago: It is due\.$/),
    expect.stringMatching(/^decided: approval, approve by bob, .+ ago$/),
  ]);
  expect(linesOf({ ...approval, kind: 'timer', how: 'expire' })).toEqual([]);
});
