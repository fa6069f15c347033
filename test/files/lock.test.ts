import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { diskFiles, type FileSystem } from '../../src/files/file-system.ts';
import { LockedError, Locks } from '../../src/files/lock.ts';

const LONG = 10_000;

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-locks-'));
  mkdirSync(join(folder, 'locks'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Processes that share locks, played within this one: who is in `dead` does nothing any more. */
class Crowd {
  readonly folder = newFolder();
  readonly dead = new Set<string>();
  readonly unknown = new Set<string>();
  #count = 0;

  join(files: FileSystem = diskFiles, owner = `owner-${this.#count++}`): Locks {
    const ownerFile = join(this.folder, owner);
    writeFileSync(ownerFile, owner);
    const isDead = (other: string) => this.dead.has(other);
    const isKnown = (other: string) => !this.unknown.has(other);
    return new Locks(files, { folder: join(this.folder, 'locks'), ownerFile, owner, isDead, isKnown });
  }

  names(): string[] {
    return readdirSync(join(this.folder, 'locks'));
  }
}

/** A file system whose calls take some turns of the event loop, so that those of several processes mix. */
function shaky(): FileSystem {
  return slowed(async () => {
    for (let turns = Math.floor(Math.random() * 6); turns > 0; turns--) await nextTurn();
  });
}

/** A file system whose owner dies with its n-th call: before it, or when it has just taken effect. */
function mortal(calls: number, whenDone: boolean, die: () => void): FileSystem {
  let left = calls;
  const never = new Promise<void>(() => {});
  return slowed(async (isDone) => {
    if (isDone === whenDone) left -= 1;
    if (left > 0) return;
    die();
    await never;
  });
}

function slowed(pause: (isDone: boolean) => Promise<void>): FileSystem {
  return new Proxy(diskFiles, {
    get: (files, method: keyof FileSystem) => {
      return async (...args: never[]) => {
        await pause(false);
        const result = await (files[method] as (...args: never[]) => Promise<unknown>)(...args);
        await pause(true);
        return result;
      };
    },
  });
}

describe('a lock between processes (recovery 3)', () => {
  afterEach(() => void vi.restoreAllMocks());

  test('has one holder at a time, and each process gets it in the end', async () => {
    const crowd = new Crowd();
    const seen: string[] = [];
    let holders = 0;
    const work = async (locks: Locks, name: string) => {
      for (let i = 0; i < 15; i++) {
        await locks.acquire('run', LONG);
        holders += 1;
        expect(holders).toBe(1);
        await sleep(Math.random());
        seen.push(name);
        holders -= 1;
        await locks.release('run');
      }
    };
    await Promise.all([1, 2, 3, 4].map((n) => work(crowd.join(shaky()), `${n}`)));
    expect(seen).toHaveLength(60);
    expect(crowd.names()).toEqual([]);
  });

  test('is not in the way of another lock', async () => {
    const crowd = new Crowd();
    await crowd.join().acquire('one', LONG);
    await crowd.join().acquire('two', LONG);
    expect(crowd.names().sort()).toEqual(['one', 'two']);
  });

  test('whose holder lives is not to be had: the refusal names the holder, and the lock stays', async () => {
    const crowd = new Crowd();
    await crowd.join().acquire('run', LONG);
    const refusal = await crowd
      .join()
      .acquire('run', 30)
      .catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(LockedError);
    expect(String(refusal)).toContain('owner-0');
    expect(readFileSync(join(crowd.folder, 'locks', 'run'), 'utf8')).toBe('owner-0');
  });

  test('whose holder has died goes to one of those who want it, and then to the others', async () => {
    for (let round = 0; round < 100; round++) {
      const crowd = new Crowd();
      await crowd.join().acquire('run', LONG);
      crowd.dead.add('owner-0');
      let holders = 0;
      const heirs = [1, 2, 3, 4].map(async () => {
        const locks = crowd.join(shaky());
        await locks.acquire('run', LONG);
        holders += 1;
        expect(holders).toBe(1);
        for (let turns = 0; turns < 10; turns++) await nextTurn();
        holders -= 1;
        await locks.release('run');
      });
      await Promise.all(heirs);
      expect(crowd.names()).toEqual([]);
    }
  });

  test('survives heirs that die at any moment while they take it over', async () => {
    let deaths = 0;
    for (const whenDone of [false, true]) {
      for (let calls = 1, isOver = false; !isOver; calls++) {
        const crowd = new Crowd();
        await crowd.join().acquire('run', LONG);
        crowd.dead.add('owner-0');
        const died = Promise.withResolvers<void>();
        const heir = crowd.join(mortal(calls, whenDone, died.resolve), 'heir').acquire('run', LONG);
        isOver = await Promise.race([died.promise.then(() => false), heir.then(() => true)]);
        if (!isOver) deaths += 1;
        crowd.dead.add('heir');
        const next = crowd.join(diskFiles, 'next');
        await next.acquire('run', LONG);
        expect(readFileSync(join(crowd.folder, 'locks', 'run'), 'utf8')).toBe('next');
        expect(calls).toBeLessThan(20);
      }
    }
    expect(deaths).toBeGreaterThan(8);
  });

  test('that its own holder could not release is still the holder’s', async () => {
    const locks = new Crowd().join();
    await locks.acquire('run', LONG);
    await locks.acquire('run', 0);
    await locks.release('run');
    await locks.release('run');
  });

  test('of an owner that may be alive or dead is left alone for a minute, then taken over', async () => {
    const crowd = new Crowd();
    await crowd.join().acquire('run', LONG);
    crowd.unknown.add('owner-0');
    const other = crowd.join();
    await expect(other.acquire('run', 0)).rejects.toThrow(LockedError);
    const now = performance.now();
    vi.spyOn(performance, 'now').mockImplementation(() => now + 55_000);
    await expect(other.acquire('run', 0)).rejects.toThrow(LockedError);
    vi.spyOn(performance, 'now').mockImplementation(() => now + 65_000);
    await other.acquire('run', 0);
    expect(readFileSync(join(crowd.folder, 'locks', 'run'), 'utf8')).toBe('owner-1');
  });

  test('that a dead holder has left can be inherited, and no other', async () => {
    const crowd = new Crowd();
    const first = crowd.join();
    const heir = crowd.join();
    await first.acquire('run', LONG);
    expect(await heir.inherit('run')).toBe(false);
    expect(await heir.inherit('nothing')).toBe(false);
    crowd.dead.add('owner-0');
    expect(await heir.inherit('run')).toBe(true);
    expect(await heir.inherit('run')).toBe(false);
    await heir.release('run');
    expect(crowd.names()).toEqual([]);
  });

  test('cannot be had when its folder is gone, and says so', async () => {
    const crowd = new Crowd();
    const locks = crowd.join();
    rmSync(join(crowd.folder, 'locks'), { recursive: true });
    await expect(locks.acquire('run', LONG)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
