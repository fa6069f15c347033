import { join } from 'node:path';
import { expect, test } from 'vitest';
import { emptyFolder, jsonLines, pawl } from './pawl.ts';
import { interruptedRun, storeRuns } from './stored-runs.ts';

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

test.for([['park'], ['unpark']] as const)(
  '`pawl %s` of a run that there is not, or without an id, is one line and exit code 2',
  async ([command]) => {
    const cwd = emptyFolder();
    await storeRuns(join(cwd, 'runs.db'), interruptedRun());
    for (const words of [['nobody'], []]) {
      const { code, stderr } = await pawl([command, ...words, '--store', 'runs.db'], { cwd });
      expect(code).toBe(2);
      expect(stderr.trim().split('\n')).toHaveLength(1);
    }
  },
);
