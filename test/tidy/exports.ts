import { posix } from 'node:path';
import type { Finding } from './rules.ts';
import { isNode, type Node, nameOf, type Source, type SourceText } from './source.ts';

/** A statement that takes names from a file: `import { a } from './b.ts'`, `export { a } from './b.ts'`, `import * as b from …`. */
const taking = /\b(?:im|ex)port (?:type )?(\{[^}]*\}|\* as \w+) from '(\.[^']+)'/g;
const loading = /\bimport\('(\.[^']+)'\)/g;

/** Reports names that a file exports and no other file imports. Entry points export for users. @param takers all files that may import */
export function exportsAreUsed(
  sources: readonly Source[],
  { takers, entryPoints }: { readonly takers: readonly SourceText[]; readonly entryPoints: readonly string[] },
): Finding[] {
  const taken = new Set(takers.flatMap(namesTaken));
  return sources.flatMap((source) => {
    const { path } = source;
    if (entryPoints.includes(path) || taken.has(`${path} *`)) return [];
    return exportedNames(source)
      .filter(({ name }) => !taken.has(`${path} ${name}`))
      .map(({ name, line }) => ({ path, line, message: `exports ${name}, which no other file imports` }));
  });
}

/** Of a module that is loaded by `import()`, each word of the text may be a name. */
function namesTaken({ path, text }: SourceText): string[] {
  const named = [...text.matchAll(taking)].flatMap(([, names = '', specifier = '']) =>
    wordsOf(names).map((name) => `${targetOf(path, specifier)} ${name}`),
  );
  const loaded = [...text.matchAll(loading)].map(([, specifier = '']) => targetOf(path, specifier));
  const words = loaded.length > 0 ? wordsOf(text) : [];
  return [...named, ...loaded.flatMap((target) => words.map((word) => `${target} ${word}`))];
}

function wordsOf(text: string): readonly string[] {
  return text.match(/[\w$]+|\*/g) ?? [];
}

function targetOf(path: string, specifier: string): string {
  return posix.join(posix.dirname(path), specifier);
}

function exportedNames({ program, lineAt }: Source): { name: string; line: number }[] {
  return nodesIn(program.body).flatMap((statement) => {
    if (statement.type !== 'ExportNamedDeclaration') return [];
    const { declaration, specifiers, start } = statement;
    const declared = isNode(declaration) ? [declaration, ...nodesIn(declaration.declarations)] : [];
    const named = [...declared.map(({ id }) => id), ...nodesIn(specifiers).map(({ exported }) => exported)];
    return named
      .flatMap((each) => ({ name: nameOf(each) ?? '', line: lineAt(start) }))
      .filter(({ name }) => name !== '');
  });
}

function nodesIn(value: unknown): Node[] {
  return Array.isArray(value) ? value.filter(isNode) : [];
}

/**
 * Reports exported names that several files declare: who searches for one finds the other. A re-export is no declaration.
 * @param areParallel whether files may have the same names, because one does for its store what the other does for another
 */
export function namesAreDeclaredOnce(
  sources: readonly Source[],
  areParallel: (paths: readonly string[]) => boolean,
): Finding[] {
  const declared = sources.flatMap((source) =>
    declaredNames(source).map(({ name, line }) => ({ name, line, path: source.path })),
  );
  return [...Map.groupBy(declared, ({ name }) => name).values()].flatMap((places) => {
    const paths = [...new Set(places.map(({ path }) => path))];
    const [, second] = places;
    if (!second || paths.length < 2 || areParallel(paths)) return [];
    return { ...second, message: `exports ${second.name}, as does ${paths[0]}: one of them needs another name` };
  });
}

function declaredNames({ program, lineAt }: Source): { name: string; line: number }[] {
  return nodesIn(program.body).flatMap(({ type, declaration, start }) => {
    if (type !== 'ExportNamedDeclaration' || !isNode(declaration)) return [];
    const names = [declaration, ...nodesIn(declaration.declarations)].map(({ id }) => nameOf(id) ?? '');
    return names.filter((name) => name !== '').map((name) => ({ name, line: lineAt(start) }));
  });
}
