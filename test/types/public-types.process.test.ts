import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { entryPoints } from '../toolchain/entry-points.ts';
import { typeErrors, typeSettings } from '../toolchain/type-check.ts';
import { hiddenTypes } from './public-types.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const typesOf = (source: string) => join(root, 'dist', source.replace(/\.ts$/, '.d.ts'));
/** Types for all entry points come from these. */
const common = ['src/index.ts', 'src/kit.ts', 'machines/index.ts', 'src/client/index.ts'].map(typesOf);

describe('the published types', () => {
  test.for(entryPoints)('of $name name no type in a public signature that no entry point exports', ({ source }) => {
    expect(hiddenTypes(typesOf(source), common)).toEqual([]);
  });

  // Inside the package, so that `import 'pawl'` means the package itself, as it was built.
  const folder = join(root, 'test/types/.consumer');
  beforeAll(() => mkdirSync(folder, { recursive: true }));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  // `npm run package-check` has the other two, and older compilers.
  const settings = typeSettings.filter((_, i) => i % 3 === 0);
  test.for(settings)(
    'compile with target ES2022, no other library, no types of Node and skipLibCheck off: %j',
    (setting) => {
      const tsc = join(root, 'node_modules/typescript/bin/tsc');
      // Each further checker would check the libraries' types again.
      const options = ['--checkers', '1'];
      expect(typeErrors(folder, { tsc, options, entryPoints: entryPoints.map(({ name }) => name), setting })).toEqual(
        [],
      );
    },
  );
});

describe('the search for types that are not exported', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-types-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const hiddenIn = (entry: string) => {
    writeFileSync(
      join(folder, 'parts.d.ts'),
      'export interface Part {}\nexport declare const list: readonly Part[];\n',
    );
    writeFileSync(join(folder, 'entry.d.ts'), entry);
    return hiddenTypes(join(folder, 'entry.d.ts')).map(({ name, namedBy }) => `${namedBy}: ${name}`);
  };
  const own = 'interface Own {}\n';

  test.for([
    ['a parameter', `${own}export declare function f(own: Own): void;`, ['f: Own']],
    ['a member', `${own}export interface Public { readonly own?: readonly Own[] }`, ['Public: Own']],
    ['what an interface extends', `${own}export interface Public extends Own {}`, ['Public: Own']],
    ['what a class extends', 'class Own {}\nexport declare class Public extends Own {}', ['Public: Own']],
    ['a constraint', `${own}export declare function f<T extends Own>(value: T): T;`, ['f: Own']],
    ['an import', "import type { Part } from './parts.ts';\nexport type Public = { part: Part };", ['Public: Part']],
    [
      'an import under another name',
      "import type { Part as P } from './parts.ts';\nexport type Public = P[];",
      ['Public: Part'],
    ],
    ['an import type', "export declare const it: import('./parts.ts').Part;", ['it: Part']],
    [
      'the type of a value',
      "import type { list } from './parts.ts';\nexport type Public = typeof list;",
      ['Public: Part'],
    ],
  ] as const)('finds one in %s', ([, entry, found]) => {
    expect(hiddenIn(entry)).toEqual(found);
  });

  test('lets pass what is exported, what the language has, and what a declaration binds itself', () => {
    expect(
      hiddenIn(`
        export { type Part as Piece } from './parts.ts';
        import type { Part } from './parts.ts';
        export type Keys<T> = { [K in keyof T]: T[K] extends Promise<infer V> ? V : Part };
        export declare class Box<T> { #own; get(): T | undefined; }`),
    ).toEqual([]);
  });
});
