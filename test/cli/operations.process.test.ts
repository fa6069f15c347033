import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { encrypt } from '../../src/codec/encrypt.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { noUsage } from '../../src/values/usage.ts';
import { agentFile, emptyFolder, jsonLines, Pawl, pawl } from './pawl.ts';
import { damageMessages, execute, interruptedRun, makeTooNew, stepsOf, storeRuns } from './stored-runs.ts';

const DAY = 86_400_000;
const parked = { code: 'PARKED', reason: 'a person looks' };

test('`pawl recover` with agent modules continues with the runs of these agents, from any program, and with no others', async () => {
  const cwd = emptyFolder();
  const path = join(cwd, 'runs.db');
  // They are gone on with in the order of their times, and of their ids where these are the same.
  const updatedAt = Date.now() - 5_000;
  // `host`: no module in its record. `last`: one start away from being parked.
  await storeRuns(
    path,
    interruptedRun({ runId: 'last', updatedAt, attempts: 2 }),
    interruptedRun({ runId: 'host', updatedAt, module: '' }),
    interruptedRun({ runId: 'other', updatedAt, agentId: 'clerk' }),
    interruptedRun({ runId: 'changed', updatedAt, parked: { code: 'DEFINITION_CHANGED', reason: 'other phases' } }),
    interruptedRun({ runId: 'aside', updatedAt, parked }),
  );
  const { code, stdout } = await pawl(['recover', agentFile('counter'), '--store', path, '--json'], { cwd });
  const lines = jsonLines(stdout);
  const ids = (type: string) => lines.filter((line) => line.type === type).map(({ runId }) => runId);
  expect(ids('run.started')).toEqual(['changed', 'host', 'last']);
  expect(ids('run.ended').toSorted()).toEqual(['changed', 'host', 'last']);
  expect(ids('run.ended').at(-1)).toBe('last');
  expect(lines.find(({ runId }) => runId === 'other')?.reason).toContain('none of the named modules has');
  // The parked one is not over.
  expect(code).toBe(75);
  expect(await stepsOf(path, 'other')).toBe(1);
});

test('`pawl doctor` says of each record what becomes of it, and exits with 1 when one needs a person', async () => {
  const cwd = emptyFolder();
  const path = join(cwd, 'runs.db');
  const args = ['doctor', '--store', 'runs.db'];
  await storeRuns(path, interruptedRun({ runId: 'fine' }), interruptedRun({ runId: 'child', meta: childOf('fine') }));
  const healthy = await pawl(args, { cwd });
  expect(healthy).toEqual({
    code: 0,
    stdout: '  resumes    fine: it continues after 1 step\n  child      fine~1: its parent run fine continues it\n',
    stderr: `2 records in ${path}: 1 resumes, 1 child; nothing needs a person\n`,
  });

  await storeRuns(
    path,
    interruptedRun({ runId: 'moved', module: '/gone/agent.ts' }),
    interruptedRun({ runId: 'aside', parked }),
    interruptedRun({ runId: 'stranger', agentId: 'clerk' }),
    interruptedRun({ runId: 'torn' }),
  );
  damageMessages(path, 'torn');
  const [plain, named] = await Promise.all([
    pawl(args, { cwd }),
    pawl([...args, agentFile('counter'), '--json'], { cwd }),
  ]);
  expect(plain.code).toBe(1);
  expect(
    plain.stdout
      .split('\n')
      .filter((line) => line.startsWith('!'))
      .map((line) => line.split(':')[0])
      .toSorted(),
  ).toEqual(['! parked     aside', '! skipped    moved', '! unreadable torn']);
  expect(plain.stdout).toContain(
    'is missing: the module /gone/agent.ts is gone; name its new path: pawl recover <agent module>',
  );
  expect(plain.stdout).toMatch(/torn: it cannot be read: .*its bytes are kept.* \(CHECKPOINT_CORRUPT\)/);
  expect(named.code).toBe(1);
  const lines = jsonLines(named.stdout);
  expect(lines.find(({ runId }) => runId === 'stranger')).toMatchObject({
    verdict: 'skipped',
    code: 'AGENT_NOT_FOUND',
  });
  expect(lines.at(-1)).toEqual({
    type: 'summary',
    store: path,
    records: 6,
    verdicts: { resumes: 2, child: 1, parked: 1, skipped: 1, unreadable: 1 },
    needingPerson: 3,
  });
});

test('`pawl prune` removes what it is asked to, never a run that is live or can be recovered', async () => {
  const cwd = emptyFolder();
  const path = join(cwd, 'runs.db');
  const updatedAt = Date.now() - 40 * DAY;
  await storeRuns(
    path,
    interruptedRun({ runId: 'newer', updatedAt }),
    interruptedRun({ runId: 'waits', updatedAt }),
    interruptedRun({ runId: 'old', updatedAt, parked }),
    interruptedRun({ runId: 'young', parked }),
    interruptedRun({ runId: 'held', updatedAt, parked }),
    interruptedRun({ runId: 'torn', updatedAt }),
  );
  makeTooNew(path);
  damageHead(path, 'torn');
  const sealing = sqliteStore({ path, codec: encrypt({ keys: { k: randomBytes(32) }, current: 'k' }) });
  await sealing.save(interruptedRun({ runId: 'sealed', updatedAt }));
  await sealing.close();
  const store = sqliteStore({ path });
  await store.claim('held', 'another host|1', 600_000);
  await store.outcomes.keep('ended', outcome('ended'), Date.now() + DAY);
  await store.outcomes.keep('long-ended', outcome('long-ended'), Date.now() - DAY);
  // For the clock of the process that keeps it, its time is not over: no sweep of that one removes it first.
  const past = testClock(Date.now() - DAY);
  const early = sqliteStore({ path, clock: past });
  for (const [runId, of, keepUntil] of [
    ['kept', store, Date.now() + DAY],
    ['long-kept', early, Date.now() - 60_000],
  ] as const) {
    const claim = await of.claim(runId, 'us', 600_000);
    if (!claim) throw new Error('held');
    await of.save(interruptedRun({ runId }), { claim });
    await of.history.end(claim, { outcome: outcome(runId), keepUntil, outcomeUntil: 0 });
  }
  await early.close();
  const args = ['prune', '--store', path, '--parked', '--quarantined', '--older-than', '30d'];
  const dry = await pawl([...args, '--dry-run'], { cwd });
  expect(dry.code).toBe(0);
  expect(dry.stderr).toContain('would delete 2 records and 1 outcome, and 1 record of ended runs, past their time');
  const unsure = await pawl(args, { cwd });
  expect(unsure).toMatchObject({ code: 2, stderr: expect.stringContaining('use --yes to confirm, or --dry-run') });
  expect(await listed(store)).toEqual(['held', 'newer', 'old', 'sealed', 'torn', 'waits', 'young']);

  const sure = await pawl([...args, '--yes', '--json'], { cwd });
  expect(sure.code).toBe(0);
  expect(JSON.parse(sure.stdout)).toEqual({
    store: path,
    dryRun: false,
    outcomes: 1,
    history: 1,
    deleted: ['old', 'torn'],
    kept: [],
  });
  expect(await listed(store)).toEqual(['held', 'newer', 'sealed', 'waits', 'young']);
  expect(await store.outcomes.find('ended')).not.toBeNull();
  expect((await store.history.list({ limit: 9 })).map(({ runId }) => runId)).toEqual(['kept']);
  await store.close();
});

test('`pawl steer` and `pawl cancel` reach a run that is live in another process, and say what became of it', async () => {
  const cwd = emptyFolder();
  const live = new Pawl(['run', agentFile('counter'), '--run-id', 'r1'], { cwd, env: { HOLD: 'go' } });
  await live.says('holding');
  expect(await pawl(['steer', 'r1', 'count on', '--json'], { cwd })).toMatchObject({
    code: 0,
    stdout: '{"runId":"r1","status":"heard"}\n',
  });
  expect(await pawl(['cancel', 'r1', '--reason', 'enough', '--wait', '20s'], { cwd })).toEqual({
    code: 0,
    stdout: '',
    stderr: 'run r1 is cancelled\n',
  });
  expect(await live.ended).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/failed: .*enough.* \(CANCELLED\)/),
  });
  expect(await pawl(['cancel', 'r1'], { cwd })).toEqual({ code: 0, stdout: '', stderr: 'run r1 is cancelled\n' });
});

test('`pawl cancel` may be asked again: a run that is over is no bad input, and is distinguished from one that ended otherwise', async () => {
  const cwd = emptyFolder();
  // The end of `told` is recorded and was not announced yet.
  const told = { runId: 'told', outcome: outcome('told') };
  await storeRuns(
    join(cwd, 'runs.db'),
    interruptedRun({ runId: 'r1' }),
    interruptedRun({ runId: 'r2' }),
    interruptedRun(told),
  );
  const go = (...args: string[]) => pawl([...args, '--store', 'runs.db'], { cwd });
  await go('cancel', 'r1');
  await go('resume', 'r2');
  expect(await go('cancel', 'r1', '--json')).toEqual({
    code: 0,
    stdout: '{"runId":"r1","status":"cancelled"}\n',
    stderr: '',
  });
  for (const runId of ['r2', 'told']) {
    const json = await go('cancel', runId, '--json');
    expect(json).toEqual({ code: 0, stdout: `{"runId":"${runId}","status":"ended"}\n`, stderr: '' });
    expect(await go('cancel', runId)).toEqual({ code: 0, stdout: '', stderr: `run ${runId} has already ended: ok\n` });
  }
  expect(await go('steer', 'r2', 'count on')).toMatchObject({ code: 2, stderr: 'pawl: run r2 has ended: ok\n' });
});

test('`pawl steer` of a run that waits is kept for the process that continues it, and `pawl cancel` ends it at once', async () => {
  const cwd = emptyFolder();
  await storeRuns(join(cwd, 'runs.db'), interruptedRun({ runId: 'r1' }), interruptedRun({ runId: 'r2', parked }));
  const store = ['--store', 'runs.db'];
  const steered = await pawl(['steer', 'r1', 'count on', '--json', ...store], { cwd });
  expect(steered).toMatchObject({ code: 0, stdout: '{"runId":"r1","status":"kept"}\n' });
  expect((await pawl(['resume', 'r1', ...store], { cwd })).code).toBe(0);
  expect(await pawl(['cancel', 'r2', '--json', ...store], { cwd })).toMatchObject({
    code: 0,
    stdout: '{"runId":"r2","status":"cancelled"}\n',
  });
  expect(await stepsOf(join(cwd, 'runs.db'), 'r2')).toBeUndefined();
});

test.for([
  [['prune', '--parked'], '--parked needs --older-than'],
  [['steer', 'r1'], 'needs a run id and what to say'],
  [['cancel', 'nobody'], 'there is no run nobody'],
] as const)('`pawl %s` is refused in one line with exit code 2', async ([args, words]) => {
  const cwd = emptyFolder();
  await storeRuns(join(cwd, 'runs.db'), interruptedRun());
  const { code, stderr } = await pawl([...args, '--store', 'runs.db'], { cwd });
  expect(code).toBe(2);
  expect(stderr).toMatch(/^pawl: [^\n]+\n$/);
  expect(stderr).toContain(words);
});

function childOf(parentRunId: string) {
  return { ...interruptedRun().meta, runId: `${parentRunId}~1`, parentRunId };
}

function outcome(runId: string) {
  const ended = { status: 'ok', output: '', usage: noUsage, iterations: 1, phases: [], undelivered: [] } as const;
  return { ...ended, runId, outcomeId: `${runId}:1`, durable: true, saveErrors: 0 };
}

async function listed(store: ReturnType<typeof sqliteStore>): Promise<string[]> {
  return (await store.listInterrupted()).map(({ runId }) => runId).toSorted();
}

function damageHead(path: string, runId: string): void {
  execute(path, `UPDATE heads SET checksum = checksum + 1 WHERE no = (SELECT no FROM runs WHERE run_id = '${runId}')`);
}
