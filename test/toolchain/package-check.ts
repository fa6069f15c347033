// What a user gets: packs the package, lints the tarball, installs it in an empty folder, imports every entry point, and compiles
// against every entry point with older and newer compilers.
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { entryPoints } from './entry-points.ts';
import { checkTypes, compilerPackages } from './type-check.ts';

const MAX_PACKAGES = 9;
/** Of them XState 5 has 2.4 MB. Workflows brought the sum from 8.1 to 8.24 MB, `pawl/otel`, messages of workflows and Studio's drawing to 8.38,
 * retry, fork, replay and operations to 8.56, schedules, lists of models and log lines to 8.75, pages that others link to and pictures to 9.05,
 * the pages made of the code (options, members, commands), a tutorial and drawn pictures to 9.32, and code without
 * indentation and names of sources below 9.2 again; checks and messages of workflows, and traces over admissions and frozen processes, to 9.24;
 * calls of unknown outcome, results that are taken again, and deployments in `explain` to 9.31. */
const MAX_BYTES = 9_350_000;

const root = fileURLToPath(new URL('../..', import.meta.url));
const manifest: {
  name: string;
  exports: Record<string, unknown>;
  devDependencies: Record<string, string>;
} = readJson(join(root, 'package.json'));
/** Entry points that load an optional peer, and what these and the types of others need. */
const needPeers: ReadonlySet<string> = new Set(['./otel', './react', './restate']);
const peers = ['@ag-ui/core', '@opentelemetry/api', '@restatedev/restate-sdk', 'react', '@types/react'] as const;
// npm and the linters are started by `env node`: let them find the Node that runs this file.
const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}` };

const folder = mkdtempSync(join(tmpdir(), 'pawl-package-'));
try {
  const tarball = pack();
  await lint(tarball);
  const consumer = install(tarball);
  checkLinks(join(consumer, 'node_modules', manifest.name));
  importEveryEntryPoint(consumer, (subpath) => !needPeers.has(subpath));
  weigh(consumer);
  // Only now: the compilers are no part of what a user gets.
  npmInstall(consumer, [...compilerPackages, ...peers.map((name) => `${name}@${manifest.devDependencies[name]}`)]);
  importEveryEntryPoint(consumer, (subpath) => needPeers.has(subpath));
  checkTypes(
    consumer,
    entryPoints.map(({ name }) => name),
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function pack(): string {
  run(root, 'npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder]);
  const [tarball] = globSync('*.tgz', { cwd: folder });
  if (tarball === undefined) throw new Error(`npm pack has left no tarball in ${folder}`);
  return join(folder, tarball);
}

async function lint(tarball: string): Promise<void> {
  const content = new Uint8Array(readFileSync(tarball)).buffer;
  const { messages, pkg } = await publint({ pack: { tarball: content }, strict: true });
  // The sources are not packed. The condition that names them is looked at only where somebody sets it: in this repository.
  const wrong = messages.filter(({ code, path }) => code !== 'FILE_DOES_NOT_EXIST' || path.at(-1) !== 'pawl-source');
  if (wrong.length > 0) throw new Error(`publint: ${wrong.map((each) => formatMessage(each, pkg)).join('\n')}`);
  const bin = join(root, 'node_modules', '.bin');
  run(root, join(bin, 'attw'), [tarball, '--profile', 'esm-only', '--no-definitely-typed', '--no-emoji']);
}

function install(tarball: string): string {
  const consumer = mkdtempSync(join(folder, 'consumer-'));
  writeFileSync(join(consumer, 'package.json'), '{ "private": true, "type": "module" }\n');
  npmInstall(consumer, [tarball]);
  return consumer;
}

/** Every link from one page of the package to another file leads somewhere. */
function checkLinks(packed: string): void {
  const pages = globSync('**/*.md', { cwd: packed, exclude: ['node_modules/**'] });
  const dead = pages.flatMap((page) =>
    linksIn(readFileSync(join(packed, page), 'utf8'))
      .filter((link) => !existsSync(join(packed, dirname(page), link)))
      .map((link) => `${page}: ${link}`),
  );
  console.log(`${pages.length} pages, ${dead.length} dead links`);
  if (dead.length > 0) throw new Error(`links to what is not packed:\n${dead.join('\n')}`);
}

/** The paths that a page links to, without the parts of pages. */
function linksIn(page: string): string[] {
  const links = [...page.matchAll(/\]\(([^()\s]+)\)/g)].map(([, link = '']) => link.split('#')[0] ?? '');
  return links.filter((link) => link !== '' && !/^[a-z]+:/.test(link));
}

function npmInstall(consumer: string, packages: readonly string[]): void {
  const quietly = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
  run(consumer, 'npm', ['install', ...packages, ...quietly]);
}

function importEveryEntryPoint(consumer: string, isMeant: (subpath: string) => boolean): void {
  for (const subpath of Object.keys(manifest.exports).filter(isMeant)) {
    const specifier = manifest.name + subpath.slice(1);
    const attributes = subpath.endsWith('.json') ? ", { with: { type: 'json' } }" : '';
    const program = `
      const names = Object.keys(await import('${specifier}'${attributes}));
      if (names.length === 0) throw new Error('${specifier} exports nothing');
      console.log('${specifier}: ' + names.length + ' exports');`;
    run(consumer, process.execPath, ['--input-type=module', '--eval', program]);
  }
}

function weigh(consumer: string): void {
  const modules = join(consumer, 'node_modules');
  const lockfile: { packages: object } = readJson(join(modules, '.package-lock.json'));
  const packages = Object.keys(lockfile.packages).length;
  const files = globSync('**/*', { cwd: modules }).map((file) => statSync(join(modules, file)));
  const bytes = files.reduce((sum, stat) => sum + (stat.isFile() ? stat.size : 0), 0);
  console.log(`installed: ${packages} packages, ${(bytes / 1e6).toFixed(1)} MB`);
  if (packages > MAX_PACKAGES) throw new Error(`a user gets ${packages} packages, at most ${MAX_PACKAGES}`);
  if (bytes > MAX_BYTES) throw new Error(`a user gets ${bytes} bytes, at most ${MAX_BYTES}`);
}

function run(cwd: string, command: string, args: readonly string[]): void {
  const { status, error } = spawnSync(command, args, { cwd, env, stdio: 'inherit' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ended with ${status}`, { cause: error });
}

function readJson<T>(path: string): T {
  return JSON.parse(readFileSync(path, 'utf8'));
}
