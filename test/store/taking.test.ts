import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { encrypt } from '../../src/codec/encrypt.ts';
import type { Codec } from '../../src/codec/port.ts';
import type { RunCheckpoint } from '../../src/record/checkpoint.ts';
import { knownPhases } from '../../src/run/pipeline.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { decideNow, type RunFacts } from '../../src/store/rules/decision.ts';
import type { Ownership } from '../../src/store/rules/lease.ts';
import { claimRun, heldFor, takeRun } from '../../src/store/rules/ownership.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import type { ListedHead } from '../../src/store/store-driver.ts';
import { inTurns } from '../../src/store/taking/in-turns.ts';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';
import { copyOfPinned, pinnedVersions } from '../fixtures/pinned-stores.ts';
import { freshPath, sql } from './sqlite/files.ts';

const wish = { runId: 'run', owner: 'me', ttlMs: 10 };
const lease: Ownership = { owner: 'another', epoch: 3, attempts: 2 };
const record = { version: 1, revision: 5, messageCount: 8 };
/** A due run without an owner. */
const idle: RunFacts = { lease: { ...lease, owner: null }, record, now: 100, expiresAt: 0, due: 0 };
const alive = { isDead: () => false };

describe('the decision that takes a run', () => {
  const taken = (facts: RunFacts, isDead = false) =>
    decideNow(takeRun(wish, { isDead: () => isDead, now: 1_000 }), facts).value;

  test('gives a claim that counts an attempt and an epoch (engine 16)', () => {
    expect(taken(idle)).toEqual({ runId: 'run', owner: 'me', epoch: 4, attempts: 3 });
    expect(taken({ ...idle, due: 1_000 })).toMatchObject({ epoch: 4 });
  });

  test('gives none of a run that has gone, or is due later, or never, since it was found (engine 16)', () => {
    expect(taken({ ...idle, record: null })).toBe(null);
    expect(taken({ ...idle, due: 1_001 })).toBe(null);
    expect(taken({ ...idle, due: null })).toBe(null);
  });

  test('gives none of a run that an owner holds, be it the one that asks, until it is dead or its time is over (engine 16)', () => {
    const held = { ...idle, lease, expiresAt: 200 };
    expect(taken(held)).toBe(null);
    expect(taken({ ...held, lease: { ...lease, owner: 'me' } })).toBe(null);
    expect(taken(held, true)).toMatchObject({ epoch: 4 });
    expect(taken({ ...held, expiresAt: 100 })).toMatchObject({ epoch: 4 });
  });

  test('refuses a damaged run with its damage (engine 16)', () => {
    expect(() => taken({ ...idle, damage: new RangeError('torn') })).toThrow(RangeError);
    expect(() => taken({ ...idle, lease: { ...lease, owner: '|quarantined|torn' } })).toThrow('torn');
  });
});

describe('a pinned SQLite file', () => {
  test.for(pinnedVersions)(
    'of version %s gets an index on agents and on definitions: its runs are taken by their agent, and a run that is parked now by its definition (checkpoint 6, engine 19)',
    async (version) => {
      const path = copyOfPinned('runs.db', version);
      await using store = sqliteStore({ path });
      const ask = { owner: 'me', ttlMs: 60_000, limit: 1_000 };
      expect((await store.due.take({ ...ask, agentIds: ['another'] })).claims).toEqual([]);
      const { runs } = await store.due.list({ limit: 1_000 });
      expect(runs.length).toBeGreaterThan(0);
      const agentIds = [...new Set(runs.map(({ meta }) => meta.agentId))];
      const { claims } = await store.due.take({ ...ask, agentIds });
      expect(claims.map(({ runId }) => runId).sort()).toEqual(runs.map(({ runId }) => runId).sort());
      const [claim] = claims as [(typeof claims)[number], ...typeof claims];
      const record = await store.load(claim.runId);
      const { openPhase, completedPhases, ...rest } = record as RunCheckpoint;
      const parked = { code: 'DEFINITION_CHANGED', reason: 'the phases are others' };
      await store.save({ ...rest, completedPhases: [], parked, revision: rest.revision + 1 }, { claim });
      await store.release(claim);
      expect((await store.due.take({ ...ask, agentIds })).claims).toEqual([]);
      const definitions = knownPhases(rest.meta.agentId, []);
      expect((await store.due.take({ ...ask, agentIds, definitions })).claims).toMatchObject([{ runId: claim.runId }]);
      expect(sql(path, 'PRAGMA user_version')).toEqual([{ user_version: 10 }]);
    },
  );
});

describe('the time by which a run is taken', () => {
  const opened = [
    ['memory', () => memoryStore()],
    ['SQLite', () => sqliteStore({ path: freshPath() })],
  ] as const;

  test.for(opened)('is that of a test, if it gives one, in %s (engine 16)', async ([, open]) => {
    const store = open();
    const ask = { owner: 'me', ttlMs: 60_000, limit: 10 };
    await store.save(sampleRecord('run'));
    const claim = await store.claim('run', 'me', 60_000);
    const dueAt = Date.now() + 3_600_000;
    expect(claim && (await store.due.leave(claim, { dueAt, readUpTo: 0 }))).toBe(true);
    expect((await store.due.take({ ...ask, now: dueAt - 1 })).claims).toEqual([]);
    const { now, claims } = await store.due.take({ ...ask, runIds: ['run'], now: dueAt });
    expect([now, claims.map(({ runId }) => runId)]).toEqual([dueAt, ['run']]);
  });

  test('is not that of the pause of a run that was given back, if it is named (engine 19)', () => {
    const given = (due: number, isNamed: boolean) =>
      decideNow(takeRun({ ...wish, isNamed }, { isDead: () => false, now: 1_000 }), { ...idle, due }).value;
    expect(given(2_000 - 0.5, true)).toMatchObject({ runId: 'run' });
    expect(given(2_000 - 0.5, false)).toBe(null);
    expect(given(2_000, true)).toBe(null);
  });
});

describe('the deployment beside a lease', () => {
  const claimed = (deployment: number | undefined, stored: number | undefined) =>
    decideNow(claimRun({ ...wish, deployment }, alive), {
      ...idle,
      lease: { ...lease, owner: null, ...(stored === undefined ? {} : { deployment: stored }) },
    }).change?.lease?.deployment;

  test('is the highest one that claimed the run (engine 18)', () => {
    expect([
      claimed(undefined, undefined),
      claimed(4, undefined),
      claimed(4, 4),
      claimed(5, 4),
      claimed(undefined, 4),
    ]).toEqual([undefined, 4, 4, 5, 4]);
    expect(() => claimed(3, 4)).toThrow(expect.objectContaining({ code: 'NEWER_DEPLOYMENT', retry: 'later' }));
  });
});

describe('the decision that tells how long a claim holds', () => {
  test('changes nothing, and has no time for a dead owner (engine 7)', () => {
    const held = { ...idle, lease, expiresAt: 130 };
    expect(decideNow(heldFor(alive), held)).toEqual({ value: 30 });
    expect(decideNow(heldFor({ isDead: () => true }), held)).toEqual({ value: null });
    expect(decideNow(heldFor(alive), { ...held, expiresAt: 99 })).toEqual({ value: null });
    expect(decideNow(heldFor(alive), idle)).toEqual({ value: null });
    expect(decideNow(heldFor(alive), { lease: null })).toEqual({ value: null });
  });
});

describe('turns', () => {
  const heads = ['a 0', 'a 1', 'a 2', 'b 0', 'b 1', 'c 0', ' 0', ' 1'].map((runId, i): ListedHead => {
    const [fair] = runId.split(' ');
    return { runId, fair, due: i, updatedAt: 0, meta: '', head: '', now: 0 };
  });
  const turns = (after: string | undefined) => [...inTurns(heads.toReversed(), after)].map(({ runId }) => runId);

  test('go from key to key, from the one after the last on, and around (engine 17)', () => {
    expect(turns('')).toEqual(['a 0', 'b 0', 'c 0', ' 0', 'a 1', 'b 1', ' 1', 'a 2']);
    expect(turns('b')).toEqual(['c 0', ' 0', 'a 0', 'b 0', ' 1', 'a 1', 'b 1', 'a 2']);
    expect(turns('aa').slice(0, 2)).toEqual(['b 0', 'c 0']);
    expect(turns('c')[0]).toBe(' 0');
  });

  test('begin at any key in a process that has taken nothing yet (engine 17)', () => {
    const first = new Set(Array.from({ length: 200 }, () => turns(undefined)[0]));
    expect([...first].sort()).toEqual([' 0', 'a 0', 'b 0', 'c 0']);
    expect([...inTurns([], undefined)]).toEqual([]);
  });
});

describe('a memory store', () => {
  test('has nothing due for a deployment below that of all due runs (engine 18)', async () => {
    const store = memoryStore();
    await store.save(sampleRecord('run'));
    for (const version of [7, 6]) {
      const { claims, nextAt } = await store.due.take({ owner: 'me', ttlMs: 0, limit: 1, version });
      expect([claims.length, nextAt]).toEqual([version - 6, undefined]);
    }
    expect((await store.due.take({ owner: 'me', ttlMs: 0, limit: 0, version: 6 })).nextAt).toBe(undefined);
  });
});

describe('a store with a codec', () => {
  const codec = encrypt({ keys: { k: createHash('sha256').update('a key').digest() }, current: 'k' });
  const take = { owner: 'me', ttlMs: 600_000, limit: 10 };

  test('keeps and shows no fair key, agent or caller in plain text (engine 17)', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path, codec });
    const record = sampleRecord('run');
    const meta = { ...record.meta, agentId: 'the agent', callerId: 'the caller' };
    await store.save({ ...record, meta }, { fairKey: 'the tenant' });
    await store.save(sampleRecord('other'), { fairKey: 'another tenant' });
    const rows = JSON.stringify(sql(path, 'SELECT fair, agent, caller FROM due'));
    expect(rows).not.toMatch(/tenant|the agent|the caller/);
    expect(rows.match(/sealed:/g)?.length).toBeGreaterThanOrEqual(4);
    const { claims } = await store.due.take({ ...take, agentIds: ['the agent'] });
    expect(claims.map(({ runId }) => runId)).toEqual(['run']);
    const fairKey = claims[0]?.run.fairKey ?? '';
    expect(fairKey).toMatch(/^sealed:/);
    expect(claims[0]?.run.meta.agentId).toBe('the agent');
    for (const claim of claims) await store.release(claim);
    const rest = await store.due.take({ ...take, fullKeys: [fairKey] });
    expect(rest.claims.map(({ runId }) => runId)).toEqual(['other']);
  });

  test('that cannot hash takes runs without turns, and only of the agents that are asked for (engine 17, 18)', async () => {
    const own: Codec = {
      seal: (text, place) => codec.seal(text, place),
      open: (text, place) => codec.open(text, place),
    };
    await using store = sqliteStore({ path: freshPath(), codec: own });
    const record = sampleRecord('run');
    await store.save({ ...record, meta: { ...record.meta, agentId: 'one' } }, { fairKey: 'tenant' });
    await store.save({ ...sampleRecord('other') }, { fairKey: 'tenant' });
    const { claims } = await store.due.take({ ...take, agentIds: ['one'] });
    expect(claims.map(({ runId, run, attempts }) => [runId, run.fairKey, attempts])).toEqual([['run', undefined, 2]]);
    expect((await store.due.list({ limit: 10 })).runs.map(({ runId, attempts }) => [runId, attempts])).toEqual([
      ['other', 1],
    ]);
  });
});
