import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { begin, callLines, texts, until } from '../examples/review-trial.ts';
import { agentFile, emptyFolder, jsonLines, pawl } from './pawl.ts';
import { execute, interruptedRun, stepsOf, storeRuns } from './stored-runs.ts';

const [editor, reviewer, counter] = ['editor', 'reviewer', 'counter'].map(agentFile) as [string, string, string];
const parked = { code: 'PARKED', reason: 'a person looks' };
const isOver = 'its parent run has ended';

/** A run of the reviewer that a call of another run has begun. */
function childOf(parentRunId: string, change: Parameters<typeof interruptedRun>[0] = {}) {
  const { meta, ...rest } = interruptedRun({ ...change, agentId: 'reviewer', module: editor });
  return { ...rest, meta: { ...meta, runId: `${parentRunId}~a`, parentRunId } };
}

/** A folder with a store of these records. */
async function stored(...records: Parameters<typeof storeRuns>[1][]) {
  const cwd = emptyFolder();
  const path = join(cwd, 'runs.db');
  await storeRuns(path, ...records);
  return { path, go: (...args: string[]) => pawl([...args, '--store', 'runs.db'], { cwd }) };
}

async function outcomeOf(path: string, runId: string) {
  const store = sqliteStore({ path });
  const outcome = await store.outcomes.find(runId);
  await store.close();
  return outcome;
}

test('`pawl resume` without an id leaves the runs that agents began to their parents, which continue with them', async () => {
  const cwd = texts();
  const first = begin(cwd, 'after add_finding stars/');
  await until(() => callLines(cwd).some(({ event }) => event === 'held'), first);
  first.child.kill('SIGKILL');
  await first.ended;
  const { code, stdout, stderr } = await pawl(['resume', '--json'], { cwd, env: { REVIEW_OUT: 'out' } });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const lines = jsonLines(stdout);
  expect(lines.filter(({ type }) => type === 'run.started').map(({ runId }) => runId)).toEqual(['r']);
  expect(lines.filter(({ type, reason }) => type === 'run.skipped' && !/parent/.test(String(reason)))).toEqual([]);
});

describe.concurrent('a run that an agent began', () => {
  test.for([
    ['`pawl recover`', ['recover']],
    ['`pawl resume`', ['resume']],
    ['`pawl recover` with the module of the run at the top', ['recover', editor]],
    ['`pawl recover` with its own module', ['recover', reviewer]],
    ['`pawl resume --agent` with its own module', ['resume', '--agent', reviewer]],
  ] as const)(
    'is ended as cancelled by %s when the run at the top is gone, and no model is asked',
    async ([_, args]) => {
      const { path, go } = await stored(childOf('t'), childOf('t~a'));
      const { code, stderr } = await go(...args);
      expect(stderr.split('\n').toSorted()).toEqual([
        '',
        'cancelled t~a: 1 step, 15 tokens',
        'cancelled t~a~a: 1 step, 15 tokens',
        `pawl: run t~a is ended as cancelled, without another call of a model: ${isOver}`,
        `pawl: run t~a~a is ended as cancelled, without another call of a model: ${isOver}`,
      ]);
      expect(code).toBe(0);
      for (const runId of ['t~a', 't~a~a']) {
        expect(await stepsOf(path, runId)).toBeUndefined();
        expect(await outcomeOf(path, runId)).toMatchObject({ status: 'cancelled', error: { message: isOver } });
      }
    },
  );

  test('and that is ended so, is a line of its result for machines', async () => {
    const { go } = await stored(childOf('t'));
    const { code, stdout, stderr } = await go('recover', '--json');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(jsonLines(stdout)).toEqual([
      expect.objectContaining({
        type: 'run.ended',
        runId: 't~a',
        status: 'cancelled',
        error: expect.objectContaining({ code: 'CANCELLED', message: isOver }),
      }),
    ]);
  });

  test.for([
    ['that is parked', { parked }],
    ['that is of another agent than those that were named', { agentId: 'clerk' }],
  ] as const)('is left to a run at the top %s', async ([_, change]) => {
    const { path, go } = await stored(interruptedRun({ runId: 't', ...change }), childOf('t'), childOf('t~a'));
    const { stdout, stderr } = await go('recover', reviewer, '--json');
    expect(stderr).toBe('');
    const left = jsonLines(stdout).filter(({ reason }) => /^its parent run \S+ continues it$/.test(String(reason)));
    expect(left.map(({ runId }) => runId)).toEqual(['t~a', 't~a~a']);
    expect([await stepsOf(path, 't~a'), await stepsOf(path, 't~a~a')]).toEqual([1, 1]);
  });

  test('is left to a run at the top that cannot be read', async () => {
    const { path, go } = await stored(interruptedRun({ runId: 't' }), childOf('t'));
    execute(path, "UPDATE heads SET checksum = checksum + 1 WHERE no = (SELECT no FROM runs WHERE run_id = 't')");
    const { code, stderr } = await go('recover');
    expect(code).toBe(1);
    expect(stderr).toContain('skipped t~a: its parent run t cannot be read: ');
    expect(await stepsOf(path, 't~a')).toBe(1);
  });

  test('stays when it is of none of the agents that were named, nor of those that they put to work', async () => {
    const { path, go } = await stored(childOf('t'));
    const { code, stderr } = await go('recover', counter);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringContaining('none of the named modules has it'),
    });
    expect(await stepsOf(path, 't~a')).toBe(1);
  });

  test('is another thing than a run of such an agent that no agent put to work: that one needs its own module', async () => {
    const own = interruptedRun({ agentId: 'reviewer', module: '' });
    const { path, go } = await stored(own, childOf('t'));
    expect(await go('recover', editor)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('skipped r1: there is no agent reviewer to continue it'),
    });
    expect([await stepsOf(path, 'r1'), await stepsOf(path, 't~a')]).toEqual([1, undefined]);
  });

  test('stays when it is parked, although the run at the top is gone: a person wanted it so', async () => {
    const { path, go } = await stored(childOf('t', { parked }));
    expect(await go('recover')).toMatchObject({ code: 75, stderr: expect.stringContaining('a person looks') });
    expect(await stepsOf(path, 't~a')).toBe(1);
  });

  test('is not resumed by its own id while its parent waits: the refusal names the run to resume', async () => {
    const { path, go } = await stored(interruptedRun({ runId: 't' }), childOf('t'), childOf('t~a'));
    const { code, stdout, stderr } = await go('resume', 't~a~a', '--agent', reviewer);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toBe(
      'pawl: run t~a~a: its parent run t~a continues it; continue the top run: pawl resume t --store runs.db\n',
    );
    expect(await stepsOf(path, 't~a~a')).toBe(1);
  });

  test('is ended as cancelled when it is resumed by its own id and the run at the top is gone, with exit code 1', async () => {
    const { path, go } = await stored(childOf('t'));
    const { code, stdout, stderr } = await go('resume', 't~a', '--agent', reviewer);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toBe(
      `cancelled t~a: 1 step, 15 tokens\npawl: run t~a is ended as cancelled, without another call of a model: ${isOver}\n`,
    );
    expect(await outcomeOf(path, 't~a')).toMatchObject({ status: 'cancelled' });
  });
});
