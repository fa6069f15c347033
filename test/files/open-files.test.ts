import { describe, expect, test } from 'vitest';
import type { OpenFile } from '../../src/files/file-system.ts';
import { OpenFiles } from '../../src/files/open-files.ts';

/** Files that know whether they are closed, and the rounds that are to come. */
function shelf() {
  const rounds: (() => void)[] = [];
  const closed: string[] = [];
  const file = (name: string, close = async () => void closed.push(name)) => ({ close }) as OpenFile;
  const kept = new OpenFiles((round) => rounds.push(round));
  return { kept, closed, file, rounds, round: () => rounds.shift()?.() };
}

describe.skipIf(process.platform === 'win32')('files that stay open between two writes', () => {
  test('are there for whoever means the same file, and are nobody else’s then', () => {
    const { kept, closed, file } = shelf();
    const one = file('one');
    kept.keep('run', 'first', one);
    expect(kept.take('run', 'first')).toBe(one);
    expect(kept.take('run', 'first')).toBeUndefined();
    expect(closed).toEqual([]);
  });

  test('are closed when another file has taken their place', () => {
    const { kept, closed, file } = shelf();
    kept.keep('run', 'first', file('one'));
    expect(kept.take('run', 'second')).toBeUndefined();
    expect(closed).toEqual(['one']);
    expect(kept.take('run', 'first')).toBeUndefined();
  });

  test('are 32 at most: the one that was needed longest ago goes', () => {
    const { kept, closed, file } = shelf();
    for (let i = 0; i < 32; i++) kept.keep(`run ${i}`, 'it', file(`${i}`));
    kept.keep('run 0', 'it', kept.take('run 0', 'it') ?? file('nothing'));
    kept.keep('run 32', 'it', file('32'));
    expect(closed).toEqual(['1']);
    kept.close();
    expect(closed).toHaveLength(33);
  });

  test('are closed when nobody has needed them for a while, and nobody looks any more then', () => {
    const { kept, closed, file, round, rounds } = shelf();
    kept.keep('idle', 'it', file('idle'));
    kept.keep('busy', 'it', file('busy'));
    round();
    expect(closed).toEqual([]);
    kept.keep('busy', 'it', kept.take('busy', 'it') ?? file('nothing'));
    round();
    expect(closed).toEqual(['idle']);
    round();
    expect(closed).toEqual(['idle', 'busy']);
    expect(rounds).toEqual([]);
    kept.keep('busy', 'it', file('later'));
    expect(rounds).toHaveLength(1);
  });

  test('that cannot be closed are in nobody’s way', async () => {
    const { kept, file } = shelf();
    kept.keep(
      'run',
      'it',
      file('one', () => Promise.reject(new Error('EIO'))),
    );
    kept.close();
    await Promise.resolve();
    expect(kept.take('run', 'it')).toBeUndefined();
  });
});
