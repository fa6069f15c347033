import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { agentFile, emptyFolder, jsonLines, pawl } from './pawl.ts';
import { interruptedRun, storeRuns } from './stored-runs.ts';

const flaky = agentFile('flaky');
const keyless = { FLAKY: 'setup' };
const isMissing = 'a model, its key or a tool is missing (MODEL)';

/** A run that has paid, and whose process has no key for its next model call. */
async function givenBack() {
  const cwd = emptyFolder();
  const begun = await pawl(['run', flaky, 'Pay.', '--run-id', 'r1'], { cwd, env: keyless });
  const go = (...args: string[]) => pawl(args, { cwd });
  return { cwd, begun, go };
}

describe.concurrent('a run that its process gave back for want of a key', { timeout: 180_000 }, () => {
  test.for(['resume r1', 'resume', 'recover', 'retry r1'])(
    'makes `pawl %s` exit with 75 as `pawl run` does, and is not called failed (operations 23)',
    async (line) => {
      const words = line.split(' ');
      const { cwd, begun, go } = await givenBack();
      const told = /^pawl: run r1 is given back, [^\n]*OPENAI_API_KEY is missing[^\n]*\(SETUP\)$/m;
      const next = /^pawl: once the cause is mended, continue it with: pawl resume r1$/m;
      for (const ended of [begun, await pawl(words, { cwd, env: keyless })]) {
        expect(ended).toMatchObject({ code: 75, stdout: '' });
        expect(ended.stderr).toMatch(told);
        expect(ended.stderr).toMatch(next);
        expect(ended.stderr).not.toContain('run r1 failed');
      }
      expect(await go(...words)).toMatchObject({ code: 0, stdout: 'all is paid\n' });
    },
  );

  test('is shown with what is missing by `list`, `show` and `doctor`, until a process has it (edges 2)', async () => {
    const { go } = await givenBack();
    expect((await go('list')).stdout).toContain(`given back: ${isMissing}`);
    const { runs } = JSON.parse((await go('list', '--needs-person', '--json')).stdout);
    expect(runs).toMatchObject([{ runId: 'r1', setup: { code: 'MODEL', since: expect.any(Number) } }]);
    expect((await go('show', 'r1')).stdout).toContain(`${isMissing}, since `);
    const doctor = await go('doctor');
    expect(doctor.code).toBe(1);
    expect(doctor.stdout).toMatch(
      /^! resumes {4}r1: it continues after 1 step; a process gave it back, because [^\n]*; set what is missing, and start the process again[^\n]* \(SETUP\)$/m,
    );
    expect(doctor.stderr).toContain('1 run needs a person');
    expect((await go('resume', 'r1')).code).toBe(0);
    expect((await go('list', '--needs-person')).stderr).toContain('no run needs a person');
  });

  test('beside one that fails: `pawl resume` exits with 1 (operations 23)', async () => {
    const { cwd } = await givenBack();
    const failing = interruptedRun({ runId: 'r2', agentId: 'failing', module: agentFile('failing') });
    await storeRuns(join(cwd, '.pawl', 'runs.db'), failing);
    const { code, stdout } = await pawl(['resume', '--json'], { cwd, env: keyless });
    const ends = jsonLines(stdout).filter(({ type }) => type === 'run.ended');
    expect(ends.map(({ runId, status }) => `${runId} ${status}`).toSorted()).toEqual(['r1 interrupted', 'r2 error']);
    expect(code).toBe(1);
  });
});
