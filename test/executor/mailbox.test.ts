import type { Command } from 'pawl';
import { testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { Mailbox } from '../../src/executor/mailbox.ts';
import { sampleRecord } from '../../src/testing/store-contract-records.ts';
import { gate, settle } from '../fixtures/host.ts';
import { watchedStore } from '../fixtures/watched-store.ts';

test('a look that began before a command was acknowledged, and ends after it, does not deliver it again', async () => {
  const slow = gate();
  let looks = 0;
  const after = ({ method }: { method: string }) => (method === 'inbox' && ++looks === 2 ? slow.pass() : undefined);
  const store = watchedStore({ after });
  await store.save(sampleRecord('r'));
  const claim = await store.claim('r', 'me', 60_000);
  if (!claim) throw new Error('no claim');
  const recorded = gate();
  const obeyed: Command[] = [];
  const forgotten: string[] = [];
  const mailbox = new Mailbox(store, { clock: testClock(), warn: () => {}, owner: 'me', everyMs: 500, ms: 1_000 });
  mailbox.enter({
    runId: 'r',
    claim,
    commands: [],
    obey: async (command) => {
      obeyed.push(command);
      await recorded.pass();
      return true;
    },
    forget: (ids) => void forgotten.push(...ids),
    onEnd: () => {},
  });
  await store.send('r', { id: 'a', kind: 'steer', text: 'hello' });
  await mailbox.look();
  const second = mailbox.look();
  await slow.reached;
  recorded.open();
  await settle();
  expect(forgotten).toEqual(['a']);
  slow.open();
  await second;
  expect(obeyed).toHaveLength(1);
});
