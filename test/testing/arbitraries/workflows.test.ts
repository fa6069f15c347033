import fc from 'fast-check';
import { createExecutor, defineAgent, memoryStore, type Workflow } from 'pawl';
import { parseCheckpoint } from 'pawl/stores/kit';
import { arbitraries } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { refundOf } from '../../workflow/refund.ts';

const { workflowCheckpoint } = arbitraries(fc);
const refund = refundOf({ paid: [] });
const cents = fc.constantFrom(500, 70_000);
const records = workflowCheckpoint(refund, {
  input: fc.constantFrom({ order: 'small' }, { order: 'large' }),
  outputs: {
    lookUp: cents.map((each) => ({ order: 'x', cents: each })),
    pay: fc.constant({ receipt: 'r' }),
    manager: fc.constantFrom('yes', 'no'),
  },
  events: fc.constant({ type: 'cancel', by: 'ada' }),
});

describe('records of a workflow', () => {
  test('are such as stores have, in each state of the machine that is not final, with calls that have begun and others (workflow 26)', () => {
    const sample = fc.sample(records, { numRuns: 300, seed: 1 });
    for (const record of sample) expect(parseCheckpoint(record)).toEqual(record);
    const states = new Set(sample.map(({ workflow }) => workflow?.snapshot.value));
    expect(states).toEqual(new Set(['looking', 'asking', 'paying', 'settling']));
    const calls = sample.flatMap(({ openStep }) => openStep?.calls.map(({ state }) => state) ?? []);
    expect(new Set(calls)).toEqual(new Set(['planned', 'started']));
    expect(sample.some(({ waiting }) => (waiting?.waits.length ?? 0) > 0)).toBe(true);
  });

  test('are continued by an executor: none of them ends with an error (workflow 26)', async () => {
    await fc.assert(
      fc.asyncProperty(records, async (record) => {
        const store = memoryStore();
        await store.save(record);
        const executor = createExecutor({
          store,
          workflows: [refund],
          defaults: { waitLingerMs: 1 },
          logger: { warn: () => {} },
        });
        await executor.recover();
        const result = await executor.get(record.meta.runId)?.result;
        expect(result?.status).toMatch(/^(ok|waiting)$/);
        await executor.shutdown();
      }),
      { numRuns: 40 },
    );
  });

  test('are refused for what is no workflow', () => {
    const agent = defineAgent({ id: 'a', instructions: '' }) as unknown as Workflow;
    expect(() => workflowCheckpoint(agent)).toThrow('workflowCheckpoint needs a workflow made with defineWorkflow');
  });
});
