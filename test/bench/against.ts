import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Build, Turns } from './against-worker.ts';
import { childNodeAside } from './child-node.ts';
import { inFolder } from './measure.ts';
import type { BenchPart } from './parts.ts';
import type { Part, Row } from './report.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const worker = fileURLToPath(new URL('./against-worker.ts', import.meta.url));

/** A change may cost this much. */
const BUDGET = 1.05;

/** Returns the hash of a commit of this clone. Throws where Git knows none of that name. */
export function commitOf(name: string): string {
  const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`];
  const { status, stdout, error } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  if (error) throw new Error(`--against needs Git: ${error.message}`);
  if (status !== 0) throw new Error(`this clone has no commit ${JSON.stringify(name)}.`);
  return stdout.trim();
}

/** Returns the part that measures a step of this build beside one of an earlier commit, by turns. */
export function againstPart(commit: string): BenchPart {
  const title = `CPU a step beside commit ${commit.slice(0, 8)}`;
  return { name: 'against', title, isCore: true, measure: (isQuick) => againstRows(commit, isQuick) };
}

function againstRows(commit: string, isQuick: boolean): Promise<Part> {
  return inFolder(async (folder) => {
    const builds = await buildsIn(folder, commit);
    const rows: Row[] = [];
    for (const store of ['memory', 'sqlite']) {
      const rounds = isQuick ? 6 : 60;
      const printed = await childNodeAside(
        // Each build gets packages of its own, as V8 sees it: what one build teaches XState's code must not cost another.
        ['--preserve-symlinks', worker, JSON.stringify({ store, rounds, builds })],
        30 * 60_000,
      );
      rows.push(rowOf(store, JSON.parse(printed)));
    }
    return { rows, broken: [] };
  });
}

/** This build, an older one, and this one again: what the second of two equal ones costs shows how far to trust a ratio. */
async function buildsIn(folder: string, commit: string): Promise<Build[]> {
  const builds: Build[] = [];
  for (const name of ['now', 'again']) {
    const path = join(folder, name);
    mkdirSync(path);
    cpSync(join(root, 'dist'), join(path, 'dist'), { recursive: true });
    cpSync(join(root, 'package.json'), join(path, 'package.json'));
    builds.push(withPackages(path));
  }
  const before = join(folder, 'before');
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, maxBuffer: 1 << 30 });
  mkdirSync(before);
  execFileSync('tar', ['-x', '-C', before], { input: git('archive', '--format=tar', commit) });
  const build = withPackages(before);
  execFileSync(process.execPath, ['test/toolchain/build.ts'], { cwd: before, stdio: 'pipe' });
  return [...builds, build].map(existing);
}

/** A build runs on the packages that are installed here, also one of a commit that had others. */
function withPackages(path: string): Build {
  symlinkSync(join(root, 'node_modules'), join(path, 'node_modules'), 'dir');
  const { exports } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'));
  const fileOf = (door: string) => join(path, exports[door].default);
  return { pawl: fileOf('.'), sqlite: fileOf('./stores/sqlite') };
}

function existing(build: Build): Build {
  const missing = Object.values(build).find((path) => !existsSync(path));
  if (missing !== undefined) throw new Error(`that commit does not build ${missing}: it is too old to be compared`);
  return build;
}

function rowOf(store: string, { now, again, before }: Turns): Row {
  const ratio = ratioOf(now, before);
  const control = ratioOf(again, now);
  const note = `${shown(ratio)}; a copy of this build beside it: ${shown(control)}`;
  return { what: `CPU a step, ${store} store`, value: ratio.mean, unit: 'x', budget: BUDGET, note };
}

const shown = ({ mean, error }: { readonly mean: number; readonly error: number }) =>
  `${mean.toFixed(3)} ±${(error * 100).toFixed(1)} %`;

/** The geometric mean of what one build cost to what another did in the same round, and two standard errors of it. */
export function ratioOf(ours: readonly number[], theirs: readonly number[]): { mean: number; error: number } {
  const logs = ours.map((cost, i) => Math.log(cost / (theirs[i] ?? Number.NaN)));
  const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length;
  const variance = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / (logs.length - 1);
  return { mean: Math.exp(mean), error: 2 * Math.sqrt(variance / logs.length) };
}
