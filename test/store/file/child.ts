/*
 * A process of its own for the tests of the file store: `node file-child.ts <role> <dir> [argument]`. It says what it does
 * in lines of JSON, and works on until it is done or killed.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { diskFiles, type FileSystem } from '../../../src/files/file-system.ts';
import { fileStoreOn } from '../../../src/store/file/file-store.ts';
import { fileStore } from '../../../src/store/file/index.ts';
import { newOwner } from '../../../src/store/owner.ts';
import { nextStep, sampleRecord, userMessage } from '../../../src/testing/store-contract/records.ts';

const [role, dir = '', argument = ''] = process.argv.slice(2);
const say = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`);
const told = () => new Promise<void>((resolve) => process.stdin.once('data', () => resolve()));
const codeOf = (error: unknown) => String((error as { code?: unknown }).code ?? error);

/** A file system that stops for good where a lock is held: after it was taken, before it is let go. */
function stoppingFiles(): FileSystem {
  const stop = async () => {
    say('locked');
    await new Promise<void>(() => {});
  };
  const remove = async (path: string) => (path.includes('/locks/') ? stop() : diskFiles.remove(path));
  return { ...diskFiles, remove };
}

const roles: Readonly<Record<string, () => Promise<void>>> = {
  /** Saves a run, and keeps its lock for ever. */
  async lock() {
    const store = fileStoreOn(stoppingFiles(), { dir });
    await store.save(sampleRecord(argument, { iteration: 7 }));
    say('saved');
    await told();
  },

  /** Claims a run, and lives on. */
  async hold() {
    const store = fileStore({ dir });
    say(await store.claim(argument, newOwner(), 600_000));
    await told();
  },

  /** Tells a run something, so many times. */
  async send() {
    const store = fileStore({ dir });
    say('ready');
    await told();
    for (let i = 0; i < Number(argument); i++) {
      await store.send('run', { id: `${process.pid}-${i}`, kind: 'steer', text: `say ${i}` });
    }
    say('sent');
    await store.close();
    process.stdin.destroy();
  },

  /** Claims all runs there are, at once; says which it got. */
  async race() {
    const store = fileStore({ dir });
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

  /** Adds steps to a run that others write to as well: whoever is late loads it, and tries again. Says how many it added. */
  async share() {
    const store = fileStore({ dir });
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
    await store.close();
    process.stdin.destroy();
  },

  /** Writes to a run for ever: steps, and now and then the whole of it; says each revision once it is stored. */
  async write() {
    const store = fileStore({ dir });
    let record = sampleRecord('run');
    await store.save(record);
    for (;;) {
      const { openStep: _, ...closed } = record;
      const isWhole = record.revision % 7 === 0;
      // Large heads make the journal be written anew from time to time.
      const heads = { undelivered: [userMessage('y'.repeat(30_000))] };
      const step = nextStep(closed, [userMessage('x'.repeat(3_000))], heads);
      await (isWhole ? store.save(step.record) : store.append(step.delta));
      record = step.record;
      say(record.revision);
    }
  },

  /** Saves runs of 20 KB until the disk is full; then makes room on it, and says whether writing works again. */
  async fill() {
    writeFileSync(`${dir}.filler`, Buffer.alloc(100_000));
    const store = fileStore({ dir });
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
    const deleted = await store.delete('run-0').then(() => 'deleted', codeOf);
    rmSync(`${dir}.filler`);
    const again = await store.save(sampleRecord('again')).then(() => 'saved', codeOf);
    const loaded = found.filter((record) => record !== null).length;
    say({ refusal: codeOf(refusal), saved: saved.length, loaded, deleted, again });
    await store.close();
  },

  /** Appends a number of steps, each tried until it is stored; says the code of each refusal, and what it ended with. */
  async persist() {
    const store = fileStore({ dir });
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
    await store.close();
  },

  /** Reads what is there; says the record's revision, and what became of a write. */
  async read() {
    const store = fileStore({ dir });
    const record = await store.load('run');
    const listed = await store.listInterrupted();
    const written = await store.save(sampleRecord('run', { iteration: 9 })).then(() => 'saved', codeOf);
    say({ revision: record?.revision, listed: listed.length, written });
  },
};

// Whoever started it may go away in the middle: what is never told ends with the process.
void roles[role ?? '']?.();
