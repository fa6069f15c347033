import { expect, test } from 'vitest';
import { waitingText } from '../../src/run/outcome.ts';
import type { Wait } from '../../src/run/waits/wait.ts';

const wait = (kind: Wait['kind'], more: object = {}) =>
  ({ id: 'w', kind, createdAt: 0, step: 1, callId: 'c', tool: 'pay', ...more }) as unknown as Wait;

test('a run that waits says for what, and what ends the wait (waiting 1)', () => {
  expect(waitingText('r', [wait('approval')])).toBe(
    'run r waits for an approval of pay (wait w); it continues once a person answers with executor.control(runId).approve(…) or deny(…); `npx --no-install pawl waiting --store <its store>` lists the commands',
  );
  expect(waitingText('r', [wait('question'), wait('timer')])).toMatch(
    /^run r waits for an answer \(wait w\) and 1 more; it continues once .*control\(runId\)\.answer\(…\); `npx --no-install pawl waiting --store/,
  );
  expect(waitingText('r', [wait('event', { name: 'paid' })])).toBe(
    'run r waits for the event paid; it continues once executor.signal sends the event',
  );
  for (const kind of ['timer', 'child', 'retry'] as const)
    expect(waitingText('r', [wait(kind)])).toMatch(/^run r waits for \S.*; it continues once \S/);
  expect(waitingText('r', [])).toBe('run r waits; it continues when a wait is over');
});
