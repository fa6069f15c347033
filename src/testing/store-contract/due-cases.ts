import assert from 'node:assert/strict';
import { isAppending } from '../../store/capabilities.ts';
import type { RestingStore } from '../../store/due-port.ts';
import { type Draft, dueStore, orders, refuses } from './case.ts';
import { claimFor, LONG_MS, nextStep, nowOf, ownRun, sampleRecord, waitingForTime } from './records.ts';

const steer = (id: string) => ({ id, kind: 'steer', text: `say ${id}` }) as const;
const parked = { code: 'PARKED', reason: 'not today' };

/** The runs that are due, in their order. */
async function due(store: RestingStore): Promise<string[]> {
  return (await store.due.list({ limit: 1_000 })).runs.map(({ runId }) => runId);
}

/** A run that rests. @param inMs when it is due; absent = when a command comes */
async function resting(store: RestingStore, runId: string, inMs?: number): Promise<void> {
  const claim = await ownRun(store, runId, { waiting: waitingForTime });
  const dueAt = inMs === undefined ? undefined : (await nowOf(store)) + inMs;
  assert.equal(await store.due.leave(claim, { dueAt, readUpTo: 0 }), true);
}

/** Cases of a store in which runs rest. */
export const dueCases: readonly Draft[] = [
  dueStore('a stored run is due as soon as no process owns it (waiting 18)', async ({ store }) => {
    await store.save(sampleRecord('unclaimed'));
    const claim = await ownRun(store, 'claimed');
    await claimFor(store, 'only claimed');
    assert.deepEqual(await due(store), ['unclaimed']);
    await store.release(claim);
    const { runs, now } = await store.due.list({ limit: 10 });
    assert.deepEqual(
      runs.map(({ runId, dueAt, attempts }) => ({ runId, dueAt, attempts })),
      [
        { runId: 'claimed', dueAt: 0, attempts: 1 },
        { runId: 'unclaimed', dueAt: 0, attempts: 1 },
      ],
    );
    assert.equal(typeof now, 'number');
  }),

  dueStore('a run whose lease has expired is due (waiting 18)', async ({ store }) => {
    await store.save(sampleRecord('run'));
    await store.claim('run', 'gone', 1);
    for (let looks = 0; looks < 1_000 && (await due(store)).length === 0; looks++) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    assert.deepEqual(await due(store), ['run']);
  }),

  dueStore('a run that leaves has no owner, and rests until its time (waiting 16, 18)', async ({ store }) => {
    await resting(store, 'later', LONG_MS);
    await resting(store, 'on command');
    await resting(store, 'at once', -1);
    assert.deepEqual(await due(store), ['at once']);
    assert.equal(await store.due.countResting(), 2);
    const claim = await claimFor(store, 'later', { owner: 'another' });
    assert.equal(claim.attempts, 2);
  }),

  dueStore('leave sets the count of attempts (waiting 16, 20)', async ({ store }) => {
    const claim = await ownRun(store, 'run', { waiting: waitingForTime });
    await store.due.leave(claim, { dueAt: 0, readUpTo: 0, attempts: 0 });
    const [run] = (await store.due.list({ limit: 1 })).runs;
    assert.deepEqual(run, { runId: 'run', dueAt: 0, attempts: 0, meta: sampleRecord('run').meta });
    assert.equal((await claimFor(store, 'run')).attempts, 1);
  }),

  dueStore('due runs are listed by their time and then by their ids, in pages (waiting 18)', async ({ store }) => {
    const now = await nowOf(store);
    const times = [3, 1, 2, 2, 1, 0].map((before) => Math.max(now - before * 1_000, 0));
    for (const [i, dueAt] of times.entries()) {
      await store.due.leave(await ownRun(store, `run-${i}`), { dueAt, readUpTo: 0 });
    }
    const expected = times
      .map((dueAt, i) => ({ dueAt, runId: `run-${i}` }))
      .sort((a, b) => a.dueAt - b.dueAt || (a.runId < b.runId ? -1 : 1));
    const listed: { dueAt: number; runId: string }[] = [];
    for (let isMore = true; isMore; ) {
      const { runs } = await store.due.list({ limit: 2, after: listed.at(-1) });
      for (const { dueAt, runId } of runs) listed.push({ dueAt, runId });
      isMore = runs.length === 2;
    }
    assert.deepEqual(listed, expected);
  }),

  dueStore('due.list says when the next run is due (waiting 18, 19)', async ({ store }) => {
    assert.equal((await store.due.list({ limit: 1 })).nextAt, undefined);
    await resting(store, 'on command');
    assert.equal((await store.due.list({ limit: 1 })).nextAt, undefined);
    const dueAt = (await nowOf(store)) + LONG_MS;
    await store.due.leave(await ownRun(store, 'sooner', { waiting: waitingForTime }), { dueAt, readUpTo: 0 });
    await store.due.leave(await ownRun(store, 'later', { waiting: waitingForTime }), { dueAt: dueAt + 5, readUpTo: 0 });
    assert.equal((await store.due.list({ limit: 1 })).nextAt, dueAt);
  }),

  dueStore('a run with an unread command cannot leave, and nothing changes (waiting 16, 33)', async ({ store }) => {
    const claim = await ownRun(store, 'run', { waiting: waitingForTime });
    await store.commands.send('run', steer('a'));
    assert.equal(await store.due.leave(claim, { readUpTo: 0, attempts: 9 }), false);
    assert.equal((await store.renew(claim, LONG_MS)).attempts, 1);
    assert.equal(await store.due.countResting(), 0);
    assert.equal(await store.claim('run', 'another', LONG_MS), null);
  }),

  dueStore(
    'a run leaves when it has read its commands, also those that it has acknowledged (waiting 16)',
    async ({ store }) => {
      const claim = await ownRun(store, 'run', { waiting: waitingForTime });
      await store.commands.send('run', steer('a'));
      const [first] = await store.commands.inbox({ owner: 'me' });
      await store.commands.send('run', steer('b'));
      assert.equal(await store.due.leave(claim, { readUpTo: first?.seq ?? 0 }), false);
      const readUpTo = (await store.commands.inbox({ runId: 'run' })).at(-1)?.seq ?? 0;
      await store.commands.acknowledge(claim, ['a', 'b']);
      await store.commands.send('run', steer('c'));
      assert.equal(await store.due.leave(claim, { readUpTo }), false, 'a command after all that were acknowledged');
      const last = (await store.commands.inbox({ runId: 'run' })).at(-1)?.seq ?? 0;
      assert.ok(last > readUpTo);
      assert.equal(await store.due.leave(claim, { readUpTo: last }), true);
      assert.deepEqual(await due(store), []);
    },
  ),

  dueStore('a command makes a resting run due (waiting 18)', async ({ store }) => {
    await resting(store, 'a', LONG_MS);
    await resting(store, 'b');
    await store.commands.send('a', steer('1'));
    await store.commands.send('b', steer('1'));
    assert.deepEqual(await due(store), ['a', 'b']);
    assert.equal(await store.due.countResting(), 0);
  }),

  dueStore(
    'a run that was due, and whose process dies or gives it back, is due again (waiting 18)',
    async ({ store }) => {
      await resting(store, 'run');
      await store.commands.send('run', steer('1'));
      const claim = await claimFor(store, 'run');
      assert.deepEqual(await due(store), []);
      await store.commands.acknowledge(claim, ['1']);
      await store.release(claim);
      assert.deepEqual(await due(store), ['run']);
    },
  ),

  dueStore('a claim and a release leave a resting run as it is (waiting 18)', async ({ store }) => {
    await resting(store, 'run', LONG_MS);
    await store.release(await claimFor(store, 'run'), { attempts: 0 });
    assert.deepEqual(await due(store), []);
    assert.equal(await store.due.countResting(), 1);
  }),

  dueStore('an owner that lost its claim cannot leave (waiting 16, 18)', async ({ store }) => {
    const lost = await ownRun(store, 'run', { waiting: waitingForTime });
    const claim = await claimFor(store, 'run');
    await refuses(store.due.leave(lost, { readUpTo: 0 }), 'LEASE_LOST');
    await store.delete('run', { claim });
    await refuses(store.due.leave(lost, { readUpTo: 0 }), 'LEASE_LOST');
    assert.equal(await store.due.countResting(), 0);
  }),

  dueStore('a time that is no number is refused', async ({ store }) => {
    const claim = await ownRun(store, 'run', { waiting: waitingForTime });
    await assert.rejects(store.due.leave(claim, { dueAt: Number.NaN, readUpTo: 0 }), TypeError);
    assert.equal(await store.due.leave(claim, { dueAt: Number.POSITIVE_INFINITY, readUpTo: 0 }), true);
    assert.deepEqual(await due(store), []);
  }),

  dueStore('a deleted run rests no longer, and the next one of its id is due (waiting 18)', async ({ store }) => {
    await resting(store, 'run', LONG_MS);
    await store.delete('run');
    assert.equal(await store.due.countResting(), 0);
    await store.save(sampleRecord('run'));
    assert.deepEqual(await due(store), ['run']);
  }),

  dueStore(
    'a parked run is never due, and is due again when it is not parked any more (waiting 18)',
    async ({ store }) => {
      await store.save(sampleRecord('run', { parked }));
      await resting(store, 'resting', LONG_MS);
      await store.save(sampleRecord('resting', { parked, waiting: waitingForTime }));
      await store.commands.send('run', steer('a'));
      assert.deepEqual([await due(store), await store.due.countResting()], [[], 0]);
      assert.deepEqual(
        (await store.listInterrupted()).map(({ runId, status }) => [runId, status]),
        [
          ['resting', 'parked'],
          ['run', 'parked'],
        ],
      );
      await store.save(sampleRecord('run'));
      assert.deepEqual(await due(store), ['run']);
      await store.save(sampleRecord('resting', { waiting: waitingForTime }));
      assert.deepEqual(await due(store), ['resting', 'run']);
    },
  ),

  dueStore('a run that is parked by a step is never due (waiting 18)', async ({ store }) => {
    if (!isAppending(store)) return;
    await store.save(sampleRecord('run'));
    await store.append(nextStep(sampleRecord('run'), [], { parked }).delta);
    assert.deepEqual(await due(store), []);
  }),

  dueStore('a run of a host machine is never due (waiting 26)', async ({ store }) => {
    await store.release(await ownRun(store, 'run', { hosted: true }));
    await store.save(sampleRecord('unclaimed', { hosted: true }));
    assert.deepEqual(await due(store), []);
    assert.equal((await store.listInterrupted()).length, 2);
  }),

  dueStore('a record that its owner found damaged is never due (waiting 18)', async ({ store }) => {
    await store.save(sampleRecord('run'));
    await store.release(await claimFor(store, 'run'), { damage: 'its messages are missing' });
    assert.deepEqual(await due(store), []);
  }),

  dueStore(
    'an unreadable record is never due, and hides no other one (waiting 18)',
    async ({ store, damage }) => {
      for (const runId of ['a', 'b', 'c']) await store.save(sampleRecord(runId));
      await damage('b', 'corrupt');
      await damage('c', 'newer');
      assert.deepEqual(
        (await store.due.list({ limit: 2 })).runs.map(({ runId }) => runId),
        ['a'],
      );
    },
    'damage',
  ),

  dueStore('a resting run that works again is due when its process dies (waiting 18)', async ({ store }) => {
    await resting(store, 'saved', LONG_MS);
    const claim = await claimFor(store, 'saved');
    await store.save(sampleRecord('saved'), { claim });
    await store.release(claim);
    assert.deepEqual(await due(store), ['saved']);
    if (!isAppending(store)) return;
    await resting(store, 'appended', LONG_MS);
    const second = await claimFor(store, 'appended');
    await store.append(nextStep(sampleRecord('appended')).delta, { claim: second });
    await store.release(second);
    assert.deepEqual(await due(store), ['appended', 'saved']);
  }),

  dueStore(
    'resting runs are listed only when they are asked for, with their waits (waiting 18, 22)',
    async ({ store }) => {
      await store.save(sampleRecord('working'));
      await store.save(sampleRecord('just began to wait', { waiting: waitingForTime }));
      await resting(store, 'on command');
      const dueAt = (await nowOf(store)) + LONG_MS;
      await store.due.leave(await ownRun(store, 'later', { waiting: waitingForTime }), { dueAt, readUpTo: 0 });
      const listed = await store.listInterrupted();
      assert.deepEqual(
        listed.map(({ runId, status }) => [runId, status]),
        [
          ['just began to wait', 'waiting'],
          ['working', 'interrupted'],
        ],
      );
      const rest = await store.listInterrupted({ status: 'waiting' });
      assert.deepEqual(
        rest.map((run) => ('waits' in run ? [run.runId, run.status, run.dueAt, run.waits] : run)),
        [
          ['later', 'waiting', dueAt, waitingForTime.waits],
          ['on command', 'waiting', undefined, waitingForTime.waits],
        ],
      );
      const [, second] = await store.listInterrupted({
        status: 'waiting',
        after: { updatedAt: 0, runId: '' },
        limit: 2,
      });
      assert.equal(second?.runId, 'on command');
      const { updatedAt = 0, runId = '' } = rest[0] ?? {};
      const after = await store.listInterrupted({ status: 'waiting', after: { updatedAt, runId } });
      assert.deepEqual(
        after.map((run) => run.runId),
        ['on command'],
      );
    },
  ),

  dueStore('commands have numbers that grow, and the time of their sending (waiting 11)', async ({ store }) => {
    await store.save(sampleRecord('run'));
    const before = await nowOf(store);
    for (const id of ['a', 'b', 'c']) await store.commands.send('run', steer(id));
    const after = (await nowOf(store)) + 1;
    const sent = await store.commands.inbox({ runId: 'run' });
    const seqs = sent.map(({ seq = 0 }) => seq);
    assert.deepEqual(
      seqs,
      [...new Set(seqs)].sort((a, b) => a - b),
    );
    assert.ok((seqs[0] ?? 0) > 0);
    for (const { sentAt = -1 } of sent) assert.ok(sentAt >= before && sentAt <= after, `${sentAt}`);
  }),

  dueStore(
    'answers and ended children are commands, and come back as they were sent (waiting 10, 23)',
    async ({ store }) => {
      const claim = await ownRun(store, 'run', { waiting: waitingForTime });
      const commands = [
        {
          ...{ id: 'a', kind: 'answer', waitId: 'w' },
          answer: { how: 'approve', input: { __proto: 1, text: '\ud800' }, note: 'fine', digest: 'd' },
          by: { id: 'ada', name: 'Ada' },
        },
        { id: 'b', kind: 'answer', waitId: 'w', answer: { how: 'answer', value: null } },
        { id: 'c', kind: 'child-ended', childRunId: '~c', callId: 'call', output: { type: 'text', value: 'done' } },
      ] as const;
      for (const command of commands) await store.commands.send('run', command as never);
      const sent = await store.commands.inbox({ runId: 'run' });
      assert.deepEqual(
        sent.map(({ command }) => command),
        commands,
      );
      await store.commands.acknowledge(claim, ['a', 'b', 'c']);
      await assert.rejects(
        store.commands.send('run', { ...commands[0], answer: { how: 'shrug' } } as never),
        TypeError,
      );
    },
  ),

  dueStore('in each order of leave and send the run is woken (waiting 33)', async ({ store }) => {
    for (const [i, { isTurned, gap }] of [...orders, ...orders].entries()) {
      const runId = `run-${i}`;
      const claim = await ownRun(store, runId, { waiting: waitingForTime });
      const asked: Promise<unknown>[] = [];
      for (const step of isTurned ? [1, 0] : [0, 1]) {
        if (step === 0) asked[0] = store.due.leave(claim, { readUpTo: 0 });
        else asked[1] = store.commands.send(runId, steer('a'));
        for (let turns = gap; turns > 0; turns--) await null;
      }
      const [hasLeft] = await Promise.all(asked);
      if (hasLeft === true) assert.ok((await due(store)).includes(runId), `${runId} sleeps, order ${i}`);
      else assert.equal((await store.commands.inbox({ runId })).length, 1);
      await store.delete(runId, hasLeft === true ? {} : { claim });
    }
  }),

  dueStore(
    'what is due, and what rests, is the same for another process (waiting 18)',
    async ({ store, reopen }) => {
      await resting(store, 'later', LONG_MS);
      await store.save(sampleRecord('now'));
      const other = await reopen();
      assert.deepEqual([await due(other), await other.due.countResting()], [['now'], 1]);
      await other.commands.send('later', steer('a'));
      assert.deepEqual(await due(store), ['later', 'now']);
    },
    'reopen',
  ),
];
