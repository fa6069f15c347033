import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { emptyFolder, jsonLines, pawl } from './pawl.ts';
import { damageMessages, interruptedRun, stepsOf, storeRuns } from './stored-runs.ts';

test('`pawl park` sets a run aside with a reason, `pawl resume` leaves it alone, and `pawl unpark` gives it back', async () => {
  const cwd = emptyFolder();
  const store = ['--store', 'runs.db'];
  await storeRuns(join(cwd, 'runs.db'), interruptedRun());
  const parked = await pawl(['park', 'r1', 'a person looks', ...store], { cwd });
  expect(parked).toMatchObject({ code: 0, stderr: expect.stringContaining('next: pawl unpark r1') });
  const left = await pawl(['resume', '--json', ...store], { cwd });
  expect(jsonLines(left.stdout)).toEqual([
    { type: 'run.skipped', runId: 'r1', reason: expect.stringContaining('a person looks') },
  ]);
  const unparked = await pawl(['unpark', 'r1', '--json', ...store], { cwd });
  expect(jsonLines(unparked.stdout)).toEqual([{ runId: 'r1', status: 'interrupted' }]);
  expect((await pawl(['resume', 'r1', ...store], { cwd })).code).toBe(0);
});

/** A folder with a store of these records. */
async function stored(...records: Parameters<typeof storeRuns>[1][]) {
  const cwd = emptyFolder();
  const path = join(cwd, 'runs.db');
  await storeRuns(path, ...records);
  return { cwd, path, go: (...args: string[]) => pawl([...args, '--store', 'runs.db'], { cwd }) };
}

describe.concurrent.each(['park', 'unpark'])('`pawl %s`', (command) => {
  test('without an id, or with an unknown one, is refused in one line with exit code 2', async () => {
    const { go } = await stored(interruptedRun());
    expect(await go(command)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^pawl: [^\n]+needs the id[^\n]+\n$/),
    });
    expect(await go(command, 'nobody')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^pawl: there is no run nobody in [^\n]+\n$/),
    });
  });

  test('of a run that has ended says how it ended, with exit code 2', async () => {
    const { go } = await stored(interruptedRun());
    await go('resume', 'r1');
    expect(await go(command, 'r1')).toEqual({ code: 2, stdout: '', stderr: 'pawl: run r1 has ended: ok\n' });
  });

  test('of a run whose record is damaged says what can be done about a record, and not to begin it under another name', async () => {
    const { path, go } = await stored(interruptedRun({ parked: { code: 'PARKED', reason: 'a person looks' } }));
    damageMessages(path, 'r1');
    const { code, stderr } = await go(command, 'r1');
    expect(code).toBe(2);
    expect(stderr).toMatch(/restore the store from a copy, or remove it with `pawl prune --quarantined`\n$/);
  });
});

describe.concurrent('a parked run', () => {
  const changed = { code: 'DEFINITION_CHANGED', reason: 'other phases' };
  const todo =
    '`pawl show` shows its progress; `pawl unpark` releases it and resets its attempts, `pawl cancel` ends it';

  test('is what the start becomes that is one too many: it says so, what can be done, and exits with 75 (operations 23)', async () => {
    const { path, go } = await stored(interruptedRun({ attempts: 3 }));
    const line = `run r1 is parked: it was started 3 times in a row without recording anything new; ${todo} (RUN_PARKED)`;
    const first = await go('resume', 'r1');
    expect(first).toEqual({ code: 75, stdout: '', stderr: `pawl: ${line}\n` });
    expect(await go('resume', 'r1')).toMatchObject({ code: 75, stderr: expect.stringContaining(todo) });
    const all = await go('resume', '--json');
    expect(all.code).toBe(75);
    expect(jsonLines(all.stdout)).toEqual([
      { type: 'run.skipped', runId: 'r1', reason: expect.stringContaining(todo) },
    ]);
    expect(await stepsOf(path, 'r1')).toBe(1);
  });

  test('gives machines the error of the start that parks it, and exit code 75 (operations 23)', async () => {
    const { go } = await stored(interruptedRun({ attempts: 3 }));
    const { code, stdout } = await go('resume', '--json');
    expect(code).toBe(75);
    expect(jsonLines(stdout)).toEqual([
      expect.objectContaining({
        type: 'run.ended',
        runId: 'r1',
        error: expect.objectContaining({ code: 'RUN_PARKED' }),
      }),
    ]);
  });

  test('whose phases have changed is not sent to `pawl unpark`, and `pawl unpark` says that it is not enough', async () => {
    const { go } = await stored(
      interruptedRun({ parked: changed, completedPhases: [{ name: 'draft', hash: 'x', output: 'A draft.' }] }),
    );
    const refused = await go('resume', 'r1');
    expect(refused).toMatchObject({ code: 75, stdout: '' });
    expect(refused.stderr).toMatch(
      /^pawl: run r1 is parked: [^\n]*; give its agent the phases that [^\n]*\(RUN_PARKED\)\n$/,
    );
    expect(refused.stderr).not.toContain('unpark');
    const unparked = await go('unpark', 'r1');
    expect(unparked).toEqual({
      code: 0,
      stdout: '',
      stderr:
        'unparked r1; its next start parks it again, unless its agent has the phases that the run started with; a running worker that has its agent takes it, or continue with: pawl resume r1 --store runs.db\n',
    });
  });

  test('that an agent began continues with the run at the top, which `pawl unpark` names', async () => {
    const { meta, ...rest } = interruptedRun({ parked: changed });
    const child = { ...rest, meta: { ...meta, runId: 't~a', parentRunId: 't' } };
    const { go } = await stored(interruptedRun({ runId: 't' }), child);
    expect((await go('unpark', 't~a')).stderr).toMatch(/the top run continues it: pawl resume t --store runs\.db\n$/);
  });

  test('is given back once: `pawl unpark` of a run that is not parked says so, and leaves it as it is', async () => {
    const { path, go } = await stored(interruptedRun({ attempts: 2 }));
    expect(await go('unpark', 'r1')).toEqual({
      code: 0,
      stdout: '',
      stderr: 'run r1 is not parked; continue with: pawl resume r1 --store runs.db\n',
    });
    expect(jsonLines((await go('unpark', 'r1', '--json')).stdout)).toEqual([{ runId: 'r1', status: 'interrupted' }]);
    const store = sqliteStore({ path });
    expect(await store.load('r1')).toMatchObject({ revision: 1, attempts: 2 });
    await store.close();
  });
});

test('`pawl unpark --code` says how many runs it would release, lists them, and releases them with --yes, those of an agent and no others (operations 38)', async () => {
  const setup = { parked: { code: 'SETUP', reason: 'no key' } };
  const of = (runId: string, more: object, agentId = 'worker') => {
    const record = interruptedRun(more);
    return { ...record, meta: { ...record.meta, runId, agentId } };
  };
  const { go } = await stored(
    of('a', setup),
    of('b', setup),
    of('other agent', setup, 'other'),
    of('other code', { parked: { code: 'PARKED', reason: 'by hand' } }),
  );
  const wish = ['unpark', '--code', 'SETUP', '--agent-id', 'worker'];
  expect(await go(...wish)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('2 parked runs with SETUP would be'),
  });
  expect(await go(...wish, '--dry-run')).toMatchObject({ code: 0, stdout: 'a: no key\nb: no key\n' });
  const released = await go(...wish, '--yes', '--by', 'ada', '--json');
  expect(jsonLines(released.stdout)).toEqual([{ runIds: ['a', 'b'], unparked: 2, failed: [] }]);
  // Repeated, it finds none.
  expect(jsonLines((await go(...wish, '--yes', '--json')).stdout)).toEqual([{ runIds: [], unparked: 0, failed: [] }]);
  const { runs } = JSON.parse((await go('list', '--needs-person', '--json')).stdout);
  expect(runs.map(({ runId }: { runId: string }) => runId).sort()).toEqual(['other agent', 'other code']);
});
