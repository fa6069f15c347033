import { describe, expect, test } from 'vitest';
import type { RunStatus } from '../../src/run/finalize.ts';
import { info, noon, tool, totals, usage } from './run-facts.ts';
import { openAudit, sql } from './scene.ts';

const DAY = 86_400_000;

/** An audit with runs of two callers and two agents on three days; the last one is still open. */
async function filled() {
  const scene = openAudit();
  const runs: [string, string, string, number, RunStatus | undefined][] = [
    ['r1', 'ada', 'researcher', 0, 'ok'],
    ['r2', 'grace', 'researcher', 0, 'error'],
    ['r3', 'ada', 'writer', DAY, 'ok'],
    ['r4', 'ada', 'researcher', 2 * DAY, 'cancelled'],
    ['r5', 'grace', 'writer', 2 * DAY + 1, undefined],
  ];
  for (const [i, [runId, callerId, subjectId, later, status]] of runs.entries()) {
    const recorder = scene.audit.startRun(info(runId, { callerId, subjectId, startedAt: noon + later }));
    recorder.onStep?.({ step: 1, usage: usage(10 * (i + 1)), tools: [] });
    const spend = { tokens: 10 * (i + 1), usd: 0.5, seconds: 2 };
    if (status) await recorder.close(status, '', undefined, totals({ usage: usage(10 * (i + 1)), spend }));
  }
  return scene;
}

const ids = (runs: readonly { readonly runId: string }[]) => runs.map(({ runId }) => runId);

describe('runs', () => {
  test('of a caller, of an agent, of a time, or of a status, the latest first (supervision 5)', async () => {
    const { audit } = await filled();
    expect(ids(await audit.runs())).toEqual(['r5', 'r4', 'r3', 'r2', 'r1']);
    expect(ids(await audit.runs({ callerId: 'ada' }))).toEqual(['r4', 'r3', 'r1']);
    expect(ids(await audit.runs({ agentId: 'writer' }))).toEqual(['r5', 'r3']);
    expect(ids(await audit.runs({ agentId: 'researcher', callerId: 'ada' }))).toEqual(['r4', 'r1']);
    expect(ids(await audit.runs({ since: noon + DAY, until: noon + 2 * DAY }))).toEqual(['r3']);
    expect(ids(await audit.runs({ status: 'open' }))).toEqual(['r5']);
    expect(ids(await audit.runs({ callerId: 'nobody' }))).toEqual([]);
  });

  test('come in pages that miss none and repeat none, also of runs that began at once (supervision 5)', async () => {
    const { audit } = openAudit();
    for (let i = 0; i < 25; i++) audit.startRun(info(`run-${i}`, { startedAt: noon + (i % 3) }));
    const seen: string[] = [];
    let page = await audit.runs({ limit: 7 });
    while (page.length > 0) {
      seen.push(...ids(page));
      page = await audit.runs({ limit: 7, after: page.at(-1) });
    }
    expect(seen).toHaveLength(25);
    expect(new Set(seen).size).toBe(25);
    expect(seen).toEqual(ids(await audit.runs({ limit: 10_000 })));
    expect(await audit.runs()).toHaveLength(25);
  });

  test('of many are read a part at a time (supervision 5)', async () => {
    const { audit } = openAudit();
    for (let i = 0; i < 2_500; i++) audit.startRun(info(`run-${i}`));
    expect(new Set(ids(await audit.runs({ limit: 5_000 }))).size).toBe(2_500);
    expect(await audit.runs()).toHaveLength(100);
  });

  test.for([0, -1, 1.5, Number.NaN])('refuse a limit of %s (supervision 5)', async (limit) => {
    await expect(openAudit().audit.runs({ limit })).rejects.toThrow(TypeError);
  });
});

describe('a run', () => {
  test('of many entries is read up to a limit, and says that there are more (supervision 5)', async () => {
    const { audit } = openAudit();
    const recorder = audit.startRun(info('run'));
    for (let step = 1; step <= 2_500; step++) recorder.onTool?.(tool({ step }));
    expect((await audit.run('run'))?.tools).toHaveLength(2_500);
    const cut = await audit.run('run', { limit: 1_200 });
    expect(cut?.tools.map(({ step }) => step)).toEqual(Array.from({ length: 1_200 }, (_, i) => i + 1));
    expect(cut?.isCut).toBe(true);
    expect((await audit.run('run', { limit: 2_500 }))?.isCut).toBe(false);
  });

  test('of which an entry cannot be read shows the others (supervision 5)', async () => {
    const { audit, path } = openAudit();
    const recorder = audit.startRun(info('run'));
    recorder.onTool?.(tool({ callId: 'a' }));
    recorder.onTool?.(tool({ callId: 'b' }));
    await audit.runs();
    sql(path, "UPDATE entries SET fields = 'not json' WHERE fields LIKE '%\"a\"%'");
    const found = await audit.run('run');
    expect(found?.tools).toMatchObject([{ clipped: 'not json' }, { callId: 'b' }]);
  });
});

describe('a tree', () => {
  const family: [string, string][] = [
    ['root', ''],
    ['a', 'root'],
    ['b', 'root'],
    ['a1', 'a'],
    ['a2', 'a'],
    ['a11', 'a1'],
    ['stranger', ''],
  ];
  const grown = () => {
    const { audit } = openAudit();
    for (const [i, [runId, parentRunId]] of family.entries()) {
      audit.startRun(info(runId, { parentRunId, startedAt: noon + i }));
    }
    return audit;
  };
  const shape = (tree: { run: { runId: string }; children: readonly unknown[] } | null): unknown =>
    tree && [tree.run.runId, ...tree.children.map((child) => shape(child as never))];

  test('is a run with its children, and theirs (supervision 5)', async () => {
    const audit = grown();
    expect(shape(await audit.tree('root'))).toEqual(['root', ['a', ['a1', ['a11']], ['a2']], ['b']]);
    expect(shape(await audit.tree('a1'))).toEqual(['a1', ['a11']]);
    expect(await audit.tree('nobody')).toBe(null);
  });

  test('ends at a depth and at a number of runs, the farthest first (supervision 5)', async () => {
    const audit = grown();
    expect(shape(await audit.tree('root', { depth: 1 }))).toEqual(['root', ['a'], ['b']]);
    expect(shape(await audit.tree('root', { depth: 0 }))).toEqual(['root']);
    expect(shape(await audit.tree('root', { limit: 4 }))).toEqual(['root', ['a', ['a1']], ['b']]);
  });

  test('ends although runs name each other as parents (supervision 5)', async () => {
    const { audit } = openAudit();
    audit.startRun(info('x', { parentRunId: 'y' }));
    audit.startRun(info('y', { parentRunId: 'x' }));
    audit.startRun(info('z', { parentRunId: 'z' }));
    expect(shape(await audit.tree('x'))).toEqual(['x', ['y']]);
    expect(shape(await audit.tree('z'))).toEqual(['z']);
  });
});

describe('totals', () => {
  test('by day, agent or caller: runs, how they ended, tokens, dollars and time (supervision 5)', async () => {
    const { audit } = await filled();
    const spend = (runs: number, tokens: number) => ({ tokens, usd: runs * 0.5, seconds: runs * 2 });
    expect(await audit.totals({ by: 'day' })).toEqual([
      {
        key: '2026-11-22',
        runs: 2,
        statuses: { ok: 1, error: 1 },
        usage: usage(30),
        spend: spend(2, 30),
        iterations: 2,
        elapsedMs: 2_000,
      },
      {
        key: '2026-11-23',
        runs: 1,
        statuses: { ok: 1 },
        usage: usage(30),
        spend: spend(1, 30),
        iterations: 1,
        elapsedMs: 1_000,
      },
      {
        key: '2026-11-24',
        runs: 2,
        statuses: { cancelled: 1, open: 1 },
        usage: usage(90),
        spend: spend(1, 40),
        iterations: 2,
        elapsedMs: 1_000,
      },
    ]);
    expect((await audit.totals({ by: 'agent' })).map(({ key, runs, usage }) => [key, runs, usage.inputTokens])).toEqual(
      [
        ['writer', 2, 80],
        ['researcher', 3, 70],
      ],
    );
    expect(
      (await audit.totals({ by: 'caller' })).map(({ key, runs, usage }) => [key, runs, usage.inputTokens]),
    ).toEqual([
      ['ada', 3, 80],
      ['grace', 2, 70],
    ]);
  });

  test('of a time, and up to a number: the latest days (supervision 5)', async () => {
    const { audit } = await filled();
    const days = async (filter: object) => (await audit.totals({ by: 'day', ...filter })).map(({ key }) => key);
    expect(await days({ since: noon + 1 })).toEqual(['2026-11-23', '2026-11-24']);
    expect(await days({ until: noon + 1 })).toEqual(['2026-11-22']);
    expect(await days({ limit: 2 })).toEqual(['2026-11-23', '2026-11-24']);
    expect(await openAudit().audit.totals({ by: 'day' })).toEqual([]);
  });

  test('by something else are refused (supervision 5)', async () => {
    await expect(openAudit().audit.totals({ by: 'moon' as never })).rejects.toThrow(TypeError);
  });
});

describe('retention', () => {
  test('runs that ended longer ago than the days that are set are removed, open ones never (supervision 5)', async () => {
    const { audit, clock, path } = openAudit({ retentionDays: 30 });
    for (let i = 0; i < 120; i++) {
      const recorder = audit.startRun(info(`old-${i}`));
      for (let step = 1; step <= 20; step++) recorder.onTool?.(tool({ step }));
      await recorder.close('ok', 'done', undefined, totals());
    }
    audit.startRun(info('open')).onStep?.({ step: 1, usage: usage(1), tools: [] });
    await audit.startRun(info('left')).close('interrupted', '', undefined, totals());
    await clock.advance(20 * DAY);
    await audit.startRun(info('young')).close('ok', 'done', undefined, totals());
    await clock.advance(10 * DAY + 1);
    audit.startRun(info('new'));
    const untilSwept = async () => {
      while ((await audit.runs({ limit: 1_000 })).length > 4) await new Promise((resolve) => setImmediate(resolve));
    };
    await untilSwept();
    expect(ids(await audit.runs()).sort()).toEqual(['left', 'new', 'open', 'young']);
    await audit.close();
    expect(sql(path, 'SELECT count(*) AS n FROM entries')).toEqual([{ n: 1 }]);
    expect(sql(path, 'SELECT count(*) AS n FROM ends')).toEqual([{ n: 2 }]);
    expect(sql(path, 'SELECT count(*) AS n FROM heads')).toEqual([{ n: 4 }]);
  });

  test('without an end keeps them all (supervision 5)', async () => {
    const { audit, clock } = openAudit({ retentionDays: Number.POSITIVE_INFINITY });
    await audit.startRun(info('old')).close('ok', '', undefined, totals());
    await clock.advance(10_000 * DAY);
    audit.startRun(info('new'));
    await audit.runs();
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(await audit.runs()).toHaveLength(2);
  });
});
