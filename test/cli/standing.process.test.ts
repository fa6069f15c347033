import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { RunCheckpoint, RunOutcome } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { describe, expect, test } from 'vitest';
import type { Wait } from '../../src/run/waits/wait.ts';
import { agentFile, emptyFolder, pawl } from './pawl.ts';
import { interruptedRun, storeRuns } from './stored-runs.ts';

const at = Date.now();
/** What a wait has besides. */
type WaitKind = Wait extends infer One ? (One extends Wait ? Omit<One, 'id' | 'createdAt' | 'step'> : never) : never;
const wait = { id: 'abcdef0123456789', createdAt: at, step: 1 } as const;
const waitingFor = (more: WaitKind, wakeAt?: number): Partial<RunCheckpoint> => ({
  waiting: { waits: [{ ...wait, ...more }], settled: [], ...(wakeAt === undefined ? {} : { wakeAt }) },
});
const provider = { name: 'APICallError', code: 'MODEL', message: 'Overloaded' } as const;

/** What the record has besides, and what holds the run. */
const standings: { readonly [what: string]: readonly [Partial<RunCheckpoint>, why: object, next: RegExp | undefined] } =
  {
    'no process has': [{}, { verdict: 'resumes', needsPerson: false }, /^pawl resume r\b/],
    'waits for a question': [
      waitingFor({ kind: 'question', question: 'Which?' }),
      { verdict: 'waits', reason: 'it waits for an answer', needsPerson: true },
      /^pawl answer r abcdef/,
    ],
    'waits for an event': [
      waitingFor({ kind: 'event', name: 'paid', key: '' }),
      { verdict: 'waits', reason: 'it waits for an event', needsPerson: false },
      undefined,
    ],
    'backs off until its model is asked again': [
      waitingFor(
        { kind: 'retry', dueAt: at + 9e5, failures: 2, since: at, error: provider, needsPerson: false },
        at + 9e5,
      ),
      { verdict: 'waits', reason: expect.stringMatching(/^it waits for its model, until /) },
      /^pawl retry r\b/,
    ],
    'is parked': [
      { parked: { code: 'TOO_MANY_ATTEMPTS', reason: 'three starts' } },
      { verdict: 'parked', code: 'TOO_MANY_ATTEMPTS', needsPerson: true },
      /^pawl unpark r\b/,
    ],
    'was given back for a setup that lacks something': [
      { setup: { code: 'SETUP', since: at } },
      { verdict: 'resumes', code: 'SETUP', needsPerson: true },
      /^pawl resume r\b/,
    ],
  };

const unknown = { code: 'OUTCOME_UNKNOWN', reason: `the process died during ${'a long call '.repeat(9)}` } as const;
const spend = { tokens: 15, usd: 0.07, seconds: 1 };

/** The commands, on a store with this run `r`. */
async function asked(...changes: readonly Partial<RunCheckpoint>[]) {
  const cwd = emptyFolder();
  const path = join(cwd, 'runs.db');
  await storeRuns(path, ...changes.map((change, i) => interruptedRun({ runId: i === 0 ? 'r' : `r${i}`, ...change })));
  return { path, go: (...args: readonly string[]) => pawl([...args, '--store', 'runs.db'], { cwd }) };
}

describe.concurrent('a person who looks at a parked run', () => {
  test('reads its code in `pawl list`, however long the reason is, and in `pawl show` with the cost and the next command (operations 35, 39)', async () => {
    const { go } = await asked({ parked: unknown, spend });
    expect((await go('list')).stdout).toMatch(/^r +parked +.* OUTCOME_UNKNOWN: the process died during a/m);
    const { stdout } = await go('show', 'r');
    expect(stdout).toMatch(/^tokens +15\nspent +\$0\.07$/m);
    expect(stdout).toMatch(/^parked +the process died during .* \(OUTCOME_UNKNOWN\)$/m);
    expect(stdout).toMatch(/\n\nwhen its cause is mended, continue with: pawl unpark r --store runs\.db\n$/);
  });

  test('reads what to deploy, where `pawl unpark` alone frees no run (operations 35, 39)', async () => {
    const { go } = await asked({ parked: { code: 'DEFINITION_CHANGED', reason: 'other phases' } });
    const { stdout } = await go('show', 'r');
    expect(stdout).toMatch(/^parked +other phases \(DEFINITION_CHANGED\)$/m);
    expect(stdout).toMatch(/\n\nnext: give its agent the phases that the run started with[^\n]*`pawl cancel`\n$/);
    expect(stdout).not.toContain('unpark');
  });
});

test('`pawl show` says what a run has cost under a budget, also after its end, and nothing without one (operations 35)', async () => {
  const { path, go } = await asked({ spend }, {});
  expect((await go('show', 'r')).stdout).toMatch(/^spent +\$0\.07$/m);
  expect((await go('show', 'r1')).stdout).not.toContain('spent');
  await using store = sqliteStore({ path });
  const { meta, usage } = interruptedRun({ runId: 'e' });
  const end = {
    ...{ runId: 'e', status: 'ok', output: 'done', usage, iterations: 2, phases: [], undelivered: [] },
    meta,
  };
  const outcome = { ...end, durable: true, saveErrors: 0, outcomeId: 'o', spend: { ...spend, usd: 0.14 } };
  await store.outcomes.keep('e', outcome as unknown as RunOutcome, Date.now() + 1e9);
  expect((await go('show', 'e')).stdout).toMatch(/^status +ended: ok\n(.*\n)*spent +\$0\.14$/m);
});

/** What both commands say of the run `r`. */
async function showAndDoctor(cwd: string, options: readonly string[]) {
  const of = [...options, '--store', 'runs.db', '--json'];
  const { why, next } = JSON.parse((await pawl(['show', 'r', ...of], { cwd })).stdout);
  const [line = ''] = (await pawl(['doctor', ...of], { cwd })).stdout.split('\n');
  return { why, next, found: JSON.parse(line) };
}

describe.concurrent('`pawl show --json` of a run that', () => {
  test.for(Object.entries(standings))(
    '%s says why it does not continue, and the command for that (operations 35)',
    async ([, [more, why, next]]) => {
      const cwd = emptyFolder();
      await storeRuns(join(cwd, 'runs.db'), interruptedRun({ runId: 'r', ...more }));
      const { stdout, code } = await pawl(['show', 'r', '--store', 'runs.db', '--json'], { cwd });
      expect(code).toBe(0);
      const shown = JSON.parse(stdout);
      expect(shown.why).toMatchObject(why);
      expect(shown.next).toEqual(next ? expect.stringMatching(next) : undefined);
    },
  );

  test('has no agent in the named module says so, as `pawl doctor` does (operations 35)', async () => {
    const cwd = emptyFolder();
    await storeRuns(join(cwd, 'runs.db'), interruptedRun({ runId: 'r', agentId: 'other' }));
    const told = { verdict: 'skipped', code: 'AGENT_NOT_FOUND', needsPerson: true };
    const named = await showAndDoctor(cwd, ['--agent', agentFile('counter')]);
    expect(named.why).toMatchObject({ ...told, reason: expect.stringContaining('there is no agent other') });
    expect(named.found).toMatchObject(named.why);
    expect(named.next).toBeUndefined();
    const plain = await pawl(['show', 'r', '--store', 'runs.db', '--agent', agentFile('counter')], { cwd });
    expect(plain).toMatchObject({ code: 0, stdout: expect.stringMatching(/^blocked +there is no agent other/m) });
    expect(plain.stdout).not.toContain('continue with');
  });

  test('was started with a module that is gone says so, as `pawl doctor` does (operations 35)', async () => {
    const cwd = emptyFolder();
    await storeRuns(join(cwd, 'runs.db'), interruptedRun({ runId: 'r', module: join(cwd, 'gone.mjs') }));
    const { why, found } = await showAndDoctor(cwd, []);
    expect(why).toMatchObject({ verdict: 'skipped', reason: expect.stringContaining('gone.mjs is gone') });
    expect(found).toMatchObject(why);
  });

  test('has a record that cannot be read says why and what to do, as `pawl doctor` does, with exit code 0 (operations 35)', async () => {
    const cwd = emptyFolder();
    const path = join(cwd, 'runs.db');
    await storeRuns(path, interruptedRun({ runId: 'r' }));
    const db = new DatabaseSync(path);
    db.exec(`UPDATE heads SET head = replace(head, '"revision"', '"renamed_"')`);
    db.close();
    const { why, next, found } = await showAndDoctor(cwd, []);
    expect(why).toMatchObject({ verdict: 'unreadable', code: 'CHECKPOINT_CORRUPT', needsPerson: true });
    expect(found).toMatchObject(why);
    expect(next).toBeUndefined();
    const plain = await pawl(['show', 'r', '--store', 'runs.db'], { cwd });
    expect(plain).toMatchObject({ code: 0, stderr: '' });
    expect(plain.stdout).toMatch(/^status +unreadable\nblocked +it cannot be read: .+pawl prune --quarantined/m);
  });

  test('another process works on says so, and names no command (operations 35)', async () => {
    const cwd = emptyFolder();
    const path = join(cwd, 'runs.db');
    await storeRuns(path, interruptedRun({ runId: 'r' }));
    await using store = sqliteStore({ path });
    await store.claim('r', 'another host|1', 600_000);
    const { stdout } = await pawl(['show', 'r', '--store', 'runs.db', '--json'], { cwd });
    const { why, next } = JSON.parse(stdout);
    expect(why).toMatchObject({ verdict: 'live', code: 'RUN_OWNED_ELSEWHERE' });
    expect(next).toBeUndefined();
  });
});
