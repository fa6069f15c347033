import { createPalette, defineAgent, defineTool, memoryStore } from 'pawl';
import { callTools, crashTest, reply, type ScriptedRequest, scriptedModel } from 'pawl/testing';
import { expect, test } from 'vitest';

const send = defineTool({
  name: 'send',
  description: 'Sends.',
  effect: 'idempotent',
  input: { type: 'object' },
  execute: async () => 'sent',
});
const helper = defineAgent({ id: 'helper', instructions: 'Help.' });
const lead = defineAgent({ id: 'lead', instructions: 'Lead.', tools: [send], subAgents: ['helper'] });
const answer = ({ system, messages }: ScriptedRequest) => {
  const isFirst = system.startsWith('Lead.') && !messages.some(({ role }) => role === 'tool');
  return isFirst
    ? callTools([
        { name: 'agent__helper', input: { prompt: 'Help.' } },
        { name: 'send', input: {} },
      ])
    : reply('Done.');
};

/** A store that gives a claim a turn of the event loop later, as one on a disk does: its process may be dead by then. */
function slowToClaim() {
  const store = memoryStore();
  const claim: typeof store.claim = async (...asked) => {
    const claimed = await store.claim(...asked);
    await new Promise((resolve) => setImmediate(resolve));
    return claimed;
  };
  return { ...store, claim };
}

test('a claim that the store gives to a process that died meanwhile holds up no later process', async () => {
  const store = slowToClaim();
  const { violations, crashes } = await crashTest({
    ...{ agent: lead, prompt: 'Go.', store: () => store, doubleCrashes: 0, lifeMs: 2_000 },
    model: () => scriptedModel(Array.from({ length: 12 }, () => answer)),
    executor: { ports: { palette: createPalette({ agents: [helper] }) } },
  });
  expect(violations).toEqual([]);
  expect(crashes).toBeGreaterThan(10);
});
