import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createExecutor, defineAgent } from '../../src/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { callTool, scriptedModel } from '../../src/testing/index.ts';
import { toolOf } from '../fixtures/host.ts';
import { bin } from '../toolchain/programs.ts';
import * as refunder from './agents/refunder.ts';
import { agentFile, emptyFolder, jsonLines, pawl } from './pawl.ts';
import { hasTerminal, TerminalSession } from './terminal.ts';

const agent = agentFile('refunder');

/** A folder of its own, and the command in it. */
function desk() {
  const cwd = emptyFolder();
  return { cwd, go: (...args: string[]) => pawl([...args, '--store', 'runs.db'], { cwd }) };
}

describe.concurrent('a run that waits for an approval, in a pipe', () => {
  test('exits with 75 and the commands that answer, and rests: `list`, `waiting`, `show` and `doctor` know it, `waiting --older-than` by its age (waiting 22, operations 36)', async () => {
    const { go } = desk();
    const started = await go('run', agent, '--run-id', 'r1');
    expect(started).toMatchObject({ code: 75, stdout: '' });
    // Two steps: one of the answers alone continues nothing.
    const [, told = ''] = started.stderr.split('pawl: ');
    const steady = told.replaceAll(/\b\w{8} --/g, '<id> --').replaceAll(/(digest {4}|until {5}).*/g, '$1…');
    expect(steady).toBe(
      [
        'run r1 waits for an approval of refund; it is recorded',
        '   call      refund',
        '   prompt    Pay 700 cents?',
        '   input     {"cents":700}',
        '   digest    …',
        '   until     …',
        '1. answer with one of these commands:',
        '     pawl approve r1 <id> --store runs.db',
        '     pawl deny r1 <id> --reason "…" --store runs.db',
        '   or in a page: pawl studio --write --open --store runs.db',
        '2. then continue the run with:',
        '     pawl resume r1 --store runs.db',
        '',
      ].join('\n'),
    );
    expect((await go('list')).stdout).toMatch(/r1 +waiting +Refunder .*waits for an approval of refund/);
    expect(JSON.parse((await go('list', '--needs-person', '--json')).stdout).runs).toMatchObject([{ runId: 'r1' }]);
    const { waits } = JSON.parse((await go('waiting', '--json')).stdout);
    expect(waits).toMatchObject([{ runId: 'r1', kind: 'approval', tool: 'refund', input: { cents: 700 }, quorum: 1 }]);
    // Less than an hour ago: the line says what it leaves out.
    expect((await go('waiting', '--older-than', '1h')).stderr).toMatch(
      /^0 open waits for longer than 1h \(1 for less\) in .*runs\.db\n$/,
    );
    const old = await go('waiting', '--older-than', '1h', '--json');
    const all = await go('waiting', '--older-than', '0s');
    expect([JSON.parse(old.stdout).waits, all.stdout]).toEqual([
      [],
      expect.stringMatching(/^run r1 of refunder waits for/),
    ]);
    const shown = await go('show', 'r1');
    for (const line of ['prompt    Pay 700 cents?', 'input     {"cents":700}', `digest    ${waits[0].digest}`])
      expect(shown.stdout).toContain(`  ${line}\n`);
    const doctor = await go('doctor');
    expect(doctor).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^! waits +r1: it waits for an approval, until/),
    });
  });

  test('continues after `pawl approve`, which needs no agent module; the same answer again succeeds (waiting 10, 22)', async () => {
    const { go } = desk();
    await go('run', agent, '--run-id', 'r1');
    const approved = await go('approve', 'r1', '--by', 'ada', '--note', 'checked');
    expect(approved).toMatchObject({ code: 0, stdout: '' });
    expect(approved.stderr).toBe(
      'approved refund of run r1; the run continues when a process takes it up: pawl resume r1 --store runs.db\n',
    );
    expect((await go('waiting')).stdout).toMatch(
      / {2}answered: approve by ada \(checked\); the run continues when a process takes it up: pawl resume r1 --store runs\.db\n$/,
    );
    expect(jsonLines((await go('approve', 'r1', '--by', 'ada', '--json')).stdout)).toMatchObject([
      { runId: 'r1', status: 'sent' },
    ]);
    expect(await go('resume', 'r1')).toMatchObject({ code: 0, stdout: '"paid 700 cents"\n' });
  });

  test('does not start a call after `pawl deny`, and the model reads the reason (waiting 4, 22)', async () => {
    const { go } = desk();
    await go('run', agent, '--run-id', 'r1');
    await go('deny', 'r1', '--by', 'ada', '--reason', 'the order was never paid');
    const resumed = await go('recover');
    expect(resumed).toMatchObject({ code: 0, stdout: expect.stringContaining('execution-denied') });
    expect(resumed.stdout).toContain('the order was never paid');
    const shown = (await go('show', 'r1')).stdout;
    expect(shown).toMatch(/refund \{"cents":700\} → denied: the order was never/);
    expect(shown).toMatch(/^decided: approval, deny by ada, /m);
  });

  test('starts the call with the input of `pawl approve --input` (waiting 6, 22)', async () => {
    const { go } = desk();
    await go('run', agent, '--run-id', 'r1');
    expect(await go('approve', 'r1', '--input', '{oops')).toMatchObject({ code: 2 });
    await go('approve', 'r1', '--input', '{ "cents": 5 }');
    expect((await go('resume', 'r1')).stdout).toContain('paid 5 cents');
  });

  test('shows a stored changed input in `waiting` and `show` in the same words: another answer counts only if this is refused (waiting 6, 22)', async () => {
    const { go } = desk();
    await go('run', agent, '--run-id', 'r1');
    await go('approve', 'r1', '--by', 'ada', '--input', '{ "cents": 5 }');
    const lines = (text: string) => text.split('\n').filter((line) => line.startsWith('  '));
    const waiting = lines((await go('waiting', 'r1')).stdout);
    expect(waiting.slice(-4)).toEqual([
      '  answered: approve by ada with {"cents":5}; the run continues when a process takes it up: pawl resume r1 --store runs.db',
      '  another answer counts only if the run refuses this one:',
      expect.stringMatching(/^ {2}pawl approve r1 \w{8} --store runs\.db$/),
      expect.stringMatching(/^ {2}pawl deny r1 \w{8} /),
    ]);
    const { stdout } = await go('show', 'r1');
    expect(lines(stdout)).toEqual(expect.arrayContaining(waiting));
    expect(stdout).not.toContain('yet:');
    const { stdout: help } = await go('approve', '--help');
    expect(help).toContain('Behind one that the run may refuse');
    expect(await go('deny', 'r1', '--by', 'bob')).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(
        /^denied refund of run r1, if the answer before is refused; the run continues when/,
      ),
    });
    expect((await go('waiting', 'r1')).stdout).toContain('counts only if the run refuses these:');
    await go('steer', 'r1', 'hurry');
    expect((await go('show', 'r1')).stdout).toContain('\nnot read yet:\n  steer: hurry\n');
    expect(JSON.parse((await go('show', 'r1', '--json')).stdout).commands).toMatchObject([
      { kind: 'answer', answer: { input: { cents: 5 } } },
      { kind: 'answer', answer: { how: 'deny' } },
      { kind: 'steer', text: 'hurry' },
    ]);
  });

  test("of a host's program is continued by a process that has its agent, or with its agent module: `approve`, `waiting` and `show` say so (waiting 22)", async () => {
    const { cwd, go } = desk();
    const store = sqliteStore({ path: join(cwd, 'runs.db') });
    const executor = createExecutor({ models: refunder.models, agents: [refunder.default], store });
    const { result } = await executor.start(refunder.default, { runId: 'h1', prompt: 'refund' });
    expect(await result).toMatchObject({ status: 'waiting' });
    await executor.shutdown();
    await store.close();
    const command = 'pawl resume h1 --agent <agent module> --store runs.db';
    const words = `the run continues when a process that has its agent takes it up, or with: ${command}`;
    expect((await go('approve', 'h1')).stderr).toBe(`approved refund of run h1; ${words}\n`);
    expect((await go('waiting')).stdout).toContain(`  answered: approve; ${words}\n`);
    const { stdout } = await go('show', 'h1');
    expect(stdout).toContain(`  answered: approve; ${words}\n`);
    expect(stdout).toContain(`\ncontinue with: a process that has its agent, or ${command}\n`);
    const resumed = await go('resume', 'h1', '--agent', agent);
    expect(resumed).toMatchObject({ code: 0, stdout: '"paid 700 cents"\n' });
  });

  test('refuses an approval of another call, another wait and another run, with exit code 2 (waiting 5, 22)', async () => {
    const { go } = desk();
    await go('run', agent, '--run-id', 'r1');
    expect(await go('approve')).toMatchObject({ code: 2, stderr: expect.stringContaining('needs the id of a run') });
    expect(await go('approve', 'r1', 'zzz')).toMatchObject({ code: 2, stderr: expect.stringContaining('zzz') });
    expect(await go('approve', 'nobody')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('there is no run'),
    });
    expect(await go('answer', 'r1', 'red')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('does not wait'),
    });
    await go('approve', 'r1', '--digest', 'f'.repeat(64));
    expect((await go('resume', 'r1')).code).toBe(75);
  });

  test('is not continued by `pawl resume` before it has its answer: it exits with 75 again, and no attempt is counted (waiting 20, 22)', async () => {
    const { go, cwd } = desk();
    await go('run', agent, '--run-id', 'r1');
    for (let i = 0; i < 4; i++) expect((await go('resume', 'r1')).code).toBe(75);
    expect(await go('resume')).toMatchObject({ code: expect.toBeOneOf([0, 1]) });
    const store = sqliteStore({ path: join(cwd, 'runs.db') });
    expect((await store.load('r1'))?.parked).toBeUndefined();
    await store.close();
    await go('approve', 'r1');
    expect((await go('resume', 'r1')).code).toBe(0);
  });

  test('takes no second answer once the first is stored: `pawl deny` after `pawl approve` exits with 2, names who approved, and the call runs (waiting 10, 22)', async () => {
    const { go } = desk();
    await go('run', agent, '--run-id', 'r1');
    await go('approve', 'r1', '--by', 'ada');
    const denied = await go('deny', 'r1', '--by', 'bob', '--reason', 'too late');
    expect(denied).toMatchObject({ code: 2, stdout: '' });
    expect(denied.stderr).toMatch(/^pawl: wait \w+ is answered: approve by ada; that answer is stored, and this one/);
    expect(await go('resume', 'r1')).toMatchObject({ code: 0, stdout: '"paid 700 cents"\n' });
  });

  test('refuses a changed input of a tool that takes none at once: `pawl approve --input` exits with 2 and names the option (waiting 6, 22)', async () => {
    const { go } = desk();
    await go('run', agent, 'exactly this', '--run-id', 'r1');
    expect(await go('approve', 'r1', '--input', '{"cents":1}')).toMatchObject({
      code: 2,
      stderr: 'pawl: the input of pay may not be changed: its tool has no `approval: { editable: true }`\n',
    });
    expect((await go('waiting', 'r1')).stdout).toContain('pawl approve r1');
  });

  test('gives JSON lines with --json: its waits, and the commands (waiting 22)', async () => {
    const { go } = desk();
    const { code, stdout } = await go('run', agent, 'which', '--run-id', 'q1', '--json');
    expect(code).toBe(75);
    expect(jsonLines(stdout).at(-1)).toMatchObject({
      ...{ type: 'run.waiting', runId: 'q1' },
      waits: [{ kind: 'question', question: 'Which one?', options: ['red', 'blue'] }],
      commands: [expect.stringMatching(/^pawl answer q1 \w{8} "…"/), 'pawl resume q1 --store runs.db'],
    });
    expect(await go('answer', 'q1', 'green')).toMatchObject({
      code: 2,
      stderr: 'pawl: the answer must be one of the options: ["red","blue"]\n',
    });
    expect((await go('answer', 'q1', 'red')).code).toBe(0);
    expect(await go('answer', 'q1', 'blue')).toMatchObject({ code: 2, stderr: expect.stringContaining('is answered') });
    expect((await go('waiting', 'q1')).stdout).toContain('  answered: answer with "red"; the run');
    expect((await go('resume', 'q1')).stdout).toBe('"chosen: red"\n');
  });
});

test('a `once` call whose process died is named by `pawl resume`, in words and as a JSON line: it is not repeated (faults 27)', async () => {
  const { go } = desk();
  const words = 'run r1: the outcome of transfer is unknown: its process died during the call; check by hand';
  expect((await go('run', agent, 'crash', '--run-id', 'r1')).code).toBeNull();
  const resumed = await go('resume', 'r1');
  expect(resumed.stderr).toContain(`resumed r1\n${words}\n`);
  expect(resumed).toMatchObject({ code: 0, stdout: expect.stringContaining('Outcome unknown') });
  expect((await go('run', agent, 'crash beside', '--run-id', 'r2')).code).toBeNull();
  const { stdout } = await go('resume', 'r2', '--json');
  expect(jsonLines(stdout)).toContainEqual({ type: 'run.unknown', runId: 'r2', tools: ['transfer'] });
});

test('`pawl signal` gives its event to the run that waits for it, once for each id, and keeps it for the next one (waiting 12, 22)', async () => {
  const { go } = desk();
  expect((await go('run', agent, 'payment', '--run-id', 'p1')).code).toBe(75);
  expect(await go('signal', 'payment')).toMatchObject({ code: 2, stderr: expect.stringContaining('needs the name') });
  const event = ['signal', 'payment', '{ "cents": 7 }', '--key', 'order 7', '--json'];
  const sent = await go(...event, '--id', 'w1');
  expect(jsonLines(sent.stdout)).toEqual([{ name: 'payment', key: 'order 7', id: 'w1', to: 'p1' }]);
  expect((await go('resume', 'p1')).stdout).toContain('"got: {\\"cents\\":7}"');
  expect((await go('run', agent, 'payment', '--run-id', 'p2')).code).toBe(75);
  expect(jsonLines((await go(...event, '--id', 'w1')).stdout)).toMatchObject([{ to: 'p1' }]);
  expect(jsonLines((await go(...event, '--id', 'w2')).stdout)).toMatchObject([{ to: 'p2' }]);
  expect((await go('signal', 'payment', '8')).stderr).toContain('no run waits for the event payment');
});

test('`pawl signal` to a child run says how the run at the top continues: the child never continues alone (waiting 22)', async () => {
  const { cwd, go } = desk();
  await using store = sqliteStore({ path: join(cwd, 'runs.db') });
  const pay = toolOf('pay', 'read', (_, { waitFor }) => waitFor('paid'));
  const clerk = defineAgent({ id: 'clerk', instructions: '', description: '', tools: [pay] });
  const boss = defineAgent({ id: 'boss', instructions: '', subAgents: ['clerk'] });
  const script = [callTool('agent__clerk', { prompt: 'go' }), callTool('pay')];
  const executor = createExecutor({ models: { fast: scriptedModel(script) }, agents: [boss, clerk], store });
  expect(await executor.run(boss, { prompt: 'go', runId: 'top' })).toMatchObject({ status: 'waiting' });
  await executor.shutdown();
  const { stderr } = await go('signal', 'paid', '7');
  expect(stderr).toMatch(
    /^run ~\S+ has the event paid; the run continues when a process that has its agent takes it up, or with: /,
  );
  expect(stderr).toContain(': pawl resume top --agent <agent module> --store runs.db\n');
});

test('`pawl prune --waiting` needs an age, and ends runs that wait as cancelled, with a result (waiting 22)', async () => {
  const { go } = desk();
  await go('run', agent, '--run-id', 'r1');
  expect(await go('prune', '--waiting')).toMatchObject({ code: 2, stderr: expect.stringContaining('--older-than') });
  for (const options of [['--parked'], ['--quarantined']])
    expect((await go('prune', ...options, '--older-than', '0s', '--yes', '--json')).stdout).toContain('"deleted": []');
  expect(await go('prune', '--waiting', '--older-than', '1h', '--yes')).toMatchObject({ code: 0 });
  expect((await go('show', 'r1')).stdout).toContain('waiting');
  expect((await go('prune', '--waiting', '--older-than', '0s', '--dry-run')).stderr).toContain('would cancel r1');
  expect((await go('prune', '--waiting', '--older-than', '0s', '--yes')).stderr).toContain('to cancel r1');
  expect((await go('show', 'r1')).stdout).toMatch(/status +ended: cancelled/);
});

describe.skipIf(!hasTerminal)('a run that waits, on a terminal', () => {
  const session = (cwd: string, ...args: string[]) =>
    new TerminalSession([process.execPath, bin, ...args, '--store', 'runs.db'], { columns: 110, rows: 30, cwd });

  test('asks for an approval, and continues after y; a prompt cannot write to the terminal (waiting 22)', async () => {
    const { cwd } = desk();
    const terminal = session(cwd, 'run', agent, '--run-id', 'r1');
    await terminal.shows('[l]ater (also in `pawl studio --write --store runs.db`):');
    expect(terminal.written).not.toContain('\u001b[31m');
    expect((await terminal.screen()).join('\n')).toContain('Pay 700 cents');
    terminal.send('x\r');
    await terminal.shows(/db`\): x\s+approve\? \[y\]es, \[n\]o, \[e\]dit, \[l\]ater/);
    terminal.send('y\r');
    await terminal.shows('paid 700 cents');
    expect(await terminal.ended).toEqual({ code: 0, signal: null });
  });

  test('asks for the reason after n, and for the input after e (waiting 6, 22)', async () => {
    const { cwd } = desk();
    const denied = session(cwd, 'run', agent, '--run-id', 'r1');
    await denied.shows('[l]ater');
    denied.send('n\r');
    await denied.shows('why not?');
    denied.send('too much\r');
    await denied.shows('too much"');
    expect(await denied.ended).toEqual({ code: 0, signal: null });
    const edited = session(cwd, 'run', agent, '--run-id', 'r2');
    await edited.shows('[l]ater');
    edited.send('e\r');
    await edited.shows('as JSON:');
    edited.send('{"cents": 5}\r');
    await edited.shows('paid 5 cents');
    expect(await edited.ended).toEqual({ code: 0, signal: null });
  });

  test('ends its question once the answer comes from elsewhere, says from whom, and asks the next one or continues (waiting 22)', async () => {
    const { cwd, go } = desk();
    const terminal = session(cwd, 'run', agent, 'both', '--run-id', 'r1');
    await terminal.shows('approve?');
    const { waits } = JSON.parse((await go('waiting', 'r1', '--json')).stdout);
    const [first, second] = waits as { readonly id: string; readonly tool: string }[];
    await terminal.shows(`waits for an approval of ${first?.tool}:`);
    await go('deny', 'r1', `${first?.id}`, '--by', 'ada');
    await terminal.shows(/denied by ada; continuing[\s\S]*approve\?/);
    await terminal.shows(`waits for an approval of ${second?.tool}:`);
    terminal.send('n\r');
    await terminal.shows('why not?');
    await go('approve', 'r1', `${second?.id}`);
    await terminal.shows('approved elsewhere; continuing');
    expect(await terminal.ended).toEqual({ code: 0, signal: null });
    expect(terminal.written).not.toContain('no open wait');
  });

  test('ends its question when the run is cancelled (waiting 22)', async () => {
    const { cwd, go } = desk();
    const terminal = session(cwd, 'run', agent, '--run-id', 'r1');
    await terminal.shows('approve?');
    await go('cancel', 'r1');
    await terminal.shows('no answer is needed any more');
    expect(await terminal.ended).toEqual({ code: 1, signal: null });
  });

  test('leaves the run after later, with exit code 75; `pawl resume` asks again, and asks again for an answer that does not fit (waiting 22)', async () => {
    const { cwd } = desk();
    const first = session(cwd, 'run', agent, 'which', '--run-id', 'q1');
    await first.shows('answer, or nothing for later (also in `pawl studio --write --store runs.db`):');
    first.send('\r');
    await first.shows('pawl resume q1');
    expect(await first.ended).toEqual({ code: 75, signal: null });
    const second = session(cwd, 'resume', 'q1');
    await second.shows('answer, or nothing for later (also in `pawl studio --write --store runs.db`):');
    second.send('green\r');
    await second.shows('must be one of the options');
    second.send('blue\r');
    await second.shows('chosen: blue');
    expect(await second.ended).toEqual({ code: 0, signal: null });
  });

  test('ends at Ctrl-C while it asks, with exit code 130, and can be resumed (waiting 22)', async () => {
    const { cwd, go } = desk();
    const terminal = session(cwd, 'run', agent, '--run-id', 'r1');
    await terminal.shows('[l]ater');
    terminal.send('\u0003');
    expect(await terminal.ended).toEqual({ code: 130, signal: null });
    await go('approve', 'r1');
    expect((await go('resume', 'r1')).code).toBe(0);
  });
});
