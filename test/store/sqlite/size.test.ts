import { statSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { type OpenStep, resultsMessage } from '../../../src/run/open-step.ts';
import { sqliteStore } from '../../../src/store/sqlite/index.ts';
import { nextStep, sampleRecord, userMessage } from '../../../src/testing/store-contract/records.ts';
import { freshPath } from './files.ts';

const STEP = 5_000;
const text = 'x'.repeat(STEP - 60);

/** So many calls in a step of the size, each with a share of it: half in its input, half in its result. */
function openSteps(n: number, { calls, size }: { calls: number; size: number }): OpenStep[] {
  const share = text.slice(0, (size / calls - 400) / 2);
  const content = Array.from({ length: calls }, (_, i) => ({
    type: 'tool-call' as const,
    toolCallId: `call-${n}-${i}`,
    toolName: 'send',
    input: { to: `${n}-${i}`, share },
  }));
  const message = { role: 'assistant' as const, content };
  // First the intent, then a save with each result.
  return Array.from({ length: calls + 1 }, (_, done) => ({
    message,
    calls: content.map(({ toolCallId: callId, toolName: name, input }, i) => {
      const line = { callId, name, input, effect: 'once' as const, attempt: 1 };
      const result = { type: 'text' as const, value: `${callId} ${share}` };
      return i < done ? { ...line, state: 'done' as const, result } : { ...line, state: 'started' as const };
    }),
  }));
}

/**
 * A run of so many steps; what its closed file keeps, as a multiple of what its steps say.
 * @param calls of `once` tools in each step; 0: `read` tools, which are recorded with their step
 */
async function keptOf(steps: number, calls: number, size = STEP): Promise<number> {
  const path = freshPath();
  const store = sqliteStore({ path, durability: 'process' });
  const claim = (await store.claim('run', 'one', 600_000)) ?? undefined;
  let record = sampleRecord('run');
  await store.save(record, { claim });
  for (let n = 0; n < steps; n++) {
    for (const openStep of calls > 0 ? openSteps(n, { calls, size }) : []) {
      const open = nextStep(record, [], { openStep });
      await store.append(open.delta, { claim });
      record = open.record;
    }
    const { openStep, ...closed } = record;
    const step = nextStep(closed, openStep ? [openStep.message, resultsMessage(openStep)] : [userMessage(text)]);
    await store.append(step.delta, { claim });
    record = step.record;
  }
  expect(await store.load('run')).toEqual(record);
  await store.close();
  const said = record.messages.reduce((sum, message) => sum + JSON.stringify(message).length, 0);
  return statSync(path).size / said;
}

describe('the size of a run (recovery 4)', () => {
  test('400 steps of 5 KB keep at most 1.5 times what they say', async () => {
    expect(await keptOf(400, 0)).toBeLessThan(1.3);
  });

  test('it grows with the number of steps, and no faster', async () => {
    const [short, long] = [await keptOf(50, 0), await keptOf(400, 0)];
    expect(long / short).toBeLessThan(1.05);
  });

  test.for([
    [200, 1, STEP],
    [200, 1, STEP / 2],
    [20, 8, 4 * STEP],
  ] as const)(
    'intents and results of `once` calls are kept once: %i steps of %i calls, %i bytes a step',
    async ([steps, calls, size]) => {
      expect(await keptOf(steps, calls, size)).toBeLessThan(1.5);
    },
  );
});
