import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { filesBelow } from '../store/folder.ts';
import { agentFile, emptyFolder, Pawl, pawl } from './pawl.ts';

const keys = (letter: string) =>
  `import { createHash } from 'node:crypto';\nimport { encrypt } from 'pawl';\nexport const codec = encrypt({ keys: { k: createHash('sha256').update('${letter}').digest() }, current: 'k' });\n`;
const agentModule = (source: string) =>
  `export { default, models, prompt } from ${JSON.stringify(agentFile('counter'))};\nexport { codec } from '${source}';\n`;

/** A folder with an agent module that brings a key, and a run of it that was killed. */
async function killed(): Promise<string> {
  const cwd = emptyFolder();
  writeFileSync(join(cwd, 'keys.ts'), keys('a'));
  writeFileSync(join(cwd, 'other-keys.ts'), keys('b'));
  writeFileSync(join(cwd, 'agent.ts'), agentModule('./keys.ts'));
  const args = ['run', 'agent.ts', 'count to three, secretly', '--run-id', 'r1', '--store', 'runs/runs.db'];
  const run = new Pawl(args, { cwd, env: { HOLD: 'go' } });
  await run.says('holding');
  run.child.kill('SIGKILL');
  await run.ended;
  return cwd;
}

describe('a store that is encrypted', () => {
  test('is written by `pawl run` with the codec that the agent module exports, and read by `pawl resume --agent`', async () => {
    const cwd = await killed();
    const bytes = filesBelow(join(cwd, 'runs')).map((file) => readFileSync(join(cwd, 'runs', file), 'latin1'));
    expect(bytes.join()).toContain('gcm1.k.');
    expect(bytes.join()).not.toContain('secretly');
    const resumed = await pawl(['resume', 'r1', '--agent', 'agent.ts', '--store', 'runs/runs.db'], { cwd });
    expect(resumed).toMatchObject({ code: 0, stdout: 'counted to 3\n' });
    expect(resumed.stderr).not.toContain('step 1');
  });

  test('is read by the commands that have no agent module with the codec that PAWL_CODEC names', async () => {
    const cwd = await killed();
    const env = { PAWL_STORE: 'runs/runs.db' };
    const blind = await pawl(['show', 'r1'], { cwd, env });
    expect(blind).toMatchObject({ code: 2, stderr: expect.stringContaining('PAWL_CODEC') });
    const wrong = await pawl(['list'], { cwd, env: { ...env, PAWL_CODEC: 'other-keys.ts' } });
    expect(wrong).toMatchObject({ code: 0, stdout: expect.stringContaining('unreadable') });
    const seeing = { cwd, env: { ...env, PAWL_CODEC: 'keys.ts' } };
    expect((await pawl(['list'], seeing)).stdout).toContain('count to three, secretly');
    expect((await pawl(['doctor'], seeing)).stdout).toContain('resumes    r1');
    expect(await pawl(['park', 'r1', 'a person looks'], seeing)).toMatchObject({ code: 0 });
    expect((await pawl(['show', 'r1'], seeing)).stdout).toContain('a person looks');
    expect(await pawl(['cancel', 'r1'], seeing)).toMatchObject({ code: 0 });
    expect((await pawl(['show', 'r1'], seeing)).stdout).toContain('ended: cancelled');
    expect(await pawl(['retry', 'r1', '--agent', 'agent.ts'], seeing)).toMatchObject({
      code: 0,
      stdout: 'counted to 3\n',
    });
  });

  test('loses nothing to `pawl prune --quarantined` with another key under the same id: that is no damage', async () => {
    const cwd = await killed();
    const env = { PAWL_STORE: 'runs/runs.db', PAWL_CODEC: 'other-keys.ts' };
    const pruned = await pawl(['prune', '--quarantined', '--yes', '--json'], { cwd, env });
    expect(JSON.parse(pruned.stdout)).toMatchObject({ deleted: [] });
    expect((await pawl(['list'], { cwd, env: { ...env, PAWL_CODEC: 'keys.ts' } })).stdout).toContain('secretly');
  });

  test('asks for what is missing: for the module where there is none, for the key where the codec lacks it', async () => {
    const cwd = await killed();
    const env = { PAWL_STORE: 'runs/runs.db' };
    const advice = async (command: string, more: NodeJS.ProcessEnv = {}) => {
      const { code, stderr } = await pawl([command, 'r1'], { cwd, env: { ...env, ...more } });
      expect({ code, lines: stderr.trim().split('\n').length }).toEqual({ code: 2, lines: 1 });
      return stderr.trim().split('; ').at(-1);
    };
    writeFileSync(join(cwd, 'new-keys.ts'), keys('b').replaceAll('k:', 'n:').replace("'k'", "'n'"));
    const PAWL_CODEC = 'new-keys.ts';
    for (const command of ['show', 'park', 'cancel', 'resume']) {
      expect(await advice(command)).toBe('name the module that exports it in PAWL_CODEC');
      expect(await advice(command, { PAWL_CODEC })).toMatch(/^add it to the `keys` of the codec, /);
    }
    const doctor = await pawl(['doctor'], { cwd, env: { ...env, PAWL_CODEC } });
    expect(doctor.stdout).toContain('the key k, which is not among the keys; add it to the `keys` of the codec, ');
  });

  test('is recovered with the codec that the modules share; modules with keys of their own are refused', async () => {
    const cwd = await killed();
    const env = { PAWL_STORE: 'runs/runs.db' };
    const other = agentModule('./other-keys.ts').replace('default, ', '');
    writeFileSync(
      join(cwd, 'other.ts'),
      `${other}import { defineAgent } from 'pawl';\nexport default defineAgent({ id: 'other', instructions: 'Wait.' });\n`,
    );
    const refused = await pawl(['recover', 'agent.ts', 'other.ts'], { cwd, env });
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('codecs of their own') });
    expect(await pawl(['doctor', 'agent.ts'], { cwd, env })).toMatchObject({ code: 0 });
    expect(await pawl(['recover', 'agent.ts'], { cwd, env })).toMatchObject({ code: 0, stdout: 'counted to 3\n' });
  });

  test('tells how to continue, with the module that has its key, when a run of it is interrupted', async () => {
    const cwd = emptyFolder();
    writeFileSync(join(cwd, 'keys.ts'), keys('a'));
    writeFileSync(join(cwd, 'agent.ts'), agentModule('./keys.ts'));
    const run = new Pawl(['run', 'agent.ts', '--run-id', 'r1'], { cwd, env: { HOLD: 'go' } });
    await run.says('holding');
    run.child.kill('SIGINT');
    expect((await run.ended).stderr).toMatch(/continue with: pawl resume r1 --agent \S+agent\.ts/);
  });
});

describe('a codec that is none', () => {
  test.for([
    ['export const codec = 7;', 'is not a codec'],
    ['export const key = 7;', 'exports no codec'],
    ["throw new Error('no key today');", 'no key today'],
  ])('in PAWL_CODEC (%s) is one line that says what to do, and nothing is opened', async ([source = '', words]) => {
    const cwd = emptyFolder();
    writeFileSync(join(cwd, 'keys.ts'), source);
    const env = { PAWL_CODEC: 'keys.ts' };
    const { code, stderr } = await pawl(['run', agentFile('counter')], { cwd, env });
    expect({ code, lines: stderr.trim().split('\n').length }).toEqual({ code: 2, lines: 1 });
    expect(stderr).toContain(words);
    expect(filesBelow(cwd)).toEqual(['keys.ts']);
  });

  test('in an agent module is refused before a store is made', async () => {
    const cwd = emptyFolder();
    writeFileSync(join(cwd, 'keys.ts'), "export const codec = 'secret';\n");
    writeFileSync(join(cwd, 'agent.ts'), agentModule('./keys.ts'));
    const { code, stderr } = await pawl(['run', 'agent.ts'], { cwd });
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('the codec of') });
    expect(stderr).not.toContain('secret');
    expect(filesBelow(cwd)).toEqual(['agent.ts', 'keys.ts']);
  });
});
