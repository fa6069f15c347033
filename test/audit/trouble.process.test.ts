import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { createAudit } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { afterEach, describe, expect, test } from 'vitest';
import { passOnErrors } from '../fixtures/processes.ts';
import { parse, type Source } from '../tidy/source.ts';
import { info, tool, totals, usage } from './run-facts.ts';
import { freshPath, openAudit, sql } from './scene.ts';

const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts a role of `child.ts` in a process of its own. */
function start(role: string, path: string, argument = '') {
  const script = fileURLToPath(new URL('child.ts', import.meta.url));
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

/** Takes down a run of three steps, to its end. */
async function recordRun(audit: ReturnType<typeof createAudit>, runId = 'run') {
  const recorder = audit.startRun(info(runId));
  for (let step = 1; step <= 3; step++) recorder.onStep?.({ step, usage: usage(step), tools: [] });
  await recorder.close('ok', 'done', undefined, totals({ iterations: 3 }));
}

describe('several processes with one audit', () => {
  test('write side by side, and nothing of either is lost (supervision 5)', async () => {
    const path = freshPath();
    const children = ['a', 'b', 'c'].map((name) => start('record', path, name));
    expect(await Promise.all(children.map((child) => child.next()))).toEqual([0, 0, 0]);
    const { audit } = openAudit({ path });
    const runs = await audit.runs();
    expect(runs).toHaveLength(60);
    for (const run of runs) expect(run).toMatchObject({ status: 'ok', iterations: 10, resumes: 0 });
    for (const { runId } of runs) expect((await audit.run(runId))?.tools).toHaveLength(10);
    expect(sql(path, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }]);
  });

  test('a process that is killed leaves what it had written, and the run goes on from there (supervision 5)', async () => {
    for (const steps of [1, 3, 7]) {
      const path = freshPath();
      const child = start('steps', path);
      for (let step = 1; step <= steps; step++) expect(await child.next()).toBe(step);
      await child.kill();
      const { audit } = openAudit({ path });
      const [left] = await audit.runs();
      expect(left).toMatchObject({ runId: 'run', status: 'open' });
      expect(left?.iterations).toBeGreaterThanOrEqual(steps);
      const heir = audit.startRun(info('run'));
      await heir.close('ok', 'done', undefined, totals());
      expect(await audit.runs()).toMatchObject([{ status: 'ok', resumes: 1 }]);
    }
  });

  test('a process that just ends has written what it was told (supervision 5)', async () => {
    const path = freshPath();
    await start('forget', path).exited;
    expect(await openAudit({ path }).audit.runs()).toMatchObject([{ status: 'open', iterations: 1 }]);
  });
});

describe('a file that cannot be written', () => {
  test('because another process holds the lock, gets everything when it is let go (supervision 5)', async () => {
    const { audit, path, warnings, clock } = openAudit({ busyTimeoutMs: 30 });
    await recordRun(audit, 'before');
    const child = start('lock', path);
    expect(await child.next()).toBe('locked');
    await recordRun(audit);
    expect(audit.dropped).toBe(0);
    expect(warnings).toEqual(['audit: its file cannot be written; entries are queued']);
    // Reading goes on meanwhile.
    expect((await audit.runs()).map(({ runId }) => runId)).toEqual(['before']);
    child.tell();
    await child.exited;
    await clock.advance(60_000);
    expect((await audit.runs()).map(({ runId }) => runId).sort()).toEqual(['before', 'run']);
    expect(await audit.run('run')).toMatchObject({ status: 'ok', iterations: 3, dropped: 0 });
  });

  test.for([
    ['a folder', (path: string) => mkdirSync(path)],
    ['below a file', (path: string) => writeFileSync(path.slice(0, path.lastIndexOf('/')), 'x')],
    ['no database', (path: string) => writeFileSync(path, 'not a database, but long enough. '.repeat(200))],
  ] as const)(
    'because it is %s: runs end all the same, and queries say what is wrong (supervision 5)',
    async ([_, spoil]) => {
      const path = freshPath('folder/audit.db');
      if (_ !== 'below a file') mkdirSync(path.slice(0, path.lastIndexOf('/')));
      spoil(path);
      const { audit, warnings } = openAudit({ path });
      await recordRun(audit);
      await recordRun(audit, 'other');
      for (const query of [audit.runs(), audit.run('run'), audit.tree('run'), audit.totals({ by: 'day' })]) {
        await expect(query).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      }
      expect(warnings).toEqual(['audit: its file cannot be written; entries are queued']);
      await audit.close();
      expect(audit.dropped).toBe(10);
      expect(warnings).toHaveLength(2);
    },
  );

  test('because it is the store of the runs, is not touched (supervision 5)', async () => {
    const path = freshPath();
    const store = sqliteStore({ path });
    await store.listInterrupted();
    const { audit } = openAudit({ path });
    await recordRun(audit);
    await expect(audit.runs()).rejects.toMatchObject({ message: expect.stringContaining('another application') });
    expect(sql(path, 'SELECT count(*) AS n FROM runs')).toEqual([{ n: 0 }]);
    await store.close();
  });

  test('because a newer version made it, is refused by name (supervision 5)', async () => {
    const { audit, path } = openAudit();
    await recordRun(audit);
    await audit.close();
    const db = new DatabaseSync(path);
    db.exec('PRAGMA user_version = 99');
    db.close();
    await expect(openAudit({ path }).audit.runs()).rejects.toMatchObject({ code: 'CHECKPOINT_TOO_NEW' });
  });

  test('because its pages are damaged, is left as it is, and queries say so (supervision 5)', async () => {
    const { audit, path } = openAudit();
    for (let i = 0; i < 50; i++) await recordRun(audit, `run-${i}`);
    await audit.close();
    const bytes = readFileSync(path);
    bytes.fill(0xa5, 4_096);
    writeFileSync(path, bytes);
    await expect(openAudit({ path }).audit.runs()).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining('damaged'),
    });
  });

  test('what waits for it is bounded; the rest is dropped, counted, and warned of once (supervision 5)', async () => {
    const path = freshPath();
    mkdirSync(path);
    const { audit, warnings } = openAudit({ path });
    const recorder = audit.startRun(info('run'));
    for (let step = 1; step <= 25_000; step++) recorder.onTool?.(tool({ step }));
    expect(audit.dropped).toBe(5_001);
    const big = openAudit({ path, maxChars: 1_000_000 });
    const long = big.audit.startRun(info('run'));
    for (let step = 1; step <= 100; step++) {
      long.onTool?.(tool({ step, output: { type: 'text', value: 'x'.repeat(900_000) } }));
    }
    expect(big.audit.dropped).toBeGreaterThan(20);
    expect(warnings).toEqual([expect.stringContaining('entries are dropped')]);
  });

  test('what was dropped of a run stands in its row (supervision 5)', async () => {
    const { audit, warnings } = openAudit();
    const recorder = audit.startRun(info('run'));
    recorder.onTool?.(null as never);
    recorder.onStep?.(null as never);
    await recorder.close('ok', 'done', undefined, totals());
    expect(await audit.run('run')).toMatchObject({ status: 'ok', dropped: 2 });
    expect(warnings).toEqual(['audit: entries are dropped: what was recorded cannot be read']);
  });

  test('one entry that cannot be written does not keep the others from it (supervision 5)', async () => {
    const { audit } = openAudit();
    const strange = audit.startRun(info('strange', { callerId: { toString: null } as never }));
    const recorder = audit.startRun(info('run'));
    recorder.onStep?.({ step: 1, usage: { ...usage(1), inputTokens: Number.NaN }, tools: [] });
    expect(await audit.runs()).toMatchObject([{ runId: 'run', iterations: 1, usage: usage(0) }]);
    strange.onStep?.({ step: 1, usage: usage(1), tools: [] });
    await Promise.all([recorder, strange].map((each) => each.close('ok', 'done', undefined, totals())));
    expect(await audit.runs()).toMatchObject([{ runId: 'run', status: 'ok' }]);
    expect(audit.dropped).toBe(3);
  });
});

describe('an audit', () => {
  test('that was closed takes nothing more, and says so (supervision 5)', async () => {
    const { audit, warnings } = openAudit();
    const recorder = audit.startRun(info('run'));
    await audit.close();
    await audit.close();
    recorder.onStep?.({ step: 1, usage: usage(1), tools: [] });
    await recorder.close('ok', '', undefined, totals());
    expect(audit.dropped).toBe(2);
    expect(warnings).toEqual(['audit: entries are dropped: it was closed']);
    await expect(audit.runs()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    const unused = openAudit().audit;
    await unused.close();
    await expect(unused.runs()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });

  test('that nobody writes to or asks makes no file (supervision 5)', async () => {
    const { audit, path } = openAudit();
    await audit.close();
    expect(existsSync(path)).toBe(false);
  });

  test('waits a moment for more before it writes, and not longer (supervision 5)', async () => {
    const { audit, clock, path } = openAudit();
    audit.startRun(info('run'));
    await clock.advance(49);
    expect(existsSync(path)).toBe(false);
    await clock.advance(1);
    while (!existsSync(path)) await new Promise((resolve) => setImmediate(resolve));
    expect(clock.pending).toBe(0);
  });

  test('whose logger throws goes on (supervision 5)', async () => {
    const path = freshPath();
    mkdirSync(path);
    const logger = {
      warn: () => {
        throw new Error('no');
      },
    };
    const { audit } = openAudit({ path, logger });
    await recordRun(audit);
    await audit.close();
    expect(audit.dropped).toBe(5);
  });

  test.for([
    ['no path', {}],
    ['days that are none', { path: 'a.db', retentionDays: -1 }],
    ['days that are NaN', { path: 'a.db', retentionDays: Number.NaN }],
    ['a size that is none', { path: 'a.db', maxChars: 0 }],
  ] as const)('with %s is refused with a TypeError (supervision 5)', ([_, options]) => {
    expect(() => createAudit(options as never)).toThrow(TypeError);
  });

  test('costs nothing to who has none: the entry point of the package loads no SQLite (supervision 5)', () => {
    const root = fileURLToPath(new URL('../..', import.meta.url));
    const seen = new Map<string, Source>();
    const visit = (path: string) => {
      if (seen.has(path)) return;
      const source = parse({ path, text: readFileSync(`${root}/${path}`, 'utf8') });
      seen.set(path, source);
      for (const { target, typeOnly } of staticImports(source)) if (target && !typeOnly) visit(target);
    };
    visit('src/index.ts');
    const imported = [...seen.values()].flatMap((source) => staticImports(source).filter(({ typeOnly }) => !typeOnly));
    expect(seen.size).toBeGreaterThan(50);
    expect(imported.map(({ specifier }) => specifier)).not.toContain('node:sqlite');
  });
});

/** All but those that are loaded when they are needed. */
function staticImports(source: Source) {
  const lines = source.text.split('\n');
  return source.imports.filter(({ line }) => !/\bimport\(/.test(lines[line - 1] ?? ''));
}
