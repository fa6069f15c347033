import { describe, expect, test } from 'vitest';
import { decodeFanOut, encodeFanOut } from '../../src/fan-out/checkpoint.ts';
import { encodeSnapshot } from '../../src/fan-out/snapshot-json.ts';

const response = {
  ...{ model_id: 'a', latency_ms: 1, input_tokens: 1, output_tokens: 1, cost_usd: 0.5 },
  ...{ interrupted: false, completed: true },
};
const file = { version: 1, prompt: 'p', timestamp: '2026-11-28T08:00:00Z', adapter_ids: ['a'], verbose: false };
const read = (fields: object, top: object = {}) =>
  decodeFanOut(JSON.stringify({ ...file, responses: [{ ...response, ...fields }], ...top }), 'x.json');

describe('a file that another program wrote', () => {
  test.for<[string, object]>([
    ['an error', { error: 'no' }],
    ['an interruption', { interrupted: true }],
    ['both', { error: 'no', interrupted: true }],
  ])('whose completed answer also has %s is read as not completed (edges 25)', ([, fields]) => {
    expect(read(fields).responses).toMatchObject([{ ...{ modelId: 'a', completed: false } }]);
    expect(decodeFanOut(encodeFanOut(read(fields)), 'x.json')).toEqual(read(fields));
  });

  test('has empty lists where it says null (edges 25)', () => {
    const [only] = read({ proposed_writes: null, tool_calls: null }).responses;
    expect(only).not.toHaveProperty('proposedWrites');
    expect(only).not.toHaveProperty('toolCalls');
    expect(read({}, { responses: null, adapter_ids: null })).toMatchObject({ responses: [], adapterIds: [] });
  });
});

test('numbers are written as whole ones within 2^53, and a cost as it is (edges 25)', () => {
  const snapshot = {
    ...{ modelId: 'a', latencyMs: 1.6, inputTokens: 1e300, outputTokens: 2.2, costUsd: 0.25, steps: 1.2 },
    ...{ interrupted: false, completed: true, toolCalls: { look: 2.7 } },
  };
  expect(JSON.parse(encodeSnapshot(snapshot as never))).toMatchObject({
    ...{ latency_ms: 2, input_tokens: Number.MAX_SAFE_INTEGER, output_tokens: 2, cost_usd: 0.25, steps: 1 },
    tool_calls: { look: 3 },
  });
});
