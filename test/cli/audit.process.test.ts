import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createExecutor, createPalette, defineAgent } from 'pawl';
import { createCheckpointerFactory } from 'pawl/stores/kit';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, fail, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { limitOption, sinceOf } from '../../src/cli/option-values.ts';
import { endRun, noon } from '../audit/scene.ts';
import { toolOf } from '../fixtures/host.ts';
import { agentFile, type Ended, emptyFolder, pawl } from './pawl.ts';
import { interruptedRun, storeRuns } from './stored-runs.ts';

const DAY = 86_400_000;

/** One line that says what is wrong and what to do, nothing on stdout, exit code 2. */
function expectRefusal({ code, stdout, stderr }: Ended, ...words: readonly string[]): void {
  expect(stderr).toMatch(/^pawl: [^\n]+\n$/);
  for (const word of words) expect(stderr).toContain(word);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
}

/** A folder with a store in which one run waits, and which keeps others that ended. */
async function filledFolder(): Promise<string> {
  const cwd = emptyFolder();
  mkdirSync(join(cwd, '.pawl'));
  const path = join(cwd, '.pawl/runs.db');
  await using store = sqliteStore({ path });
  await endRun(store, 'parent', { startedAt: noon - 3 * DAY, agentId: 'boss', tokens: 150 });
  await endRun(store, 'child', { startedAt: noon - 2 * DAY, callerId: 'grace', status: 'error', tokens: 15 });
  await endRun(store, 'last', { startedAt: noon - DAY });
  await storeRuns(path, interruptedRun({ runId: 'waits' }));
  return cwd;
}

/** A folder with a store in which a run with two phases ended, whose call began another run that failed. */
async function familyFolder(): Promise<string> {
  const cwd = emptyFolder();
  mkdirSync(join(cwd, '.pawl'));
  await using store = sqliteStore({ path: join(cwd, '.pawl/runs.db') });
  const clerk = defineAgent({ id: 'clerk', name: 'Clerk', instructions: 'Write.', description: 'Writes.' });
  const phases = [
    { name: 'survey', instructions: 'Look.' },
    { name: 'report', instructions: 'Tell.' },
  ];
  const tools = [toolOf('lookup', 'read', () => 'found\nit')];
  const boss = defineAgent({ id: 'boss', name: 'Boss', instructions: 'Work.', tools, subAgents: ['clerk'], phases });
  const down = fail(Object.assign(new Error('the model is down'), { statusCode: 400 }));
  const asked = callTool('agent__clerk', { prompt: 'Write it.' });
  const executor = createExecutor({
    models: { fast: scriptedModel([callTool('lookup', { id: '7' }), reply('seen'), asked, down, reply('the report')]) },
    store,
    ports: { palette: createPalette({ agents: [clerk] }) },
    defaults: { modelAttempts: 1 },
    audit: true,
  });
  const { status } = await executor.run(boss, { prompt: 'Look it up', runId: 'parent', callerId: 'ada' });
  expect(status).toBe('ok');
  await executor.shutdown();
  return cwd;
}

describe.concurrent('pawl run with an audit', () => {
  test('keeps the run, which can be seen after its end (supervision 5)', async () => {
    const cwd = emptyFolder();
    const run = await pawl(['run', agentFile('counter'), '--run-id', 'r1', '--audit'], { cwd });
    expect(run).toMatchObject({ code: 0, stdout: 'counted to 3\n' });
    const shown = await pawl(['show', 'r1'], { cwd });
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    expect(shown.stdout).toMatch(
      /^run +r1\nstatus +ended: ok\nagent +Counter\nprompt +count, please\nsteps +4\ntokens +60\n/,
    );
    expect(shown.stdout).toMatch(/\nstep 2 · scripted\/scripted\n {2}count \{"n":2\} → number 2 \(\d+ ms\)\n/);
    expect(shown.stdout).toMatch(/\n\ncounted to 3\n$/);
    expect((await pawl(['list', '--all'], { cwd })).stdout).toMatch(
      /\nr1 +ok +Counter +4 +\S+ s ago +count, please\n$/,
    );
    expect((await pawl(['stats'], { cwd })).stdout).toMatch(/\n\d{4}-\d\d-\d\d +1 +1 +0 +4 +60 /);
  });

  test('a run that is resumed continues in its row (supervision 5)', async () => {
    const cwd = emptyFolder();
    await storeRuns(join(cwd, '.pawl/runs.db'), interruptedRun());
    const { code } = await pawl(['resume', 'r1', '--audit'], { cwd });
    expect(code).toBe(0);
    const { outcome, audit } = JSON.parse((await pawl(['show', 'r1', '--json'], { cwd })).stdout);
    expect(outcome).toMatchObject({ status: 'ok' });
    expect(audit).toMatchObject({ run: { status: 'ok', iterations: 4, output: 'counted to 3' }, children: [] });
    expect(audit.run.steps.map(({ step }: { step: number }) => step)).toEqual([2, 3, 4]);
  });

  test('of a module that exports one is kept (supervision 5)', async () => {
    const cwd = emptyFolder();
    writeFileSync(
      join(cwd, 'agent.ts'),
      `import { defineAgent } from 'pawl';
       import { reply, scriptedModel } from 'pawl/testing';
       export default defineAgent({ id: 'own', instructions: 'x' });
       export const models = { fast: scriptedModel([reply('x')]) };
       export const audit = true;
       export const retention = { audit: '30d' };`,
    );
    await pawl(['run', 'agent.ts', 'go', '--run-id', 'r1'], { cwd });
    const { audit } = JSON.parse((await pawl(['show', 'r1', '--json'], { cwd })).stdout);
    expect(audit.run.steps).toHaveLength(1);
  });

  test.for([
    ['export const audit = 1', 'audit'],
    ['export const retention = 1', 'retention'],
  ] as const)('is refused when its module says %s', async ([line, word]) => {
    const cwd = emptyFolder();
    const start = "import { defineAgent } from 'pawl'; export default defineAgent({ id: 'own', instructions: 'x' });";
    writeFileSync(join(cwd, 'agent.ts'), `${start} ${line};`);
    expectRefusal(await pawl(['run', 'agent.ts', 'go'], { cwd }), `the export \`${word}\``);
  });

  test('counts a run that is cancelled with --audit, or with PAWL_AUDIT; any cancelled run is kept', async () => {
    const cwd = emptyFolder();
    const parked = { parked: { code: 'BY_HAND', reason: 'later' } };
    await storeRuns(
      join(cwd, '.pawl/runs.db'),
      ...['r1', 'r2', 'r3'].map((runId) => interruptedRun({ runId, ...parked })),
    );
    await pawl(['cancel', 'r1', '--audit'], { cwd });
    await pawl(['cancel', 'r2'], { cwd, env: { PAWL_AUDIT: '1' } });
    await pawl(['cancel', 'r3'], { cwd });
    const { ended } = JSON.parse((await pawl(['list', '--all', '--json'], { cwd })).stdout);
    expect(ended.map(({ runId }: { runId: string }) => runId).sort()).toEqual(['r1', 'r2', 'r3']);
    const { totals } = JSON.parse((await pawl(['stats', '--json'], { cwd })).stdout);
    expect(totals).toMatchObject([{ runs: 2, statuses: { cancelled: 2 } }]);
  });
});

describe.concurrent('pawl list --all', () => {
  test('shows the runs that wait, then those the audit remembers, each once (supervision 5)', async () => {
    const cwd = await filledFolder();
    const { code, stdout, stderr } = await pawl(['list', '--all'], { cwd });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const rows = stdout
      .trim()
      .split('\n')
      .map((line) => line.split(/ {2,}/).slice(0, 2));
    expect(rows.slice(0, 2)).toEqual([
      ['RUN', 'STATUS'],
      ['waits', 'interrupted'],
    ]);
    expect(rows.slice(2).sort()).toEqual([
      ['child', 'error'],
      ['last', 'ok'],
      ['parent', 'ok'],
    ]);
  });

  test('shows those since a time, and so many (supervision 5)', async () => {
    const cwd = await filledFolder();
    const count = async (...args: string[]) => {
      const { runs, ended } = JSON.parse((await pawl(['list', '--all', '--json', ...args], { cwd })).stdout);
      return [runs.length, ended.length];
    };
    expect(await count('--since', '7d')).toEqual([1, 3]);
    expect(await count('--limit', '2')).toEqual([1, 2]);
    expect(await count('--since', '2090-01-01')).toEqual([1, 0]);
  });

  test('shows those of a status and with a label, and refuses what no run has (operations 45)', async () => {
    const cwd = await filledFolder();
    const list = (...args: string[]) => pawl(['list', '--all', '--json', ...args], { cwd });
    const ids = async (...args: string[]) =>
      JSON.parse((await list(...args)).stdout).ended.map(({ runId }: { runId: string }) => runId);
    expect(await ids('--status', 'error,timeout')).toEqual(['child']);
    expect(await ids('--label', 'tenant=acme')).toEqual([]);
    expect(await list('--status', 'gone')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('"gone" is not known'),
    });
    expect(await list('--label', '=x')).toMatchObject({ code: 2, stderr: expect.stringContaining('write name=text') });
    const open = await pawl(['list', '--status', 'ok'], { cwd });
    expect(open).toMatchObject({ code: 2, stderr: expect.stringContaining('add --all') });
  });

  test('shows ended runs whose records the store keeps, also without an audit, and each once (supervision 5)', async () => {
    const cwd = emptyFolder();
    const module = `import agent, { models, prompt } from ${JSON.stringify(agentFile('counter'))};
      export { models, prompt };
      export const retention = { records: 86_400_000 };
      export default agent;`;
    writeFileSync(join(cwd, 'agent.ts'), module);
    const ran = await pawl(['run', 'agent.ts', '--run-id', 'kept'], { cwd });
    expect(ran).toMatchObject({ code: 0 });
    const { stdout, stderr } = await pawl(['list', '--all'], { cwd });
    expect(stderr).toBe('');
    expect(stdout).toMatch(/\nkept +ok +Counter +4 +.* ago +count, please\n$/);
    const { runs, ended } = JSON.parse((await pawl(['list', '--all', '--json'], { cwd })).stdout);
    expect({ runs, ended }).toMatchObject({ runs: [], ended: [{ runId: 'kept', status: 'ok', iterations: 4 }] });
    expect((await pawl(['list', '--all', '--since', '2090-01-01'], { cwd })).stderr).toContain('no runs');
    expect((await pawl(['stats'], { cwd })).stderr).toContain('no ended run is counted');
  });

  test('says how an ended run comes to be listed when none is kept (supervision 5)', async () => {
    const cwd = emptyFolder();
    await storeRuns(join(cwd, '.pawl/runs.db'), interruptedRun());
    const { code, stdout, stderr } = await pawl(['list', '--all'], { cwd });
    expect(code).toBe(0);
    expect(stdout).toMatch(/\nr1 +interrupted/);
    expect(stderr).toMatch(/^pawl: no ended run is listed: none is kept .*pawl run --audit.*\n$/);
  });

  test.for([
    [['--since', '7d'], 'add --all'],
    [['--limit', '3'], 'add --all'],
    [['--all', '--since', 'yesterday'], '"yesterday" is not a time'],
    [['--all', '--limit', '0'], '"0" is not a number of runs'],
    [['--all', '--limit', 'ten'], '"ten" is not a number of runs'],
  ] as const)('refuses %s (supervision 5)', async ([args, message]) => {
    expectRefusal(await pawl(['list', ...args], { cwd: await filledFolder() }), message);
  });
});

describe.concurrent('pawl show with an audit', () => {
  test('of a run that ended: who asked, its phases, steps, calls, children, and its answer (supervision 5)', async () => {
    const { code, stdout } = await pawl(['show', 'parent'], { cwd: await familyFolder() });
    expect(code).toBe(0);
    const plain = stdout
      .replace(/^(began|worked) +.*$/gm, '$1')
      .replaceAll(/\([\d.]+ m?s\)/g, '(TIME)')
      .replace(/ {2}~\w+:/, '  CHILD:');
    expect(plain).toBe(
      [
        'run       parent',
        'status    ended: ok',
        'agent     Boss',
        'caller    ada',
        'prompt    Look it up',
        'steps     4',
        'tokens    60',
        'began',
        'worked',
        '',
        'phase survey: done',
        'phase report: done',
        'step 1 · scripted/scripted',
        '  lookup {"id":"7"} → found it (TIME)',
        'step 2 · scripted/scripted',
        'step 3 · scripted/scripted',
        '  agent__clerk {"prompt":"Write it."} → clerk ended with status error: MODE… (TIME)',
        'step 4 · scripted/scripted',
        '',
        'runs it began:',
        '  CHILD: error, Clerk, 0 steps, 0 tokens',
        '',
        'the report',
        '',
      ].join('\n'),
    );
  });

  test('of one that failed and has a parent names both (supervision 5)', async () => {
    const cwd = await familyFolder();
    const { ended } = JSON.parse((await pawl(['list', '--all', '--json'], { cwd })).stdout);
    const child = ended.find(({ status }: { status: string }) => status === 'error');
    const { stdout } = await pawl(['show', child.runId], { cwd });
    expect(stdout).toMatch(/\ncaller +ada\nparent +parent\n/);
    expect(stdout).toMatch(/\nerror +the model call failed: the model is down \(MODEL\)\n/);
  });

  test('shows the outcome of a run whose end its audit could not keep (supervision 5)', async () => {
    const cwd = emptyFolder();
    mkdirSync(join(cwd, '.pawl'));
    await using store = sqliteStore({ path: join(cwd, '.pawl/runs.db') });
    const large = toolOf('large', 'read', () => 'x'.repeat(20_000));
    const executor = createExecutor({
      models: { fast: scriptedModel([callTool('large'), reply('done')]) },
      ports: { checkpointer: createCheckpointerFactory(store, { maxRecordBytes: 10_000 }) },
      ...{ store, audit: true },
    });
    await executor.run(defineAgent({ id: 'a', instructions: '', tools: [large] }), { prompt: 'go', runId: 'o1' });
    await executor.shutdown();
    const { stdout } = await pawl(['show', 'o1'], { cwd });
    expect(stdout).toMatch(/\nstatus +ended: error\n/);
    expect(stdout).toMatch(/\nsteps +1\n/);
    expect(stdout).toMatch(/\nerror +the record of o1 .*\(RECORD_TOO_LARGE\)\n/);
  });

  test('of one that waits shows its record as ever (supervision 5)', async () => {
    const cwd = await filledFolder();
    const { stdout } = await pawl(['show', 'waits'], { cwd });
    expect(stdout).toMatch(/^run +waits\nstatus +interrupted\nagent +Counter\n/);
    expect(stdout).toContain('continue with: pawl resume waits');
    const found = JSON.parse((await pawl(['show', 'waits', '--json'], { cwd })).stdout);
    expect(found).toMatchObject({
      status: 'interrupted',
      record: { iteration: 1 },
      audit: { run: { runId: 'waits', status: 'open' } },
    });
  });

  test('of a run that neither knows names the store (supervision 5)', async () => {
    expectRefusal(await pawl(['show', 'nobody'], { cwd: await filledFolder() }), 'there is no run nobody');
  });
});

describe.concurrent('pawl stats', () => {
  test('sums up by day, agent or caller (supervision 5)', async () => {
    const cwd = await filledFolder();
    const rows = async (...args: string[]) => {
      const { stdout } = await pawl(['stats', ...args], { cwd });
      const [now, ...table] = stdout.trim().split('\n');
      expect(now).toMatch(/^now: 0 live/);
      return table.map((line) => line.split(/ {2,}/));
    };
    expect((await rows()).map((row) => row[0])).toEqual(['DAY', '2026-11-19', '2026-11-20', '2026-11-21']);
    expect(await rows('--by', 'agent')).toEqual([
      ['AGENT', 'RUNS', 'OK', 'FAILED', 'STEPS', 'TOKENS', 'USD', 'WORKED'],
      ['boss', '1', '1', '0', '1', '150', '$0.50', '1.0 s'],
      ['researcher', '2', '1', '1', '2', '25', '$1.00', '2.0 s'],
    ]);
    expect((await rows('--by', 'caller', '--since', '2026-11-20')).map((row) => row.slice(0, 2))).toEqual([
      ['CALLER', 'RUNS'],
      ['grace', '1'],
      ['ada', '1'],
    ]);
  });

  test('is one JSON document with --json (supervision 5)', async () => {
    const { stdout } = await pawl(['stats', '--by', 'agent', '--json'], { cwd: await filledFolder() });
    const { store, by, totals } = JSON.parse(stdout);
    expect(store).toMatch(/runs\.db$/);
    expect(by).toBe('agent');
    expect(totals[0]).toMatchObject({ key: 'boss', runs: 1, statuses: { ok: 1 }, spend: { usd: 0.5 } });
  });

  test('needs an audit, and says how to come by one (supervision 5)', async () => {
    const cwd = emptyFolder();
    await storeRuns(join(cwd, '.pawl/runs.db'), interruptedRun());
    const { code, stdout, stderr } = await pawl(['stats'], { cwd });
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^now: .+ 1 due.+\n$/) });
    expect(stderr).toMatch(/no ended run is counted in .*runs\.db; .*pawl run --audit/);
    expectRefusal(await pawl(['stats', '--by', 'moon'], { cwd }), '"moon" is not known', 'day, agent, caller');
  });

  test('has help with examples (supervision 5)', async () => {
    const { code, stdout } = await pawl(['stats', '--help'], { cwd: emptyFolder() });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Usage: pawl stats.*Examples:\n {2}pawl stats/s);
    expect((await pawl(['--help'], { cwd: emptyFolder() })).stdout).toMatch(/\n {2}stats /);
  });
});

describe('--since and --limit', () => {
  const now = Date.UTC(2026, 10, 22, 12);

  test.for([
    ['30m', now - 30 * 60_000],
    ['12h', now - 12 * 3_600_000],
    ['7d', now - 7 * DAY],
    ['2026-11-20', Date.UTC(2026, 10, 20)],
    ['2026-11-20T08:00Z', Date.UTC(2026, 10, 20, 8)],
  ] as const)('understand %s (supervision 5)', ([text, at]) => {
    expect(sinceOf(text, now)).toBe(at);
  });

  test.for(['', 'now', '7', '7y', '-7d', '2026', '2026-13-45', '1e3d'])(
    'refuse %s as a time (supervision 5)',
    (text) => {
      expect(() => sinceOf(text, now)).toThrow('is not a time');
    },
  );

  test('a limit is a whole number from 1 to 10000 (supervision 5)', () => {
    expect(limitOption(undefined, 50)).toBe(50);
    expect(limitOption('10000', 50)).toBe(10_000);
    for (const text of ['', '0', '-1', '1.5', '10001', '1e3'])
      expect(() => limitOption(text, 50)).toThrow('not a number of runs');
  });
});
