/*
 * A process of its own for the tests of the PostgreSQL store: `node postgres-child.ts <role> <url> <schema>`.
 * It says what it does in lines of JSON, and works on until it is done or killed.
 */

import { postgresStore } from 'pawl/stores/postgres';
import pg from 'pg';
import { newOwner } from '../../../src/store/owner.ts';
import { nextStep, sampleRecord, userMessage } from '../../../src/testing/store-contract/records.ts';

const [role, url = '', schema = ''] = process.argv.slice(2);
const say = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`);
const told = () => new Promise<void>((resolve) => process.stdin.once('data', () => resolve()));
const pool = new pg.Pool({ connectionString: url, max: 4 });
const store = postgresStore({ pool, schema });

const roles: Readonly<Record<string, () => Promise<void>>> = {
  /** Claims a run, and lives on. */
  async hold() {
    say(await store.claim('run', newOwner(), 600_000));
    await told();
  },

  /** Tells a run something, so many times. */
  async send() {
    say('ready');
    await told();
    for (let i = 0; i < 20; i++) {
      await store.commands.send('run', { id: `${process.pid}-${i}`, kind: 'steer', text: `say ${i}` });
    }
    say('sent');
    process.stdin.destroy();
  },

  /** Claims all runs there are, at once; says which it got. */
  async race() {
    const owner = newOwner();
    const runs = await store.listInterrupted();
    say('ready');
    await told();
    const claims = await Promise.all(runs.map((run) => store.claim(run.runId, owner, 600_000)));
    say(claims.filter((claim) => claim !== null).map((claim) => claim.runId));
    // The claims of a process that has ended are free.
    await told();
    process.stdin.destroy();
  },

  /** Saves whole records of the same runs as all others do, without a claim, as fast as it can. */
  async quarrel() {
    say('ready');
    await told();
    for (let round = 1; round <= 10; round++) {
      const ids = Array.from({ length: 20 }, (_, i) => `run-${(i * 7 + process.pid) % 20}`);
      const messages = [userMessage(`${process.pid} ${round}`), userMessage(`${process.pid} ${round} again`)];
      await Promise.all(ids.map((runId) => store.save(sampleRecord(runId, { revision: round, messages }))));
    }
    say('done');
    process.stdin.destroy();
  },

  /** Takes due runs until none is left; says which it got. */
  async take() {
    const owner = newOwner();
    await store.load('run');
    say('ready');
    await told();
    const taken: string[] = [];
    for (let isMore = true; isMore; ) {
      const { claims, nextAt, now } = await store.due.take({ owner, ttlMs: 600_000, limit: 16 });
      for (const { runId } of claims) taken.push(runId);
      isMore = claims.length > 0 || (nextAt !== undefined && nextAt <= now);
    }
    say(taken);
    // The claims of a process that has ended are free.
    await told();
    process.stdin.destroy();
  },

  /** Appends for ever; says each revision once it is stored. */
  async append() {
    let record = sampleRecord('run');
    await store.save(record);
    for (;;) {
      const step = nextStep(record, [userMessage('x'.repeat(3_000))]);
      await store.append(step.delta);
      record = step.record;
      say(record.revision);
    }
  },
};

await roles[role ?? '']?.();
await store.close();
await pool.end();
