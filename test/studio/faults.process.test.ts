import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { encrypt } from '../../src/codec/encrypt.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';
import { emptyFolder } from '../cli/pawl.ts';
import { copyOfPinned } from '../fixtures/pinned-stores.ts';
import { sql } from '../store/sqlite/files.ts';
import { havePage, StudioProcess } from './studio-process.ts';

beforeAll(havePage);

const parts = ['', '-wal', '-shm'];
const away = (path: string) => {
  for (const part of parts) rmSync(path + part, { force: true });
};

/** A store with one run, as a file of its own. */
async function madeStore(): Promise<string> {
  const path = join(emptyFolder(), 'made.db');
  const store = sqliteStore({ path });
  await store.save(sampleRecord('r1'));
  await store.close();
  return path;
}

const key = createHash('sha256').update('a key').digest('base64');

describe.concurrent('a store that cannot be read', () => {
  test('gets a sentence each time, and Studio lives: away, empty, foreign, of an older and a newer layout, locked; then it reads again (studio 27)', async () => {
    const cwd = emptyFolder();
    const path = join(cwd, 'runs.db');
    const made = await madeStore();
    const studio = await StudioProcess.start(['--store', path], { cwd });
    const refusal = async (code = 'STORE_UNAVAILABLE') => {
      // An open file is looked for ten times a second.
      let { body } = await studio.get('/runs');
      for (; body.status !== 503; { body } = await studio.get('/runs')) await sleep(20);
      expect(body).toMatchObject({ status: 503, code });
      return body.detail;
    };
    const found = async () => expect((await studio.get('/runs')).body).toMatchObject({ items: [{ runId: 'r1' }] });

    expect(await refusal()).toBe(`the store ${path} does not exist`);
    expect(existsSync(path)).toBe(false);
    writeFileSync(path, '');
    expect(await refusal()).toBe(`the store ${path} is an empty file: no run was recorded in it yet`);
    writeFileSync(path, 'this is a diary, and no database at all\n'.repeat(100));
    expect(await refusal()).toMatch(/it is not a SQLite database; choose another path$/);
    away(path);
    copyFileSync(copyOfPinned('runs.db'), path);
    const old = readFileSync(path);
    expect(await refusal()).toMatch(/has layout 1, and this Pawl reads layout \d/);
    expect(readFileSync(path)).toEqual(old);
    away(path);
    copyFileSync(made, path);
    await found();
    away(path);
    expect(await refusal()).toMatch(/was deleted or replaced while it was open; restore the file$/);
    copyFileSync(made, path);
    sql(path, 'PRAGMA user_version = 99');
    expect(await refusal('CHECKPOINT_TOO_NEW')).toMatch(/has layout 99, this Pawl knows \d+: upgrade the package/);
    sql(path, 'PRAGMA user_version = 10');
    await found();
    const writer = new DatabaseSync(path);
    writer.exec('BEGIN EXCLUSIVE; CREATE TABLE held (x)');
    await found(); // a writer keeps no reader out
    writer.exec('ROLLBACK');
    writer.close();
    away(path);
    await refusal();
    copyFileSync(made, path);
    const holder = new DatabaseSync(path);
    holder.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    expect(await refusal()).toMatch(/stayed locked by another process; find out which one holds it$/);
    holder.close();
    await found();
    expect(await studio.stop()).toBe(0);
    // The same trouble is told once at the terminal.
    expect(studio.pawl.stderr.match(/is an empty file/g)).toHaveLength(1);
  });

  test('without its codec shows that its runs are sealed and which codec opens them; with --codec or PAWL_CODEC it is read (studio 17, 27)', async () => {
    const cwd = emptyFolder();
    const codec = encrypt({ keys: { k: key }, current: 'k' });
    const store = sqliteStore({ path: join(cwd, 'runs.db'), codec });
    await store.save(sampleRecord('r1'));
    await store.close();
    const source = `import { encrypt } from 'pawl';\nexport const codec = encrypt({ keys: { k: '${key}' }, current: 'k' });\n`;
    writeFileSync(join(cwd, 'keys.ts'), source);
    const args = ['--store', 'runs.db'];
    const blind = await StudioProcess.start(args, { cwd });
    expect((await blind.get('/runs')).body).toMatchObject({
      items: [{ runId: 'r1', state: 'bad', code: 'KEY_MISMATCH' }],
    });
    expect((await blind.get('/runs/r1/record')).body).toMatchObject({
      verdict: { verdict: 'unreadable', code: 'KEY_MISMATCH', reason: expect.stringContaining('codec') },
    });
    await blind.stop();
    const [named, set] = await Promise.all([
      StudioProcess.start([...args, '--codec', 'keys.ts'], { cwd }),
      StudioProcess.start(args, { cwd, env: { PAWL_CODEC: 'keys.ts' } }),
    ]);
    for (const studio of [named, set]) {
      expect((await studio.get('/runs')).body).toMatchObject({ items: [{ runId: 'r1', prompt: 'write a line' }] });
      await studio.stop();
    }
  });
});
