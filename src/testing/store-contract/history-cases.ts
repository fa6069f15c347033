import assert from 'node:assert/strict';
import type { KeptRun } from '../../record/kept-run.ts';
import type { JournalEntry } from '../../run/journal/entry.ts';
import type { RunOutcome } from '../../run/result.ts';
import { isAppending, isDue } from '../../store/capabilities.ts';
import type { EndOptions, KeepingStore } from '../../store/history-port.ts';
import { type Draft, historyStore, refuses } from './case.ts';
import {
  claimFor,
  LONG_MS,
  nextStep,
  ownRun,
  sampleMeta,
  sampleOutcome,
  sampleRecord,
  userMessage,
} from './records.ts';

/** The year 2100: later than any clock of a test. */
const LATER = 4_102_444_800_000;

function endOf(runId: string, of: Partial<RunOutcome> = {}): EndOptions {
  return {
    outcome: { ...sampleOutcome(runId), run: { meta: sampleMeta(runId) }, ...of } as RunOutcome,
    keepUntil: LATER,
  };
}

/** A run that has ended, and whose record is kept. */
async function end(store: KeepingStore, runId: string, end: EndOptions = endOf(runId)): Promise<void> {
  await store.history.end(await ownRun(store, runId), end);
}

/** A kept event. */
function entry(place: number): JournalEntry {
  const event = { type: 'run.parked', code: 'C', reason: 'r', runId: 'run', seq: place, at: 7 } as const;
  return { place, keep: 'kept', event };
}

const sampleError = { name: 'Error', code: 'RUN_PANIC', message: 'no' };

const idsOf = (runs: readonly KeptRun[]) => runs.map(({ runId }) => runId);

async function listIds(store: KeepingStore, filter: { agentId?: string; callerId?: string } = {}): Promise<string[]> {
  return idsOf(await store.history.list({ limit: 1_000, ...filter })).sort();
}

/** The cases of the store contract about the records of runs that ended. */
export const historyCases: readonly Draft[] = [
  historyStore('a run that ended is kept, and is no run to recover (web 16)', async ({ store }) => {
    const claim = await ownRun(store, 'run');
    const record = await store.load('run');
    await store.history.end(claim, endOf('run'));
    assert.equal(await store.load('run'), null);
    assert.deepEqual(await store.load('run', { ended: true }), record);
    assert.deepEqual(await store.listInterrupted(), []);
    assert.deepEqual(await store.listInterrupted({ status: 'waiting' }), []);
    if (!isDue(store)) return;
    assert.deepEqual((await store.due.list({ limit: 10 })).runs, []);
    assert.equal(await store.due.countResting(), 0);
  }),

  historyStore('its outcome is kept by the same commit, as long as it should be (web 16)', async ({ store }) => {
    await end(store, 'as the record');
    assert.deepEqual(await store.outcomes.find('as the record'), endOf('as the record').outcome);
    await end(store, 'never', { ...endOf('never'), outcomeUntil: 0 });
    assert.equal(await store.outcomes.find('never'), null);
    assert(await store.load('never', { ended: true }));
  }),

  historyStore('the messages that steps appended are kept too (web 16)', async ({ store }) => {
    if (!isAppending(store)) return;
    const claim = await ownRun(store, 'run');
    const step = nextStep(sampleRecord('run'), [userMessage('one more')]);
    await store.append(step.delta, { claim });
    await store.history.end(claim, endOf('run'));
    assert.deepEqual((await store.load('run', { ended: true }))?.messages, step.record.messages);
  }),

  historyStore('an end that is repeated changes nothing: its answer may be lost (web 16)', async ({ store }) => {
    const claim = await ownRun(store, 'run');
    await store.history.end(claim, endOf('run'));
    const before = await store.history.list({ limit: 10 });
    await store.history.end(claim, { ...endOf('run', { output: 'another' }), keepUntil: LATER + 1 });
    assert.deepEqual(await store.history.list({ limit: 10 }), before);
    assert.equal((await store.outcomes.find('run'))?.output, 'a line');
    assert(await store.load('run', { ended: true }));
  }),

  historyStore('an end without a kept outcome can be repeated too (web 16)', async ({ store }) => {
    const claim = await ownRun(store, 'run');
    for (let i = 0; i < 2; i++) await store.history.end(claim, { ...endOf('run'), outcomeUntil: 0 });
    assert.deepEqual(await listIds(store), ['run']);
  }),

  historyStore('only the owner of a run ends it (web 16)', async ({ store }) => {
    const lost = await ownRun(store, 'run');
    const claim = await claimFor(store, 'run');
    await refuses(store.history.end(lost, endOf('run')), 'LEASE_LOST');
    assert(await store.load('run'));
    assert.equal(await store.outcomes.find('run'), null);
    assert.deepEqual(await listIds(store), []);
    await store.history.end(claim, endOf('run'));
    await refuses(store.history.end(lost, endOf('run')), 'LEASE_LOST');
    await refuses(store.history.end({ ...claim, runId: 'nobody' }, endOf('nobody')), 'LEASE_LOST');
  }),

  historyStore('a run that recorded nothing leaves its outcome only (web 16)', async ({ store }) => {
    const claim = await claimFor(store, 'run');
    await store.history.end(claim, endOf('run'));
    assert(await store.outcomes.find('run'));
    assert.deepEqual(await listIds(store), []);
    assert.equal(await store.load('run', { ended: true }), null);
    assert(await store.claim('run', 'another', LONG_MS), 'its claim is gone');
  }),

  historyStore('a run that ended cannot be written, sent to, or waited for (web 16)', async ({ store }) => {
    const claim = await ownRun(store, 'run');
    await store.history.end(claim, endOf('run'));
    await refuses(store.save(sampleRecord('run'), { claim }), 'LEASE_LOST');
    await refuses(store.renew(claim, LONG_MS), 'LEASE_LOST');
    if (isDue(store)) {
      await refuses(store.commands.send('run', { id: 'a', kind: 'cancel', reason: 'late' }), 'RUN_NOT_FOUND');
      await refuses(store.due.leave(claim, { readUpTo: 0 }), 'LEASE_LOST');
    }
    if (isAppending(store)) {
      await refuses(store.append(nextStep(sampleRecord('run')).delta), 'REVISION_GAP');
    }
    await store.delete('run');
    assert(await store.load('run', { ended: true }), 'a delete does not see it');
  }),

  historyStore('its commands and its waits go with its end (web 16)', async ({ store }) => {
    if (!isDue(store)) return;
    const claim = await ownRun(store, 'run');
    await store.commands.send('run', { id: 'a', kind: 'steer', text: 'hurry' });
    const topic = 'a'.repeat(64);
    if (store.waits) await store.waits.expect(claim, { waitId: 'w', topic });
    await store.history.end(claim, endOf('run'));
    assert.deepEqual(await store.commands.inbox({ runId: 'run' }), []);
    assert.deepEqual(await store.commands.inbox({ owner: 'me' }), []);
    if (store.waits) assert.deepEqual(await store.waits.signal({ topic, id: '1', value: 1, untilMs: LATER }), {});
  }),

  historyStore('a new run takes the id of one that ended, and replaces it (web 16)', async ({ store }) => {
    await end(store, 'run');
    const claim = await claimFor(store, 'run', { owner: 'another' });
    assert.equal(claim.attempts, 1);
    assert(await store.load('run', { ended: true }), 'a claim alone replaces nothing');
    const next = sampleRecord('run', { messages: [userMessage('new')] });
    await store.save(next, { claim });
    assert.deepEqual(await store.load('run'), next);
    assert.deepEqual(await store.load('run', { ended: true }), next);
    assert.deepEqual(await listIds(store), []);
    assert.deepEqual(idsOf((await store.listInterrupted()) as never), ['run']);
    if (isDue(store)) {
      await store.release(claim);
      assert.deepEqual(
        (await store.due.list({ limit: 10 })).runs.map(({ runId }) => runId),
        ['run'],
      );
    }
    await end(store, 'run');
    assert.deepEqual(await listIds(store), ['run']);
  }),

  historyStore('the epoch of a run continues after its end (web 16)', async ({ store }) => {
    for (const outcomeUntil of [LATER, 0]) {
      const runId = `run ${outcomeUntil}`;
      await store.release(await claimFor(store, runId));
      const claim = await ownRun(store, runId);
      await store.history.end(claim, { ...endOf(runId), outcomeUntil });
      const next = await claimFor(store, runId);
      assert(next.epoch > claim.epoch);
      await refuses(store.history.end(claim, endOf(runId)), 'LEASE_LOST');
    }
  }),

  historyStore('a record whose time is over is gone (web 16)', async ({ store }) => {
    await end(store, 'run', { ...endOf('run'), keepUntil: 0 });
    assert.equal(await store.load('run', { ended: true }), null);
    assert.deepEqual(await listIds(store), []);
    assert.equal(await store.outcomes.find('run'), null);
    await store.save(sampleRecord('run'));
    assert.deepEqual(await store.load('run'), sampleRecord('run'));
    await store.delete('run');
    assert.equal(await store.load('run', { ended: true }), null);
  }),

  historyStore('a record is kept without an end of its time (web 16)', async ({ store }) => {
    await end(store, 'run', { ...endOf('run'), keepUntil: Number.POSITIVE_INFINITY });
    assert(await store.load('run', { ended: true }));
    assert.deepEqual(await listIds(store), ['run']);
  }),

  historyStore('the list says whose each run was, and how it ended (web 16)', async ({ store }) => {
    const error = { name: 'Error', code: 'MODEL', message: 'down' };
    const run = {
      meta: sampleMeta('run'),
      labels: { team: 'a' },
      parent: { runId: 'p', callId: 'c', rootRunId: 'r' },
    };
    const outcome = {
      ...sampleOutcome('run', { spend: { tokens: 15, usd: 0.5, seconds: 2 } }, { status: 'error', error }),
      run,
    };
    await end(store, 'run', { ...endOf('run'), outcome });
    const [line] = await store.history.list({ limit: 10 });
    assert(line && line.status !== 'quarantined');
    const { endedAt, spend, ...rest } = line;
    const { usage, iterations } = outcome;
    assert.deepEqual(rest, { runId: 'run', ...run, status: 'error', error, usage, iterations });
    assert.deepEqual(spend, outcome.spend);
    assert.equal(typeof endedAt, 'number');
  }),

  historyStore('the newest end comes first, page by page (web 16)', async ({ store }) => {
    const ids = Array.from({ length: 7 }, (_, i) => `run-${(i * 3) % 7}`);
    for (const runId of ids) {
      await end(store, runId);
      // Ends of one millisecond are in the order of their ids.
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    const all = await store.history.list({ limit: 100 });
    const order = all.map(({ endedAt }) => endedAt);
    assert.deepEqual(
      order,
      [...order].sort((a, b) => b - a),
    );
    if (new Set(order).size === ids.length) assert.deepEqual(idsOf(all), [...ids].reverse());
    const paged: KeptRun[] = [];
    for (let page = await store.history.list({ limit: 2 }); page.length > 0; ) {
      paged.push(...page);
      const after = page.at(-1);
      assert(after);
      page = await store.history.list({ limit: 2, after });
    }
    assert.deepEqual(paged, all);
  }),

  historyStore('ends of one moment are all listed, each once (web 16)', async ({ store }) => {
    const ids = Array.from({ length: 20 }, (_, i) => `run-${i}`);
    const claims = await Promise.all(ids.map((runId) => ownRun(store, runId)));
    await Promise.all(claims.map((claim) => store.history.end(claim, endOf(claim.runId))));
    const found: string[] = [];
    for (let page = await store.history.list({ limit: 3 }); page.length > 0; ) {
      found.push(...idsOf(page));
      const after = page.at(-1);
      assert(after);
      page = await store.history.list({ limit: 3, after });
    }
    assert.deepEqual(found.sort(), ids.sort());
  }),

  historyStore('a list may be of one agent, of one caller, or of both (web 16)', async ({ store }) => {
    const hostile = '\ud800 "%_\' OR 1=1 -- \n ∞';
    const runs: readonly (readonly [string, string, string])[] = [
      ['a1', 'a', '1'],
      ['a2', 'a', '2'],
      ['b1', 'b', '1'],
      ['hostile', hostile, hostile],
      ['empty', 'a', ''],
    ];
    for (const [runId, agentId, callerId] of runs) {
      await end(store, runId, endOf(runId, { run: { meta: { ...sampleMeta(runId), agentId, callerId } } }));
    }
    assert.deepEqual(await listIds(store, { agentId: 'a' }), ['a1', 'a2', 'empty']);
    assert.deepEqual(await listIds(store, { callerId: '1' }), ['a1', 'b1']);
    assert.deepEqual(await listIds(store, { agentId: 'a', callerId: '1' }), ['a1']);
    assert.deepEqual(await listIds(store, { agentId: hostile, callerId: hostile }), ['hostile']);
    assert.deepEqual(await listIds(store, { callerId: '' }), ['empty']);
    assert.deepEqual(await listIds(store, { agentId: 'nobody' }), []);
    assert.equal((await store.history.list({ limit: 1, agentId: 'a' })).length, 1);
  }),

  historyStore('erase removes all of a run that ended (web 16)', async ({ store }) => {
    await end(store, 'run');
    await end(store, 'other');
    await store.history.erase('run');
    assert.equal(await store.load('run', { ended: true }), null);
    assert.equal(await store.outcomes.find('run'), null);
    assert.deepEqual(await listIds(store), ['other']);
    assert.equal((await claimFor(store, 'run')).epoch, 1);
    await store.outcomes.keep('outcome only', sampleOutcome('outcome only'), LATER);
    await store.history.erase('outcome only');
    assert.equal(await store.outcomes.find('outcome only'), null);
    await store.history.erase('nobody');
    await refuses(store.history.erase(''), 'INVALID_RUN_ID');
  }),

  historyStore('a run that has not ended is not erased (web 16)', async ({ store }) => {
    const claim = await ownRun(store, 'live');
    await claimFor(store, 'only claimed');
    await refuses(store.history.erase('live'), 'RUN_OWNED_ELSEWHERE');
    await refuses(store.history.erase('only claimed'), 'RUN_OWNED_ELSEWHERE');
    await store.release(claim);
    await refuses(store.history.erase('live'), 'RUN_NOT_ENDED');
    assert(await store.load('live'));
    await end(store, 'again');
    const next = await claimFor(store, 'again');
    await refuses(store.history.erase('again'), 'RUN_OWNED_ELSEWHERE');
    await store.release(next);
    await store.history.erase('again');
    assert.deepEqual(await listIds(store), []);
  }),

  historyStore(
    'what is kept of a run that ended is the same for another process (web 16)',
    async ({ store, reopen }) => {
      await end(store, 'run');
      await end(store, 'gone');
      await store.history.erase('gone');
      const other = await reopen();
      assert.deepEqual(await other.history.list({ limit: 10 }), await store.history.list({ limit: 10 }));
      assert.deepEqual(await listIds(other), ['run']);
      assert.equal(await other.load('run'), null);
      assert.deepEqual(await other.load('run', { ended: true }), await store.load('run', { ended: true }));
      assert.deepEqual(await other.listInterrupted(), []);
      const claim = await other.claim('run', 'another', LONG_MS);
      assert(claim);
      await other.save(sampleRecord('run'), { claim });
      assert.deepEqual(await listIds(store), []);
      assert(await store.load('run'));
    },
    'reopen',
  ),

  historyStore(
    'a run keeps its journal as long as its ended record, and when it is reopened (web 8, 16, lab 5)',
    async ({ store }) => {
      const { journal } = store;
      if (!journal) return;
      const places = async () => (await journal.read('run', { limit: 9 }))?.entries.map(({ place }) => place) ?? null;
      const begin = async () => {
        const claim = await ownRun(store, 'run');
        await journal.publish('run', [entry(1), entry(2)], { claim });
        return claim;
      };
      await store.history.end(await begin(), endOf('run'));
      assert.deepEqual(await places(), [1, 2]);
      // A start of a new run that records nothing.
      await store.delete('run', { claim: await claimFor(store, 'run') });
      assert.deepEqual(await places(), [1, 2]);
      const claim = await ownRun(store, 'run');
      assert.deepEqual(await places(), []);
      await journal.publish('run', [entry(3)], { claim });
      await store.history.end(claim, endOf('run'));
      const again = await claimFor(store, 'run');
      await store.save(sampleRecord('run'), { claim: again, reopens: true, events: { entries: [entry(4)] } });
      assert.deepEqual(await places(), [3, 4]);
      await store.history.end(again, endOf('run'));
      await store.history.erase('run');
      assert.equal(await places(), null);
      await store.history.end(await begin(), { ...endOf('run'), keepUntil: 0 });
      assert.equal(await places(), null);
    },
  ),

  historyStore('expired records are counted, and removed on demand (web 16)', async ({ store }) => {
    await end(store, 'kept');
    assert.equal(await store.history.forget({ dryRun: true }), 0);
    assert.equal(await store.history.forget(), 0);
    assert.deepEqual(await listIds(store), ['kept']);
  }),

  historyStore('the totals of a day count each end once, and stay when its runs are erased', async ({ store }) => {
    const usage = { inputTokens: 5, outputTokens: 4, reasoningTokens: 3, cacheReadTokens: 2, cacheWriteTokens: 1 };
    const spend = { tokens: 9, usd: 0.5, seconds: 2 };
    const counted = (runId: string, beganAt: number, of: Partial<RunOutcome> = {}): EndOptions => {
      const run = { meta: sampleMeta(runId), beganAt, elapsedMs: 70 };
      return { ...endOf(runId, { run, usage, spend, iterations: 6, ...of }), isCounted: true };
    };
    const day = (at: string) => Date.parse(at);
    const claim = await ownRun(store, 'a');
    for (let i = 0; i < 2; i++) await store.history.end(claim, counted('a', day('2026-11-22T00:00:00Z')));
    await end(store, 'b', counted('b', day('2026-11-22T23:59:59Z')));
    await end(store, 'c', counted('c', day('2026-11-21T23:59:59Z'), { status: 'killed', error: sampleError }));
    await end(store, 'not counted');
    for (const runId of ['a', 'b', 'c']) await store.history.erase(runId);
    await store.history.forget();
    const [first, second, ...others] = await store.history.totals();
    const one = { runs: 1, usage, spend, iterations: 6, elapsedMs: 70 };
    assert.deepEqual(first, { day: '2026-11-21', status: 'killed', ...one });
    assert.deepEqual([second?.day, second?.status, second?.runs], ['2026-11-22', 'ok', 2]);
    assert.deepEqual([second?.usage.cacheWriteTokens, second?.spend.usd, second?.iterations], [2, 1, 12]);
    assert.deepEqual(others, []);
    assert.deepEqual(await store.history.totals({ from: '2026-11-22' }), [second]);
    assert.deepEqual(await store.history.totals({ to: '2026-11-21' }), [first]);
    assert.deepEqual(await store.history.totals({ from: '2026-11-23', to: '2026-11-20' }), []);
  }),
];
