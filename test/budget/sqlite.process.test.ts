import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { createBudget } from 'pawl';
import { sqliteBudget, sqliteStore } from 'pawl/stores/sqlite';
import { testClock } from 'pawl/testing';
import { afterEach, describe, expect, test } from 'vitest';
import { passOnErrors } from '../fixtures/processes.ts';
import { call, freshPath, use } from './stores.ts';

const script = fileURLToPath(new URL('sqlite-child.ts', import.meta.url));
const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts a role of `sqlite-child.ts` in a process of its own. */
function start(role: string, path: string, argument = '') {
  const child = passOnErrors(spawn(process.execPath, [script, role, path, argument]));
  running.add(child);
  const exited = once(child, 'exit').then(() => running.delete(child));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    next: async () => JSON.parse((await lines.next()).value ?? 'null'),
    tell: () => child.stdin.write('go\n'),
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
    exited,
  };
}

function sql(path: string, text: string): Record<string, unknown>[] {
  const db = new DatabaseSync(path);
  try {
    return db.prepare(text).all();
  } finally {
    db.close();
  }
}

const exactly = { outputTokens: 0, seconds: 0 };

describe('several processes with one budget', () => {
  test('together spend what one may spend, and not a call more (supervision 4)', async () => {
    const path = freshPath();
    const children = Array.from({ length: 4 }, (_, i) => start('spend', path, `run-${i}`));
    for (const child of children) expect(await child.next()).toBe('ready');
    for (const child of children) child.tell();
    const granted = await Promise.all(children.map((child) => child.next()));
    expect(granted.reduce((sum, n) => sum + n, 0)).toBe(100);
    await Promise.all(children.map(({ exited }) => exited));
    await using store = sqliteBudget({ path });
    const { spent, reserved } = await createBudget({ tokens: 1_000, store }).standing('ada');
    expect([spent.tokens, reserved.tokens]).toEqual([1_000, 0]);
  });

  test('a process that is killed at any moment leaves its calls counted, and its books whole (supervision 4)', async () => {
    for (const turns of [1, 2, 3, 5, 8, 13]) {
      const path = freshPath();
      const child = start('count', path);
      let counted = 0;
      for (let turn = 0; turn < turns; turn++) counted = await child.next();
      await child.kill();
      await using store = sqliteBudget({ path });
      const budget = createBudget({ tokens: 1e9, store });
      const { spent, reserved } = await budget.standing('ada');
      expect(spent.tokens).toBeGreaterThanOrEqual(counted);
      expect(reserved.tokens).toBeLessThanOrEqual(1);
      const [sums] = sql(path, 'SELECT total(tokens) AS tokens, count(*) AS calls FROM calls');
      expect(sums).toMatchObject({ tokens: spent.tokens, calls: spent.tokens });
      expect(sql(path, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }]);
    }
  });

  test('a call waits for the lock of another process, and is refused when that takes too long (supervision 4)', async () => {
    const path = freshPath();
    await using store = sqliteBudget({ path });
    await using hasty = sqliteBudget({ path, busyTimeoutMs: 50 });
    const budget = createBudget({ tokens: 100, store });
    await budget.check('ada');
    const child = start('lock', path);
    expect(await child.next()).toBe('locked');
    const waiting = budget.check('ada');
    await expect(createBudget({ tokens: 100, store: hasty }).check('ada')).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining('locked'),
    });
    child.tell();
    await waiting;
    await child.exited;
  });
});

describe('the file of a budget', () => {
  test('is made with its folder, and outlives the process (supervision 4)', async () => {
    const path = freshPath('deep/down/budget.db');
    const options = { tokens: 100, expected: exactly };
    const first = sqliteBudget({ path });
    const budget = createBudget({ ...options, store: first });
    await budget.commit(await budget.reserve('ada', call('run', 1)), use(100));
    await first.close();
    await expect(budget.check('ada')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await using store = sqliteBudget({ path });
    await expect(createBudget({ ...options, store }).check('ada')).rejects.toMatchObject({ code: 'BUDGET_EXCEEDED' });
  });

  test('forgets callers that have nothing left, with all of their rows (supervision 4)', async () => {
    const path = freshPath();
    const clock = testClock(1_000_000);
    await using store = sqliteBudget({ path });
    const budget = createBudget({ tokens: 1e6, windowMs: 1_000, reservationMs: 1_000, clock, store });
    for (let i = 0; i < 20; i++) {
      await budget.commit(await budget.reserve(`caller-${i}`, call('run', 1)), use(1));
      await budget.reserve(`caller-${i}`, call('run', 2));
    }
    await clock.advance(20_000);
    for (let i = 0; i < 21; i++) await budget.commit({ ...call('run', i), callerId: 'ada' }, use(1));
    expect(sql(path, 'SELECT caller FROM callers')).toEqual([{ caller: 'ada' }]);
    expect(sql(path, 'SELECT DISTINCT caller FROM calls')).toHaveLength(1);
    expect(sql(path, 'SELECT * FROM reservations')).toEqual([]);
  });

  test('thousands of calls that leave the window at once leave it a part at a time (supervision 4)', async () => {
    const path = freshPath();
    const clock = testClock(1_000_000);
    await using store = sqliteBudget({ path });
    const budget = createBudget({ tokens: 1e6, windowMs: 1_000, clock, store });
    for (let turn = 1; turn <= 3_500; turn++) await budget.commit({ ...call('run', turn), callerId: 'ada' }, use(1));
    await clock.advance(999);
    expect((await budget.standing('ada')).spent.tokens).toBe(3_500);
    await clock.advance(1);
    let turns = 0;
    const count = () => {
      turns += 1;
      immediate = setImmediate(count);
    };
    let immediate = setImmediate(count);
    expect((await budget.standing('ada')).spent.tokens).toBe(0);
    clearImmediate(immediate);
    expect(turns).toBeGreaterThanOrEqual(3);
    expect(sql(path, 'SELECT * FROM calls')).toEqual([]);
  });

  test('a run that continues after its spending has left the window is not charged again for it (supervision 4)', async () => {
    const clock = testClock(1_000_000);
    await using store = sqliteBudget({ path: freshPath() });
    const budget = createBudget({ tokens: 1_000, windowMs: 1_000, clock, store });
    const spend = await budget.commit(await budget.reserve('ada', call('run', 1)), use(100));
    await clock.advance(5_000);
    await budget.restore('ada', { runId: 'run', spend });
    expect((await budget.standing('ada')).spent.tokens).toBe(0);
  });

  test('spending from before the wall clock was set back leaves the window in time (supervision 4)', async () => {
    const clock = testClock(1e12);
    await using store = sqliteBudget({ path: freshPath() });
    const budget = createBudget({ tokens: 1_000, windowMs: 100_000, clock, store });
    await budget.commit(await budget.reserve('ada', call('run', 1)), use(100));
    clock.wallJump(-1e9);
    expect((await budget.standing('ada')).spent.tokens).toBe(100);
    await clock.advance(100_000);
    expect((await budget.standing('ada')).spent.tokens).toBe(0);
  });

  test('that is something else is not touched (supervision 4)', async () => {
    const [text, runs] = [freshPath('text.db'), freshPath('runs.db')];
    writeFileSync(text, 'not a database, but long enough to be looked at. '.repeat(100));
    const runStore = sqliteStore({ path: runs });
    await runStore.listInterrupted();
    await runStore.close();
    for (const path of [text, runs]) {
      await using store = sqliteBudget({ path });
      await expect(createBudget({ tokens: 1, store }).check('')).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        message: expect.stringContaining(path),
      });
    }
  });

  test('of a newer layout is refused by name (supervision 4)', async () => {
    const path = freshPath();
    const first = sqliteBudget({ path });
    await createBudget({ tokens: 1, store: first }).check('');
    await first.close();
    const db = new DatabaseSync(path);
    db.exec('PRAGMA user_version = 99');
    db.close();
    await using store = sqliteBudget({ path });
    await expect(createBudget({ tokens: 1, store }).check('')).rejects.toMatchObject({ code: 'CHECKPOINT_TOO_NEW' });
  });

  test('that was deleted while it was open is noticed: no process would ever read what is written to it (supervision 4)', async () => {
    const path = freshPath();
    await using store = sqliteBudget({ path });
    const budget = createBudget({ tokens: 100, store });
    await budget.check('ada');
    for (const suffix of ['-wal', '-shm']) rmSync(path + suffix, { force: true });
    renameSync(path, `${path}.gone`);
    const until = performance.now() + 40_000;
    let code: unknown;
    while (code === undefined && performance.now() < until) {
      await new Promise((resolve) => setImmediate(resolve));
      code = await budget.check('ada').then(
        () => undefined,
        (error) => error.code,
      );
    }
    expect(code).toBe('STORE_UNAVAILABLE');
  });
});
