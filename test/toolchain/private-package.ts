import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

interface Locked {
  readonly version?: string;
  readonly optional?: boolean;
}

/** For a download of 180 MB, ms. */
const TIME_LIMIT_MS = 600_000;

function packagesIn(lockfile: string): Readonly<Record<string, Locked>> {
  try {
    return JSON.parse(readFileSync(lockfile, 'utf8')).packages;
  } catch {
    return {};
  }
}

/** Returns whether a private package has what its lockfile says. What is optional may lack: it is for other machines. */
export function isInstalled(folder: string): boolean {
  const wanted = Object.entries(packagesIn(`${folder}/package-lock.json`)).filter(([path]) => path !== '');
  const there = packagesIn(`${folder}/node_modules/.package-lock.json`);
  return wanted.every(([path, { version, optional }]) =>
    path in there ? there[path]?.version === version : optional === true,
  );
}

/** Installs the packages of a private package. Where npm cannot, it says so itself, and `isInstalled` stays false. */
export function install(folder: string): void {
  // No install scripts: the packages hold the programs, and one of the scripts would report to its makers.
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const isWindows = process.platform === 'win32';
  spawnSync('npm', args, { cwd: folder, stdio: 'inherit', timeout: TIME_LIMIT_MS, shell: isWindows });
}
