import { describe, expect, test } from 'vitest';
import { MAX_COMMANDS } from '../../src/run/command.ts';
import {
  type Change,
  type Decide,
  decideAsking,
  decideNow,
  type RunFacts,
  type Writer,
} from '../../src/store/rules/decision.ts';
import * as inboxRules from '../../src/store/rules/inbox.ts';
import type { Ownership } from '../../src/store/rules/lease.ts';
import * as ownerRules from '../../src/store/rules/ownership.ts';
import * as writeRules from '../../src/store/rules/writes.ts';
import { CheckpointCorruptError } from '../../src/values/errors.ts';

const claim = { runId: 'run', owner: 'one', epoch: 3, attempts: 2 };
const lease: Ownership = { owner: 'one', epoch: 3, attempts: 2 };
const free: Ownership = { ...lease, owner: null };
const lost: Ownership = { ...lease, owner: 'two', epoch: 4 };
const damaged: Ownership = { ...lease, owner: '|quarantined|its head is torn' };
const record = { version: 1, revision: 5, messageCount: 8 };
const alive = { isDead: () => false };
const dead = { isDead: () => true };
const noInbox = { size: 0, chars: 0, has: () => false };

/** A run without a lease, with a record. */
const idle: RunFacts = { lease: null, record, keptEpoch: 0, attempts: 1, inbox: noInbox, now: 100 };
const held: RunFacts = { ...idle, lease, expiresAt: 200 };

const saved = { runId: 'run', attempts: 2 };
const delta = { runId: 'run', attempts: 2, revision: 6, from: 8 };
const command = { runId: 'run', id: 'c', kind: 'steer', text: 'x' } as const;
const outcome = { runId: 'run', text: 'text', untilMs: 9 };

function change(decide: Decide<unknown>, facts: RunFacts): Change | undefined {
  return decideNow(decide, facts).change;
}

function refusal(decide: Decide<unknown>, facts: RunFacts): string | undefined {
  try {
    decideNow(decide, facts);
    return undefined;
  } catch (error) {
    return (error as { code?: string }).code;
  }
}

function need(decide: Decide<unknown>, facts: RunFacts): readonly string[] {
  const decision = decide(facts);
  return 'need' in decision ? decision.need : [];
}

describe('may a write be made', () => {
  const writes: readonly (readonly [string, (by: Writer) => Decide<unknown>])[] = [
    ['saveRecord', (by) => writeRules.saveRecord(saved, by)],
    ['appendDelta', (by) => writeRules.appendDelta(delta, by)],
    ['deleteRun', (by) => writeRules.deleteRun('run', by)],
    ['keepOutcome', (by) => writeRules.keepOutcome(outcome, by)],
  ];

  test.for(writes)('%s is done for the newest claim, also when its lease has run out', ([, write]) => {
    expect(refusal(write({ claim }), { ...held, expiresAt: 0 })).toBe(undefined);
  });

  test.for(writes)('%s is refused to a claim that is not the newest', ([, write]) => {
    for (const other of [null, free, lost, { ...lease, epoch: 4 }])
      expect(refusal(write({ claim }), { ...held, lease: other })).toBe('LEASE_LOST');
  });

  test.for(writes)('%s without a claim is refused while an owner holds the run', ([, write]) => {
    expect(refusal(write(alive), held)).toBe('RUN_OWNED_ELSEWHERE');
    expect(refusal(write(alive), { ...held, now: 199 })).toBe('RUN_OWNED_ELSEWHERE');
  });

  test.for(writes)('%s without a claim is done when the lease is over, free, or of a dead owner', ([, write]) => {
    expect(refusal(write(alive), { ...held, now: 200 })).toBe(undefined);
    expect(refusal(write(alive), { ...held, lease: free })).toBe(undefined);
    expect(refusal(write(dead), held)).toBe(undefined);
  });

  test.for(writes)('%s asks for the time of a lease only where it depends on it', ([, write]) => {
    const { lease: _, expiresAt: __, now: ___, ...rest } = held;
    expect(need(write({ claim }), rest)).toEqual(['lease']);
    expect(need(write(alive), rest)).toEqual(['lease']);
    expect(need(write({ claim }), { ...rest, lease })).toEqual([]);
    expect(need(write(alive), { ...rest, lease: free })).toEqual([]);
    expect(need(write(alive), { ...rest, lease })).toEqual(['expiresAt', 'now']);
  });
});

describe('saveRecord', () => {
  test('puts the record, and leaves the lease as it is', () => {
    expect(change(writeRules.saveRecord(saved, { claim }), held)).toEqual({ record: 'put' });
    expect(change(writeRules.saveRecord(saved, {}), { ...idle, record: null })).toEqual({ record: 'put' });
  });

  test('sets the attempts of the lease to those of the record, which a record may leave out', () => {
    const counted = writeRules.saveRecord({ ...saved, attempts: 0 }, { claim });
    expect(change(counted, held)).toEqual({ record: 'put', lease: { ...lease, attempts: 0 } });
    const uncounted = writeRules.saveRecord({ ...saved, attempts: undefined }, { claim });
    expect(change(uncounted, held)).toEqual({ record: 'put' });
  });

  test('frees a run that was released as damaged', () => {
    expect(change(writeRules.saveRecord(saved, {}), { ...idle, lease: damaged })).toEqual({
      record: 'put',
      lease: free,
    });
  });

  test('never writes over what a newer version wrote', () => {
    const newer = { ...idle, record: { ...record, version: 99 } };
    expect(refusal(writeRules.saveRecord(saved, {}), newer)).toBe('CHECKPOINT_TOO_NEW');
    expect(refusal(writeRules.appendDelta(delta, {}), newer)).toBe('CHECKPOINT_TOO_NEW');
  });

  test('replaces a record that cannot be read', () => {
    expect(change(writeRules.saveRecord(saved, {}), { ...idle, record: 'unreadable' })).toEqual({ record: 'put' });
  });
});

describe('appendDelta', () => {
  test('appends the revision that comes next', () => {
    expect(change(writeRules.appendDelta(delta, { claim }), held)).toEqual({ record: 'append' });
    const counted = writeRules.appendDelta({ ...delta, attempts: 0 }, { claim });
    expect(change(counted, held)).toEqual({ record: 'append', lease: { ...lease, attempts: 0 } });
  });

  test('changes nothing when its revision is there already', () => {
    for (const revision of [4, 5])
      expect(change(writeRules.appendDelta({ ...delta, revision }, {}), idle)).toBe(undefined);
  });

  test('refuses a gap, a wrong number of messages, and a record that is not there or cannot be read', () => {
    const append = writeRules.appendDelta(delta, {});
    expect(refusal(writeRules.appendDelta({ ...delta, revision: 7 }, {}), idle)).toBe('REVISION_GAP');
    for (const from of [7, 9])
      expect(refusal(writeRules.appendDelta({ ...delta, from }, {}), idle)).toBe('REVISION_GAP');
    expect(refusal(append, { ...idle, record: null })).toBe('REVISION_GAP');
    expect(refusal(append, { ...idle, record: 'unreadable' })).toBe('REVISION_GAP');
  });

  test('refuses a run that was released as damaged', () => {
    expect(refusal(writeRules.appendDelta(delta, {}), { ...idle, lease: damaged })).toBe('CHECKPOINT_CORRUPT');
    expect(refusal(writeRules.appendDelta(delta, { claim }), { ...idle, lease: damaged })).toBe('CHECKPOINT_CORRUPT');
  });
});

describe('deleteRun and keepOutcome', () => {
  test('a deleted run leaves its epoch to the outcome that is kept', () => {
    expect(change(writeRules.deleteRun('run', { claim }), held)).toEqual({ remove: true, raiseEpoch: 3 });
    expect(change(writeRules.deleteRun('run', {}), idle)).toEqual({ remove: true });
  });

  test('an outcome is kept with the epoch of the lease, or else with the one that was kept before', () => {
    const keep = { text: 'text', untilMs: 9 };
    expect(change(writeRules.keepOutcome(outcome, { claim }), held)).toEqual({ keep: { ...keep, epoch: 3 } });
    const kept = { ...idle, keptEpoch: 7 };
    expect(change(writeRules.keepOutcome(outcome, {}), kept)).toEqual({ keep: { ...keep, epoch: 7 } });
    expect(need(writeRules.keepOutcome(outcome, {}), { lease: null })).toEqual(['keptEpoch']);
    expect(need(writeRules.keepOutcome(outcome, { claim }), { lease })).toEqual([]);
  });
});

/** Facts that cost a driver much, or that it may be unable to read. */
const notLookedAt = Object.create(null, {
  attempts: {
    enumerable: true,
    get: () => {
      throw new Error('it is encrypted');
    },
  },
}) as RunFacts;

describe('claimRun', () => {
  const claimRun = (owner: string, by = alive) => ownerRules.claimRun({ runId: 'run', owner, ttlMs: 60 }, by);

  test('a first claim counts from the kept epoch and the attempts of the record', () => {
    const facts = { ...idle, keptEpoch: 7, attempts: 2 };
    expect(decideNow(claimRun('one'), facts)).toEqual({
      value: { runId: 'run', owner: 'one', epoch: 8, attempts: 3 },
      change: { lease: { owner: 'one', epoch: 8, attempts: 3 }, ttlMs: 60 },
    });
    expect(need(claimRun('one'), { lease: null })).toEqual(['keptEpoch', 'attempts']);
  });

  test('a further claim counts from the lease, and asks for nothing else', () => {
    for (const found of [lease, free]) {
      const { value } = decideNow(claimRun('one'), Object.assign(Object.create(notLookedAt), { lease: found }));
      expect(value).toEqual({ runId: 'run', owner: 'one', epoch: 4, attempts: 3 });
    }
  });

  test('no other owner gets a run that is held, and any owner one whose holder is dead or late', () => {
    expect(decideNow(claimRun('two'), held)).toEqual({ value: null });
    expect(decideNow(claimRun('two', dead), held).value).toMatchObject({ owner: 'two', epoch: 4 });
    expect(decideNow(claimRun('two'), { ...held, now: 200 }).value).toMatchObject({ owner: 'two', epoch: 4 });
    expect(need(claimRun('two'), { lease })).toEqual(['expiresAt', 'now']);
  });

  test('a run that is damaged, or was released as damaged, cannot be claimed', () => {
    expect(refusal(claimRun('one'), { ...idle, lease: damaged })).toBe('CHECKPOINT_CORRUPT');
    expect(refusal(claimRun('one'), { damage: new CheckpointCorruptError('torn') })).toBe('CHECKPOINT_CORRUPT');
  });
});

describe('renewClaim and releaseClaim', () => {
  test('a renewal changes the time alone, and tells the attempts that count', () => {
    expect(decideNow(ownerRules.renewClaim({ ...claim, attempts: 1 }, 60), { lease })).toEqual({
      value: { ...claim, attempts: 2 },
      change: { ttlMs: 60 },
    });
    for (const other of [null, free, lost])
      expect(refusal(ownerRules.renewClaim(claim, 60), { lease: other })).toBe('LEASE_LOST');
  });

  test('a release frees the run, gives attempts back, and marks damage', () => {
    expect(change(ownerRules.releaseClaim(claim), { lease })).toEqual({ lease: free });
    const back = ownerRules.releaseClaim(claim, { attempts: 1, damage: 'its head is torn' });
    expect(change(back, { lease })).toEqual({ lease: { ...damaged, attempts: 1 } });
  });

  test('the release of a lost claim, or of a run that cannot be read, changes nothing', () => {
    for (const other of [null, free, lost])
      expect(change(ownerRules.releaseClaim(claim), { lease: other })).toBe(undefined);
    expect(change(ownerRules.releaseClaim(claim), { lease, damage: new Error('torn') })).toBe(undefined);
  });
});

describe('sendCommand and acknowledge', () => {
  test('a command is put behind the others, and one that waits already is not put twice', () => {
    expect(change(inboxRules.sendCommand(command), idle)).toEqual({ send: command });
    expect(change(inboxRules.sendCommand(command), { ...idle, inbox: { ...noInbox, has: () => true } })).toBe(
      undefined,
    );
    expect(need(inboxRules.sendCommand(command), {})).toEqual(['record']);
    expect(need(inboxRules.sendCommand(command), { record })).toEqual(['inbox']);
  });

  test('a run without a record, and one that is damaged, takes no command', () => {
    expect(refusal(inboxRules.sendCommand(command), { ...idle, record: null })).toBe('RUN_NOT_FOUND');
    const torn = { ...idle, damage: new CheckpointCorruptError('torn') };
    expect(refusal(inboxRules.sendCommand(command), torn)).toBe('CHECKPOINT_CORRUPT');
  });

  test('a full inbox takes cancels only', () => {
    const full = { ...idle, inbox: { ...noInbox, size: MAX_COMMANDS } };
    expect(refusal(inboxRules.sendCommand(command), full)).toBe('UNDELIVERED');
    expect(change(inboxRules.sendCommand({ ...command, kind: 'cancel' }), full)).toBeDefined();
    const large = { ...command, text: 'x'.repeat(2 ** 20) };
    const crowded = { ...idle, inbox: { ...noInbox, chars: 16 * 2 ** 20 - 5_000 } };
    expect(refusal(inboxRules.sendCommand(large), crowded)).toBe('UNDELIVERED');
    expect(change(inboxRules.sendCommand({ ...large, kind: 'cancel' }), crowded)).toBeDefined();
    expect(change(inboxRules.sendCommand(command), crowded)).toBeDefined();
  });

  test('only the newest claim takes commands out', () => {
    expect(change(inboxRules.acknowledge(claim, ['a']), { lease })).toEqual({ forget: ['a'] });
    for (const other of [null, free, lost])
      expect(refusal(inboxRules.acknowledge(claim, ['a']), { lease: other })).toBe('LEASE_LOST');
  });
});

describe('a driver that reads what is asked for', () => {
  test('is asked for the facts that a decision lacks, and for no others', async () => {
    const asked: string[] = [];
    const decided = await decideAsking(writeRules.saveRecord(saved, alive), {}, async (names) => {
      asked.push(...names);
      return Object.fromEntries(names.map((name) => [name, held[name]]));
    }).catch((error) => error.code);
    expect([decided, asked]).toEqual(['RUN_OWNED_ELSEWHERE', ['lease', 'record', 'expiresAt', 'now']]);
  });

  test('that does not give them fails with the names of the facts, and is not asked again and again', async () => {
    const decided = decideAsking(writeRules.saveRecord(saved, {}), {}, async () => ({ lease: null }));
    await expect(decided).rejects.toThrow(/does not give the facts .*: record/);
    expect(() => decideNow(ownerRules.renewClaim(claim, 1), {})).toThrow(/facts .*: lease/);
  });
});
