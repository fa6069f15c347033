import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { checkCommand, parseCommand, versioned } from '../../src/run/command.ts';
import type { Claim } from '../../src/store/port.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';
import { freshPath, sql } from './sqlite/files.ts';

const dance = { v: 4, id: 'd', kind: 'dance', steps: 7 };

test('a stored command of a kind that only a newer version knows is unknown, any other one is damage (waiting 34)', () => {
  expect(parseCommand(dance)).toEqual({ id: 'd', kind: 'unknown', v: 4 });
  for (const wrong of [
    { ...dance, v: 2 },
    { id: 'd', kind: 'dance' },
    { ...dance, id: '' },
    { ...dance, v: '3' },
    null,
  ]) {
    expect(() => parseCommand(wrong)).toThrow('damaged');
  }
  expect(() => parseCommand({ v: 2, id: 'a', kind: 'answer', waitId: 'w', answer: { how: 'shrug' } })).toThrow(
    'damaged',
  );
});

test('a command is stored with the version that brought its kind, and read without it', () => {
  const cancel = { id: 'c', kind: 'cancel' } as const;
  const answer = { id: 'a', kind: 'answer', waitId: 'w', answer: { how: 'wake' } } as const;
  expect([versioned(cancel), versioned(answer)]).toEqual([cancel, { v: 2, ...answer }]);
  expect(parseCommand(versioned(answer))).toEqual(answer);
  expect(checkCommand(answer)).toBe(answer);
});

test('a command of a newer version stays in the inbox, and a damaged one keeps no run awake (waiting 34)', async () => {
  const path = freshPath();
  await using store = sqliteStore({ path });
  await store.save(sampleRecord('run'));
  const put = (id: string, text: string, checksum = crc32(text)) =>
    sql(
      path,
      'INSERT INTO commands (run_id, command_id, checksum, command) VALUES (?, ?, ?, ?)',
      'run',
      id,
      checksum,
      text,
    );
  put('d', JSON.stringify(dance));
  put('e', '{"id":"e","kind":"danc', 1);
  put('f', '{"id":"f","kind":"prance"}');
  const claim = (await store.claim('run', 'me', 60_000)) as Claim;
  const [sent, ...others] = await store.commands.inbox({ owner: 'me' });
  expect([sent?.command, others]).toEqual([{ id: 'd', kind: 'unknown', v: 4 }, []]);
  expect(await store.due.leave(claim, { readUpTo: 0 })).toBe(false);
  expect(await store.due.leave(claim, { readUpTo: sent?.seq ?? 0 })).toBe(true);
  expect(await store.commands.inbox({ runId: 'run' })).toHaveLength(1);
});
