import assert from 'node:assert/strict';
import type { RunCheckpoint } from '../../record/checkpoint.ts';
import type { Claim } from '../../store/port.ts';
import type { Admission, TurnEnd, TurnToAdmit } from '../../store/thread-port.ts';
import type { Message } from '../../values/message.ts';
import { type Draft, refuses, type ThreadedStore, threadStore } from './case.ts';
import { claimFor, nextStep, sampleOutcome, sampleRecord, userMessage } from './records.ts';

const key = { callerId: 'ada', id: 'talk' };

function turn(messageId: string, rest: Partial<TurnToAdmit> = {}): TurnToAdmit {
  const record = sampleRecord('x', { messages: [userMessage(`say ${messageId}`)], attempts: 0 });
  return { ...key, messageId, digest: `digest of ${messageId}`, record, onBusy: 'queue', maxQueued: 10, ...rest };
}

const admit = ({ threads }: ThreadedStore, turn: TurnToAdmit) => threads.admit(turn);
const historyOf = ({ threads }: ThreadedStore, upTo: number) => threads.history(key, upTo);
const answer = (text: string): Message => ({ role: 'assistant', content: [{ type: 'text', text }] });

/** Adds the answer of a turn to its record. */
async function sendAnswer(
  store: ThreadedStore,
  claim: Claim,
  messages: readonly Message[] = [answer('ok')],
): Promise<void> {
  const record = (await store.load(claim.runId)) as RunCheckpoint;
  await store.save(nextStep(record, messages).record, { claim });
}

function ending(rest: Partial<TurnEnd> = {}): { turn: TurnEnd; keepUntil: number } {
  return { turn: { ...key, delivered: [], now: 1, ...rest }, keepUntil: Number.POSITIVE_INFINITY };
}

/** Plays a whole turn of a run that is live. @returns what begins next */
async function play(store: ThreadedStore, runId: string, end: Partial<TurnEnd> = {}) {
  const claim = await claimFor(store, runId);
  await sendAnswer(store, claim);
  return (await store.history.end(claim, { outcome: sampleOutcome(runId), ...ending(end) })).admitted;
}

const textsOf = (messages: readonly Message[]) => messages.map(({ content }) => JSON.stringify(content).slice(24, -3));
const say = async (store: ThreadedStore, of = key) =>
  textsOf((await store.threads.read(of, { limit: 1_000 })).map(({ message }) => message));
const stateOf = async ({ threads }: ThreadedStore, messageId: string) =>
  (await threads.turnOf(key, { messageId }))?.state;

/** A thread with some turns that have ended. */
async function talk(store: ThreadedStore, messageIds: readonly string[]): Promise<Admission[]> {
  const sent: Admission[] = [];
  for (const messageId of messageIds) {
    const admission = await admit(store, turn(messageId));
    sent.push(admission);
    await play(store, admission.runId);
  }
  return sent;
}

/** Cases of a store that keeps threads. */
export const threadCases: readonly Draft[] = [
  threadStore(
    'the first message of a thread begins its run: a record that is due at once (web 13)',
    async ({ store, reopen }) => {
      const { runId, state, live } = await admit(store, turn('m1'));
      assert.deepEqual([state, live], ['started', runId]);
      const other = await reopen();
      const record = await other.load(runId);
      assert.deepEqual(
        [record?.meta.runId, record?.thread, record?.messages],
        [runId, { id: 'talk', upTo: 0 }, [userMessage('say m1')]],
      );
      const listed = await other.listInterrupted();
      assert.deepEqual(
        listed.map((run) => run.runId),
        [runId],
      );
      assert.equal(await stateOf(store, 'm1'), 'live');
    },
    'reopen',
  ),

  threadStore(
    'a message behind a live run waits, and the commit that ends that run begins it (web 13)',
    async ({ store }) => {
      const first = await admit(store, turn('m1'));
      const second = await admit(store, turn('m2'));
      assert.deepEqual([second.state, second.live], ['queued', first.runId]);
      assert.equal(await store.load(second.runId), null);
      assert.deepEqual(await play(store, first.runId), { runId: second.runId, agentId: 'agent-1' });
      assert.equal(await store.load(first.runId), null);
      assert.deepEqual((await store.load(second.runId))?.thread, { id: 'talk', upTo: 2 });
      assert.equal(await play(store, second.runId), undefined);
      assert.deepEqual(await say(store), ['say m1', 'ok', 'say m2', 'ok']);
    },
  ),

  threadStore(
    'a message that is known changes nothing, also after its end, and other content under its id is refused (web 10)',
    async ({ store }) => {
      const first = await admit(store, turn('m1'));
      assert.deepEqual(await admit(store, turn('m1')), { runId: first.runId, state: 'known', live: first.runId });
      const second = await admit(store, turn('m2'));
      assert.equal((await admit(store, turn('m2'))).runId, second.runId);
      await play(store, first.runId);
      await play(store, second.runId);
      assert.deepEqual(await admit(store, turn('m1')), { runId: first.runId, state: 'known' });
      await refuses(admit(store, turn('m1', { digest: 'other' })), 'THREAD_MESSAGE_CONFLICT');
      assert.equal((await say(store)).length, 4);
    },
  ),

  threadStore(
    'messages have their turns in the order of their commits, and one that interrupts is next (web 11)',
    async ({ store }) => {
      const first = await admit(store, turn('m1'));
      const runIds = [];
      for (const id of ['m2', 'm3']) runIds.push((await admit(store, turn(id))).runId);
      const urgent = await admit(store, turn('m4', { onBusy: 'interrupt' }));
      assert.equal(urgent.state, 'queued');
      const inbox = (await carry(store, first.runId)).map(({ kind }) => kind);
      assert.deepEqual(inbox, ['cancel']);
      const order: (string | undefined)[] = [];
      for (let runId: string | undefined = first.runId; runId; ) {
        runId = (await play(store, runId))?.runId;
        order.push(runId);
      }
      assert.deepEqual(order, [urgent.runId, ...runIds, undefined]);
    },
  ),

  threadStore(
    'a message that may not wait is refused, and so is one too many: both leave nothing (web 11)',
    async ({ store }) => {
      const first = await admit(store, turn('m1'));
      await admit(store, turn('m2', { maxQueued: 1 }));
      await refuses(admit(store, turn('m3', { maxQueued: 1 })), 'THREAD_FULL');
      await refuses(admit(store, turn('m4', { onBusy: 'reject' })), 'THREAD_BUSY');
      assert.equal(await stateOf(store, 'm3'), undefined);
      assert.equal(await stateOf(store, 'm4'), undefined);
      assert.equal((await play(store, first.runId))?.agentId, 'agent-1');
    },
  ),

  threadStore(
    'a steered message is in the inbox of the live run; undelivered, it is the next turn (web 11)',
    async ({ store }) => {
      const first = await admit(store, turn('m1'));
      for (const id of ['s1', 's2']) {
        const sent = await admit(store, turn(id, { onBusy: 'steer', text: `say ${id}` }));
        assert.deepEqual(sent, { runId: first.runId, state: 'steered', live: first.runId });
      }
      const queued = await admit(store, turn('m2'));
      const commands = await carry(store, first.runId);
      assert.deepEqual(
        commands.map((command) => command.kind === 'steer' && command.messageId),
        ['s1', 's2'],
      );
      const next = await play(store, first.runId, { delivered: ['s1'] });
      assert.deepEqual(await store.threads.turnOf(key, { messageId: 's1' }), {
        messageId: 's1',
        runId: first.runId,
        state: 'steered',
      });
      assert.deepEqual((await store.threads.turnOf(key, { messageId: 's2' }))?.runId, next?.runId);
      const last = await play(store, next?.runId ?? '');
      assert.equal(last?.runId, queued.runId);
      assert.deepEqual(await say(store), ['say m1', 'ok', 'say s2', 'ok', 'say m2']);
    },
  ),

  threadStore(
    'a message that waits for its turn is found by the id of its run, until it begins (web 11)',
    async ({ store }) => {
      const { queuedRun } = store.threads;
      const first = await admit(store, turn('m1'));
      const next = await admit(store, turn('m2'));
      assert.equal(await queuedRun(first.runId), null);
      const record = await queuedRun(next.runId);
      assert.equal(record?.meta.runId, next.runId);
      assert.equal(await store.load(next.runId), null);
      assert.equal(await queuedRun('unknown'), null);
      await play(store, first.runId);
      assert.equal(await queuedRun(next.runId), null);
      assert.notEqual(await store.load(next.runId), null);
    },
  ),

  threadStore(
    'an end that is repeated changes nothing, and one by an owner that lost the run is refused (web 13)',
    async ({ store }) => {
      const first = await admit(store, turn('m1'));
      const second = await admit(store, turn('m2'));
      const claim = await claimFor(store, first.runId);
      const outcome = sampleOutcome(first.runId);
      await refuses(store.history.end({ ...claim, epoch: claim.epoch + 1 }, { outcome, ...ending() }), 'LEASE_LOST');
      assert.equal(await stateOf(store, 'm2'), 'queued');
      for (let i = 0; i < 2; i++) {
        const { admitted } = await store.history.end(claim, { outcome, ...ending() });
        assert.equal(admitted?.runId, second.runId);
      }
      assert.deepEqual(
        (await store.threads.turns(key, { limit: 10 })).map(({ messageId }) => messageId),
        ['m2', 'm1'],
      );
      assert.deepEqual(await say(store), ['say m1', 'say m2']);
    },
  ),

  threadStore('lists the messages that wait (edges 31)', async ({ store }) => {
    const turns = () => store.threads.turns(key, { limit: 10, waiting: true });
    const waiting = async () => (await turns()).map(({ state }) => state).sort();
    const { runId } = await admit(store, turn('m1'));
    assert.deepEqual(await waiting(), []);
    await admit(store, turn('m2'));
    await admit(store, turn('m3', { onBusy: 'steer', text: 'say m3' }));
    assert.deepEqual(await waiting(), ['queued', 'steered']);
    await play(store, runId);
    assert.deepEqual(await waiting(), ['queued']);
  }),

  threadStore(
    'a live turn whose record is gone does not block its thread: the message that waits is next (web 13)',
    async ({ store }) => {
      const first = await admit(store, turn('m1'));
      const second = await admit(store, turn('m2'));
      await store.delete(first.runId);
      const third = await admit(store, turn('m3'));
      assert.deepEqual([third.state, third.live], ['queued', second.runId]);
      assert.equal((await play(store, second.runId))?.runId, third.runId);
    },
  ),

  threadStore(
    'a long thread is read in pages, and a model gets the newest compaction and the rest (web 14)',
    async ({ store }) => {
      const compaction = { upTo: 3, messages: [userMessage('in short')] };
      for (let i = 0; i < 5; i++) {
        const { runId } = await admit(store, turn(`m${i}`));
        await play(store, runId, i === 1 ? { compaction } : {});
      }
      const all = await store.threads.read(key, { limit: 1_000 });
      assert.deepEqual(
        all.map(({ index }) => index),
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
      );
      const page = await store.threads.read(key, { after: 2, limit: 4 });
      assert.deepEqual(page, all.slice(3, 7));
      assert.deepEqual(textsOf(await historyOf(store, 8)), ['in short', 'ok', 'say m2', 'ok', 'say m3', 'ok']);
      assert.deepEqual(textsOf(await historyOf(store, 4)), ['in short', 'ok']);
      assert.deepEqual(textsOf(await historyOf(store, 2)), ['say m0', 'ok']);
      assert.deepEqual(await store.threads.history({ callerId: 'eve', id: 'talk' }, 8), []);
    },
  ),

  threadStore('a thread belongs to its caller: no other caller finds it (web 9)', async ({ store }) => {
    const mine = await admit(store, turn('m1'));
    const eve = { callerId: 'eve', id: 'talk' };
    assert.deepEqual(await store.threads.read(eve), []);
    assert.equal(await store.threads.turnOf(eve, { messageId: 'm1' }), null);
    assert.equal(await store.threads.turnOf(eve, { runId: mine.runId }), null);
    await refuses(store.threads.rewind(eve, { messageId: 'm1' }), 'THREAD_MISSING');
    await refuses(store.threads.fork(eve, { messageId: 'm1', newId: 'x' }), 'THREAD_MISSING');
    assert.equal(await store.threads.delete(eve), undefined);
    const hers = await admit(store, turn('m1', eve));
    assert.equal(hers.state, 'started');
    assert.notEqual(hers.runId, mine.runId);
    assert.deepEqual(
      (await store.threads.list({ callerId: 'ada' })).map(({ callerId, live }) => [callerId, live]),
      [['ada', mine.runId]],
    );
  }),

  threadStore(
    'a rewound thread ends with its message, a repeated message begins another run (web 15)',
    async ({ store }) => {
      const sent = await talk(store, ['m1', 'm2', 'm3']);
      await store.threads.rewind(key, { messageId: 'm1' });
      assert.deepEqual(await say(store), ['say m1', 'ok']);
      for (const { runId } of sent.slice(1)) assert.equal(await store.load(runId, { ended: true }), null);
      const again = await admit(store, turn('m2'));
      assert.equal(again.state, 'started');
      assert(!sent.some(({ runId }) => runId === again.runId));
      await refuses(store.threads.rewind(key, { messageId: 'm1' }), 'THREAD_BUSY');
      await play(store, again.runId);
      await store.threads.rewind(key, { messageId: 'm1', isBefore: true });
      assert.deepEqual(await say(store), []);
      await refuses(store.threads.rewind(key, { messageId: 'm1' }), 'THREAD_MISSING');
    },
  ),

  threadStore('another run of the last message takes its place in one commit (web 15, edges 10)', async ({ store }) => {
    await talk(store, ['m1', 'm2']);
    const [live, last] = [await admit(store, turn('m3')), turn('m3', { again: true })];
    await admit(store, turn('m4', { onBusy: 'steer', text: 'say m4' }));
    await refuses(admit(store, last), 'THREAD_BUSY');
    assert.equal(await play(store, live.runId, { delivered: ['m4'] }), undefined);
    await refuses(admit(store, turn('m2', { again: true })), 'THREAD_BUSY');
    const again = await admit(store, last);
    assert.deepEqual([again.state, again.live], ['started', again.runId]);
    assert.notEqual(again.runId, live.runId);
    assert.deepEqual(await say(store), ['say m1', 'ok', 'say m2', 'ok', 'say m3']);
    const gone = [await store.threads.turnOf(key, { messageId: 'm4' }), await store.load(live.runId, { ended: true })];
    assert.deepEqual(gone, [null, null]);
    await play(store, again.runId);
    const third = await admit(store, last);
    assert.notEqual(third.runId, again.runId);
    assert.equal((await store.load(third.runId))?.thread?.upTo, 4);
    await refuses(admit(store, turn('m9', { again: true })), 'THREAD_MISSING');
  }),

  threadStore(
    'a fork shares turns, and they are kept as long as one of the threads has them (web 15)',
    async ({ store }) => {
      const sent = await talk(store, ['m1', 'm2', 'm3']);
      const fork = { callerId: 'ada', id: 'fork' };
      await store.threads.fork(key, { messageId: `${sent[1]?.runId}:m`, newId: 'fork' });
      await refuses(store.threads.fork(key, { messageId: 'm1', newId: 'fork' }), 'THREAD_EXISTS');
      assert.deepEqual(await say(store, fork), ['say m1', 'ok', 'say m2', 'ok']);
      await store.threads.rewind(key, { messageId: 'm1', isBefore: true });
      assert.deepEqual(await say(store, fork), ['say m1', 'ok', 'say m2', 'ok']);
      assert.equal(await store.load(sent[2]?.runId ?? '', { ended: true }), null);
      assert.equal(await store.threads.delete(key), undefined);
      assert.deepEqual(await say(store, fork), ['say m1', 'ok', 'say m2', 'ok']);
      assert.equal((await admit(store, turn('m1', fork))).state, 'known');
      assert.equal(await store.threads.delete(fork), undefined);
      for (const { runId } of sent) assert.equal(await store.load(runId, { ended: true }), null);
      assert.deepEqual(await store.threads.list(), []);
    },
  ),

  threadStore(
    'a deleted thread names its live run, which has to end first, and drops what waits (web 15)',
    async ({ store }) => {
      const first = await admit(store, turn('m1'));
      await admit(store, turn('m2'));
      assert.equal(await store.threads.delete(key), first.runId);
      assert.equal(await play(store, first.runId), undefined);
      assert.equal(await store.threads.delete(key), undefined);
      assert.deepEqual([await say(store), await store.threads.list()], [[], []]);
      assert.equal((await admit(store, turn('m1'))).state, 'started');
    },
  ),

  threadStore('threads are listed in pages, the last changed first (web 17)', async ({ store }) => {
    for (let i = 0; i < 5; i++) {
      const record = sampleRecord('x', { messages: [userMessage('hi')], updatedAt: 1_000 + i });
      await admit(store, turn('m', { id: `talk ${i}`, callerId: i === 3 ? 'eve' : 'ada', record }));
    }
    const first = await store.threads.list({ callerId: 'ada', limit: 2 });
    assert.deepEqual(
      first.map(({ id, turns, messages, queued }) => [id, turns, messages, queued]),
      [
        ['talk 4', 1, 0, 0],
        ['talk 2', 1, 0, 0],
      ],
    );
    const rest = await store.threads.list({ callerId: 'ada', limit: 10, after: first.at(-1)?.cursor });
    assert.deepEqual(
      rest.map(({ id }) => id),
      ['talk 1', 'talk 0'],
    );
    assert.deepEqual(
      (await store.threads.list()).map(({ id }) => id),
      ['talk 4', 'talk 3', 'talk 2', 'talk 1', 'talk 0'],
    );
  }),

  threadStore(
    'messages that come at once through two openings of a store begin one run, and each is there once (web 35)',
    async ({ store, reopen }) => {
      const other = await reopen();
      const ids = ['m1', 'm2', 'm3', 'm4'];
      const sent = await Promise.all(ids.flatMap((id) => [admit(store, turn(id)), admit(other, turn(id))]));
      assert.equal(sent.filter(({ state }) => state === 'started').length, 1);
      assert.equal(sent.filter(({ state }) => state === 'known').length, 4);
      assert.equal(new Set(sent.map(({ runId }) => runId)).size, 4);
      let runId = sent.find(({ state }) => state === 'started')?.runId;
      for (let i = 0; runId && i < 10; i++) runId = (await play(i % 2 ? store : other, runId))?.runId;
      assert.deepEqual(
        (await say(store)).filter((text) => text !== 'ok').sort(),
        ids.map((id) => `say ${id}`),
      );
    },
    'reopen',
  ),
];

/** The commands that wait for a run. */
const carry = async (store: ThreadedStore, runId: string) =>
  (await store.commands.inbox({ runId })).map(({ command }) => command as SentOne);
type SentOne = { readonly kind: string; readonly messageId?: string };
