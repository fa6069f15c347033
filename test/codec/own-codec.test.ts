import type { Codec } from 'pawl';
import { describe, expect, test } from 'vitest';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';
import { type Kind, kinds } from './encrypted-stores.ts';

/** A codec of the host's: what it gives can be read, and is no secret. */
const turning: Codec = {
  seal: (text) => Buffer.from(text).toString('hex'),
  open: (sealed) => Buffer.from(sealed, 'hex').toString(),
};

const record = sampleRecord('run', { inputs: { a: '\ud800' } });

async function withRecord(kind: Kind): Promise<string> {
  const path = kind.fresh();
  const store = kind.open(path, turning);
  await store.save(record);
  await store.close();
  return path;
}

describe.for(kinds)('a codec of the host on a $name store', (kind) => {
  test('must be one: a key in its place is refused at once', () => {
    for (const wrong of ['a key', Buffer.alloc(32), { key: 'a key' }, { seal: () => '' }]) {
      expect(() => kind.open(kind.fresh(), wrong as never)).toThrow(TypeError);
    }
  });

  test('is all that it takes', async () => {
    const store = kind.open(await withRecord(kind), turning);
    expect(await store.load('run')).toEqual(record);
    await store.close();
  });

  test.for([
    [
      'throws',
      (): string => {
        throw new Error('no');
      },
      /no/,
    ],
    [
      'throws at a later part',
      (text: string) => {
        if (text.startsWith('[')) throw new Error('no');
        return 'x';
      },
      /no/,
    ],
    ['gives no text', () => 5 as never, /printable/],
    ['gives what no line can hold', () => 'a\nb', /printable/],
  ] as const)(
    'that %s when it seals leaves nothing of that write, and does not touch others',
    async ([, seal, says]) => {
      const path = await withRecord(kind);
      const refusing = {
        ...turning,
        seal: (text: string, at: { runId: string; part: string }) =>
          at.runId === 'other' ? seal(text) : turning.seal(text, at),
      };
      const store = kind.open(path, refusing);
      const later = { ...record, revision: 2 };
      const [bad, good] = await Promise.allSettled([store.save(sampleRecord('other')), store.save(later)]);
      expect(bad).toMatchObject({ status: 'rejected', reason: { message: expect.stringMatching(says) } });
      expect(good.status).toBe('fulfilled');
      expect(await store.load('other')).toBeNull();
      expect(await store.load('run')).toEqual(later);
      expect((await store.listInterrupted()).map(({ runId }) => runId)).toEqual(['run']);
      await store.close();
    },
  );

  test.for<readonly [string, () => string]>([
    [
      'throws',
      () => {
        throw new Error('the key is hunter2');
      },
    ],
    ['gives no text', () => undefined as never],
    ['gives something else', () => '[1, 2'],
  ])('that %s when it opens makes the record a damaged one, and says nothing of why', async ([, open]) => {
    const store = kind.open(await withRecord(kind), { ...turning, open });
    const reason = await store.load('run').catch((error: unknown) => error);
    expect(reason).toMatchObject({ code: 'CHECKPOINT_CORRUPT', message: expect.not.stringContaining('hunter2') });
    expect(await store.listInterrupted()).toMatchObject([{ runId: 'run', status: 'quarantined' }]);
    await store.close();
  });
});
