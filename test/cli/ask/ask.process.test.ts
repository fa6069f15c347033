import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadCheckpoint } from 'pawl/fan-out';
import { describe, expect, test } from 'vitest';
import { agentFile, emptyFolder, jsonLines, Pawl, pawl } from '../pawl.ts';

const askers = ['--module', agentFile('askers')];
const held = { HOLD: 'go' };

/** A folder with one file for the models to work on. */
function project(): string {
  const cwd = emptyFolder();
  writeFileSync(join(cwd, 'greeting.txt'), 'Hello!\n');
  return cwd;
}

const greeting = (cwd: string) => readFileSync(join(cwd, 'greeting.txt'), 'utf8');
const times = (text: string) => text.replace(/\d+\.\d s/g, '0.0 s');

describe.concurrent('pawl ask (fan-out 8)', { timeout: 180_000 }, () => {
  test('in a pipe the answers are on stdout, a line a turn on stderr, and then what can be done (fan-out 8)', async () => {
    const cwd = project();
    const { code, stdout, stderr } = await pawl(['ask', 'Greet better.', ...askers], { cwd });
    expect(code).toBe(0);
    expect(stdout).toBe(
      '## editor\n\nI greet the whole world now.\n\n## reader\n\nThere is one file, and it is fine.\n\n## quick\n\nNo.\n',
    );
    const lines = times(stderr).split('\n');
    expect(lines).toContain('editor: step 2: write_file; 30 tokens so far');
    expect(lines).toContain('quick: answered, 1 step, 15 tokens, $0.002, 0.0 s');
    expect(lines.slice(-3)).toEqual([
      'see the changes with: pawl ask diff',
      'apply them with: pawl ask apply editor',
      '',
    ]);
    expect(readdirSync(join(cwd, '.pawl')).sort()).toEqual(['.gitignore', 'answers.json']);
    expect(greeting(cwd)).toBe('Hello!\n');
  });

  test('--json gives a line for each turn and each answer (fan-out 8)', async () => {
    const { code, stdout, stderr } = await pawl(['ask', 'Greet.', ...askers, '--models', 'quick,reader', '--json'], {
      cwd: project(),
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = jsonLines(stdout);
    expect(lines[0]).toMatchObject({ type: 'ask.started', models: ['quick', 'reader'], prompt: 'Greet.' });
    const answers = lines.filter(({ type }) => type === 'model.ended');
    expect(answers).toHaveLength(2);
    expect(answers).toContainEqual(
      expect.objectContaining({ modelId: 'reader', steps: 2, costUsd: 0.004, toolCalls: { list_files: 1 } }),
    );
    expect(lines.filter(({ type }) => type === 'model.turn')).toHaveLength(3);
    expect(lines.at(-1)).toMatchObject({ type: 'ask.ended', interrupted: false });
  });

  test('the same question asks the models again, and its answers take the place of those before (edges 25, fan-out 8)', async () => {
    const cwd = project();
    const ask = () => pawl(['ask', 'Greet.', ...askers, '--models', 'quick', '--json'], { cwd });
    const ended = async () => JSON.parse(readFileSync(join(cwd, '.pawl', 'answers.json'), 'utf8')).ended_at;
    const typesOf = ({ stdout }: { stdout: string }) => jsonLines(stdout).map(({ type }) => type);
    const first = typesOf(await ask());
    const firstEnd = await ended();
    expect(first).toContain('model.turn');
    expect(typesOf(await ask())).toEqual(first);
    expect(await ended()).not.toBe(firstEnd);
  });

  test('the lines of turns name the proposed writes, and the line of an answer has what is in them (fan-out 8)', async () => {
    const { stdout } = await pawl(['ask', 'Greet.', ...askers, '--models', 'editor', '--json'], { cwd: project() });
    const lines = jsonLines(stdout);
    const turns = lines.filter(({ type }) => type === 'model.turn').map(({ proposedWrites }) => proposedWrites);
    expect(turns).toEqual([undefined, [{ path: 'greeting.txt' }], [{ path: 'greeting.txt' }]]);
    expect(lines.find(({ type }) => type === 'model.ended')?.proposedWrites).toEqual([
      { path: 'greeting.txt', content: 'Hello, world!\n', base: expect.any(String) },
    ]);
  });

  test('Ctrl-C saves and says how to continue, and continuing asks only who has not answered (fan-out 8)', async () => {
    const cwd = project();
    const asking = new Pawl(['ask', 'Greet better.', ...askers], { cwd, env: held });
    await asking.says('quick: answered');
    await asking.says('editor: step 1');
    await asking.says('reader: step 1');
    asking.child.kill('SIGINT');
    const { code, stdout, stderr } = await asking.ended;
    expect({ code, stdout }).toEqual({ code: 130, stdout: '' });
    expect(stderr).toContain('pawl: stopping once this is saved; again to exit now\n');
    const hint = `continue with: pawl ask --continue --module ${agentFile('askers')}\n`;
    expect(stderr).toContain(`pawl: 2 models interrupted and saved; ${hint}`);
    const saved = await loadCheckpoint(join(cwd, '.pawl', 'ask.json'));
    expect(saved?.responses.map(({ modelId, stopReason }) => [modelId, stopReason])).toEqual([
      ['editor', 'cancelled'],
      ['reader', 'cancelled'],
      ['quick', 'answered'],
    ]);

    const again = await pawl(['ask', '--continue', ...askers], { cwd });
    expect(again.code).toBe(0);
    expect(again.stdout).toContain('## quick\n\nNo.\n');
    expect(again.stderr).toContain('editor: continues after step 1\n');
    expect(again.stderr).not.toMatch(/quick: (begins|step)/);
    expect(existsSync(join(cwd, '.pawl', 'ask.json'))).toBe(false);
    expect(readdirSync(join(cwd, '.pawl')).sort()).toEqual(['.gitignore', 'answers.json']);
  });

  test('a process that is killed is continued as well, and its lock stops no other process (fan-out 5)', async () => {
    const cwd = project();
    const asking = new Pawl(['ask', 'Greet better.', ...askers], { cwd, env: held });
    await asking.says('quick: answered');
    await asking.says('editor: step 1');
    const second = await pawl(['ask', '--continue', ...askers], { cwd });
    expect(second.code).toBe(2);
    expect(second.stderr).toMatch(/ask\.json is in use by process \d+ of .*; wait for it, or end it first\n$/);
    asking.child.kill('SIGKILL');
    await asking.ended;
    const again = await pawl(['ask', '--continue', join('.pawl', 'ask.json'), ...askers], { cwd });
    expect(again.code).toBe(0);
    expect(again.stdout).toContain('I greet the whole world now.');
  });

  test('diff shows what a model proposes, apply does it, rewind takes it back (fan-out 7, 8)', async () => {
    const cwd = project();
    await pawl(['ask', 'Greet better.', ...askers], { cwd });
    const diff = await pawl(['ask', 'diff'], { cwd });
    expect(diff.code).toBe(0);
    expect(diff.stdout).toContain('-Hello!\n+Hello, world!\n');
    const applied = await pawl(['ask', 'apply', 'edit'], { cwd });
    expect(applied).toMatchObject({ code: 0, stdout: 'changed greeting.txt\n' });
    expect(greeting(cwd)).toBe('Hello, world!\n');
    const back = await pawl(['ask', 'rewind', '--json'], { cwd });
    expect(JSON.parse(back.stdout)).toEqual({ files: [{ path: 'greeting.txt', change: 'changed' }] });
    expect(greeting(cwd)).toBe('Hello!\n');
    writeFileSync(join(cwd, 'greeting.txt'), 'Hi!\n');
    const refused = await pawl(['ask', 'apply', 'editor'], { cwd });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(/"greeting\.txt" has changed since/);
    expect(greeting(cwd)).toBe('Hi!\n');
  });

  test('a judge ranks the answers, and the best one with changes is the one to apply (fan-out 8)', async () => {
    const { code, stderr } = await pawl(['ask', 'Greet better.', ...askers], {
      cwd: project(),
      env: { JUDGE: 'function' },
    });
    expect(code).toBe(0);
    expect(stderr).toContain("the judge's order: quick, editor, reader\nbecause: It is short.\n");
    expect(stderr).toContain('apply them with: pawl ask apply editor\n');
  });

  test('what a judging model took is said after its ranking (fan-out 2)', async () => {
    const asking = ['ask', 'Greet better.', ...askers];
    const { stderr } = await pawl(asking, { cwd: project(), env: { JUDGE: 'model' } });
    expect(stderr).toContain("the judge's order: quick, editor, reader\nbecause: It is short.\n");
    expect(stderr).toContain('the judge used 15 tokens, $0.002\n');
  });

  test('the prompt - is what comes on stdin, with any content (fan-out 8)', async () => {
    const stdin = '--what\n\tdoes `this` mean?\n';
    const cwd = project();
    const { code, stdout } = await pawl(['ask', '-', ...askers, '-m', 'quick', '--json'], { cwd, stdin });
    expect(code).toBe(0);
    expect(jsonLines(stdout)[0]).toMatchObject({ type: 'ask.started', prompt: stdin });
  });

  test('one model that fails makes the exit code 1 and is nothing to the others (fan-out 1)', async () => {
    const { code, stdout } = await pawl(['ask', 'Greet.', ...askers], { cwd: project(), env: { FAIL: 'reader' } });
    expect(code).toBe(1);
    expect(stdout).toContain('## reader (failed)\n\nError: the model call failed: it is down\n');
    expect(stdout).toContain('I greet the whole world now.');
  });

  test('with --no-files the models have no tools for files (fan-out 7)', async () => {
    const cwd = project();
    const { stdout } = await pawl(['ask', 'Greet.', ...askers, '--no-files', '--json', '--models', 'editor'], { cwd });
    expect(jsonLines(stdout).find(({ type }) => type === 'model.ended')).toMatchObject({ proposedWrites: [] });
  });

  test.for([
    ['no prompt', ['ask'], 'needs a prompt'],
    ['an empty prompt', ['ask', ' '], 'needs a prompt'],
    ['the prompt - with nothing on stdin', ['ask', '-', ...askers], 'there is nothing on stdin'],
    ['a prompt without quotes', ['ask', 'greet', 'better'], 'in quotes'],
    ['no models', ['ask', 'Greet.'], '--models provider/model'],
    ['a model without a provider', ['ask', 'Greet.', '--models', 'gpt'], 'write provider/model'],
    ['a model named twice', ['ask', 'Greet.', '--models', 'a/b,a/b'], 'names a/b twice'],
    ['an empty name in the list', ['ask', 'Greet.', '--models', 'a/b,'], 'an empty name'],
    ['a provider that is not installed', ['ask', 'Greet.', '--models', 'nobody/x'], 'npm install @ai-sdk/nobody'],
    ['a module that is not there', ['ask', 'Greet.', '--module', 'none.ts'], 'there is no module'],
    ['a deadline that is no time', ['ask', 'Greet.', ...askers, '--deadline', 'soon'], 'is not a duration'],
    [
      'a number of turns that is none',
      ['ask', 'Greet.', ...askers, '--steps', '0'],
      '--steps "0" is not a number of turns',
    ],
    ['a root that is not there', ['ask', 'Greet.', ...askers, '--root', 'none'], 'there is no folder'],
    ['nothing to continue', ['ask', '--continue', ...askers], 'nothing to continue'],
    ['no answers to apply', ['ask', 'apply', 'editor'], 'there are no answers'],
    ['nothing to rewind', ['ask', 'rewind'], 'nothing'],
  ] as const)('%s is one line that says what to do, and exit code 2 (fan-out 8)', async ([, args, complaint]) => {
    const cwd = emptyFolder();
    const { code, stdout, stderr } = await pawl([...args], { cwd });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^pawl: [^\n]*\n$/);
    expect(stderr).toContain(complaint);
    expect(readdirSync(cwd)).toEqual([]);
  });

  test('another prompt does not take the place of one that is unfinished (fan-out 5)', async () => {
    const cwd = project();
    const asking = new Pawl(['ask', 'Greet better.', ...askers], { cwd, env: held });
    await asking.says('editor: step 1');
    asking.child.kill('SIGINT');
    await asking.ended;
    const before = readFileSync(join(cwd, '.pawl', 'ask.json'), 'utf8');
    const other = await pawl(['ask', 'Something else.', ...askers], { cwd });
    expect(other.code).toBe(2);
    expect(other.stderr).toContain('another prompt');
    expect(other.stderr).toContain('continue with `pawl ask --continue`');
    expect(readFileSync(join(cwd, '.pawl', 'ask.json'), 'utf8')).toBe(before);
    const applied = await pawl(['ask', 'apply', 'editor'], { cwd });
    expect(applied).toMatchObject({ code: 2 });
    expect(applied.stderr).toBe('pawl: editor has not answered yet: pawl ask --continue\n');
  });
});
