// Types come from tsc, file by file. The entry points come from rolldown, as a few files instead of a hundred:
// loading a module costs more than what stands in most of them. The command stays as tsc wrote it; it finds its own files by
// where they lie.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { minifySync, parseSync } from 'rolldown/utils';
import { buildStudioPage } from './build-studio.ts';
import { entryPoints } from './entry-points.ts';
import { pruneTypes } from './prune-types.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
process.chdir(root);

// tsc never deletes what an earlier build has left behind, and leftovers would be packed.
rmSync('dist', { recursive: true, force: true });
const { status } = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc'], { stdio: 'inherit' });
if (status !== 0) process.exit(status ?? 1);

await buildStudioPage();

const nameOf = (source: string): string => source.replace(/\.ts$/, '');
const entries = entryPoints.map(({ source }) => nameOf(source));
const inBrowsers = new Set(entryPoints.flatMap((entry) => (entry.inBrowsers ? [nameOf(entry.source)] : [])));
/** What each other entry point imports first: it throws on a Node that is too old. */
const check = 'src/shared/require-node';
const builtFiles = (): string[] => globSync('dist/**/*.js').map((path) => path.replaceAll('\\', '/'));
/** The command stays file by file. What it imports from the library is a name for code in the bundle, not a second copy. */
const isCommand = (file: string): boolean => /^dist\/(src\/cli|docs)\//.test(file);
const fromLibrary = builtFiles()
  .filter(isCommand)
  .flatMap(relativeImports)
  .filter((file) => !isCommand(file))
  .map((file) => file.replace(/^dist\/|\.js$/g, ''));
/** Which module imports which, statically. */
const imports = new Map<string, readonly string[]>();
const bundle = await rolldown({
  experimental: { attachDebugInfo: 'none' },
  input: {
    ...Object.fromEntries([...entries, ...fromLibrary].map((entry) => [entry, `dist/${entry}.js`])),
    [check]: 'dist/src/cli/require-node.js',
  },
  // The page of Studio is read at its first request.
  external: (id) => !/^[./]/.test(id) || id.endsWith('/page-files.js'),
  platform: 'node',
  // `use client` stays where it is: at the top of its entry point.
  onLog: (level, log, handler) => log.code !== 'MODULE_LEVEL_DIRECTIVE' && handler(level, log),
  plugins: [{ name: 'imports', moduleParsed: ({ id, importedIds }) => void imports.set(id, importedIds) }],
});

/** All that `import 'pawl'` needs stands in one file. */
let core: ReadonlySet<string> | undefined;
function isCore(id: string): boolean {
  core ??= reachedFrom(`${root}dist/src/index.js`);
  return core.has(id);
}

/** From the folder of an entry point to `dist`. */
function pathFrom(entry: string): string {
  return entry.split('/').slice(1).fill('..').join('/');
}

function reachedFrom(entry: string): Set<string> {
  const reached = new Set([entry]);
  // What is added while it is walked is walked as well.
  for (const id of reached) for (const imported of imports.get(id) ?? []) reached.add(imported);
  reached.delete(entry);
  return reached;
}

const { output } = await bundle.write({
  dir: 'dist',
  chunkFileNames: 'src/shared/[name].js',
  banner: ({ isEntry, name }) =>
    isEntry && entries.includes(name) && !inBrowsers.has(name) ? `import '${pathFrom(name)}/${check}.js';` : '',
  codeSplitting: { groups: [{ name: 'core', test: isCore }] },
  // The docstrings stand in the types; here they would only be read at every start.
  comments: { jsdoc: false, annotation: true, legal: true },
});
await bundle.close();

/** The page of Studio, the command and the examples stay; everything else is in the bundle now. */
const bundled = output.map(({ fileName }) => `dist/${fileName}`);
const page = 'dist/src/studio/page-files.js';
for (const file of builtFiles()) {
  if (isCommand(file)) dropComments(file);
  else if (!bundled.includes(file) && file !== page) rmSync(file);
}

for (const file of builtFiles()) if (file !== page) dropIndentation(file);

pruneTypes(entries.map((entry) => `dist/${entry}.d.ts`));

// An editor shows a type as it stands, so its indentation stays, as tabs.
for (const file of globSync('dist/**/*.d.ts')) {
  const text = readFileSync(file, 'utf8');
  writeFileSync(
    file,
    text.replaceAll(/^(?: {4})+/gm, (spaces) => '\t'.repeat(spaces.length / 4)),
  );
}

const command = 'dist/src/cli/bin.js';
if (existsSync(command)) chmodSync(command, 0o755);

/** Docstrings stand in the types, comments in the sources. Names and lines stay readable in a stack. */
function dropComments(file: string): void {
  const as = { compress: false, mangle: false, codegen: { removeWhitespace: false } };
  const { code, errors } = minifySync(file, readFileSync(file, 'utf8'), as);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`);
  writeFileSync(file, code);
}

/** A twentieth of the code is indentation, which no program reads. Lines of a template stay as they are. */
function dropIndentation(file: string): void {
  const text = readFileSync(file, 'utf8');
  const templates = templatesIn(parseSync(file, text).program).filter(({ start, end }) =>
    text.slice(start, end).includes('\n'),
  );
  const isInside = (at: number) => templates.some(({ start, end }) => start < at && at < end);
  writeFileSync(
    file,
    text.replaceAll(/^\t+/gm, (tabs, at: number) => (isInside(at) ? tabs : '')),
  );
}

interface Span {
  readonly type?: string;
  readonly start: number;
  readonly end: number;
}

function templatesIn(node: unknown, found: Span[] = []): readonly Span[] {
  if (typeof node !== 'object' || node === null) return found;
  if ((node as Span).type === 'TemplateElement') found.push(node as Span);
  for (const child of Object.values(node)) templatesIn(child, found);
  return found;
}

/** The files that a built file imports, paths from the root. */
function relativeImports(file: string): string[] {
  const text = readFileSync(file, 'utf8');
  const { staticImports, staticExports, dynamicImports } = parseSync(file, text).module;
  const requests = [
    ...staticImports.map(({ moduleRequest }) => moduleRequest.value),
    ...staticExports.flatMap(({ entries }) => entries.flatMap(({ moduleRequest }) => moduleRequest?.value ?? [])),
    ...dynamicImports.map(({ moduleRequest: { start, end } }) => text.slice(start + 1, end - 1)),
  ];
  return requests
    .filter((request) => request.startsWith('.'))
    .map((request) => posix.join(posix.dirname(file), request));
}
