import { defineAgent, memoryStore } from 'pawl';
import { callTools, crashTest, reply } from 'pawl/testing';
import { expect, test } from 'vitest';
import { toolOf } from '../../fixtures/host.ts';
import { leadAndHelper } from './lead-and-helper.ts';

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
  const helper = defineAgent({ id: 'helper', instructions: 'Help.' });
  const lead = callTools([
    { name: 'agent__helper', input: { prompt: 'Help.' } },
    { name: 'send', input: {} },
  ]);
  const { violations, crashes } = await crashTest({
    ...leadAndHelper(helper, { tools: [toolOf('send', 'idempotent')], lead, helper: reply('Helped.') }),
    ...{ store: () => store, doubleCrashes: 0, lifeMs: 2_000 },
  });
  expect(violations).toEqual([]);
  expect(crashes).toBeGreaterThan(10);
});
