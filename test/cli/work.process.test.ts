import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createExecutor } from 'pawl';
import { postgresStore } from 'pawl/stores/postgres';
import { sqliteStore } from 'pawl/stores/sqlite';
import { scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import counter from './agents/counter.ts';
import { agentFile, emptyFolder, jsonLines, Pawl, pawl } from './pawl.ts';

type AnyStore = ReturnType<typeof sqliteStore> | ReturnType<typeof postgresStore>;

/** Admits runs as a program does that works on none. */
async function admit(store: AnyStore, runIds: readonly string[]): Promise<void> {
  const executor = createExecutor({ models: { fast: scriptedModel([]) }, store });
  for (const runId of runIds) {
    const { accepted } = await executor.start(counter, { runId, prompt: 'count, please' }, { drive: 'later' });
    expect(accepted).toBe('started');
  }
  await executor.shutdown();
  await store.close();
}

const endedIn = (stdout: string) => jsonLines(stdout).filter(({ type }) => type === 'run.ended');
const until = async (isSo: () => boolean) => {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
};
const holds = (worker: Pawl) => worker.stderr.split('holding').length - 1;

describe('`pawl work`', () => {
  const args = ['work', agentFile('counter'), '--store', 'runs.db'];

  test('takes due runs beside another process that is killed: each run ends once, and a signal ends the command with 0 (engine 15, 16)', async () => {
    const cwd = emptyFolder();
    const hold = join(cwd, 'hold');
    const runIds = Array.from({ length: 6 }, (_, i) => `r${i}`);
    await admit(sqliteStore({ path: join(cwd, 'runs.db') }), runIds);
    const begin = () => new Pawl([...args, '--concurrency', '3', '--json'], { cwd, env: { HOLD: hold } });
    const [killed, other] = [begin(), begin()];
    await until(() => holds(killed) === 3 && holds(other) === 3);
    killed.child.kill('SIGKILL');
    writeFileSync(hold, '');
    await until(() => endedIn(other.stdout).length === runIds.length);
    other.child.kill('SIGTERM');
    const { code, stdout } = await other.ended;

    expect(code).toBe(0);
    expect(endedIn((await killed.ended).stdout)).toEqual([]);
    const ends = endedIn(stdout).map(({ runId, status, output }) => ({ runId, status, output }));
    expect(ends.sort((a, b) => String(a.runId).localeCompare(String(b.runId)))).toEqual(
      runIds.map((runId) => ({ runId, status: 'ok', output: 'counted to 3' })),
    );
    const lines = jsonLines(stdout);
    expect(lines[0]).toMatchObject({ type: 'work.started', agentId: 'counter', concurrency: 3 });
    expect(lines.slice(-2)).toEqual([
      { type: 'work.draining', live: 0, drainMs: 25_000 },
      { type: 'work.ended', taken: 6, ended: 6, live: 0 },
    ]);
  });

  test('leaves its runs at a signal, says how many are left, and the next process continues them (engine 20)', async () => {
    const cwd = emptyFolder();
    const hold = join(cwd, 'hold');
    await admit(sqliteStore({ path: join(cwd, 'runs.db') }), ['a', 'b']);
    const first = new Pawl([...args, '--drain', '1s'], { cwd, env: { HOLD: hold } });
    await until(() => holds(first) === 2);
    first.child.kill('SIGINT');
    const { code, stderr } = await first.ended;
    expect(code).toBe(0);
    expect(stderr).toContain('draining: 2 runs to leave, 1.0 s at most\n');
    expect(stderr).toMatch(/left [ab]; 1 run to leave\nleft [ab]; 0 runs to leave\ntook 2 runs, ended 0\n$/);

    const second = new Pawl([...args, '--fair-by', 'tenant', '--per-key', '1', '--deployment', '7'], { cwd });
    await until(() => /ok a/.test(second.stderr) && /ok b/.test(second.stderr));
    second.child.kill('SIGTERM');
    expect((await second.ended).code).toBe(0);
  });

  test('is drained when the npm that started it has gone: its runs are left within seconds (engine 20)', async () => {
    const cwd = emptyFolder();
    const hold = join(cwd, 'hold');
    await admit(sqliteStore({ path: join(cwd, 'runs.db') }), ['a']);
    // As npm does: it starts the command with its variables, and ends at a SIGTERM without passing it on.
    const npm = new Pawl([...args, '--drain', '1s', '--json'], {
      cwd,
      env: { HOLD: hold, npm_command: 'exec' },
      isBehindNpm: true,
    });
    await until(() => holds(npm) === 1);
    npm.child.kill('SIGTERM');
    const { stderr, stdout } = await npm.ended;
    expect(stderr).toContain('npm started this command');
    expect(jsonLines(stdout).at(-1)).toMatchObject({ type: 'work.ended', taken: 1, live: 0 });
  });

  test('works on after the npm that started it where PAWL_ORPHAN=keep says so, until its own SIGTERM (operations 22)', async () => {
    const cwd = emptyFolder();
    const store = () => sqliteStore({ path: join(cwd, 'runs.db') });
    await admit(store(), ['a']);
    const env = { HOLD: join(cwd, 'hold'), npm_command: 'exec', PAWL_ORPHAN: 'keep' };
    const npm = new Pawl([...args, '--drain', '1s', '--json'], { cwd, env, isBehindNpm: true });
    await until(() => holds(npm) === 1);
    npm.child.kill('SIGTERM');
    await until(() => npm.child.exitCode !== null);
    await admit(store(), ['b']);
    await until(() => holds(npm) === 2);
    process.kill(Number(/behind npm: (\d+)/.exec(npm.stderr)?.[1]), 'SIGTERM');
    const { stderr, stdout } = await npm.ended;
    expect(stderr).not.toContain('npm started this command');
    expect(jsonLines(stdout).at(-1)).toMatchObject({ type: 'work.ended', taken: 2, live: 0 });
  });

  test.concurrent.each([
    [[], '`pawl work` needs an agent module'],
    [[agentFile('counter'), '--per-key', '2'], '--per-key needs the label that has the key'],
    [[agentFile('counter'), '--fair-by', ''], '--fair-by is empty'],
    [[agentFile('counter'), '--concurrency', '0'], '--concurrency "0" is not a number of runs'],
    [[agentFile('counter'), '--deployment', 'v2'], '--deployment "v2" is not a whole number'],
    [[agentFile('counter'), '--drain', 'soon'], '--drain "soon" is not a duration'],
    [[agentFile('counter'), '--listen', '--store', 'runs.db'], '--listen needs a store in PostgreSQL'],
  ])('refuses %j with 2, and makes no store', async (words, message) => {
    const cwd = emptyFolder();
    const { code, stderr } = await pawl(['work', ...words], { cwd });
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    expect(existsSync(join(cwd, 'runs.db')) || existsSync(join(cwd, '.pawl'))).toBe(false);
  });
});

describe.skipIf(whyNoPostgres)('`pawl work` on PostgreSQL', () => {
  const server = postgresServer(['fsync=off']);

  test('with --listen is woken by an admission on a connection of its own (engine 15)', async () => {
    const [cwd, schema] = [emptyFolder(), server.freshSchema()];
    const words = ['work', agentFile('counter'), '--listen', '--json', '--store', `${server.url}?schema=${schema}`];
    const worker = new Pawl(words, { cwd });
    await worker.says('work.started', 'stdout');
    const listening = () => server.sql("SELECT 1 AS found FROM pg_stat_activity WHERE query LIKE 'LISTEN%pawl_due%'");
    while ((await listening()).length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    await admit(postgresStore({ pool: server.pool(), schema, notify: true }), ['a']);
    await worker.says('"run.ended"', 'stdout');
    worker.child.kill('SIGTERM');
    expect((await worker.ended).code).toBe(0);
  });
});
