import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
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

describe.concurrent('going on (fan-out 8)', { timeout: 60_000 }, () => {
  test('fan-out 8: a checkpoint file that lies in no .pawl folder gives its models no files, unless --root names a folder', async () => {
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

  test('fan-out 8: a checkpoint file in the .pawl of another folder is of that folder, and so is what can be done then', async () => {
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
      'editor is one of the models to go on with: name the module it came from again',
    ],
    ['another module', ['--module', agentFile('nothing')], 'does not export it'],
  ] as const)('fan-out 8: --continue with %s is one line that says what to do', async ([, args, complaint]) => {
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
    'fan-out 3: a damaged checkpoint file stays as it is, and %s says what can be done about it',
    async ([, args]) => {
      const cwd = emptyFolder();
      mkdirSync(join(cwd, '.pawl'));
      const path = join(cwd, '.pawl', 'ask.json');
      writeFileSync(path, '{"version":1');
      const { code, stderr } = await pawl(['ask', ...args], { cwd });
      expect(code).toBe(2);
      expect(stderr).toMatch(/ask\.json is no checkpoint of a fan-out: .*; restore it from a copy, or remove it\n$/);
      expect(readFileSync(path, 'utf8')).toBe('{"version":1');
    },
  );
});
