import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sqliteStore } from 'pawl/stores/sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packageFlags } from '../toolchain/programs.ts';
import { seed, torture } from './random.ts';

const worker = fileURLToPath(new URL('./fork-worker.ts', import.meta.url));
let origin: string;

/** Runs a process that is killed at this moment of its writes; 0 = at none. @returns undefined if it was killed */
function work(folder: string, what: 'origin' | 'fork' | 'import', moment = 0): Record<string, unknown> | undefined {
  const args = [...packageFlags, worker, join(folder, 'runs.db'), what, String(moment)];
  const { signal, status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (signal === 'SIGKILL') return undefined;
  // The process after a kill says of a call with effect once that it may have taken effect.
  const complaints = stderr.replace(/^run: a call of tool pay may or may not have taken effect[^}]*}\n/, '');
  expect([status, complaints]).toEqual([0, '']);
  return stdout === '' ? {} : JSON.parse(stdout);
}

function copied(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-fork-'));
  cpSync(origin, folder, { recursive: true });
  return folder;
}

/** What a file of runs holds. */
async function stored(folder: string, name = 'runs.db') {
  const path = join(folder, name);
  if (!existsSync(path)) return { open: null, ended: null };
  const store = sqliteStore({ path });
  const read = { open: await store.load('r'), ended: await store.load('r', { ended: true }) };
  await store.close();
  return read;
}

/** Does the work once for each moment of its writes; by default for every fourth. */
async function atEachMoment(what: 'fork' | 'import', check: (folder: string) => Promise<void>): Promise<number> {
  const whole = copied();
  const { calls } = work(whole, what) as { calls: number };
  rmSync(whole, { recursive: true });
  let died = 0;
  for (let moment = 1; moment <= calls; moment++) {
    if (torture === 1 && moment % 4 !== seed % 4) continue;
    const folder = copied();
    if (work(folder, what, moment) === undefined) died += 1;
    await check(folder);
    rmSync(folder, { recursive: true });
  }
  return died;
}

beforeAll(() => {
  origin = mkdtempSync(join(tmpdir(), 'pawl-origin-'));
  work(origin, 'origin');
});
afterAll(() => rmSync(origin, { recursive: true, force: true }));

const limit = { timeout: 120_000 * torture };

describe('a process that is killed with SIGKILL at a write', () => {
  test(
    'of a fork leaves none or one: the same call ends it, pays once, and the origin is as it was (lab 12, 31)',
    limit,
    async () => {
      const before = await stored(origin);
      const died = await atEachMoment('fork', async (folder) => {
        expect(work(folder, 'fork')).toMatchObject({ status: 'ok', output: 'done', messages: 6 });
        const paid = readFileSync(join(folder, 'runs.db.paid'), 'utf8').split('\n');
        expect(paid.filter((line) => line.startsWith('fork')).length).toBeLessThanOrEqual(1);
        expect(await stored(folder)).toEqual(before);
      });
      expect(died).toBeGreaterThan(2);
    },
  );

  test(
    'of an import leaves no run or a whole one, which the next import completes or skips (lab 25)',
    limit,
    async () => {
      const died = await atEachMoment('import', async (folder) => {
        const { open, ended } = await stored(folder, 'runs.db.import');
        expect(open).toBeNull();
        if (ended) expect(ended).toMatchObject({ imported: true, outcome: { status: 'ok' } });
        expect(work(folder, 'import')).toMatchObject({ status: 'ok', isImported: true, runs: 1 });
      });
      expect(died).toBeGreaterThan(0);
    },
  );
});
