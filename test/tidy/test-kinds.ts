import { posix } from 'node:path';
import { parseSync } from 'rolldown/utils';
import type { EntryPoint } from '../toolchain/entry-points.ts';
import type { Finding } from './rules.ts';
import type { SourceText } from './source.ts';

/** The end of the name of a test file that starts processes or servers. Vitest runs these as a project of their own. */
const ending = '.process.test.ts';

/** Modules with which a process, a thread or a server is started. */
const starters: readonly string[] = [
  'child_process',
  'cluster',
  'dgram',
  'http',
  'http2',
  'https',
  'net',
  'worker_threads',
];

/**
 * Test files whose name does not say whether they start processes, threads or servers: by themselves, or by what they
 * import, directly or not. Imports of types do not count.
 * @param sources the tests, and all that they may import
 */
export function misnamedTests(
  sources: readonly SourceText[],
  entryPoints: readonly Pick<EntryPoint, 'name' | 'source'>[],
): Finding[] {
  const wayOf = waysToStarters(sources, entryPoints);
  return sources.flatMap(({ path }): Finding[] => {
    if (!path.endsWith('.test.ts')) return [];
    const way = wayOf(path);
    if (path.endsWith(ending) === (way !== undefined)) return [];
    const message = way
      ? `must end in ${ending}: ${way.join(' > ')}`
      : `must not end in ${ending}: it starts no process`;
    return [{ path, line: 1, message }];
  });
}

/** How a file comes to a module that starts processes, from import to import; undefined = it does not. */
function waysToStarters(sources: readonly SourceText[], entryPoints: readonly Pick<EntryPoint, 'name' | 'source'>[]) {
  const packages = new Map(entryPoints.map(({ name, source }) => [name, source]));
  const resolved = (path: string, specifier: string) => ({
    specifier,
    isStarter: isStarter(specifier),
    next: specifier.startsWith('.') ? posix.join(posix.dirname(path), specifier) : packages.get(specifier),
  });
  // Each file is met by many tests: what it loads is resolved once.
  const files = new Map(
    sources.map(({ path, text }) => [path, loadedBy(path, text).map((specifier) => resolved(path, specifier))]),
  );
  return (path: string): string[] | undefined => {
    const from = new Map<string, string | undefined>([[path, undefined]]);
    const back = (at: string | undefined): string[] => (at === undefined ? [] : [...back(from.get(at)), at]);
    // What is added while it is walked is walked as well.
    for (const file of from.keys()) {
      for (const { specifier, isStarter, next } of files.get(file) ?? []) {
        if (isStarter) return [...back(file), specifier].slice(1);
        if (next !== undefined && !from.has(next)) from.set(next, file);
      }
    }
    return undefined;
  };
}

function isStarter(specifier: string): boolean {
  return starters.includes(specifier.replace(/^node:/, ''));
}

/** What a file loads: by imports, re-exports and `import()` of a literal. Read off the parser's list: there are many files. */
function loadedBy(path: string, text: string): string[] {
  const { staticImports, staticExports, dynamicImports } = parseSync(path, text, { lang: 'ts' }).module;
  const isLoaded = (entries: readonly { readonly isType: boolean }[]) =>
    entries.length === 0 || entries.some(({ isType }) => !isType);
  return [
    ...staticImports.flatMap(({ entries, moduleRequest }) => (isLoaded(entries) ? [moduleRequest.value] : [])),
    ...staticExports.flatMap(({ entries }) =>
      entries.flatMap(({ isType, moduleRequest }) => (moduleRequest && !isType ? [moduleRequest.value] : [])),
    ),
    ...dynamicImports.map(({ moduleRequest: { start, end } }) =>
      text.slice(start, end).replaceAll(/^['"`]|['"`]$/g, ''),
    ),
  ];
}
