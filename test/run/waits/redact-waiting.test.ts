import { expect, test } from 'vitest';
import { redactWaiting, type Waiting } from '../../../src/run/waits/wait.ts';
import type { FieldRedactor } from '../../../src/values/redact.ts';

const by = {
  once: (_: object, redact: () => unknown) => redact(),
  text: (text: string) => text.replaceAll('sk-1', '[key]'),
} as unknown as FieldRedactor;

test('the notes of an approval that is over have no secret that a process without redaction recorded (waiting 13)', () => {
  const votes = [
    { by: { id: 'ada' }, at: 1, note: 'sk-1 fits' },
    { by: { id: 'bob' }, at: 2, note: 'sk-1 too' },
  ];
  const ended = { id: 'w', kind: 'approval', how: 'approve', at: 2, digest: 'd' } as const;
  const waiting: Waiting = { waits: [], settled: [{ ...ended, note: 'sk-1 too', votes }, ended] };
  expect(redactWaiting(waiting, by).settled).toEqual([
    { ...ended, note: '[key] too', votes: votes.map((vote) => ({ ...vote, note: by.text(vote.note) })) },
    ended,
  ]);
});
