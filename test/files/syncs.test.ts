import { describe, expect, test } from 'vitest';
import type { OpenFile } from '../../src/files/file-system.ts';
import { Syncs } from '../../src/files/syncs.ts';

/** A disk whose syncs take as long as they are told to, and the places of those it was asked for. */
function disk() {
  let now = 0;
  let takesMs = 0.2;
  const places: string[] = [];
  const file = {
    sync: async (isInPlace?: boolean) => {
      places.push(isInPlace ? 'in place' : 'elsewhere');
      now += takesMs;
    },
  } as OpenFile;
  const syncs = new Syncs(() => now);
  return {
    file,
    syncs,
    places,
    takes: (ms: number) => {
      takesMs = ms;
    },
    pass: (ms: number) => {
      now += ms;
    },
    /** Where so many syncs of one run, one after the other, were waited for. */
    many: async (count: number, name = 'run') => {
      const from = places.length;
      for (let i = 0; i < count; i++) {
        syncs.enter();
        await syncs.sync(file, name);
        syncs.leave();
      }
      return places.slice(from);
    },
  };
}

const all = (places: readonly string[], place: string) => places.every((each) => each === place);

describe('where a sync of the disk is waited for', () => {
  test('elsewhere at first, in place once the disk has shown to be fast', async () => {
    const { many } = disk();
    expect((await many(30))[0]).toBe('elsewhere');
    expect(all(await many(30), 'in place')).toBe(true);
  });

  test('a disk that is slow all the time never holds this thread up', async () => {
    const { many, takes } = disk();
    takes(5);
    expect(all(await many(100), 'elsewhere')).toBe(true);
  });

  test('a disk that becomes slow holds this thread up once or twice, and in place again when it is fast again', async () => {
    const { many, takes } = disk();
    await many(30);
    takes(8);
    const slow = await many(20);
    expect(slow.filter((place) => place === 'in place').length).toBeLessThanOrEqual(2);
    takes(0.2);
    expect(all((await many(60)).slice(40), 'in place')).toBe(true);
  });

  test('one hiccup, however long, costs a few syncs elsewhere and no more', async () => {
    const { many, takes } = disk();
    await many(30);
    takes(60_000);
    await many(1);
    takes(0.2);
    expect(all((await many(30)).slice(20), 'in place')).toBe(true);
  });

  test('a sync that fails tells nothing about the disk, and its error is passed on', async () => {
    const { syncs, file, many } = disk();
    await many(30);
    const failing = { ...file, sync: () => Promise.reject(new Error('EIO')) };
    for (let i = 0; i < 30; i++) await expect(syncs.sync(failing, 'run')).rejects.toThrow('EIO');
    expect(all(await many(3), 'in place')).toBe(true);
  });

  test('elsewhere while another write is under way, so that both share the disk', async () => {
    const { syncs, many } = disk();
    await many(30);
    syncs.enter();
    expect(all(await many(10), 'elsewhere')).toBe(true);
    syncs.leave();
    expect(all(await many(1), 'in place')).toBe(true);
  });

  test('elsewhere when another run was written just now, in place when that is a while ago', async () => {
    const { many, pass } = disk();
    await many(30);
    expect(await many(1, 'other')).toEqual(['elsewhere']);
    expect(await many(1)).toEqual(['elsewhere']);
    pass(10);
    expect(await many(1, 'other')).toEqual(['in place']);
  });
});
