import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crashTest } from 'pawl/testing';
import { deskWith } from './agent.ts';
import { play } from './model.ts';

test('a refund that a person approved is paid once, wherever the process dies', async () => {
  const report = await crashTest({
    agent: deskWith(async () => {}), // a double: no money is paid here
    prompt: 'Refund order 7.',
    model: play,
    answers: (wait) => (wait.kind === 'approval' ? { how: 'approve', by: { id: 'ada' } } : undefined),
  });
  assert.equal(report.undisturbed.output, 'Order 7 is refunded: 42.00 EUR.');
  assert.deepEqual(report.violations, []);
  console.log(`${report.crashes} crashes, at each of ${report.boundaries} boundaries`);
});
