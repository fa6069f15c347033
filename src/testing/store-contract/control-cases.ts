import assert from 'node:assert/strict';
import { MAX_COMMANDS, type SentCommand } from '../../run/command.ts';
import type { ControlStore, InboxOf } from '../../store/port.ts';
import { controlStore, type Draft, refuses } from './case.ts';
import { LONG_MS, nextStep, sampleRecord } from './records.ts';

const steer = (id: string, text = `say ${id}`) => ({ id, kind: 'steer', text }) as const;

/** What waits, without the numbers and times that only some stores give. */
async function inboxOf(store: ControlStore, of: InboxOf): Promise<readonly SentCommand[]> {
  return (await store.commands.inbox(of)).map(({ runId, command }) => ({ runId, command }));
}

/** The cases of the store contract about commands to the owner of a run. */
export const controlCases: readonly Draft[] = [
  controlStore(
    'commands wait in the order of their sending, for the run they are for (recovery 3)',
    async ({ store }) => {
      await store.save(sampleRecord('run'));
      await store.save(sampleRecord('other'));
      const cancel = { id: 'c', kind: 'cancel', reason: 'no more \ud800 "' } as const;
      const told = { ...steer('b', 'also check X'), children: true } as const;
      await store.commands.send('run', steer('a'));
      await store.commands.send('other', steer('a'));
      await store.commands.send('run', told);
      await store.commands.send('run', cancel);
      const waiting = [steer('a'), told, cancel].map((command) => ({ runId: 'run', command }));
      assert.deepEqual(await inboxOf(store, { runId: 'run' }), waiting);
      assert.deepEqual(await inboxOf(store, { runId: 'other' }), [{ runId: 'other', command: steer('a') }]);
      assert.deepEqual(await inboxOf(store, { runId: 'nobody' }), []);
    },
  ),

  controlStore('a command that is sent twice waits once (recovery 3)', async ({ store }) => {
    await store.save(sampleRecord('run'));
    await Promise.all([
      store.commands.send('run', steer('a')),
      store.commands.send('run', steer('a')),
      store.commands.send('run', steer('b')),
    ]);
    await store.commands.send('run', steer('a', 'said otherwise'));
    const ids = (await store.commands.inbox({ runId: 'run' })).map(({ command }) => command.id);
    assert.deepEqual(ids.sort(), ['a', 'b']);
  }),

  controlStore(
    'an owner sees the commands for its own runs, and no other owner does (recovery 3)',
    async ({ store }) => {
      for (const runId of ['mine', 'mine too', 'theirs', 'free']) {
        await store.save(sampleRecord(runId));
        await store.commands.send(runId, steer(`to ${runId}`));
      }
      await store.claim('mine', 'me', LONG_MS);
      await store.claim('mine too', 'me', LONG_MS);
      await store.claim('theirs', 'them', LONG_MS);
      const seen = async (owner: string) => (await store.commands.inbox({ owner })).map(({ runId }) => runId).sort();
      assert.deepEqual(await seen('me'), ['mine', 'mine too']);
      assert.deepEqual(await seen('them'), ['theirs']);
      assert.deepEqual(await seen('nobody'), []);
    },
  ),

  controlStore('an acknowledged command is gone, the others stay (recovery 3)', async ({ store }) => {
    await store.save(sampleRecord('run'));
    for (const id of ['a', 'b', 'c']) await store.commands.send('run', steer(id));
    const claim = await store.claim('run', 'me', LONG_MS);
    assert(claim);
    await store.commands.acknowledge(claim, ['a', 'c', 'never sent']);
    await store.commands.acknowledge(claim, ['a']);
    assert.deepEqual(await inboxOf(store, { owner: 'me' }), [{ runId: 'run', command: steer('b') }]);
  }),

  controlStore('an owner that lost its claim acknowledges nothing any more (recovery 3)', async ({ store }) => {
    await store.save(sampleRecord('run'));
    await store.commands.send('run', steer('a'));
    const lost = await store.claim('run', 'me', LONG_MS);
    assert(lost);
    assert(await store.claim('run', 'me', LONG_MS));
    await refuses(store.commands.acknowledge(lost, ['a']), 'LEASE_LOST');
    assert.equal((await store.commands.inbox({ runId: 'run' })).length, 1);
  }),

  controlStore('commands outlive writes and releases, and go with their record (recovery 3)', async ({ store }) => {
    await store.save(sampleRecord('run'));
    const claim = await store.claim('run', 'me', LONG_MS);
    assert(claim);
    await store.commands.send('run', steer('a'));
    const { delta, record } = nextStep(sampleRecord('run'));
    await store.save(sampleRecord('run'), { claim });
    await store.save(record, { claim });
    await store.release(claim);
    assert.equal((await store.commands.inbox({ runId: 'run' })).length, 1);
    assert.equal(delta.runId, 'run');
    await store.delete('run');
    await store.save(sampleRecord('run'));
    assert.deepEqual(await inboxOf(store, { runId: 'run' }), []);
  }),

  controlStore('what cannot be delivered is refused (recovery 3)', async ({ store }) => {
    await refuses(store.commands.send('nobody', steer('a')), 'RUN_NOT_FOUND');
    await refuses(store.commands.send('', steer('a')), 'INVALID_RUN_ID');
    await store.save(sampleRecord('run'));
    await assert.rejects(store.commands.send('run', { id: '', kind: 'cancel' }), TypeError);
    await assert.rejects(store.commands.send('run', { id: 'a', kind: 'dance' } as never), TypeError);
    await refuses(store.commands.send('run', steer('a', 'x'.repeat(2 ** 20 + 1))), 'UNDELIVERED');
    assert.deepEqual(await inboxOf(store, { runId: 'run' }), []);
  }),

  controlStore('so many commands may wait for one run, and no more (recovery 3)', async ({ store }) => {
    await store.save(sampleRecord('run'));
    await Promise.all(Array.from({ length: MAX_COMMANDS }, (_, i) => store.commands.send('run', steer(String(i)))));
    await refuses(store.commands.send('run', steer('one more')), 'UNDELIVERED');
    await store.commands.send('run', steer('7'));
    assert.equal((await store.commands.inbox({ runId: 'run' })).length, MAX_COMMANDS);
  }),

  controlStore('a cancel is taken, and seen, although as many commands wait for its run as may', async ({ store }) => {
    await store.save(sampleRecord('run'));
    await store.claim('run', 'me', LONG_MS);
    await Promise.all(Array.from({ length: MAX_COMMANDS }, (_, i) => store.commands.send('run', steer(String(i)))));
    const cancel = { id: 'c', kind: 'cancel', reason: 'enough' } as const;
    await store.commands.send('run', cancel);
    await refuses(store.commands.send('run', steer('one more')), 'UNDELIVERED');
    const seen = async (of: InboxOf) => (await store.commands.inbox(of)).map(({ command }) => command).at(-1);
    assert.deepEqual([await seen({ runId: 'run' }), await seen({ owner: 'me' })], [cancel, cancel]);
  }),

  controlStore(
    'large commands are refused before an inbox grows without end, and a cancel gets through',
    async ({ store }) => {
      await store.save(sampleRecord('run'));
      const large = 'x'.repeat(2 ** 20 - 100);
      let taken = 0;
      const sending = (async () => {
        for (; taken < 40; taken++) await store.commands.send('run', steer(String(taken), large));
      })();
      await assert.rejects(sending, { code: 'UNDELIVERED', message: /room for \d+ more/ });
      // A codec makes a text longer.
      assert.ok(taken >= 8 && taken <= 16, `${taken} commands of a mebibyte were taken`);
      await store.commands.send('run', steer('0', large));
      await store.commands.send('run', { id: 'c', kind: 'cancel', reason: large });
      assert.equal((await store.commands.inbox({ runId: 'run' })).length, taken + 1);
    },
  ),

  controlStore(
    'commands are there for another process (recovery 3)',
    async ({ store, reopen }) => {
      await store.save(sampleRecord('run'));
      await store.commands.send('run', steer('a'));
      const other = await reopen();
      assert.deepEqual(await inboxOf(other, { runId: 'run' }), [{ runId: 'run', command: steer('a') }]);
    },
    'reopen',
  ),
];
