/*
 * A process with a umask of its own: `node private-child.ts <umask> <folder> <what>`. It uses one thing of Pawl below the folder,
 * and prints the permissions of all that is there while it is in use, as JSON: `{ "<path>": "600", … }`.
 */
import { lstatSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sqliteBudget } from '../../src/budget/sqlite.ts';
import { applyWrites, fanOut } from '../../src/fan-out/index.ts';
import { type CheckpointStore, createBudget, createExecutor, defineAgent } from '../../src/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { callTool, hang, reply, scriptedModel } from '../../src/testing/index.ts';

const [umask = '', folder = '', what = ''] = process.argv.slice(2);
process.umask(Number.parseInt(umask, 8));
const at = (name: string) => join(folder, name);

async function use(store: CheckpointStore & { close(): Promise<void> }): Promise<Modes> {
  const models = { fast: scriptedModel([reply('done'), hang()]) };
  const executor = createExecutor({ models, store, logger: { warn: () => {} } });
  const agent = defineAgent({ id: 'worker', instructions: 'Work.' });
  await executor.run(agent, { runId: 'ended', prompt: 'Go.' });
  await executor.start(agent, { runId: 'open', prompt: 'Go.' });
  await executor.control('open').steer('hello');
  const modes = modesBelow(folder);
  await executor.shutdown({ drainMs: 0 });
  await store.close();
  return { ...modes, ...modesBelow(folder) };
}

type Modes = Record<string, string>;

const uses: Readonly<Record<string, () => Promise<Modes>>> = {
  sqlite: () => use(sqliteStore({ path: at('new/deep/runs.db') })),

  async budget() {
    const budget = createBudget({ tokens: 1_000_000, store: sqliteBudget({ path: at('new/budget.db') }) });
    const executor = createExecutor({ models: { fast: scriptedModel([reply('done')]) }, ports: { budget } });
    await executor.run(defineAgent({ id: 'worker', instructions: 'Work.' }), { prompt: 'Go.' });
    return modesBelow(folder);
  },

  /** The modes while it is under way and when it is interrupted, then of the answers. */
  async 'fan-out'() {
    mkdirSync(at('project'));
    writeFileSync(at('project/old.txt'), 'old');
    const model = () => [callTool('write_file', { path: 'old.txt', content: 'new' }), reply('done')];
    const leaving = new AbortController();
    const path = at('project/.pawl/ask.json');
    const options = { prompt: 'Write.', path, root: at('project'), logger: { warn: () => {} } };
    let modes: Modes = {};
    const models = { a: scriptedModel(model()), b: scriptedModel([callTool('list_files', {}), hang()]) };
    const onTurn = () => {
      modes = { ...modes, ...modesBelow(folder) };
      if (Object.keys(modes).some((name) => name.endsWith('.runs/records.db'))) leaving.abort();
    };
    await fanOut({ ...options, models, signal: leaving.signal, onTurn });
    modes = { ...modes, ...modesBelow(folder) };
    await fanOut({ ...options, models: { a: scriptedModel(model()), b: scriptedModel([reply('done')]) } });
    return { ...modes, ...modesBelow(folder) };
  },

  /** What is applied are sources of the project; what undoes it is not. */
  async apply() {
    mkdirSync(at('project'));
    writeFileSync(at('project/old.txt'), 'old');
    const proposedWrites = [
      { path: 'old.txt', content: 'new' },
      { path: 'src/deep/new.ts', content: 'new' },
    ];
    await applyWrites({ proposedWrites }, { root: at('project') });
    return modesBelow(folder);
  },
};

function modesBelow(path: string, prefix = ''): Modes {
  const modes: Modes = {};
  for (const name of readdirSync(path)) {
    const stats = lstatSync(join(path, name), { throwIfNoEntry: false });
    if (!stats) continue;
    modes[prefix + name] = (stats.mode & 0o777).toString(8);
    if (stats.isDirectory()) Object.assign(modes, modesBelow(join(path, name), `${prefix}${name}/`));
  }
  return modes;
}

process.stdout.write(JSON.stringify(await uses[what]?.()));
process.exit();
