import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { agentFile, emptyFolder, jsonLines, Pawl, pawl } from '../pawl.ts';

const askers = ['--module', agentFile('askers')];

/** A folder with one file for the models to work on. */
function project(): string {
  const cwd = emptyFolder();
  writeFileSync(join(cwd, 'greeting.txt'), 'Hello!\n');
  return cwd;
}

/** A project whose editor and reader were interrupted after their first turn; quick has answered. */
async function interrupted(): Promise<string> {
  const cwd = project();
  const asking = new Pawl(['ask', 'Greet better.', ...askers], { cwd, env: { HOLD: 'go' } });
  await asking.says('quick: answered');
  await asking.says('editor: step 1');
  await asking.says('reader: step 1');
  asking.child.kill('SIGINT');
  expect((await asking.ended).code).toBe(130);
  return cwd;
}

/** A checkpoint of one model that has had no turn yet. */
function waiting(folder: string, name: string): string {
  mkdirSync(folder, { recursive: true });
  const head = { version: 1, prompt: 'Greet better.', timestamp: 0, adapter_ids: ['editor'], verbose: false };
  writeFileSync(join(folder, name), JSON.stringify({ ...head, responses: [] }));
  return join(folder, name);
}

const writesOf = (stdout: string) =>
  jsonLines(stdout).find(({ type }) => type === 'model.ended')?.proposedWrites as readonly unknown[];

describe.concurrent('continuing (fan-out 8)', { timeout: 180_000 }, () => {
  test('a checkpoint file that lies in no .pawl folder gives its models no files, unless --root names a folder (fan-out 8)', async () => {
    const cwd = project();
    const path = waiting(join(cwd, 'kept.pawl'), 'own.json');
    const alone = await pawl(['ask', '--continue', path, ...askers, '--json'], { cwd });
    expect(writesOf(alone.stdout)).toEqual([]);
    expect(readdirSync(join(cwd, 'kept.pawl', '.pawl')).sort()).toEqual(['.gitignore', 'answers.json']);
    const again = waiting(join(cwd, 'kept.pawl'), 'own.json');
    const rooted = await pawl(['ask', '--continue', again, '--root', '.', ...askers, '--json'], { cwd });
    expect(writesOf(rooted.stdout)).toHaveLength(1);
    expect(existsSync(join(cwd, '.pawl', 'answers.json'))).toBe(true);
  });

  test('a checkpoint file in the .pawl of another folder is of that folder, and so is what can be done then (fan-out 8)', async () => {
    const [cwd, other] = [emptyFolder(), project()];
    const path = waiting(join(other, '.pawl'), 'ask.json');
    const { code, stderr } = await pawl(['ask', '--continue', path, ...askers], { cwd });
    expect(code).toBe(0);
    expect(stderr).toContain(`see the changes with: pawl ask diff --root ${other}\n`);
    expect(readdirSync(cwd)).toEqual([]);
  });

  test.for([
    ['--models', ['--models', 'quick', ...askers], 'leave --models out'],
    [
      'no module where one is needed',
      [],
      'editor is one of the models to continue: name the module it came from again',
    ],
    ['another module', ['--module', agentFile('nothing')], 'does not export it'],
  ] as const)('--continue with %s is one line that says what to do (fan-out 8)', async ([, args, complaint]) => {
    const cwd = emptyFolder();
    const path = waiting(join(cwd, '.pawl'), 'ask.json');
    const before = readFileSync(path, 'utf8');
    const { code, stdout, stderr } = await pawl(['ask', '--continue', ...args], { cwd });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^pawl: [^\n]*\n$/);
    expect(stderr).toContain(complaint);
    expect(readFileSync(path, 'utf8')).toBe(before);
  });

  test.for([
    ['--continue', ['--continue']],
    ['asking', ['Greet.', ...askers]],
  ] as const)(
    'a damaged checkpoint file stays as it is, and %s says what can be done about it (fan-out 3)',
    async ([, args]) => {
      const cwd = emptyFolder();
      mkdirSync(join(cwd, '.pawl'));
      const path = join(cwd, '.pawl', 'ask.json');
      writeFileSync(path, '{"version":1');
      const { code, stderr } = await pawl(['ask', ...args], { cwd });
      expect(code).toBe(2);
      expect(stderr).toMatch(/ask\.json is not a checkpoint of a fan-out: .*; restore it from a copy, or remove it\n$/);
      expect(readFileSync(path, 'utf8')).toBe('{"version":1');
    },
  );

  test('while a newer question is unfinished, diff, apply and show are about its answers, and never about older ones (fan-out 8)', async () => {
    const cwd = await interrupted();
    // Of an older question, whose editor had an answer.
    const older = join(cwd, '.pawl', 'answers.json');
    const write = { path: 'greeting.txt', content: 'Of the older question\n' };
    const answer = { latency_ms: 1, input_tokens: 1, output_tokens: 1, cost_usd: 0, steps: 1, stop_reason: 'answered' };
    const response = { model_id: 'editor', ...answer, proposed_writes: [write], interrupted: false, completed: true };
    const head = { version: 1, prompt: 'Older?', timestamp: 0, adapter_ids: ['editor'], verbose: false };
    writeFileSync(older, JSON.stringify({ ...head, responses: [response] }));

    const applied = await pawl(['ask', 'apply', 'editor'], { cwd });
    expect(applied).toEqual({
      code: 2,
      stdout: '',
      stderr: 'pawl: editor has not answered yet: pawl ask --continue\n',
    });
    expect(readFileSync(join(cwd, 'greeting.txt'), 'utf8')).toBe('Hello!\n');
    expect((await pawl(['ask', 'diff', 'editor'], { cwd })).code).toBe(2);
    const missing = 'pawl: not answered yet: editor, reader; continue with: pawl ask --continue\n';
    const diff = await pawl(['ask', 'diff'], { cwd });
    expect(diff).toEqual({ code: 0, stdout: '', stderr: `no model proposes changes\n${missing}` });
    const shown = await pawl(['ask', 'show'], { cwd });
    expect(shown).toEqual({
      code: 0,
      stdout: '## editor (interrupted)\n\n(no text)\n\n## reader (interrupted)\n\n(no text)\n\n## quick\n\nNo.\n',
      stderr: `asked: Greet better.\n${missing}`,
    });
  });

  test('what a model that has answered proposes can be applied while others are unfinished (fan-out 8)', async () => {
    const cwd = project();
    const asking = new Pawl(['ask', 'Greet better.', ...askers], { cwd, env: { HOLD: 'go', EAGER: 'editor' } });
    await asking.says('editor: answered');
    await asking.says('reader: step 1');
    asking.child.kill('SIGINT');
    await asking.ended;
    const applied = await pawl(['ask', 'apply', 'editor'], { cwd });
    expect(applied).toMatchObject({ code: 0, stdout: 'changed greeting.txt\n' });
    expect(readFileSync(join(cwd, 'greeting.txt'), 'utf8')).toBe('Hello, world!\n');
  });

  test('show prints the last answers again, all or one, and --json gives a line for each (fan-out 8)', async () => {
    const cwd = project();
    const asked = await pawl(['ask', 'Greet better.', ...askers], { cwd, env: { JUDGE: 'function' } });
    const shown = await pawl(['ask', 'show'], { cwd });
    expect(shown).toMatchObject({ code: 0, stdout: asked.stdout });
    expect(shown.stderr).toBe(
      "asked: Greet better.\nthe judge's order: quick, editor, reader\nbecause: It is short.\n",
    );
    expect((await pawl(['ask', 'show', 'qui'], { cwd })).stdout).toBe('## quick\n\nNo.\n');
    const lines = jsonLines((await pawl(['ask', 'show', '--json'], { cwd })).stdout);
    expect(lines.map(({ modelId, text }) => [modelId, text])).toEqual([
      ['editor', 'I greet the whole world now.'],
      ['reader', 'There is one file, and it is fine.'],
      ['quick', 'No.'],
    ]);
    const nobody = await pawl(['ask', 'show', 'gpt'], { cwd });
    expect(nobody.stderr).toBe('pawl: gpt is not one of the models: editor, reader, quick\n');
  });

  test('changes of a model that failed are not suggested, and a warning says that they may be half done (fan-out 7)', async () => {
    const cwd = project();
    const asked = await pawl(['ask', 'Greet better.', ...askers], { cwd, env: { FAIL: 'editor@2' } });
    expect(asked.code).toBe(1);
    expect(asked.stderr).toContain('1 write proposed');
    expect(asked.stderr).not.toContain('pawl ask apply');
    const warning = 'pawl: editor failed before its answer: its changes may be incomplete\n';
    const diff = await pawl(['ask', 'diff'], { cwd });
    expect(diff).toMatchObject({ code: 0, stdout: expect.stringContaining('+Hello, world!'), stderr: warning });
    const applied = await pawl(['ask', 'apply', 'editor'], { cwd });
    expect(applied).toMatchObject({ code: 0, stdout: 'changed greeting.txt\n' });
    expect(applied.stderr).toBe(`${warning}undo them with: pawl ask rewind\n`);
  });

  test('models that failed are asked again by --continue once the fan-out is over, and no other model is (fan-out 1)', async () => {
    const cwd = project();
    const asked = await pawl(['ask', 'Greet better.', ...askers], { cwd, env: { FAIL: 'editor@2' } });
    const hint = `pawl: 1 model failed; pawl ask --continue --module ${agentFile('askers')} asks those that failed again\n`;
    expect(asked.stderr).toContain(hint);
    const answers = readFileSync(join(cwd, '.pawl', 'answers.json'), 'utf8');
    // What is refused leaves them where they are.
    expect((await pawl(['ask', '--continue', ...askers, '--steps', 'x'], { cwd })).code).toBe(2);
    expect(readFileSync(join(cwd, '.pawl', 'answers.json'), 'utf8')).toBe(answers);

    const again = await pawl(['ask', '--continue', ...askers], { cwd, env: { FAIL: 'reader' } });
    expect(again.code).toBe(0);
    expect(again.stderr).toContain('editor: answered');
    expect(again.stderr).not.toMatch(/(reader|quick): (begins|step)/);
    expect(again.stdout).toContain('I greet the whole world now.');
    expect(readdirSync(join(cwd, '.pawl')).sort()).toEqual(['.gitignore', 'answers.json']);

    const over = await pawl(['ask', '--continue', join('.pawl', 'answers.json'), ...askers], { cwd });
    expect(over.code).toBe(2);
    expect(over.stderr).toBe(
      'pawl: there is nothing to continue: all models have answered; see the answers with: pawl ask show\n',
    );
    expect((await pawl(['ask', 'show', 'quick'], { cwd })).stdout).toBe('## quick\n\nNo.\n');
  });
});
