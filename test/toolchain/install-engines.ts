// Installs what this machine can have of test/engines/package.json. Where nothing can be installed it says so and succeeds:
// the tests that need an engine are skipped by name.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { engines, whyNo } from '../engines/engines.ts';

interface Lockfile {
  readonly packages: Readonly<Record<string, { readonly version?: string }>>;
}

/** For a download of 180 MB, ms. */
const TIME_LIMIT_MS = 600_000;
const folder = fileURLToPath(new URL('../engines', import.meta.url));

function packagesIn(path: string): Lockfile['packages'] {
  try {
    return (JSON.parse(readFileSync(`${folder}/${path}`, 'utf8')) as Lockfile).packages;
  } catch {
    return {};
  }
}

/** Whether each engine is here, in the version of the lockfile. */
function isInstalled(): boolean {
  const wanted = packagesIn('package-lock.json');
  const there = Object.entries(packagesIn('node_modules/.package-lock.json'));
  return (
    there.length >= engines.length &&
    there.every(([path, { version }]) => wanted[path]?.version === version) &&
    engines.every((engine) => whyNo(engine) === undefined)
  );
}

if (!isInstalled()) {
  // No install scripts: the packages hold the programs, and one of the scripts would report to its makers.
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const isWindows = process.platform === 'win32';
  spawnSync('npm', args, { cwd: folder, stdio: 'inherit', timeout: TIME_LIMIT_MS, shell: isWindows });
}
for (const engine of engines) console.log(`${engine}: ${whyNo(engine) ?? 'installed'}`);
