import { expect, test } from 'vitest';
import { describeSteps } from '../../src/cli/commands/describe-audit.ts';
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

test('`pawl show` says of which calls the outcome is unknown, and which step of a workflow was not finished (supervision 5)', () => {
  const call = { at, callId: '1', name: 'pay', effect: 'idempotent', attempt: 1, input: {}, ms: 3 } as const;
  const tools = [{ ...call, step: 3, name: 'after', output: { type: 'json', value: 2 } }] as const;
  const events = [{ at, type: 'call.unknown', fields: { step: 2, name: 'pay\n' } }];
  const rest = { steps: [], phases: [], isCut: false };
  const lines = [
    '',
    'step 2',
    expect.stringMatching(/^ {2}pay.* → outcome unknown$/),
    'step 3',
    '  after {} → 2 (3 ms)',
  ];
  expect(describeSteps({ iterations: 3, tools, events, ...rest })).toEqual(lines);
  expect(describeSteps({ iterations: 2, tools, events: [], ...rest })).toEqual([
    '',
    'step 3, not finished',
    lines.at(-1),
  ]);
});
