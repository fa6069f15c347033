import { execFile, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { nodeComplaint } from '../../src/cli/node-version.ts';
import { RECORD_VERSION } from '../../src/record/checkpoint.ts';
import { bin } from '../toolchain/programs.ts';
import { agentFile, emptyFolder, jsonLines, Pawl, pawl } from './pawl.ts';
import { interruptedRun, storeRuns } from './stored-runs.ts';

const usage = (inputTokens: number, outputTokens: number) => ({
  inputTokens,
  outputTokens,
  reasoningTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
});

test('a command says the same in a process of its own as where others have run', async () => {
  const [hosted, alone] = [emptyFolder(), emptyFolder()];
  const commands = [['run', agentFile('counter'), '--run-id', 'r1'], ['list', '--al'], ['show'], []];
  for (const args of commands)
    expect(await pawl(args, { cwd: hosted })).toEqual(await pawl(args, { cwd: alone, isAlone: true }));
});

describe.concurrent('pawl run', () => {
  test('prints the answer on stdout and a line a step on stderr', async () => {
    const cwd = emptyFolder();
    const { code, stdout, stderr } = await pawl(['run', agentFile('counter'), 'go', '--run-id', 'r1'], { cwd });
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'counted to 3\n' });
    expect(stderr.split('\n')).toEqual([
      'run r1',
      'step 1: count; 15 tokens so far',
      'step 2: count; 30 tokens so far',
      'step 3: count; 45 tokens so far',
      'step 4: the answer; 60 tokens so far',
      'ok r1: 4 steps, 60 tokens',
      '',
    ]);
    expect(existsSync(join(cwd, '.pawl/runs.db'))).toBe(true);
  });

  test('says which model did not answer and why, when it is asked again, and which one is asked in its place (failover 6)', async () => {
    const run = (...more: string[]) => pawl(['run', agentFile('stand-in'), 'go', ...more], { cwd: emptyFolder() });
    const { stdout, stderr } = await run();
    expect(stdout).toBe('Here I am.\n');
    expect(stderr).toMatch(
      /\nstep 1: lab\/first: .*Overloaded \(529\); it is asked again in \d+\.\d s\nstep 1: lab\/first: .*Overloaded.* \(529\); now lab\/second is asked\n/,
    );
    const lines = jsonLines((await run('--json')).stdout);
    expect(lines).toContainEqual({
      ...{ type: 'model.retry', runId: expect.any(String), iteration: 1, model: 'lab/first', attempt: 2, status: 529 },
      ...{
        delayMs: expect.any(Number),
        error: expect.objectContaining({ message: expect.stringMatching(/Overloaded/) }),
      },
    });
    expect(lines).toContainEqual({
      ...{ type: 'model.fallback', runId: expect.any(String), iteration: 1, from: 'lab/first', to: 'lab/second' },
      ...{ status: 529, error: expect.objectContaining({ message: expect.stringContaining('Overloaded') }) },
    });
  });

  test('speaks JSON lines: the beginning, each step, the result', async () => {
    const cwd = emptyFolder();
    const args = ['run', agentFile('counter'), '--run-id', 'r1', '--store', 'my.db', '--json'];
    const { code, stdout, stderr } = await pawl(args, { cwd });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [started, ...rest] = jsonLines(stdout);
    const ended = rest.pop();
    expect(started).toMatchObject({ type: 'run.started', runId: 'r1', agentId: 'counter', resumed: false });
    expect(started?.store).toMatch(/my\.db$/);
    expect(rest).toEqual(
      [1, 2, 3, 4].map((n) => ({
        type: 'step.done',
        runId: 'r1',
        iteration: n,
        tools: n < 4 ? ['count'] : [],
        usage: usage(10 * n, 5 * n),
      })),
    );
    expect(ended).toMatchObject({
      type: 'run.ended',
      runId: 'r1',
      status: 'ok',
      output: 'counted to 3',
      usage: usage(40, 20),
      iterations: 4,
      durable: true,
    });
    expect(ended).not.toHaveProperty('messages');
  });

  test('gives the result again for the id of a run that has ended', async () => {
    const cwd = emptyFolder();
    const args = ['run', agentFile('counter'), '--run-id', 'r1'];
    const [first, second] = [await pawl(args, { cwd }), await pawl(args, { cwd })];
    expect([first.stdout, second.stdout]).toEqual(['counted to 3\n', 'counted to 3\n']);
    expect(second.stderr).not.toContain('step 1');
  });

  test('fails with exit code 1, one line and the command that continues it when the run fails', async () => {
    const { code, stdout, stderr } = await pawl(['run', agentFile('failing'), 'go', '--run-id', 'r1'], {
      cwd: emptyFolder(),
    });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/\npawl: run r1 failed: [^\n]*the model is down[^\n]* \(MODEL\)\n[^\n]+: pawl retry r1\n$/);
  });

  test('takes its store from PAWL_STORE', async () => {
    const cwd = emptyFolder();
    await pawl(['run', agentFile('counter')], { cwd, env: { PAWL_STORE: 'elsewhere/runs.db' } });
    expect(existsSync(join(cwd, 'elsewhere/runs.db'))).toBe(true);
    expect(existsSync(join(cwd, '.pawl'))).toBe(false);
  });

  test('lends its own package to an agent module that has none nearby', async () => {
    const cwd = emptyFolder();
    writeFileSync(join(cwd, 'agent.ts'), readFileSync(agentFile('counter')));
    expect((await pawl(['run', 'agent.ts'], { cwd })).stdout).toBe('counted to 3\n');
  });

  test('ends although the agent module holds something open', async () => {
    const cwd = emptyFolder();
    const more = 'setInterval(() => {}, 1_000);\n';
    writeFileSync(join(cwd, 'agent.ts'), more + readFileSync(agentFile('counter'), 'utf8'));
    const ended = await pawl(['run', 'agent.ts'], { cwd, isAlone: true });
    expect(ended).toMatchObject({ code: 0, stdout: 'counted to 3\n' });
  });

  test('says in one line what a stray error of the agent module was, and leaves the run to be resumed', async () => {
    const cwd = emptyFolder();
    const stray = 'setInterval(() => { if (existsSync("throw")) throw new Error("stray") }, 10);\n';
    writeFileSync(join(cwd, 'agent.ts'), readFileSync(agentFile('counter'), 'utf8') + stray);
    const run = new Pawl(['run', 'agent.ts', '--run-id', 'r1'], { cwd, env: { HOLD: 'go' } });
    await run.says('holding');
    writeFileSync(join(cwd, 'throw'), '');
    const { code, stderr } = await run.ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(/\npawl: stray\npawl: [^\n]*`pawl resume`\n$/);
    expect((await pawl(['list'], { cwd })).stdout).toContain('interrupted');
  });

  test.skipIf(spawnSync('script', ['--version']).status !== 0)(
    'rewrites one line on a terminal, in colours unless NO_COLOR is set',
    async () => {
      const watch = async (env: NodeJS.ProcessEnv) => {
        const command = `${process.execPath} ${bin} run ${agentFile('counter')} --run-id r1`;
        const options = { cwd: emptyFolder(), env: { PATH: process.env.PATH, HOLD: 'go', TERM: 'xterm', ...env } };
        const child = execFile('script', ['-qec', command, '/dev/null'], options);
        let shown = '';
        for await (const text of child.stdout ?? []) {
          shown += text;
          // What is to be seen while it holds has been seen.
          if (/step 2 · 30 tokens · \d\.\d s/.test(shown)) writeFileSync(join(options.cwd, 'go'), '');
        }
        return shown;
      };
      const seen = await watch({});
      expect(seen).toContain('\r\u001b[2K');
      expect(seen).toMatch(/Counter · calling tools · step 2 · 30 tokens · \d\.\d s/);
      expect(seen).toContain('\u001b[36m');
      expect(seen).toMatch(/counted to 3\s*$/);
      const plain = await watch({ NO_COLOR: '1' });
      expect(plain).toContain('\r\u001b[2K');
      // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is looked for
      expect(plain).not.toMatch(/\u001b\[\d+m/);
    },
  );
});

describe.concurrent('pawl list', () => {
  test('shows the runs that wait, with their steps', async () => {
    const cwd = emptyFolder();
    await storeRuns(join(cwd, 'runs.db'), interruptedRun({ prompt: 'count\nthe \u001b[31mstars' }));
    const { code, stdout, stderr } = await pawl(['list', '--store', 'runs.db'], { cwd, isAlone: true });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(
      /^RUN +STATUS +AGENT +STEPS +RECORDED +PROMPT\nr1 +interrupted +Counter +1 +\S+ s ago +count the stars\n$/,
    );
  });

  test('is one JSON document with --json', async () => {
    const cwd = emptyFolder();
    const parked = { code: 'X', reason: 'it died thrice' };
    await storeRuns(
      join(cwd, 'runs.db'),
      interruptedRun({ labels: { team: 'blue' } }),
      interruptedRun({ runId: 'r2', parked }),
    );
    const { stdout } = await pawl(['list', '--store', 'runs.db', '--json'], { cwd });
    const { store, runs } = JSON.parse(stdout);
    expect(store).toMatch(/runs\.db$/);
    expect(runs).toMatchObject([
      {
        runId: 'r1',
        status: 'interrupted',
        iteration: 1,
        labels: { team: 'blue' },
        meta: { agentId: 'counter', prompt: 'go' },
      },
      { runId: 'r2', status: 'parked', reason: 'it died thrice' },
    ]);
  });

  test('says so when nothing waits', async () => {
    const cwd = emptyFolder();
    await storeRuns(join(cwd, 'runs.db'));
    await pawl(['run', agentFile('counter'), '--store', 'runs.db'], { cwd });
    const { code, stdout, stderr } = await pawl(['list', '--store', 'runs.db'], { cwd });
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(stderr).toMatch(/^no runs are open in .*runs\.db; --all lists those that ended\n$/);
  });

  test('bears that its reader goes away', async () => {
    const cwd = emptyFolder();
    await storeRuns(
      join(cwd, 'runs.db'),
      ...Array.from({ length: 2_000 }, (_, i) => interruptedRun({ runId: `r${i}`, module: '' })),
    );
    const list = new Pawl(['list', '--json', '--store', 'runs.db'], { cwd });
    list.child.stdout?.once('data', () => list.child.stdout?.destroy());
    const { code, stderr } = await list.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });
});

describe.concurrent('pawl show', () => {
  test('tells how far a run is and how to continue', async () => {
    const cwd = emptyFolder();
    const openStep = {
      message: { role: 'assistant' as const, content: [] },
      calls: [
        { callId: 'b', name: 'count', input: { n: 2 }, effect: 'read' as const, state: 'started' as const, attempt: 1 },
      ],
    };
    await storeRuns(join(cwd, 'runs.db'), interruptedRun({ openStep }));
    const { stdout } = await pawl(['show', 'r1', '--store', 'runs.db'], { cwd });
    expect(stdout).toMatch(
      /^run +r1\nstatus +interrupted\nagent +Counter\nmodule +\/.*counter\.ts\nprompt +go\nsteps +1\n/,
    );
    expect(stdout).toContain('step 1\n  count {"n":1} → number 1\nunder way:\n  count {"n":2}: started (read)\n');
    expect(stdout).toMatch(/\ncontinue with: pawl resume r1 --store runs\.db\n$/);
  });

  test('names the run at the top where that one continues with it, and says when it is gone', async () => {
    const cwd = emptyFolder();
    const path = join(cwd, 'runs.db');
    const show = async () => (await pawl(['show', 't~a', '--store', 'runs.db'], { cwd })).stdout;
    const { meta } = interruptedRun();
    await storeRuns(path, interruptedRun({ meta: { ...meta, runId: 't~a', parentRunId: 't' } }));
    expect(await show()).toMatch(
      /\nparent +t\n(?:.*\n)*its parent run is gone: `pawl recover` ends it as cancelled\n$/,
    );
    await storeRuns(path, interruptedRun({ runId: 't' }));
    expect(await show()).toMatch(/\nthe top run continues it: pawl resume t --store runs\.db\n$/);
  });

  test('shows the commands that a run has not read yet', async () => {
    const cwd = emptyFolder();
    await storeRuns(join(cwd, 'runs.db'), interruptedRun());
    const store = ['--store', 'runs.db'];
    await pawl(['steer', 'r1', 'Leave the archive\n\u001b[31malone.', ...store], { cwd });
    const { stdout } = await pawl(['show', 'r1', ...store], { cwd });
    expect(stdout).toContain('\nnot read yet:\n  steer: Leave the archive alone.\n');
    const shown = JSON.parse((await pawl(['show', 'r1', '--json', ...store], { cwd })).stdout);
    expect(shown.commands).toEqual([
      { id: expect.any(String), kind: 'steer', text: 'Leave the archive\n\u001b[31malone.' },
    ]);
  });

  test('gives the record, or the result of a run that has ended, with --json', async () => {
    const cwd = emptyFolder();
    await storeRuns(join(cwd, 'runs.db'), interruptedRun({ labels: { team: 'blue' } }));
    const show = async () => JSON.parse((await pawl(['show', 'r1', '--store', 'runs.db', '--json'], { cwd })).stdout);
    const record = { version: RECORD_VERSION, iteration: 1, labels: { team: 'blue' } };
    expect(await show()).toMatchObject({ runId: 'r1', status: 'interrupted', record });
    await pawl(['resume', 'r1', '--store', 'runs.db'], { cwd });
    expect(await show()).toMatchObject({
      runId: 'r1',
      status: 'ended',
      outcome: { status: 'ok', output: 'counted to 3' },
    });
  });
});

describe.concurrent('pawl resume', () => {
  test('continues from the last recorded step', async () => {
    const cwd = emptyFolder();
    await storeRuns(join(cwd, 'runs.db'), interruptedRun());
    const { code, stdout, stderr } = await pawl(['resume', 'r1', '--store', 'runs.db'], { cwd });
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'counted to 3\n' });
    expect(stderr.split('\n').slice(0, 2)).toEqual(['resumed r1', 'step 2: count; 30 tokens so far']);
  });

  test('without an id continues with all, and leaves none out for the trouble of another', async () => {
    const cwd = emptyFolder();
    const records = [
      interruptedRun(),
      interruptedRun({ runId: 'r2', module: '/gone.ts' }),
      interruptedRun({ runId: 'r3' }),
    ];
    await storeRuns(join(cwd, 'runs.db'), ...records);
    const { code, stdout } = await pawl(['resume', '--store', 'runs.db', '--json'], { cwd });
    expect(code).toBe(1);
    const lines = jsonLines(stdout);
    expect(lines.filter(({ type }) => type === 'run.ended').map(({ runId }) => runId)).toEqual(
      expect.arrayContaining(['r1', 'r3']),
    );
    expect(lines).toContainEqual({ type: 'run.skipped', runId: 'r2', reason: expect.stringContaining('/gone.ts') });
    expect((await pawl(['list', '--store', 'runs.db'], { cwd })).stdout).toMatch(/^RUN.*\nr2 +interrupted[^\n]*\n$/);
  });

  test('has nothing to do in a store where nothing waits', async () => {
    const cwd = emptyFolder();
    await pawl(['run', agentFile('counter')], { cwd });
    const { code, stderr } = await pawl(['resume'], { cwd });
    expect(code).toBe(0);
    expect(stderr).toContain('nothing to resume');
  });

  test('gives the result again of a run that has ended', async () => {
    const cwd = emptyFolder();
    await pawl(['run', agentFile('counter'), '--run-id', 'r1'], { cwd });
    expect(await pawl(['resume', 'r1'], { cwd })).toMatchObject({ code: 0, stdout: 'counted to 3\n' });
  });
});

describe.concurrent('help', () => {
  test.for(['run', 'list', 'show', 'resume', 'demo'])('of %s has a usage line and examples', async (command) => {
    const cwd = emptyFolder();
    const [long, short] = await Promise.all([pawl([command, '--help'], { cwd }), pawl(['help', command], { cwd })]);
    expect(long.code).toBe(0);
    expect(long.stdout).toMatch(new RegExp(`^Usage: pawl ${command}.*Examples:\n  (?:\\S+=\\S+ )?pawl `, 's'));
    expect(short.stdout).toBe(long.stdout);
  });

  test('of pawl names every command and the exit codes', async () => {
    const { code, stdout } = await pawl(['--help'], { cwd: emptyFolder() });
    expect(code).toBe(0);
    for (const word of ['run', 'list', 'show', 'resume', 'demo', 'Exit codes:', '130']) expect(stdout).toContain(word);
  });

  test('the version is the one of the package', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    expect((await pawl(['--version'], { cwd: emptyFolder() })).stdout).toBe(`${version}\n`);
  });
});

describe('an old Node', () => {
  test('gets one line that says what is needed, before anything of the program is loaded', async () => {
    const cwd = emptyFolder();
    const pretend = join(cwd, 'old.cjs');
    const code = 'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.20.2" } })';
    writeFileSync(pretend, code);
    const ended = await pawl(['list'], { cwd, nodeOptions: ['--require', pretend] });
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toMatch(/^pawl needs Node 22\.18 or newer, and this is 20\.20\.2: [^\n]+\n$/);
  });

  test.for([
    ['20.20.2', false],
    ['22.17.1', false],
    ['22.18.0', true],
    ['24.0.0', true],
  ] as const)('%s is good enough: %s', ([version, isGood]) => {
    expect(nodeComplaint(version) === undefined).toBe(isGood);
  });
});
