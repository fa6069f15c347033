import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createExecutor } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { scriptedModel } from 'pawl/testing';
import { afterAll, describe, expect, test } from 'vitest';
import { until } from '../fixtures/host.ts';
import { bin } from '../toolchain/programs.ts';
import counter from './agents/counter.ts';
import { agentFile, emptyFolder, jsonLines } from './pawl.ts';

const { execPath } = process;
/** Without what the npm that runs the tests has set: a worker would take it for its own. */
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:npm_|NODE_RUN_)/.test(name)));
const PATH = `${dirname(execPath)}:${env.PATH}`;
const hasNpm = spawnSync('npm', ['--version'], { env: { ...env, PATH } }).status === 0;
const canUnshare = spawnSync('unshare', ['--pid', '--fork', '--mount-proc', 'true']).status === 0;

const words = ['work', agentFile('counter'), '--store', 'runs.db', '--json', '--drain', '2s'];
const quoted = words.map((word) => `'${word}'`).join(' ');
const node = `'${execPath}' '${bin}' ${quoted}`;

/** What becomes of a worker whose first process gets a SIGTERM. */
type Fate = 'drained' | 'killed' | 'deaf';

interface Start {
  readonly argv: readonly string[];
  readonly fate: Fate;
  readonly needsNpm?: true;
}

/** As first process of a terminal or a unit, and as process 1 of a container. */
const starts: { readonly [how: string]: Start } = {
  'node bin.js': { argv: [execPath, bin, ...words], fate: 'drained' },
  'node_modules/.bin/pawl': { argv: ['node_modules/.bin/pawl', ...words], fate: 'drained' },
  "sh -c 'exec node bin.js'": { argv: ['sh', '-c', `exec ${node}`], fate: 'drained' },
  'npm run': { argv: ['npm', 'run', '--silent', 'work'], fate: 'drained', needsNpm: true },
  'npm exec': { argv: ['npm', 'exec', '--silent', '--', 'pawl', ...words], fate: 'drained', needsNpm: true },
  'node --run': { argv: [execPath, '--run', 'work'], fate: 'drained' },
  // A shell that has ended may have meant that, as in `nohup … &`.
  "sh -c 'node bin.js'": { argv: ['sh', '-c', `${node}; exit $?`], fate: 'deaf' },
  "sh -c 'npm run'": { argv: ['sh', '-c', 'npm run --silent work; exit $?'], fate: 'deaf', needsNpm: true },
};
const firstStarts: { readonly [how: string]: Start } = {
  'node bin.js': { argv: [execPath, bin, ...words], fate: 'drained' },
  'node_modules/.bin/pawl': { argv: ['node_modules/.bin/pawl', ...words], fate: 'drained' },
  "sh -c 'exec node bin.js'": { argv: ['sh', '-c', `exec ${node}`], fate: 'drained' },
  'npm run': { argv: ['npm', 'run', '--silent', 'work'], fate: 'killed', needsNpm: true },
  'node --run': { argv: [execPath, '--run', 'work'], fate: 'deaf' },
  "sh -c 'node bin.js'": { argv: ['sh', '-c', `${node}; exit $?`], fate: 'deaf' },
  "sh -c 'npm run'": { argv: ['sh', '-c', 'npm run --silent work; exit $?'], fate: 'deaf', needsNpm: true },
};

const groups: ChildProcess[] = [];
afterAll(() => {
  // Each is the leader of a group of its own: what npm left behind ends with it.
  for (const { pid } of groups) {
    try {
      if (pid !== undefined) process.kill(-pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  }
});

/** A folder with the command, and a script of npm that starts it. */
function folderWithBin(): string {
  const cwd = emptyFolder();
  mkdirSync(join(cwd, 'node_modules/.bin'), { recursive: true });
  symlinkSync(bin, join(cwd, 'node_modules/.bin/pawl'));
  chmodSync(bin, 0o755);
  writeFileSync(join(cwd, 'package.json'), JSON.stringify({ private: true, scripts: { work: `pawl ${quoted}` } }));
  return cwd;
}

async function admit(cwd: string, runId: string): Promise<void> {
  const store = sqliteStore({ path: join(cwd, 'runs.db') });
  const executor = createExecutor({ models: { fast: scriptedModel([]) }, store });
  await executor.start(counter, { runId, prompt: 'count, please' }, { drive: 'later' });
  await executor.shutdown();
  await store.close();
}

/** Starts a worker, gives its first process a SIGTERM while it works on a run, and waits for what should come of it. */
async function fateOf({ argv, fate }: Start, isFirst: boolean): Promise<Fate> {
  const cwd = folderWithBin();
  const hold = join(cwd, 'hold');
  await admit(cwd, 'r');
  const [file = '', ...args] = isFirst ? ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child', ...argv] : argv;
  const options = { ...env, PATH, HOLD: hold, PAWL_STATE_HOME: cwd };
  const child = spawn(file, args, { cwd, env: options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  groups.push(child);
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) child[name].on('data', (chunk) => (said[name] += chunk));
  const closed = new Promise<void>((resolve) => child.on('close', () => resolve()));
  await until(() => said.stderr.includes('holding'), 'the run is under way');
  const { pid = 0 } = child;
  process.kill(isFirst ? Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()) : pid, 'SIGTERM');
  if (fate === 'deaf') {
    // It takes the next run too, as if there had been no signal.
    await admit(cwd, 'next');
    await until(() => said.stderr.split('holding').length === 3, 'the next run is under way');
    return 'deaf';
  }
  await closed;
  return jsonLines(said.stdout).at(-1)?.type === 'work.ended' ? 'drained' : 'killed';
}

describe.skipIf(process.platform === 'win32')('a worker whose first process gets a SIGTERM', () => {
  test.for(Object.entries(starts))(
    'started by `%s` ends as its page says (operations 20, 41)',
    async ([, start], { skip }) => {
      skip(start.needsNpm === true && !hasNpm, 'npm is not installed');
      expect(await fateOf(start, false)).toBe(start.fate);
    },
  );

  test.skipIf(!canUnshare).for(Object.entries(firstStarts))(
    'started as process 1 by `%s` ends as its page says (operations 21, 41)',
    async ([, start], { skip }) => {
      skip(start.needsNpm === true && !hasNpm, 'npm is not installed');
      expect(await fateOf(start, true)).toBe(start.fate);
    },
  );
});
