import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { sqliteStore } from 'pawl/stores/sqlite';
import { afterAll, describe, expect, test } from 'vitest';
import { agentFile, pawl } from '../cli/pawl.ts';

const child = fileURLToPath(new URL('private-child.ts', import.meta.url));
const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-private-'));
  folders.push(folder);
  return folder;
}

type Modes = Record<string, string>;

async function modesOf(what: string, umask: string, folder = emptyFolder()): Promise<Modes> {
  const { stdout } = await promisify(execFile)(process.execPath, [child, umask, folder, what]);
  return JSON.parse(stdout);
}

/** All that is open to others. */
const open = (modes: Modes) => Object.entries(modes).filter(([, mode]) => mode !== '600' && mode !== '700');

describe.skipIf(process.platform === 'win32').for(['000', '022'])('under the umask %s', (umask) => {
  test.for([
    {
      what: 'sqlite',
      name: 'a SQLite store',
      expected: ['new', 'new/deep', 'new/deep/runs.db', 'new/deep/runs.db-wal', 'new/deep/runs.db-shm'],
    },
    { what: 'budget', name: 'a budget', expected: ['new', 'new/budget.db', 'new/budget.db-wal'] },
  ] as const)('only this user may read what $name makes, while it is open and after', async ({ what, expected }) => {
    const modes = await modesOf(what, umask);
    expect(Object.keys(modes)).toEqual(expect.arrayContaining([...expected]));
    expect(open(modes)).toEqual([]);
  });

  test('only this user may read the checkpoint file, the records and the answers of a fan-out', async () => {
    const { project: _, 'project/old.txt': __, ...modes } = await modesOf('fan-out', umask);
    const records = ['.pawl/ask.json.runs', '.pawl/ask.json.runs/records.db'];
    const parts = ['.pawl', '.pawl/.gitignore', '.pawl/ask.json', ...records, '.pawl/answers.json'];
    expect(Object.keys(modes)).toEqual(expect.arrayContaining(parts.map((part) => `project/${part}`)));
    expect(open(modes)).toEqual([]);
  });

  test('applied files and their folders are as open as any source of the project, and what undoes them is not', async () => {
    const modes = await modesOf('apply', umask);
    const [file, folder] = umask === '000' ? ['666', '777'] : ['644', '755'];
    const shared = { project: folder, 'project/src': folder, 'project/src/deep': folder };
    const sources = { 'project/old.txt': file, 'project/src/deep/new.ts': file };
    expect(modes).toMatchObject({
      ...shared,
      ...sources,
      'project/.pawl/undo/1': '700',
      'project/.pawl/undo/1/0': '600',
    });
    expect(
      open(modes)
        .map(([name]) => name)
        .sort(),
    ).toEqual([...Object.keys(shared), ...Object.keys(sources)].sort());
  });

  test('the command line makes its folder and its store for this user only', async () => {
    const cwd = emptyFolder();
    const set = `data:text/javascript,process.umask(0o${umask})`;
    const nodeOptions = ['--import', set];
    expect(await pawl(['run', agentFile('counter'), 'count'], { cwd, nodeOptions })).toMatchObject({ code: 0 });
    const modes = ['.pawl', '.pawl/runs.db'].map((name) => (statSync(join(cwd, name)).mode & 0o777).toString(8));
    expect(modes).toEqual(['700', '600']);
  });
});

test.skipIf(process.platform === 'win32')(
  'a folder and a database that are there keep the permissions that their owner gave them',
  async () => {
    const folder = emptyFolder();
    const path = join(folder, 'runs', 'runs.db');
    mkdirSync(join(folder, 'runs'));
    writeFileSync(path, '');
    chmodSync(join(folder, 'runs'), 0o750);
    chmodSync(path, 0o640);
    const store = sqliteStore({ path });
    await store.listInterrupted();
    const modes = ['runs', 'runs/runs.db', 'runs/runs.db-wal'].map((name) => statSync(join(folder, name)).mode & 0o777);
    await store.close();
    expect(modes).toEqual([0o750, 0o640, 0o640]);
  },
);
