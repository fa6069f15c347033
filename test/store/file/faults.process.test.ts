import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { RunCheckpoint } from '../../../src/record/checkpoint.ts';
import { fileStoreOn } from '../../../src/store/file/file-store.ts';
import { type FileStore, fileStore } from '../../../src/store/file/index.ts';
import { nextStep, sampleOutcome, sampleRecord, userMessage } from '../../../src/testing/store-contract/records.ts';
import { seed, torture } from '../../crash/random.ts';
import { type Call, type Fault, faultyFiles } from '../../files/faulty.ts';
import { canRun, startChild } from '../child-process.ts';
import { filesBelow, freshDir, journalOf } from './folder.ts';

const unavailable = { code: 'STORE_UNAVAILABLE' };
const settledCode = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error: { code?: unknown }) => error.code,
  );

/** Everything that a run asks of a store, one after the other; each call is told what the run's record must be before it. */
const lifetime = (store: FileStore, claim: Awaited<ReturnType<FileStore['claim']>>) => {
  const first = sampleRecord('run');
  const step = nextStep(first, undefined, { attempts: 0 });
  const big = nextStep(step.record, [], { undelivered: [userMessage('y'.repeat(90_000))] });
  const small = nextStep(big.record, [], { undelivered: [] });
  const options = { claim: claim ?? undefined };
  const renewed = claim ?? { runId: 'run', owner: 'one', epoch: 1, attempts: 1 };
  const whole = { ...small.record, revision: 9 };
  return [
    { name: 'save', before: null, after: first, call: () => store.save(first, options) },
    { name: 'append', before: first, after: step.record, call: () => store.append(step.delta, options) },
    { name: 'renew', before: step.record, after: step.record, call: () => store.renew(renewed, 600_000) },
    {
      name: 'append a large head',
      before: step.record,
      after: big.record,
      call: () => store.append(big.delta, options),
    },
    {
      name: 'append, and write anew',
      before: big.record,
      after: small.record,
      call: () => store.append(small.delta, options),
    },
    { name: 'save again', before: small.record, after: whole, call: () => store.save(whole, options) },
    {
      name: 'keepOutcome',
      before: whole,
      after: whole,
      call: () => store.keepOutcome('run', sampleOutcome('run'), 4e12, options),
    },
    { name: 'delete', before: whole, after: null, call: () => store.delete('run', options) },
  ] as const;
};

/** What another process would find. */
async function stored(dir: string): Promise<RunCheckpoint | null> {
  await using store = fileStore({ dir });
  return store.load('run');
}

/** By default each third call fails, the first of them drawn anew each time. */
const stride = torture > 1 ? 1 : 3;

const codes: Readonly<Record<Fault, string>> = {
  ENOSPC: 'STORE_FULL',
  EIO: 'STORE_UNAVAILABLE',
  EROFS: 'STORE_UNAVAILABLE',
  EACCES: 'STORE_UNAVAILABLE',
};

/** Whether what was asked for may have happened although this call on the way failed: it comes after the one that counts. */
const isUnclear = (call: Call) => ['syncFolder', 'close'].includes(call.method);

describe('a disk that fails (recovery 6, faults 3, 4)', () => {
  test.for(['ENOSPC', 'EIO'] as const)(
    `%s of any single call: a typed refusal, the old record loads, nothing is left behind, and trying again works (seed ${seed})`,
    { timeout: 180_000 },
    async (fault) => {
      let fired = 0;
      for (let at = seed % stride, calls = stride; at < calls; at += stride) {
        const dir = freshDir();
        const faults = faultyFiles();
        await using store = fileStoreOn(faults.files, { dir });
        const claim = await store.claim('run', 'one', 600_000);
        const from = faults.calls.length;
        faults.plan(() => (faults.calls.length === from + at + 1 ? fault : undefined));
        for (const { name, before, after, call } of lifetime(store, claim)) {
          const had = faults.fired;
          const code = await settledCode(call());
          const found = await stored(dir);
          const where = `${name}, call ${at}: ${JSON.stringify(faults.calls[from + at])}`;
          if (faults.fired === had || code === undefined) {
            expect(code, where).toBeUndefined();
            expect(found, where).toEqual(after);
            continue;
          }
          expect(code, where).toBe(codes[fault]);
          const failed = faults.calls[from + at] as Call;
          if (isUnclear(failed)) expect([before, after], where).toContainEqual(found);
          else expect(found, where).toEqual(before);
          // With the record its claim is gone, too.
          const isGone = name === 'delete' && found === null;
          expect(await settledCode(call()), `${where}, again`).toBe(isGone ? 'LEASE_LOST' : undefined);
          expect(await stored(dir), `${where}, again`).toEqual(after);
        }
        calls = faults.calls.length - from;
        faults.plan(() => undefined);
        expect(await store.outcome('run')).toEqual(sampleOutcome('run'));
        const left = filesBelow(dir).filter((path) => /\.new$|journal/.test(path));
        expect(left, 'no temporary file stays').toEqual([]);
        fired += faults.fired;
      }
      expect(fired).toBeGreaterThan(60 / stride);
    },
  );

  test('a sync that fails is not tried again on the same file: the journal is written anew', async () => {
    const dir = freshDir();
    const faults = faultyFiles();
    await using store = fileStoreOn(faults.files, { dir });
    await store.save(sampleRecord('run'));
    const before = readFileSync(journalOf(dir, 'run'));
    const { delta, record } = nextStep(sampleRecord('run'));
    faults.plan(({ method }) => (method === 'sync' ? 'EIO' : undefined));
    await expect(store.append(delta)).rejects.toMatchObject(unavailable);
    expect(readFileSync(journalOf(dir, 'run')).equals(before), 'nobody takes it for stored').toBe(true);
    faults.plan(() => undefined);
    const from = faults.calls.length;
    await store.append(delta);
    const synced = faults.calls.slice(from).filter(({ method }) => method === 'sync');
    expect(synced.map(({ path }) => path)).toEqual([`${journalOf(dir, 'run')}.new`]);
    expect(await store.load('run')).toEqual(record);
  });

  test('a journal that is written anew is synced whatever the reason, before it takes the place of a stored one', async () => {
    const dir = freshDir();
    const faults = faultyFiles();
    await using store = fileStoreOn(faults.files, { dir });
    const claim = await store.claim('run', 'one', 600_000);
    if (!claim) throw new Error('nobody else has the run');
    await store.save(sampleRecord('run'), { claim });
    const big = nextStep(sampleRecord('run'), [], { undelivered: [userMessage('y'.repeat(90_000))] });
    await store.append(big.delta, { claim });
    const small = nextStep(big.record, [], { undelivered: [] });
    await store.append(small.delta, { claim });
    const next = nextStep(small.record);
    const from = faults.calls.length;
    await store.append(next.delta, { claim });
    const methods = faults.calls.slice(from).map(({ method }) => method);
    expect(methods).toContain('rename');
    expect(methods.indexOf('sync')).toBeGreaterThan(-1);
    expect(methods.indexOf('sync')).toBeLessThan(methods.indexOf('rename'));
    expect(await store.load('run')).toEqual(next.record);
  });

  test('what can neither be synced nor taken back is stored all the same once it is tried again', async () => {
    const dir = freshDir();
    const faults = faultyFiles();
    await using store = fileStoreOn(faults.files, { dir });
    await store.save(sampleRecord('run'));
    const { delta, record } = nextStep(sampleRecord('run'));
    faults.plan(({ method }) => (['sync', 'truncate'].includes(method) ? 'EIO' : undefined));
    await expect(store.append(delta)).rejects.toMatchObject(unavailable);
    expect(await stored(dir)).toEqual(record);
    faults.plan(() => undefined);
    const from = faults.calls.length;
    await store.append(delta);
    expect(faults.calls.slice(from).map(({ method }) => method)).toContain('rename');
    expect(await stored(dir)).toEqual(record);
  });

  test('writes that are asked for at once all fail with their sync, and all work when they are tried again', async () => {
    const faults = faultyFiles();
    await using store = fileStoreOn(faults.files, { dir: freshDir() });
    await store.save(sampleRecord('run'));
    const one = nextStep(sampleRecord('run'));
    const two = nextStep(one.record);
    faults.plan(({ method }) => (method === 'sync' ? 'ENOSPC' : undefined));
    const settled = await Promise.allSettled([store.append(one.delta), store.append(two.delta)]);
    const refusal = { reason: { code: 'STORE_FULL', cause: { code: 'ENOSPC' } } };
    expect(settled).toMatchObject([refusal, refusal]);
    faults.plan(() => undefined);
    await Promise.all([store.append(one.delta), store.append(two.delta)]);
    expect(await store.load('run')).toEqual(two.record);
  });

  test('a lock that cannot be let go is in nobody’s way but other processes’, and goes with the next write', async () => {
    const dir = freshDir();
    const faults = faultyFiles();
    await using store = fileStoreOn(faults.files, { dir });
    faults.plan(({ method, path }) => (method === 'remove' && path.includes('locks') ? 'EIO' : undefined));
    await store.save(sampleRecord('run'));
    await store.append(nextStep(sampleRecord('run')).delta);
    expect(readdirSync(join(dir, 'locks'))).toHaveLength(1);
    faults.plan(() => undefined);
    await store.delete('run');
    await store.close();
    expect(readdirSync(join(dir, 'locks'))).toEqual([]);
  });

  const canMount = canRun('unshare', '-rm', 'sh', '-c', 'mount -t tmpfs none "$1"', 'sh', dirname(freshDir()));
  const mounted = (dir: string, options: string) => {
    const script = `mount -t tmpfs -o ${options} none "$1" && shift && exec "$@"`;
    return ['unshare', '-rm', 'sh', '-c', script, 'sh', dirname(dir)];
  };

  test.skipIf(!canMount)(
    'a full disk: a typed refusal, what was stored loads, and room makes it work again',
    async () => {
      const path = freshDir();
      const child = startChild({ role: 'fill', path, script: './file/child.ts', under: mounted(path, 'size=600k') });
      const said = (await child.next()) as { saved: number };
      const { saved } = said;
      expect(said).toEqual({ refusal: 'STORE_FULL', saved, loaded: saved, deleted: 'deleted', again: 'saved' });
      expect(saved).toBeGreaterThan(5);
    },
  );

  test.skipIf(!canMount)('a disk that is read-only: what is there is read, and a write is refused', async () => {
    const path = freshDir();
    await using store = fileStore({ dir: path });
    await store.save(sampleRecord('run'));
    await store.append(nextStep(sampleRecord('run')).delta);
    const script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"';
    const under = ['unshare', '-rm', 'sh', '-c', script, 'sh', dirname(path)];
    const child = startChild({ role: 'read', path, script: './file/child.ts', under });
    expect(await child.next()).toEqual({ revision: 2, listed: 1, written: 'STORE_UNAVAILABLE' });
  });

  const canTrace = canRun('strace', '-qq', '-e', 'inject=fsync:error=EIO:when=9', 'true');
  test.skipIf(!canTrace)('syncs that really fail: typed refusals, and what is tried again is stored once', async () => {
    const path = freshDir();
    const log = join(dirname(path), 'strace.log');
    const inject = ['-e', 'trace=fsync,fdatasync', '-e', 'inject=fsync,fdatasync:error=EIO:when=4+3', '-o', log];
    const under = ['strace', '-f', '-qq', ...inject];
    const child = startChild({ role: 'persist', path, argument: '20', script: './file/child.ts', under });
    const said = (await child.next()) as { refusals: string[]; revision: number };
    await child.exited;
    expect(readFileSync(log, 'utf8').split('INJECTED').length).toBeGreaterThan(2);
    expect(said.refusals.length).toBeGreaterThan(1);
    expect(new Set(said.refusals)).toEqual(new Set(['STORE_UNAVAILABLE']));
    const record = await stored(path);
    expect([record?.revision, record?.messages.length]).toEqual([21, 21]);
    expect(readdirSync(dirname(journalOf(path, 'run')))).toEqual(['journal']);
  });
});
