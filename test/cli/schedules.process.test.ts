import { join } from 'node:path';
import { defineAgent, type Schedule } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { reply, scriptedModel, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { createExecutor } from '../../src/index.ts';
import { agentFile, emptyFolder, jsonLines, Pawl, pawl } from './pawl.ts';

const agent = defineAgent({ id: 'digest', instructions: 'Sum up.' });
const options = ['--store', 'runs.db'];

/** A folder with a store in which two schedules had their first ticks. */
async function storeWithSchedules(): Promise<string> {
  const cwd = emptyFolder();
  const clock = testClock(Date.now() - 30 * 60_000);
  const store = sqliteStore({ path: join(cwd, 'runs.db'), clock });
  const start: Schedule['start'] = () => ({ agent, invocation: { prompt: 'Go.' } });
  const executor = createExecutor({
    models: { fast: scriptedModel(Array.from({ length: 100 }, () => reply('done'))) },
    agents: [agent],
    store,
    clock,
    logger: { warn: () => {} },
    schedules: [
      { id: 'nightly', cron: '0 7 * * *', timeZone: 'Europe/Berlin', start },
      { id: 'often', every: '10m', start },
    ],
  });
  await executor.recover();
  await clock.advance(29 * 60_000);
  await executor.shutdown();
  await store.close();
  return cwd;
}

test('`pawl schedules` lists the schedules of a store, pauses one and resumes it, without a module (schedules 5)', async () => {
  const cwd = await storeWithSchedules();
  const listed = await pawl(['schedules', ...options], { cwd });
  const [heads, nightly, often] = listed.stdout.split('\n');
  expect(heads).toMatch(/^SCHEDULE +TICKS +NEXT +LAST +SKIPPED +MISSED +FAILED$/);
  expect(nightly).toMatch(/^nightly +0 7 \* \* \* Europe\/Berlin +\d{4}-\d\d-\d\dT0[56]:00:00Z +- +0 +0 +0$/);
  expect(often).toMatch(/^often +every 10m +\S+0:00Z +\S+0:00Z +0 +0 +0$/);
  expect(await pawl(['schedules', 'pause', 'often', '--by', 'ada', ...options], { cwd })).toMatchObject({
    code: 0,
    stderr: 'paused often\n',
  });
  expect((await pawl(['schedules', ...options], { cwd })).stdout).toMatch(/often +every 10m +paused by ada +/);
  const { stdout } = await pawl(['schedules', 'resume', 'often', '--json', ...options], { cwd });
  expect(jsonLines(stdout)).toEqual([{ id: 'often', status: 'resumed' }]);
  const { schedules } = JSON.parse((await pawl(['schedules', '--json', ...options], { cwd })).stdout);
  expect(schedules).toMatchObject([{ id: 'nightly' }, { id: 'often', nextAt: expect.any(Number) }]);
  expect(schedules[1]).not.toHaveProperty('paused');
});

test('`pawl schedules` refuses another word, a missing id and an unknown one in one line with exit code 2 (schedules 5)', async () => {
  const cwd = await storeWithSchedules();
  for (const [words, message] of [
    [['stop'], 'takes pause or resume'],
    [['pause'], 'needs the id of a schedule'],
    [['resume', 'weekly'], 'there is no schedule "weekly"'],
  ] as const) {
    const { code, stderr } = await pawl(['schedules', ...words, ...options], { cwd });
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^pawl: [^\n]+\n$/)]);
    expect(stderr).toContain(message);
  }
});

test('`pawl work` looks after the schedules of its module (schedules 2)', async () => {
  const cwd = emptyFolder();
  const worker = new Pawl(['work', agentFile('ticking'), '--json', ...options], { cwd });
  const ended = () => jsonLines(worker.stdout).filter(({ type }) => type === 'run.ended');
  while (ended().length < 2) await new Promise((resolve) => setTimeout(resolve, 20));
  worker.child.kill('SIGTERM');
  await worker.ended;
  for (const run of ended()) expect(run).toMatchObject({ status: 'ok', runId: expect.stringMatching(/^tick@.*Z$/) });
  expect((await pawl(['schedules', ...options], { cwd })).stdout).toMatch(/^tick +every 1s/m);
});
