import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { oneLine } from '../../src/cli/ui/failure.ts';
import { lineFor } from '../../src/cli/ui/shell-words.ts';
import type { RunOutcome } from '../../src/index.ts';
import type { Claim } from '../../src/kit.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { sampleMeta, sampleOutcome, sampleRecord } from '../../src/testing/store-contract/records.ts';
import { bin } from '../toolchain/programs.ts';
import { agentFile, emptyFolder, jsonLines, pawl } from './pawl.ts';
import { interruptedRun, storeRuns } from './stored-runs.ts';
import { hasTerminal, TerminalSession } from './terminal.ts';

/** Fills the clipboard, erases the window, turns text around, and speaks to three machines of continuous integration. */
const HOSTILE =
  'x\u001b]52;c;cm0gLXJm\u0007\u001b[2J\u009b3A\u202ey\r\n::error::pwned\n  ::add-mask::a\n##[error]z ##vso[task.complete]w';

const hostileCall = (toolName: string) => [
  {
    role: 'assistant' as const,
    content: [{ type: 'tool-call' as const, toolCallId: 'a', toolName, input: { text: HOSTILE } }],
  },
  {
    role: 'tool' as const,
    content: [
      { type: 'tool-result' as const, toolCallId: 'a', toolName, output: { type: 'text' as const, value: HOSTILE } },
    ],
  },
];

/** A store in which every text is hostile, its ids too. */
async function hostileStore() {
  const cwd = emptyFolder();
  const { meta } = interruptedRun();
  const names = { agentName: HOSTILE, prompt: HOSTILE, callerId: HOSTILE };
  const openStep = {
    message: hostileCall(HOSTILE)[0],
    calls: [{ callId: 'a', name: HOSTILE, input: { text: HOSTILE }, effect: 'once', state: 'started', attempt: 1 }],
  };
  await storeRuns(
    join(cwd, '.pawl/runs.db'),
    interruptedRun({ meta: { ...meta, ...names, runId: 'r1' }, messages: hostileCall(HOSTILE), openStep } as never),
    interruptedRun({ meta: { ...meta, ...names, runId: 'r2' }, parked: { code: 'X', reason: HOSTILE } }),
    interruptedRun({ meta: { ...meta, ...names, runId: `r3${HOSTILE}` }, messages: [] }),
  );
  return cwd;
}

/** What steers a terminal, or is a command in the log of a machine of continuous integration. */
function expectHarmless(...texts: readonly string[]): void {
  for (const text of texts) {
    expect(text).not.toMatch(/[^\P{Cc}\n\t]|\p{Bidi_Control}|[\u2028\u2029]/u);
    expect(text).not.toMatch(/^[^\S\n]*::|##\[|##vso\[/m);
  }
}

describe.concurrent('what a store holds', () => {
  test.for([
    ['list'],
    ['show', 'r1'],
    ['show', 'r2'],
    ['show', `r3${HOSTILE}`],
    ['show', `none${HOSTILE}`],
    ['doctor'],
    ['resume'],
    ['resume', `r3${HOSTILE}`],
    ['recover', agentFile('counter')],
    ['cancel', `r3${HOSTILE}`],
    ['park', `r3${HOSTILE}`, HOSTILE],
    ['unpark', 'r2'],
    ['steer', `r3${HOSTILE}`, HOSTILE],
    ['prune', '--parked', '--older-than', '1s', '--dry-run'],
  ])('steers no terminal and no log by way of `pawl %s`, in pipes too', async (args) => {
    const { stdout, stderr } = await pawl(args, { cwd: await hostileStore() });
    expect(stdout + stderr).not.toBe('');
    expectHarmless(stdout, stderr);
  });

  test('is the same in JSON: only its spelling is harmless', async () => {
    const cwd = await hostileStore();
    for (const args of [
      ['show', 'r1', '--json'],
      ['list', '--json'],
      ['doctor', '--json'],
    ]) {
      const { stdout, stderr } = await pawl(args, { cwd });
      expectHarmless(stdout, stderr);
    }
    const { stdout } = await pawl(['show', 'r1', '--json'], { cwd });
    expect(JSON.parse(stdout).record.meta).toMatchObject({ agentName: HOSTILE, prompt: HOSTILE });
  });

  test('has its columns in a list: each run is one line', async () => {
    const { stdout } = await pawl(['list'], { cwd: await hostileStore() });
    expect(stdout.split('\n')).toHaveLength(5);
  });
});

describe.concurrent('what a model and a tool say', () => {
  const agent = `import { defineAgent, defineTool } from 'pawl';
    import { callTool, reply, scriptedModel } from 'pawl/testing';
    const text = ${JSON.stringify(HOSTILE)};
    const look = defineTool({ name: 'look', description: 'x', effect: 'read', input: { type: 'object' }, execute: async () => text });
    export default defineAgent({ id: 'a', name: text, instructions: 'x', tools: [look] });
    export const models = { fast: scriptedModel([callTool('look', {}), callTool(text, {}), reply(text)]) };`;

  function folder(): string {
    const cwd = emptyFolder();
    writeFileSync(join(cwd, 'agent.ts'), agent);
    return cwd;
  }

  test('steers no terminal and no log in a pipe; the answer keeps its lines', async () => {
    const { code, stdout, stderr } = await pawl(['run', 'agent.ts', 'go'], { cwd: folder() });
    expect(code).toBe(0);
    expectHarmless(stdout, stderr);
    expect(stdout).toBe('xy\n: :error::pwned\n  : :add-mask::a\n## [error]z ## vso[task.complete]w\n');
  });

  test('is exact with --json', async () => {
    const { stdout, stderr } = await pawl(['run', 'agent.ts', 'go', '--json'], { cwd: folder() });
    expectHarmless(stdout, stderr);
    expect(jsonLines(stdout).at(-1)).toMatchObject({ type: 'run.ended', output: HOSTILE });
  });

  test.skipIf(!hasTerminal)('steers no terminal while it is watched: the only sequences are our own', async () => {
    const session = new TerminalSession([process.execPath, bin, 'run', 'agent.ts', 'go'], { cwd: folder() });
    expect(await session.ended).toEqual({ code: 0, signal: null });
    for (const hostile of ['\u001b]', '\u0007', '\u009b', '\u202e', '\u001b[2J'])
      expect(session.written).not.toContain(hostile);
    expect(session.written).toContain('\u001b[32m✓\u001b[39m');
  });

  test('in an error of an agent module is one harmless line', async () => {
    const cwd = emptyFolder();
    writeFileSync(join(cwd, 'agent.ts'), `throw new Error(${JSON.stringify(HOSTILE)}); export default 1;`);
    const { stderr } = await pawl(['run', 'agent.ts', 'go'], { cwd, env: { PAWL_DEBUG: '1' } });
    expectHarmless(stderr);
  });

  test('as an audit has it steers neither `pawl show` nor `pawl list --all` nor `pawl stats`', async () => {
    const cwd = emptyFolder();
    mkdirSync(join(cwd, '.pawl'));
    await using store = sqliteStore({ path: join(cwd, '.pawl/runs.db') });
    const error = { name: 'Error', message: HOSTILE, code: 'X' };
    const meta = { ...sampleMeta('r'), prompt: HOSTILE, agentName: HOSTILE, agentId: HOSTILE, callerId: HOSTILE };
    const outcome = { ...sampleOutcome('r'), status: 'error', output: HOSTILE, error, run: { meta } } as RunOutcome;
    const claim = (await store.claim('r', 'me', 60_000)) as Claim;
    await store.save({ ...sampleRecord('r'), meta, outcome }, { claim });
    await store.history.end(claim, { outcome, keepUntil: Number.POSITIVE_INFINITY, isCounted: true });
    for (const args of [
      ['show', 'r'],
      ['list', '--all'],
      ['stats', '--by', 'caller'],
      ['stats', '--by', 'agent'],
    ]) {
      const { stdout, stderr } = await pawl(args, { cwd });
      expect(stdout).not.toBe('');
      expectHarmless(stdout, stderr);
    }
  });
});

describe.concurrent('`pawl ask diff`', () => {
  /** The folder of a question whose answer proposes a file with these contents. */
  async function asked(content: string): Promise<string> {
    const cwd = emptyFolder();
    writeFileSync(join(cwd, 'greeting.txt'), 'Hello!\nBye!\n');
    writeFileSync(
      join(cwd, 'models.ts'),
      `import { callTool, reply, scriptedModel } from 'pawl/testing';
       export const models = { editor: scriptedModel([
         callTool('read_file', { path: 'greeting.txt' }),
         callTool('write_file', { path: 'greeting.txt', content: ${JSON.stringify(content)} }),
         reply('Done.'),
       ]) };`,
    );
    expect(await pawl(['ask', 'Greet.', '--module', 'models.ts'], { cwd })).toMatchObject({ code: 0 });
    return cwd;
  }
  const onTerminal = async (cwd: string, env: NodeJS.ProcessEnv = {}) => {
    const session = new TerminalSession([process.execPath, bin, 'ask', 'diff'], { cwd, env });
    expect(await session.ended).toEqual({ code: 0, signal: null });
    return session.written;
  };

  test.skipIf(!hasTerminal)(
    'is coloured on a terminal: heads bold, places cyan, what goes red, what comes green',
    async () => {
      const written = await onTerminal(await asked('Hello, world!\n++ more\n'));
      expect(written).toContain('\u001b[1mdiff ');
      expect(written).toContain('\u001b[36m@@ -1,2 +1,2 @@\u001b[39m');
      expect(written).toContain('\u001b[31m-Hello!\u001b[39m');
      expect(written).toContain('\u001b[32m+Hello, world!\u001b[39m');
      expect(written).toContain('\u001b[32m+++ more\u001b[39m');
    },
  );

  test.skipIf(!hasTerminal)('has no colours where NO_COLOR is set', async () => {
    const written = await onTerminal(await asked('Hello, world!\n'), { NO_COLOR: '1' });
    expect(written).toContain('+Hello, world!');
    expect(written).not.toContain('\u001b[3');
  });

  test('has no colours in a pipe', async () => {
    const { stdout } = await pawl(['ask', 'diff'], { cwd: await asked('Hello, world!\n') });
    expect(stdout).toContain('\n-Hello!\n-Bye!\n+Hello, world!\n');
    expectHarmless(stdout);
  });

  test('writes out what is not seen: a proposal hides nothing from the person who applies it', async () => {
    const cwd = await asked('if (admin\u202e \u2066// check\u2069\u2066) {\u001b[8m\n');
    const { stdout } = await pawl(['ask', 'diff'], { cwd });
    expect(stdout).toContain('+if (admin<U+202E> <U+2066>// check<U+2069><U+2066>) {<U+001B>[8m\n');
    const exact = await pawl(['ask', 'diff', '--json'], { cwd });
    expect(JSON.parse(exact.stdout).diff).toContain('+if (admin\u202e \u2066// check\u2069\u2066) {\u001b[8m\n');
    expectHarmless(stdout, exact.stdout);
    expect(readFileSync(join(cwd, 'greeting.txt'), 'utf8')).toBe('Hello!\nBye!\n');
  });
});

describe('a printed command', () => {
  const ids = [
    '$(touch pwned)\u001b[2J',
    "a'b",
    'a b',
    'new\nline',
    'zwsp\u200b\u202e',
    'back\\slash `x` "y"',
    '\u{1f600}\u001b',
    '-x',
    '--agent=/tmp/evil.mjs',
  ];

  test.for(ids)('names its run for a shell, for any id: %j', (id) => {
    const line = lineFor('show', [id], ' --store runs.db');
    // Nothing that a terminal obeys, or that the printing of lines would change.
    expect(oneLine(line)).toBe(line);
    const script = `${line.slice(line.indexOf('show'))} | cat`.replace(
      /^show/,
      "node -e 'console.log(JSON.stringify(process.argv.slice(1)))' --",
    );
    const { stdout } = spawnSync('bash', ['-c', script], {
      encoding: 'utf8',
      cwd: emptyFolder(),
      env: { ...process.env, LC_ALL: 'C.UTF-8' },
    });
    expect(JSON.parse(stdout)).toContain(id);
    if (id.startsWith('-')) expect(line).toMatch(/ --store runs\.db -- /);
  });

  test('of a run whose id begins with a dash is about that run', async () => {
    const cwd = emptyFolder();
    const { meta } = interruptedRun();
    await storeRuns(join(cwd, 'runs.db'), interruptedRun({ meta: { ...meta, runId: '--agent=evil.mjs' } } as never));
    const shown = await pawl(['show', '--store', 'runs.db', '--', '--agent=evil.mjs'], { cwd });
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining('--agent=evil.mjs') });
  });
});
