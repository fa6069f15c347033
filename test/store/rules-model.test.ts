import { fc, test } from '@fast-check/vitest';
import { describe, expect } from 'vitest';
import type { Claim } from '../../src/store/port.ts';
import { type Change, type Decide, decideAsking, type Fact, type RunFacts } from '../../src/store/rules/decision.ts';
import * as inboxRules from '../../src/store/rules/inbox.ts';
import type { Ownership } from '../../src/store/rules/lease.ts';
import * as ownerRules from '../../src/store/rules/ownership.ts';
import * as writeRules from '../../src/store/rules/writes.ts';
import { torture } from '../crash/random.ts';

/** All that is stored of one run. */
interface State {
  lease?: (Ownership & { until: number }) | undefined;
  record?: { revision: number; count: number; attempts: number } | undefined;
  keptEpoch: number;
  /** Ids, and the numbers of their sending. */
  inbox: { id: string; seq: number }[];
  sent: number;
  due: number | null;
}

interface Op {
  readonly name:
    | 'claim'
    | 'renew'
    | 'release'
    | 'save'
    | 'append'
    | 'delete'
    | 'keep'
    | 'send'
    | 'acknowledge'
    | 'leave'
    | 'wait';
  readonly owner: 'one' | 'two' | 'none';
  readonly ahead: number;
  readonly known: number;
  /** What a written record says of its run. */
  readonly due: 'now' | 'kept' | 'never';
}

const ops = fc.record<Op>({
  name: fc.constantFrom(
    ...(['claim', 'claim', 'renew', 'release', 'save', 'append', 'delete'] as const),
    ...(['keep', 'keep', 'send', 'acknowledge', 'wait', 'leave', 'leave'] as const),
  ),
  owner: fc.constantFrom('one', 'one', 'one', 'two', 'none'),
  ahead: fc.constantFrom(0, 1, 1, 1, 2),
  known: fc.nat({ max: 255 }),
  due: fc.constantFrom('now', 'kept', 'never'),
});

const TTL = 10;

describe('the ten transitions', () => {
  test.prop([fc.array(ops, { minLength: 1, maxLength: 40 })], { numRuns: 100 * torture })(
    'answer and change as a model of a few lines does, whichever facts a driver has read before it asks (recovery 3, waiting 18)',
    async (story) => {
      const [run, model] = [new DecidedRun(), new ModelRun()];
      for (const [at, op] of story.entries()) {
        const answers = [await run.does(op), model.does(op)];
        expect([at, answers[0]]).toEqual([at, answers[1]]);
        expect(run.state).toEqual(model.state);
      }
    },
  );
});

/** Two owners with the claims that they got last, a clock, and one run. */
abstract class Run {
  state: State = { lease: undefined, record: undefined, keptEpoch: 0, inbox: [], sent: 0, due: 0 };
  now = 0;
  readonly claims = new Map<string, Claim>();

  claimOf(owner: string): Claim | undefined {
    return owner === 'none' ? undefined : this.claims.get(owner);
  }
}

/** A run that was deleted. */
const gone = (keptEpoch: number): State => ({
  lease: undefined,
  record: undefined,
  keptEpoch,
  inbox: [],
  sent: 0,
  due: 0,
});

/** Makes the changes that the rules decide. */
class DecidedRun extends Run {
  async does(op: Op): Promise<unknown> {
    if (op.name === 'wait') this.now += TTL / 2;
    const decide = this.#decision(op);
    if (!decide) return undefined;
    try {
      const { value, change } = await decideAsking(decide, this.#some(op.known), async (need) => this.#named(need));
      if (change) this.#make(change);
      if (op.name === 'claim' && value) this.claims.set(op.owner, value as Claim);
      if (op.name === 'leave') return value;
      return op.name === 'claim' ? value && (value as Claim).attempts : undefined;
    } catch (error) {
      return (error as { code?: string }).code ?? error;
    }
  }

  #decision({ name, owner, ahead, due }: Op): Decide<unknown> | undefined {
    const claim = this.claimOf(owner);
    const by = { claim, isDead: () => false, keepsDue: true };
    const { revision = 0, count = 0 } = this.state.record ?? {};
    const delta = { runId: 'run', attempts: 0, due, revision: revision + ahead, from: count };
    if (name === 'claim') return ownerRules.claimRun({ runId: 'run', owner, ttlMs: TTL }, by);
    if (name === 'save') return writeRules.saveRecord({ runId: 'run', attempts: 1, due }, by);
    if (name === 'append') return writeRules.appendDelta(delta, by);
    if (name === 'delete') return writeRules.deleteRun('run', by);
    if (name === 'keep') return writeRules.keepOutcome({ runId: 'run', text: 'x', untilMs: 1 }, by);
    if (name === 'send')
      return inboxRules.sendCommand({ runId: 'run', id: `c${ahead}`, kind: 'cancel', text: 'x' }, by);
    if (!claim || name === 'wait') return undefined;
    if (name === 'renew') return ownerRules.renewClaim(claim, TTL);
    if (name === 'release') return ownerRules.releaseClaim(claim, { attempts: 0 });
    if (name === 'leave') return ownerRules.leaveRun(claim, { due: 7 * ahead, readUpTo: ahead, attempts: 0 });
    return inboxRules.acknowledge(claim, [`c${ahead}`]);
  }

  get #facts(): Required<Omit<RunFacts, 'damage'>> {
    const { lease = null, record, keptEpoch, inbox, due } = this.state;
    return {
      lease,
      expiresAt: lease?.until ?? 0,
      now: this.now,
      record: record ? { version: 1, revision: record.revision, messageCount: record.count } : null,
      attempts: record?.attempts ?? 0,
      keptEpoch,
      inbox: {
        size: inbox.length,
        chars: inbox.length,
        newest: inbox.at(-1)?.seq ?? 0,
        has: (id) => inbox.some((command) => command.id === id),
      },
      due,
    };
  }

  #some(bits: number): RunFacts {
    return Object.fromEntries(Object.entries(this.#facts).filter((_, i) => bits & (1 << i)));
  }

  #named(need: readonly Fact[]): RunFacts {
    return Object.fromEntries(need.map((name) => [name, this.#facts[name]]));
  }

  #make({ record, remove, lease, ttlMs, keep, raiseEpoch, send, forget, due }: Change): void {
    const state = this.state;
    if (keep) state.keptEpoch = keep.epoch;
    if (raiseEpoch !== undefined && state.keptEpoch > 0) state.keptEpoch = Math.max(state.keptEpoch, raiseEpoch);
    if (record === 'put') state.record = { revision: 1, count: 1, attempts: 1 };
    if (record === 'append' && state.record) {
      const { revision, count } = state.record;
      state.record = { revision: revision + 1, count: count + 1, attempts: 0 };
    }
    if (lease) state.lease = { ...lease, until: state.lease?.until ?? 0 };
    if (ttlMs !== undefined && state.lease) state.lease = { ...state.lease, until: this.now + ttlMs };
    if (send) state.inbox.push({ id: send.id, seq: ++state.sent });
    if (due !== undefined) state.due = due;
    state.inbox = state.inbox.filter(({ id }) => !forget?.includes(id));
    if (remove) this.state = gone(state.keptEpoch);
  }
}

/** What the rules are to do, told without facts and changes. */
class ModelRun extends Run {
  does({ name, owner, ahead, due }: Op): unknown {
    const { state, now } = this;
    const claim = this.claimOf(owner);
    const { lease } = state;
    const isHeld = lease !== undefined && lease.owner !== null && lease.until > now;
    const isNewest = claim !== undefined && lease?.owner === claim.owner && lease.epoch === claim.epoch;
    const isWrite = name === 'save' || name === 'append' || name === 'delete' || name === 'keep';
    if (isWrite && claim && !isNewest) return 'LEASE_LOST';
    if (isWrite && !claim && isHeld) return 'RUN_OWNED_ELSEWHERE';
    if ((name === 'renew' || name === 'acknowledge' || name === 'leave') && claim && !isNewest) return 'LEASE_LOST';
    if (name === 'wait') this.now += TTL / 2;
    else if (name === 'claim') {
      if (isHeld && lease.owner !== owner) return null;
      const epoch = (lease?.epoch ?? state.keptEpoch) + 1;
      const attempts = (lease?.attempts ?? state.record?.attempts ?? 0) + 1;
      state.lease = { owner, epoch, attempts, until: now + TTL };
      this.claims.set(owner, { runId: 'run', owner, epoch, attempts });
      return attempts;
    } else if (name === 'save') this.#stores({ revision: 1, count: 1, attempts: 1 }, due);
    else if (name === 'append') {
      if (state.record && ahead === 0) return undefined;
      if (!state.record || ahead !== 1) return 'REVISION_GAP';
      this.#stores({ revision: state.record.revision + 1, count: state.record.count + 1, attempts: 0 }, due);
    } else if (name === 'delete') {
      const keptEpoch = state.keptEpoch > 0 ? Math.max(state.keptEpoch, lease?.epoch ?? 0) : 0;
      this.state = gone(keptEpoch);
    } else if (name === 'keep') state.keptEpoch = lease?.epoch ?? state.keptEpoch;
    else if (name === 'send') {
      if (!state.record) return 'RUN_NOT_FOUND';
      if (state.inbox.some(({ id }) => id === `c${ahead}`)) return undefined;
      state.inbox.push({ id: `c${ahead}`, seq: ++state.sent });
      if (state.due !== null) state.due = 0;
    } else if (claim && name === 'renew' && lease) lease.until = now + TTL;
    else if (isNewest && name === 'release') state.lease = { ...lease, owner: null, attempts: 0 };
    else if (claim && name === 'acknowledge') state.inbox = state.inbox.filter(({ id }) => id !== `c${ahead}`);
    else if (lease && claim && name === 'leave') {
      if (state.inbox.some(({ seq }) => seq > ahead)) return false;
      state.lease = { ...lease, owner: null, attempts: 0 };
      if (state.record && state.due !== null) state.due = 7 * ahead;
      return true;
    }
    return undefined;
  }

  #stores(record: NonNullable<State['record']>, due: Op['due']): void {
    this.state.record = record;
    // A record that waits, and was never due, is due: its time was not kept.
    if (due !== 'kept' || this.state.due === null) this.state.due = due === 'never' ? null : 0;
    if (this.state.lease) this.state.lease = { ...this.state.lease, attempts: record.attempts };
  }
}
