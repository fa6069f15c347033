import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { KnownModules } from '../../src/cli/open/known-modules.ts';
import { stateFolder } from '../../src/cli/open/private-files.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { agentFile, emptyFolder, jsonLines, Pawl, pawl } from './pawl.ts';
import { interruptedRun, stepsOf, storeRuns } from './stored-runs.ts';

const place = { store: 'sqlite:/s/runs.db', runId: 'r' };

/** The folder in which a state folder keeps its files. */
const filesIn = (home: string) => join(home, 'agent-modules');
const onlyFile = (home: string) => join(filesIn(home), readdirSync(filesIn(home))[0] ?? '');

/** As a stranger may have made it: a module in the folder of the store, which leaves a mark when it is imported. */
async function hostile() {
  const cwd = emptyFolder();
  const trap = join(cwd, 'trap.ts');
  writeFileSync(
    trap,
    `import { writeFileSync } from 'node:fs';
     writeFileSync(new URL('imported', import.meta.url), '');
     export { default, models } from ${JSON.stringify(agentFile('counter'))};`,
  );
  const inputs = { 'pawl.module': trap, module: trap, agent: trap, cwd };
  await storeRuns(
    join(cwd, '.pawl/runs.db'),
    interruptedRun({ runId: 'r1', module: '', inputs }),
    interruptedRun({ runId: 'r2', module: '', inputs: { 'pawl.module': trap } }),
  );
  return { cwd, trap, wasImported: () => existsSync(join(cwd, 'imported')) };
}

describe.concurrent('a store that comes from elsewhere', () => {
  test.for([
    [['resume', 'r1'], 2],
    [['resume'], 1],
    [['recover'], 1],
    [['doctor'], 0],
    [['show', 'r1'], 0],
    [['cancel', 'r1'], 0],
  ] as const)('names no code: `pawl %j` imports nothing that its records name', async ([args, expected]) => {
    const { cwd, wasImported } = await hostile();
    const { code } = await pawl(args, { cwd });
    expect({ code, wasImported: wasImported() }).toEqual({ code: expected, wasImported: false });
  });

  test('is resumed with --agent: the refusal without it says so in one line, and the record stays', async () => {
    const { cwd, trap } = await hostile();
    const refused = await pawl(['resume', 'r1'], { cwd });
    expect(refused.stderr).toBe(
      'pawl: run r1 of agent counter was started by a program, or by `pawl run` of another user or machine: start that program, whose executor.recover() continues the run, or name the agent: pawl resume r1 --agent <agent module>\n',
    );
    expect(await stepsOf(join(cwd, '.pawl/runs.db'), 'r1')).toBe(1);
    expect(await pawl(['resume', 'r1', '--agent', trap], { cwd })).toMatchObject({ code: 0 });
  });

  test('is distinguished by `pawl doctor`: of a run of another program it says that `pawl recover` needs its module', async () => {
    const { cwd } = await hostile();
    const { stdout } = await pawl(['doctor', '--json'], { cwd });
    expect(jsonLines(stdout)[0]).toMatchObject({
      verdict: 'resumes',
      reason: expect.stringContaining('`pawl recover` needs its agent module as an argument'),
    });
  });
});

describe.concurrent('a run that `pawl run` started', () => {
  test('is resumed without a word about its agent: the path is kept outside of the store, and its inputs name no code', async () => {
    const [cwd, home] = [emptyFolder(), emptyFolder()];
    const env = { PAWL_STATE_HOME: home, HOLD: 'yes' };
    const first = new Pawl(['run', agentFile('counter'), 'hold', '--run-id', 'r'], { cwd, env });
    await first.says('step 1');
    first.child.kill('SIGKILL');
    await first.ended;
    const store = sqliteStore({ path: join(cwd, '.pawl/runs.db') });
    expect((await store.load('r'))?.inputs).toEqual({ cwd });
    await store.close();
    expect(JSON.parse(readFileSync(onlyFile(home), 'utf8'))).toMatchObject({
      runId: 'r',
      module: agentFile('counter'),
    });
    const { stdout } = await pawl(['show', 'r', '--json'], { cwd, env });
    expect(JSON.parse(stdout)).toMatchObject({ module: agentFile('counter') });
    expect(await pawl(['resume', 'r'], { cwd, env: { PAWL_STATE_HOME: home } })).toMatchObject({ code: 0 });
    // Its record is kept, and may be forked.
    expect(JSON.parse(readFileSync(onlyFile(home), 'utf8'))).toMatchObject({ runId: 'r' });
  });

  test('is resumed by way of another path to the same store', async () => {
    const [cwd, elsewhere] = [emptyFolder(), emptyFolder()];
    await storeRuns(join(cwd, 'runs.db'), interruptedRun());
    symlinkSync(cwd, join(elsewhere, 'link'));
    const { code } = await pawl(['resume', 'r1', '--store', join(elsewhere, 'link', 'runs.db')], { cwd: elsewhere });
    expect(code).toBe(0);
  });

  test('continues where the state folder cannot be written: one warning says how to resume it', async () => {
    const cwd = emptyFolder();
    writeFileSync(join(cwd, 'file'), '');
    const env = { PAWL_STATE_HOME: join(cwd, 'file') };
    const { code, stderr } = await pawl(['run', agentFile('counter'), 'hi', '--run-id', 'r'], { cwd, env });
    expect(code).toBe(0);
    expect(stderr).toMatch(
      /^pawl: warning: the agent module of run r is not kept: .*; resume it with --agent .*counter\.ts$/m,
    );
  });

  test('keeps its module when a run of the same id is refused', async () => {
    const [cwd, home] = [emptyFolder(), emptyFolder()];
    const env = { PAWL_STATE_HOME: home };
    const path = join(cwd, '.pawl/runs.db');
    await storeRuns(path, interruptedRun({ runId: 'r', module: '', parked: { code: 'X', reason: 'looked at' } }));
    const known = new KnownModules(home);
    const stored = { store: `sqlite:${path}`, runId: 'r' };
    known.remember(stored, agentFile('counter'));
    expect((await pawl(['run', agentFile('greeter'), 'go', '--run-id', 'r'], { cwd, env })).code).not.toBe(0);
    expect(known.find(stored)).toBe(agentFile('counter'));
  });
});

describe('the file that names the agent module of a run', () => {
  test('is for its user only, in a folder for its user only', () => {
    const home = join(emptyFolder(), 'made');
    new KnownModules(home).remember(place, '/a/agent.ts');
    expect(statSync(onlyFile(home)).mode & 0o777).toBe(0o600);
    expect(statSync(filesIn(home)).mode & 0o777).toBe(0o700);
    expect(new KnownModules(home).find(place)).toBe('/a/agent.ts');
  });

  test.for([
    ['another run', { ...place, runId: 'r2' }],
    ['a run of the same id in another store', { ...place, store: 'sqlite:/t/runs.db' }],
  ] as const)('says nothing of %s', ([_, other]) => {
    const known = new KnownModules(emptyFolder());
    known.remember(place, '/a/agent.ts');
    expect(known.find(other)).toBeUndefined();
  });

  test.for([
    ['cut off', '{"v":1,"store":"sqlite:/s/ru'],
    ['empty', ''],
    ['of a later version', JSON.stringify({ v: 2, ...place, module: '/a/agent.ts' })],
    ['about another run', JSON.stringify({ v: 1, ...place, runId: 'other', module: '/a/agent.ts' })],
    ['without an absolute path', JSON.stringify({ v: 1, ...place, module: 'agent.ts' })],
    ['far too large', JSON.stringify({ v: 1, ...place, module: `/${'a'.repeat(70_000)}` })],
  ] as const)('that is %s counts as none, and the next start of the run replaces it', ([_, text]) => {
    const home = emptyFolder();
    const known = new KnownModules(home);
    known.remember(place, '/a/agent.ts');
    writeFileSync(onlyFile(home), text);
    expect(known.find(place)).toBeUndefined();
    known.remember(place, '/b/agent.ts');
    expect(known.find(place)).toBe('/b/agent.ts');
  });

  test.skipIf(process.platform === 'win32')('is refused if other users can write to it or to its folder', () => {
    const home = emptyFolder();
    const known = new KnownModules(home);
    known.remember(place, '/a/agent.ts');
    chmodSync(onlyFile(home), 0o620);
    expect(() => known.find(place)).toThrow(/other users can write to .*\(mode 0620\); run chmod go-w/);
    chmodSync(onlyFile(home), 0o600);
    chmodSync(filesIn(home), 0o777);
    expect(() => known.find(place)).toThrow(/other users can write to .*\(mode 0777\)/);
    expect(() => known.remember(place, '/b/agent.ts')).toThrow(/other users can write to/);
  });

  test.skipIf(process.geteuid?.() !== 0)('is refused if it belongs to another user', () => {
    const home = emptyFolder();
    const known = new KnownModules(home);
    known.remember(place, '/a/agent.ts');
    chownSync(onlyFile(home), 65_534, 65_534);
    expect(() => known.find(place)).toThrow(/belongs to user 65534, and this is user 0/);
  });

  test.skipIf(process.platform === 'win32')('is refused if it is a link to another file', () => {
    const home = emptyFolder();
    const known = new KnownModules(home);
    known.remember(place, '/a/agent.ts');
    const moved = join(home, 'moved.json');
    renameSync(onlyFile(home), moved);
    known.remember(place, '/b/agent.ts');
    const path = onlyFile(home);
    renameSync(path, join(home, 'gone.json'));
    symlinkSync(moved, path);
    expect(() => known.find(place)).toThrow(/cannot be read/);
  });

  test('is one of at most 4,096, and goes when it is 180 days old: the newest stay', () => {
    const home = emptyFolder();
    mkdirSync(filesIn(home), { recursive: true });
    const at = (days: number) => new Date(Date.now() - days * 86_400_000);
    for (let i = 0; i < 4_100; i++) {
      const path = join(filesIn(home), `${i}.json`);
      writeFileSync(path, '');
      utimesSync(path, at(i / 100), at(i / 100));
    }
    writeFileSync(join(filesIn(home), 'old.json'), '');
    utimesSync(join(filesIn(home), 'old.json'), at(181), at(181));
    new KnownModules(home).remember(place, '/a/agent.ts');
    const left = readdirSync(filesIn(home));
    expect(left).toHaveLength(4_096);
    expect(left).toContain('0.json');
    expect(left).not.toContain('4099.json');
    expect(left).not.toContain('old.json');
    expect(new KnownModules(home).find(place)).toBe('/a/agent.ts');
  });

  test('is written whole beside those of other processes, which write the same and others at the same time', async () => {
    const home = emptyFolder();
    const cwd = emptyFolder();
    const env = { PAWL_STATE_HOME: home };
    await storeRuns(join(cwd, '.pawl/runs.db'));
    const runs = await Promise.all(
      ['a', 'b', 'c', 'd'].map((runId) => pawl(['run', agentFile('counter'), 'hi', '--run-id', runId], { cwd, env })),
    );
    expect(runs.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    const texts = readdirSync(filesIn(home)).map((name) => readFileSync(join(filesIn(home), name), 'utf8'));
    expect(texts.map((text) => JSON.parse(text).runId).sort()).toEqual(['a', 'b', 'c', 'd']);
  });
});

test.for([
  ['linux', {}, join(homedir(), '.local/state/pawl')],
  ['linux', { XDG_STATE_HOME: '/x' }, '/x/pawl'],
  ['linux', { XDG_STATE_HOME: 'relative' }, join(homedir(), '.local/state/pawl')],
  ['darwin', { XDG_STATE_HOME: '/x' }, join(homedir(), 'Library/Application Support/pawl')],
  ['win32', { LOCALAPPDATA: '/l' }, '/l/pawl'],
  ['linux', { PAWL_STATE_HOME: '/p', XDG_STATE_HOME: '/x' }, '/p'],
] as const)('on %s with %j the state folder is %s', ([platform, env, folder]) => {
  expect(stateFolder(env, platform)).toBe(folder);
});
