import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAudit } from 'pawl';
import { describe, expect, test } from 'vitest';
import { limitOf, sinceOf } from '../../src/cli/option-values.ts';
import { info, noon, tool, totals, usage } from '../audit/run-facts.ts';
import { agentFile, type Ended, emptyFolder, pawl } from './pawl.ts';
import { interruptedRun, storeRuns } from './stored-runs.ts';

const DAY = 86_400_000;

/** One line that says what is wrong and what to do, nothing on stdout, exit code 2. */
function expectRefusal({ code, stdout, stderr }: Ended, ...words: readonly string[]): void {
  expect(stderr).toMatch(/^pawl: [^\n]+\n$/);
  for (const word of words) expect(stderr).toContain(word);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
}

/** A folder with a store in which one run waits, and an audit that knows of that run and of others. */
async function filledFolder(auditName = '.pawl/audit.db'): Promise<string> {
  const cwd = emptyFolder();
  await storeRuns(join(cwd, '.pawl/runs.db'), interruptedRun({ runId: 'waits' }));
  await using audit = createAudit({ path: join(cwd, auditName) });
  audit.startRun(info('waits', { startedAt: noon }));
  const parent = audit.startRun(info('parent', { startedAt: noon - 3 * DAY, subjectId: 'boss', name: 'Boss' }));
  parent.onPhase?.({ index: 0, name: 'survey', state: 'done', output: 'seen' });
  parent.onTool?.(
    tool({ step: 1, name: 'lookup', input: { id: '7' }, output: { type: 'text', value: 'found\nit' }, ms: 1_500 }),
  );
  parent.onTool?.(tool({ step: 1, callId: 'c2', name: 'send', attempt: 2, isLate: true }));
  parent.onStep?.({ step: 1, usage: usage(100), tools: ['lookup'] });
  parent.onTool?.(tool({ step: 2, callId: 'c3' }));
  const spend = { tokens: 150, usd: 0.25, seconds: 3 };
  await parent.close(
    'ok',
    'the report',
    undefined,
    totals({ usage: usage(100, 50), iterations: 2, elapsedMs: 83_000, spend }),
  );
  const child = audit.startRun(info('child', { startedAt: noon - 2 * DAY, parentRunId: 'parent', callerId: 'grace' }));
  const error = { name: 'ModelError', code: 'MODEL', message: 'the model is down' };
  await child.close('error', 'half', error, totals({ iterations: 1 }));
  audit.startRun(info('grandchild', { startedAt: noon - DAY, parentRunId: 'child' }));
  return cwd;
}

describe.concurrent('pawl run with an audit', () => {
  test('makes the one that is named, and the run can be seen when its store is gone (supervision 5)', async () => {
    const cwd = emptyFolder();
    const run = await pawl(['run', agentFile('counter'), '--run-id', 'r1', '--audit', 'deep/audit.db'], { cwd });
    expect(run).toMatchObject({ code: 0, stdout: 'counted to 3\n' });
    const env = { PAWL_AUDIT: 'deep/audit.db', PAWL_STORE: 'nowhere.db' };
    const shown = await pawl(['show', 'r1'], { cwd, env });
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    expect(shown.stdout).toMatch(
      /^run +r1\nstatus +ended: ok\nagent +Counter\nprompt +count, please\nsteps +4\ntokens +60\n/,
    );
    expect(shown.stdout).toMatch(/\nstep 2\n {2}count \{"n":2\} → number 2 \(\d+ ms\)\n/);
    expect(shown.stdout).toMatch(/\n\ncounted to 3\n$/);
    expect((await pawl(['list', '--all'], { cwd, env })).stdout).toMatch(
      /\nr1 +ok +Counter +4 +\S+ s ago +count, please\n$/,
    );
  });

  test('uses the one beside its store when it is there, and makes none (supervision 5)', async () => {
    const cwd = emptyFolder();
    await pawl(['run', agentFile('counter'), '--run-id', 'r1', '--store', 'a/runs.db'], { cwd });
    expect(existsSync(join(cwd, 'a/audit.db'))).toBe(false);
    await pawl(['run', agentFile('counter'), '--run-id', 'r2', '--store', 'a/runs.db', '--audit', 'a/audit.db'], {
      cwd,
    });
    await pawl(['run', agentFile('failing'), 'go', '--run-id', 'r3', '--store', 'a/runs.db'], { cwd });
    const { audited } = JSON.parse((await pawl(['list', '--all', '--json', '--store', 'a/runs.db'], { cwd })).stdout);
    expect(audited).toMatchObject([
      { runId: 'r3', status: 'error' },
      { runId: 'r2', status: 'ok', usage: { inputTokens: 40 } },
    ]);
  });

  test('a run that is resumed goes on in its row (supervision 5)', async () => {
    const cwd = emptyFolder();
    await storeRuns(join(cwd, '.pawl/runs.db'), interruptedRun());
    const { code } = await pawl(['resume', 'r1', '--audit', '.pawl/audit.db'], { cwd });
    expect(code).toBe(0);
    const { outcome, audit } = JSON.parse((await pawl(['show', 'r1', '--json'], { cwd })).stdout);
    expect(outcome).toMatchObject({ status: 'ok' });
    expect(audit).toMatchObject({ run: { status: 'ok', iterations: 4, output: 'counted to 3' }, children: [] });
    expect(audit.run.steps.map(({ step }: { step: number }) => step)).toEqual([2, 3, 4]);
  });

  test('of a module that brings one is recorded there (supervision 5)', async () => {
    const cwd = emptyFolder();
    writeFileSync(
      join(cwd, 'agent.ts'),
      `import { createAudit, defineAgent } from 'pawl';
       import { reply, scriptedModel } from 'pawl/testing';
       export default defineAgent({ id: 'own', instructions: 'x' });
       export const models = { fast: scriptedModel([reply('x')]) };
       export const ports = { audit: createAudit({ path: 'own.db' }) };`,
    );
    await pawl(['run', 'agent.ts', 'go', '--run-id', 'r1', '--audit', 'other.db'], { cwd });
    expect((await pawl(['show', 'r1', '--audit', 'own.db', '--store', 'x.db'], { cwd })).code).toBe(0);
    expect((await pawl(['show', 'r1', '--audit', 'other.db', '--store', 'x.db'], { cwd })).code).toBe(2);
  });

  test('is refused before it begins when the audit that was named cannot be used (supervision 5)', async () => {
    const cwd = emptyFolder();
    mkdirSync(join(cwd, 'folder'));
    writeFileSync(join(cwd, 'text.db'), 'not a database, but long enough. '.repeat(200));
    const run = (audit: string) => pawl(['run', agentFile('counter'), '--audit', audit], { cwd });
    expectRefusal(await run('folder'), 'is a folder', 'audit.db');
    expectRefusal(await run('text.db'), 'text.db', 'not a SQLite database');
    expectRefusal(await run(':memory:'), 'the audit would end with this process');
    expectRefusal(await run(''), '--audit');
    expect((await pawl(['list'], { cwd })).stderr).toContain('no runs are waiting');
  });

  test('goes on when the audit beside its store is damaged, and says so (supervision 5)', async () => {
    const cwd = emptyFolder();
    mkdirSync(join(cwd, '.pawl'));
    writeFileSync(join(cwd, '.pawl/audit.db'), 'not a database, but long enough. '.repeat(200));
    const { code, stdout, stderr } = await pawl(['run', agentFile('counter'), '--run-id', 'r1'], { cwd });
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'counted to 3\n' });
    expect(stderr).toMatch(/pawl: warning: audit: its file cannot be written[^\n]*not a SQLite database/);
    const shown = await pawl(['show', 'r1'], { cwd });
    expect(shown.code).toBe(0);
    expect(shown.stdout).toContain('ended: ok');
    expect(shown.stderr).toMatch(/^pawl: warning: [^\n]*audit\.db[^\n]*\n$/);
    expectRefusal(await pawl(['stats'], { cwd }), 'audit.db');
  });
});

describe.concurrent('pawl list --all', () => {
  test('shows the runs that wait, then those the audit remembers, each once (supervision 5)', async () => {
    const cwd = await filledFolder();
    const { code, stdout, stderr } = await pawl(['list', '--all'], { cwd });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split(/ {2,}/).slice(0, 4)),
    ).toEqual([
      ['RUN', 'STATUS', 'AGENT', 'STEPS'],
      ['waits', 'interrupted', 'Counter', '1'],
      ['grandchild', 'open, no record', 'Researcher', '0'],
      ['child', 'error', 'Researcher', '1'],
      ['parent', 'ok', 'Boss', '2'],
    ]);
  });

  test('shows those since a time, and so many (supervision 5)', async () => {
    const cwd = await filledFolder();
    const ids = async (...args: string[]) => {
      const { runs, audited } = JSON.parse((await pawl(['list', '--all', '--json', ...args], { cwd })).stdout);
      return [...runs, ...audited].map(({ runId }: { runId: string }) => runId);
    };
    expect(await ids('--since', '2026-11-20')).toEqual(['waits', 'grandchild', 'child']);
    expect(await ids('--limit', '2')).toEqual(['waits', 'grandchild']);
    expect(await ids('--since', '2026-11-22T12:01Z')).toEqual(['waits']);
  });

  test('shows ended runs whose records the store keeps, also without an audit, and each once (supervision 5)', async () => {
    const cwd = emptyFolder();
    const module = `import agent, { models, prompt } from ${JSON.stringify(agentFile('counter'))};
      export { models, prompt };
      export const history = { keepMs: 86_400_000 };
      export default agent;`;
    writeFileSync(join(cwd, 'agent.ts'), module);
    const ran = await pawl(['run', 'agent.ts', '--run-id', 'kept'], { cwd });
    expect(ran).toMatchObject({ code: 0 });
    const { stdout, stderr } = await pawl(['list', '--all'], { cwd });
    expect(stderr).toBe('');
    expect(stdout).toMatch(/\nkept +ok +Counter +4 +.* ago +count, please\n$/);
    const { runs, ended } = JSON.parse((await pawl(['list', '--all', '--json'], { cwd })).stdout);
    expect({ runs, ended }).toMatchObject({ runs: [], ended: [{ runId: 'kept', status: 'ok', iterations: 4 }] });
    // An audit beside the store has the same run.
    await using audit = createAudit({ path: join(cwd, '.pawl/audit.db') });
    await audit.startRun(info('kept', { startedAt: noon })).close('ok', 'x', undefined, totals({}));
    const again = await pawl(['list', '--all'], { cwd });
    expect(again.stdout.match(/^kept /gm)).toHaveLength(1);
    expect((await pawl(['list', '--all', '--since', '2090-01-01'], { cwd })).stderr).toContain('no runs');
  });

  test('says where it looked for an audit when there is none (supervision 5)', async () => {
    const cwd = emptyFolder();
    await storeRuns(join(cwd, '.pawl/runs.db'), interruptedRun());
    const { code, stdout, stderr } = await pawl(['list', '--all'], { cwd });
    expect(code).toBe(0);
    expect(stdout).toMatch(/\nr1 +interrupted/);
    expect(stderr).toMatch(/^pawl: no ended run is listed: none is kept .* there is no audit .*\.pawl\/audit\.db\n$/);
    expectRefusal(
      await pawl(['list', '--all', '--audit', 'gone.db'], { cwd }),
      'there is no audit',
      'gone.db',
      '--audit',
    );
    expect(existsSync(join(cwd, 'gone.db'))).toBe(false);
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
  test('of a run whose record is gone: who asked, its phases, steps, calls, children, and its answer (supervision 5)', async () => {
    const { code, stdout } = await pawl(['show', 'parent'], { cwd: await filledFolder() });
    expect(code).toBe(0);
    expect(stdout.replace(/\d+\.\d s ago|\d+ h \d+ min ago|\d+ days ago/, 'AGO')).toBe(
      [
        'run       parent',
        'status    ended: ok',
        'agent     Boss',
        'caller    ada',
        'prompt    Look it up',
        'steps     2',
        'tokens    150',
        'spent     $0.25',
        'began     AGO',
        'worked    1 min 23 s',
        '',
        'phase survey: done',
        'step 1',
        '  lookup {"id":"7"} → found it (1.5 s)',
        '  send {"id":"7"} → found (12 ms, 2 starts, too late)',
        'step 2, not finished',
        '  lookup {"id":"7"} → found (12 ms)',
        '',
        'runs it began:',
        '  child: error, Researcher, 1 step, 15 tokens',
        '    grandchild: open, Researcher, 0 steps, 0 tokens',
        '',
        'the report',
        '',
      ].join('\n'),
    );
  });

  test('of one that failed and has a parent names both (supervision 5)', async () => {
    const { stdout } = await pawl(['show', 'child'], { cwd: await filledFolder() });
    expect(stdout).toMatch(/\ncaller +grace\nparent +parent\n/);
    expect(stdout).toMatch(/\nerror +the model is down \(MODEL\)\n/);
  });

  test('of one without a record that never ended says so (supervision 5)', async () => {
    const cwd = await filledFolder();
    expect((await pawl(['show', 'grandchild'], { cwd })).stdout).toMatch(
      /\nstatus +open, and there is no record of it\n/,
    );
    const found = JSON.parse((await pawl(['show', 'grandchild', '--json'], { cwd })).stdout);
    expect(found).toMatchObject({ status: 'lost', outcome: null, audit: { run: { status: 'open' } } });
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
      audit: { run: { runId: 'waits' } },
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
      return stdout
        .trim()
        .split('\n')
        .map((line) => line.split(/ {2,}/));
    };
    expect((await rows()).map((row) => row[0])).toEqual([
      'DAY',
      '2026-11-19',
      '2026-11-20',
      '2026-11-21',
      '2026-11-22',
    ]);
    expect(await rows('--by', 'agent')).toEqual([
      ['AGENT', 'RUNS', 'OK', 'FAILED', 'OPEN', 'STEPS', 'TOKENS', 'USD', 'WORKED'],
      ['boss', '1', '1', '0', '0', '2', '150', '$0.25', '1 min 23 s'],
      ['researcher', '3', '0', '1', '2', '1', '15', '1.0 s'],
    ]);
    expect((await rows('--by', 'caller', '--since', '2026-11-20')).map((row) => row.slice(0, 2))).toEqual([
      ['CALLER', 'RUNS'],
      ['grace', '1'],
      ['ada', '2'],
    ]);
  });

  test('is one JSON document with --json (supervision 5)', async () => {
    const { stdout } = await pawl(['stats', '--by', 'agent', '--json'], { cwd: await filledFolder() });
    const { audit, by, totals } = JSON.parse(stdout);
    expect(audit).toMatch(/audit\.db$/);
    expect(by).toBe('agent');
    expect(totals[0]).toMatchObject({ key: 'boss', runs: 1, statuses: { ok: 1 }, spend: { usd: 0.25 } });
  });

  test('needs an audit, and says how to come by one (supervision 5)', async () => {
    const cwd = emptyFolder();
    expectRefusal(await pawl(['stats'], { cwd }), 'there is no audit', '.pawl/audit.db', 'pawl run --audit <file>');
    expectRefusal(await pawl(['stats', '--by', 'moon'], { cwd }), '"moon" is not known', 'day, agent, caller');
    expect(existsSync(join(cwd, '.pawl'))).toBe(false);
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
    expect(limitOf(undefined, 50)).toBe(50);
    expect(limitOf('10000', 50)).toBe(10_000);
    for (const text of ['', '0', '-1', '1.5', '10001', '1e3'])
      expect(() => limitOf(text, 50)).toThrow('not a number of runs');
  });
});
