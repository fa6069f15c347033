import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { agentFile, emptyFolder, Pawl, pawl } from './pawl.ts';

const held = { HOLD: 'go' };

describe('a store that is a folder', () => {
  test.for([
    ['runs.db', 'a folder that is there'],
    ['other/', 'one with other content'],
    ['gone/', 'a name that ends in / and is not there'],
  ])('`--store %s` is refused, %s: one line names a SQLite file, and nothing is made', async ([name = '']) => {
    const cwd = emptyFolder();
    mkdirSync(join(cwd, 'runs.db'));
    mkdirSync(join(cwd, 'other'));
    writeFileSync(join(cwd, 'other/notes.txt'), '');
    const { code, stderr } = await pawl(['list', '--store', name], { cwd });
    expect({ code, lines: stderr.trim().split('\n').length }).toEqual({ code: 2, lines: 1 });
    const path = join(cwd, name, '.');
    expect(stderr).toContain(`is a folder; name a SQLite file, for example ${join(path, 'runs.db')}`);
    expect(existsSync(join(cwd, 'gone'))).toBe(false);
  });
});

describe('a store in PostgreSQL', () => {
  const secret = 'correct-horse-battery';

  test.for([
    [`postgres://bob:${secret}@127.0.0.1:1/db?sslpassword=${secret}`, 'cannot be reached'],
    [`postgres://bob:${secret}@:x:/db`, 'the URL of the store cannot be read'],
  ])('that cannot be reached is one line without its password (%#)', async ([url = '', words]) => {
    const env = { PAWL_DEBUG: '1', PAWL_STORE: url };
    const { code, stdout, stderr } = await pawl(['list'], { cwd: emptyFolder(), env });
    expect(code).toBe(words === 'cannot be reached' ? 69 : 2);
    expect(stderr).toContain(words);
    expect(stdout + stderr).not.toContain(secret);
  });

  describe.skipIf(whyNoPostgres)('that runs', () => {
    const server = postgresServer();

    test('is not made by looking for it, holds runs in the schema that its URL names, and they continue after a kill', async () => {
      const cwd = emptyFolder();
      const url = new URL(server.url);
      const schema = server.freshSchema();
      url.searchParams.set('schema', schema);
      const env = { PAWL_STORE: url.href };
      const none = await pawl(['list'], { cwd, env });
      expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining('there is no store postgres://') });
      await killedIn(cwd, { env });
      const checked = await pawl(['doctor'], { cwd, env });
      expect(checked).toMatchObject({ code: 0, stdout: '  resumes    r1: it continues after 1 step\n' });
      expect(await pawl(['resume'], { cwd, env })).toMatchObject({ code: 0, stdout: 'counted to 3\n' });
      const pool = server.pool({ max: 1 });
      const kept = async () => (await pool.query(`SELECT until FROM ${schema}.outcomes`)).rows.length;
      expect(await kept()).toBe(1);
      await pool.query(`UPDATE ${schema}.outcomes SET until = 0`);
      const pruned = await pawl(['prune', '--json'], { cwd, env });
      expect(JSON.parse(pruned.stdout)).toMatchObject({ outcomes: 1, deleted: [] });
      expect(await kept()).toBe(0);
      await pool.end();
    });
  });
});

async function killedIn(cwd: string, { args = [], env = {} }: { args?: readonly string[]; env?: NodeJS.ProcessEnv }) {
  const run = new Pawl(['run', agentFile('counter'), '--run-id', 'r1', ...args], { cwd, env: { ...held, ...env } });
  await run.says('holding');
  run.child.kill('SIGKILL');
  await run.ended;
}
