import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { bin } from '../toolchain/programs.ts';
import { agentFile, type Ended, emptyFolder, pawl, type Settings } from './pawl.ts';
import { execute, interruptedRun, makeTooNew, stepsOf, storeRuns } from './stored-runs.ts';
import { hasTerminal, TerminalSession } from './terminal.ts';

/** One line that says what is wrong and what to do, no stack, nothing on stdout, exit code 2. */
function expectRefusal({ code, stdout, stderr }: Ended, ...words: readonly (string | RegExp)[]): void {
  expect(stderr).toMatch(/^pawl: [^\n]+\n$/);
  for (const word of words) expect(stderr).toMatch(word);
  expect(stderr).not.toMatch(/\n\s+at /);
  expect(stdout).toBe('');
  expect(code).toBe(2);
}

describe.concurrent('a command that makes no sense', () => {
  test.for([
    [
      'an unknown command',
      ['walk'],
      'unknown command "walk"',
      'run, list, show, resume, retry, fork, recover, work, health, cancel, steer, waiting, approve, deny, answer, signal, send, park, unpark, schedules, doctor, prune, backup, restore, export, import, replay, stats, studio, ask, demo',
    ],
    ['an unknown option', ['list', '--al'], "unknown option '--al'", 'pawl --help'],
    ['an option without its value', ['list', '--store'], "'--store <value>' argument missing", 'pawl --help'],
    ['an option of another command', ['list', '--run-id', 'x'], 'no option --run-id', 'pawl list --help'],
    ['a prompt without quotes', ['run', 'agent.ts', 'count', 'now'], '"now"', 'quotes'],
    ['run without an agent module', ['run'], 'needs an agent module', 'pawl run <agent module>'],
    ['show without a run id', ['show'], 'needs the id of a run', 'pawl list'],
    ['an empty run id', ['run', agentFile('counter'), '--run-id', ''], '--run-id is empty', 'leave it out'],
  ] as const)('%s is refused', async ([_, args, ...words]) => {
    expectRefusal(await pawl(args, { cwd: emptyFolder() }), ...words);
  });

  test('no command at all gives the help on stderr', async () => {
    const { code, stdout, stderr } = await pawl([], { cwd: emptyFolder() });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('Usage: pawl <command>');
  });

  test('an error shows its stack to those who ask for it', async () => {
    const { code, stderr } = await pawl(['list'], { cwd: emptyFolder(), env: { PAWL_DEBUG: '1' } });
    expect(code).toBe(2);
    expect(stderr).toMatch(/\n\s+at /);
  });
});

describe.concurrent('an agent module', () => {
  const runModule = (text: string, env: Settings['env'] = {}) => {
    const cwd = emptyFolder();
    writeFileSync(join(cwd, 'agent.ts'), text);
    // Node itself ends a process whose module never finishes loading.
    return pawl(['run', 'agent.ts', 'go'], { cwd, env, isAlone: text.startsWith('await') });
  };

  test('that is not there is named', async () => {
    expectRefusal(await pawl(['run', 'nobody.ts'], { cwd: emptyFolder() }), 'no agent module', 'nobody.ts', 'path');
  });

  test('that is a folder is refused', async () => {
    expectRefusal(await pawl(['run', '.'], { cwd: emptyFolder() }), 'is a folder; name the agent module');
  });

  test.for([
    ['that throws on import', 'throw new Error("no luck\\ntoday"); export default 1', 'could not be loaded: no luck'],
    ['that is no valid code', 'const = 1; export default 1', 'could not be loaded'],
    ['that imports a missing package', 'import "no-such-package"; export default 1', 'no-such-package', 'install it'],
    ['without an agent', 'export const tools = []', 'no default export', 'defineAgent'],
    ['with a default export that is no agent', 'export default { id: 7 }', 'is not an agent', 'defineAgent'],
    ['that never finishes loading', 'await new Promise(() => {}); export default 1', 'never finishes loading'],
  ] as const)('%s is refused', async ([_, text, ...words]) => {
    expectRefusal(await runModule(text), ...words);
  });

  const agent = 'import { defineAgent } from "pawl"; export default defineAgent({ id: "a", instructions: "x"';
  const model =
    'import { reply, scriptedModel } from "pawl/testing"; export const models = { fast: scriptedModel([reply("x")]) }';
  test.for([
    ['without models', `${agent} })`, 'no model', 'PAWL_MODEL=provider/model', 'export models'],
    ['with tools that are no list', `${agent} }); ${model}; export const tools = 1`, '`tools`', 'array'],
    ['with a prompt that is no text', `${agent} }); ${model}; export const prompt = 1`, '`prompt`', 'string'],
    ['whose tier nobody serves', `${agent}, model: "deep" }); ${model}`, 'no model serves tier "deep"', 'PAWL_MODEL'],
    ['that names an unknown tool', `${agent}, tools: ["drill"] }); ${model}`, 'drill', 'export it'],
  ] as const)('%s is refused', async ([_, text, ...words]) => {
    expectRefusal(await runModule(text), ...words);
  });

  test('in a folder of a commonjs package is refused, with what to change', async () => {
    const cwd = emptyFolder();
    writeFileSync(join(cwd, 'package.json'), '{ "type": "commonjs" }');
    writeFileSync(join(cwd, 'agent.ts'), `${agent} }); ${model}`);
    const { code, stderr } = await pawl(['run', 'agent.ts', 'go'], { cwd });
    expect(code).toBe(2);
    expect(stderr).toContain('set "type": "module" there, or name the file .mts');
  });

  test('is not asked with an empty prompt', async () => {
    const cwd = emptyFolder();
    expectRefusal(await pawl(['run', agentFile('counter'), '  '], { cwd }), 'prompt is empty', 'say what');
    expect(existsSync(join(cwd, '.pawl'))).toBe(false);
  });

  test('without a prompt of its own needs one', async () => {
    const args = ['run', agentFile('failing')];
    expectRefusal(await pawl(args, { cwd: emptyFolder() }), 'there is no prompt', 'add one', 'export `prompt`');
  });
});

describe.concurrent('PAWL_MODEL', () => {
  const greet = (env: Settings['env']) =>
    pawl(['run', agentFile('greeter'), 'hi'], { cwd: emptyFolder(), env: { ...env } });

  test.for([
    ['without a provider', 'gpt-5', 'write provider/model'],
    ['of a provider whose package is missing', 'nonesuch/m', 'npm install @ai-sdk/nonesuch'],
    ['of a package without a ready-made provider', 'openai-compatible/m', 'exports no default provider', '`models`'],
    ['without the key', 'anthropic/claude-sonnet-4-5', 'set ANTHROPIC_API_KEY'],
  ] as const)('%s is refused', async ([_, PAWL_MODEL, ...words]) => {
    expectRefusal(await greet({ PAWL_MODEL }), ...words);
  });
});

describe.concurrent('a store', () => {
  const everyReader = [['list'], ['show', 'r1'], ['resume', 'r1'], ['resume']];

  test('that is not there is not made by looking for it', async () => {
    const cwd = emptyFolder();
    const all = await Promise.all(everyReader.map((args) => pawl([...args, '--store', 'gone/runs.db'], { cwd })));
    for (const ended of all) expectRefusal(ended, 'there is no store', 'gone/runs.db', 'pawl run');
    expect(existsSync(join(cwd, 'gone'))).toBe(false);
  });

  // All commands open their store by the same two functions.
  const oneOfEach = [['list'], ['run', agentFile('counter')]];
  const refused = async (cwd: string, ...words: readonly string[]) => {
    const all = await Promise.all(oneOfEach.map((args) => pawl([...args, '--store', 'runs.db'], { cwd })));
    for (const ended of all) expectRefusal(ended, ...words);
  };

  test('that is not a database is refused, and stays as it is', async () => {
    const cwd = emptyFolder();
    writeFileSync(join(cwd, 'runs.db'), 'shopping list: '.repeat(100));
    await refused(cwd, 'not a SQLite database', 'choose another path');
  });

  test('that is the database of something else is refused', async () => {
    const cwd = emptyFolder();
    execute(join(cwd, 'runs.db'), 'CREATE TABLE songs (name TEXT)');
    await refused(cwd, 'database of another application', 'choose another path');
  });

  test('that is a folder is refused', async () => {
    const cwd = emptyFolder();
    mkdirSync(join(cwd, 'runs.db'));
    await refused(cwd, 'is a folder; name a SQLite file');
  });

  test('of a newer version is refused', async () => {
    const cwd = emptyFolder();
    await storeRuns(join(cwd, 'runs.db'), interruptedRun());
    execute(join(cwd, 'runs.db'), 'PRAGMA user_version = 99');
    await refused(cwd, 'has layout 99', 'upgrade the package');
  });

  // Nothing is forbidden to root; the command then runs as nobody, where nobody can read the sources.
  const user = process.getuid?.() === 0 ? { uid: 65_534 } : {};
  const canRun = spawnSync(process.execPath, [agentFile('counter').replace('counter', 'nothing')], user).status === 0;
  test.skipIf(!canRun)('that may not be written is refused', async () => {
    const cwd = emptyFolder();
    chmodSync(cwd, 0o555);
    const ended = await pawl(['run', agentFile('counter'), '--store', 'deep/runs.db'], { cwd, ...user });
    chmodSync(cwd, 0o755);
    expectRefusal(ended, 'deep/runs.db', /permission/i);
  });

  test('in memory is refused', async () => {
    expectRefusal(
      await pawl(['run', agentFile('counter'), '--store', ':memory:'], { cwd: emptyFolder() }),
      'would end with this process',
    );
  });
});

describe.concurrent('a record', () => {
  const stored = async (...records: Parameters<typeof storeRuns>[1][]) => {
    const cwd = emptyFolder();
    const path = join(cwd, 'runs.db');
    await storeRuns(path, ...records);
    return { path, go: (...args: string[]) => pawl([...args, '--store', 'runs.db'], { cwd }) };
  };

  test('that does not exist is named', async () => {
    const { go } = await stored(interruptedRun());
    for (const ended of await Promise.all([go('show', 'r2'), go('resume', 'r2')])) {
      expectRefusal(ended, 'there is no run r2', 'pawl list');
    }
  });

  test('that is damaged is refused, listed, and kept', async () => {
    const { path, go } = await stored(interruptedRun());
    execute(path, "UPDATE heads SET head = '{}'");
    const [shown, resumed] = await Promise.all([go('show', 'r1'), go('resume', 'r1')]);
    const words = ['damaged', 'its bytes are kept: restore', '`pawl prune --quarantined`'];
    for (const word of words) expect(shown.stdout).toContain(word);
    expectRefusal(resumed, 'r1 cannot be read', ...words);
    for (const said of [shown.stdout, resumed.stderr]) expect(said).not.toContain('--run-id');
    const begun = await go('run', agentFile('counter'), 'go', '--run-id', 'r1');
    expectRefusal(begun, '`pawl prune --quarantined`, or start the work again under another --run-id');
    const list = await go('list');
    expect(list.code).toBe(0);
    expect(list.stdout).toMatch(/r1 +unreadable .*damaged/);
    expect((await go('resume')).code).toBe(1);
  });

  test('of a newer version is refused, and untouched', async () => {
    const { path, go } = await stored(interruptedRun());
    makeTooNew(path);
    const [shown, resumed] = await Promise.all([go('show', 'r1'), go('resume', 'r1')]);
    for (const word of ['version 99', 'upgrade the package']) expect(shown.stdout).toContain(word);
    expectRefusal(resumed, 'version 99', 'upgrade the package');
  });

  test('whose agent module is gone says so, and is kept', async () => {
    const { path, go } = await stored(interruptedRun({ module: '/gone/agent.ts' }));
    expectRefusal(await go('resume', 'r1'), 'no agent module /gone/agent.ts', 'record is kept', '--agent');
    expect(await stepsOf(path, 'r1')).toBe(1);
  });

  test('whose module defines another agent now says so, and is kept', async () => {
    const { path, go } = await stored(interruptedRun({ agentId: 'accountant' }));
    expectRefusal(await go('resume', 'r1'), 'accountant', 'defines counter', 'record is kept');
    expect(await stepsOf(path, 'r1')).toBe(1);
  });

  test('that another program began needs --agent', async () => {
    const { go } = await stored(interruptedRun({ module: '' }));
    expectRefusal(await go('resume', 'r1'), 'was started by a program', 'executor.recover()', '--agent');
    expect((await go('resume', 'r1', '--agent', agentFile('counter'))).stdout).toBe('counted to 3\n');
  });

  test('that is parked is not resumed: it is no bad input, and is not over (operations 23)', async () => {
    const { path, go } = await stored(interruptedRun({ parked: { code: 'X', reason: 'it died thrice' } }));
    const { code, stdout, stderr } = await go('resume', 'r1');
    expect({ code, stdout }).toEqual({ code: 75, stdout: '' });
    expect(stderr).toMatch(/^pawl: run r1 is parked: it died thrice; `pawl show`[^\n]*\n$/);
    expect((await go('resume')).code).toBe(75);
    expect(await stepsOf(path, 'r1')).toBe(1);
  });

  test('is not taken over by a run with another prompt', async () => {
    const { path, go } = await stored(interruptedRun());
    const ended = await go('run', agentFile('counter'), 'something else', '--run-id', 'r1');
    expectRefusal(ended, /another request.*--run-id/);
    expect(await stepsOf(path, 'r1')).toBe(1);
  });

  test('with too long an id is refused', async () => {
    const { go } = await stored(interruptedRun());
    expectRefusal(await go('run', agentFile('counter'), '--run-id', 'x'.repeat(600)), 'at most 512 bytes');
  });
});

describe.skipIf(!hasTerminal)('an error on a terminal', () => {
  test('ends with the place in the docs that explains its code', async () => {
    const cwd = emptyFolder();
    await storeRuns(join(cwd, 'runs.db'), interruptedRun());
    makeTooNew(join(cwd, 'runs.db'));
    const terminal = new TerminalSession([process.execPath, bin, 'export', 'r1', '--store', 'runs.db'], { cwd });
    await terminal.shows('See docs/errors.md#checkpoint_too_new');
    expect(await terminal.ended).toMatchObject({ code: 2 });
  });
});
