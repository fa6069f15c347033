/*
 * A process of its own for the tests of the SQLite store: `node sqlite-child.ts <role> <path> [argument]`.
 * It says what it does in lines of JSON, and works on until it is done or killed.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { sqliteStore } from 'pawl/stores/sqlite';
import { newOwner } from '../../../src/store/owner.ts';
import { nextStep, sampleRecord, userMessage } from '../../../src/testing/store-contract/records.ts';

const [role, path = '', argument = ''] = process.argv.slice(2);
const say = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`);
const told = () => new Promise<void>((resolve) => process.stdin.once('data', () => resolve()));
const codeOf = (error: unknown) => String((error as { code?: unknown }).code ?? error);

const roles: Readonly<Record<string, () => Promise<void>>> = {
  /** Holds the write lock until told to let go. */
  async lock() {
    const db = new DatabaseSync(path);
    db.exec('BEGIN IMMEDIATE');
    say('locked');
    await told();
    db.exec('COMMIT');
    say('released');
    process.stdin.destroy();
  },

  /** Writes within a transaction that never ends. */
  async transaction() {
    const db = new DatabaseSync(path);
    db.exec('PRAGMA cache_size = 1; BEGIN IMMEDIATE; UPDATE heads SET head = head || head; DELETE FROM messages');
    say('written');
    await told();
  },

  /** Claims a run, and lives on. */
  async hold() {
    const store = sqliteStore({ path });
    say(await store.claim(argument, newOwner(), 600_000));
    await told();
  },

  /** Claims all runs there are, at once; says which it got. */
  async race() {
    const store = sqliteStore({ path });
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

  /** Takes due runs until none is left; says which it got. */
  async take() {
    const store = sqliteStore({ path });
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

  /** Saves a run, or only looks, and ends without a close: when it is killed, by itself, or by `process.exit`. */
  async leave() {
    const store = sqliteStore({ path });
    Object.assign(globalThis, { store });
    if (argument === 'look') {
      await store.load('run');
      say('seen');
      return;
    }
    await store.save(sampleRecord('run'));
    say('saved');
    if (argument === 'exit') process.exit(0);
    if (argument === 'SIGKILL') await told();
  },

  /** Tells a run something, so many times. */
  async send() {
    const store = sqliteStore({ path, durability: 'process' });
    await store.load('run');
    say('ready');
    await told();
    for (let i = 0; i < Number(argument); i++) {
      await store.commands.send('run', { id: `${process.pid}-${i}`, kind: 'steer', text: `say ${i}` });
    }
    say('sent');
    process.stdin.destroy();
  },

  /** Adds steps to a run that others write to as well: whoever is late loads it, and tries again. Says how many it added. */
  async share() {
    const store = sqliteStore({ path, durability: 'process' });
    await store.load('run');
    say('ready');
    await told();
    let added = 0;
    while (added < Number(argument)) {
      const record = await store.load('run');
      if (!record) throw new Error('the run is gone');
      const { delta } = nextStep(record, [userMessage(`${process.pid}:${added}`)]);
      const mine = JSON.stringify(delta.messages);
      await store.append(delta).catch((error: unknown) => {
        if (codeOf(error) !== 'REVISION_GAP') throw error;
      });
      // Another's delta of that number may be there instead.
      const now = await store.load('run');
      if (JSON.stringify(now?.messages.slice(delta.from, delta.from + 1)) === mine) added += 1;
    }
    say(added);
    process.stdin.destroy();
  },

  /** Reads what is there; says the record's revision, and what became of a write. */
  async read() {
    const store = sqliteStore({ path, readOnly: argument === 'read-only' });
    const revision = await store.load('run').then((record) => record?.revision, codeOf);
    const written = await store.save(sampleRecord('run', { iteration: 9 })).then(() => 'saved', codeOf);
    say({ revision, written });
  },

  /** Appends for ever; says each revision once it is stored. */
  async append() {
    const store = sqliteStore({ path });
    let record = sampleRecord('run');
    await store.save(record);
    for (;;) {
      const step = nextStep(record, [userMessage('x'.repeat(3_000))]);
      await store.append(step.delta);
      record = step.record;
      say(record.revision);
    }
  },

  /** Saves runs of 20 KB until the disk is full; then makes room on it, and says whether writing works again. */
  async fill() {
    writeFileSync(`${path}.filler`, Buffer.alloc(100_000));
    const store = sqliteStore({ path, busyTimeoutMs: 500 });
    const saved: string[] = [];
    let refusal: unknown;
    for (let i = 0; i < 200 && refusal === undefined; i++) {
      const record = sampleRecord(`run-${i}`, { messages: [userMessage('x'.repeat(20_000))] });
      await store.save(record).then(
        () => saved.push(record.meta.runId),
        (error: unknown) => {
          refusal = error;
        },
      );
    }
    const found = await Promise.all(saved.map((runId) => store.load(runId)));
    rmSync(`${path}.filler`);
    const again = await store.save(sampleRecord('again')).then(() => 'saved', codeOf);
    say({
      refusal: codeOf(refusal),
      saved: saved.length,
      loaded: found.filter((record) => record !== null).length,
      again,
    });
  },

  /** Appends a number of steps, each tried until it is stored; says the code of each refusal, and what it ended with. */
  async persist() {
    const store = sqliteStore({ path });
    const refusals: string[] = [];
    const stored = async (write: () => Promise<void>) => {
      for (let isStored = false; !isStored && refusals.length < 100; ) {
        isStored = await write().then(
          () => true,
          (error: unknown) => refusals.push(codeOf(error)) < 0,
        );
      }
    };
    let record = sampleRecord('run');
    await stored(() => store.save(record));
    for (let i = 0; i < Number(argument); i++) {
      const step = nextStep(record);
      await stored(() => store.append(step.delta));
      record = step.record;
    }
    say({ refusals, revision: record.revision });
  },
};

await roles[role ?? '']?.();
