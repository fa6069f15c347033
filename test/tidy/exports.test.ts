import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { entryPoints } from '../toolchain/entry-points.ts';
import { exportsAreUsed, namesAreDeclaredOnce } from './exports.ts';
import { parse } from './source.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const texts = globSync('{src,machines,test,docs}/**/*.{ts,tsx}', { cwd: root, exclude: ['**/node_modules/**'] })
  .map((path) => path.replaceAll('\\', '/'))
  .map((path) => ({ path, text: readFileSync(`${root}/${path}`, 'utf8') }));

/** Areas that still export names for no other file. The list only gets shorter. */
const notYet = /^src\/(?:audit|run\/journal|http\/(?:chat|sse|reading)|ag-ui|react|store\/encoding|executor\/run)\b/;

/** Users of two entry points know them by these names. */
const ofTwoDoors = /^exports (?:RunState|WaitAnswer),/;

describe('an exported name', () => {
  test('of src and machines is imported by another file, or its file is an entry point', () => {
    const sources = texts.filter(({ path }) => /^(?:src|machines)\//.test(path) && !notYet.test(path)).map(parse);
    const limits = { takers: texts, entryPoints: entryPoints.map(({ source }) => source) };
    const found = exportsAreUsed(sources, limits);
    expect(sources.length).toBeGreaterThan(0);
    expect(found.map(({ path, line, message }) => `${path}:${line} ${message}`)).toEqual([]);
  });

  const twice = (files: readonly string[]) => {
    const sources = files.map((text, i) => parse({ path: `src/a/${i}.ts`, text }));
    return namesAreDeclaredOnce(sources, () => false).map(({ message }) => message);
  };

  test('of src and machines is declared by one file; only the drivers of SQLite and PostgreSQL have some in common', () => {
    const sources = texts.filter(({ path }) => /^(?:src|machines)\//.test(path)).map(parse);
    const areDrivers = (paths: readonly string[]) =>
      paths.length === 2 &&
      ['sqlite', 'postgres'].every((store) => paths.some((path) => path.startsWith(`src/store/${store}/`)));
    const found = namesAreDeclaredOnce(sources, areDrivers).filter(({ message }) => !ofTwoDoors.test(message));
    expect(found.map(({ path, line, message }) => `${path}:${line} ${message}`)).toEqual([]);
  });

  test('is declared by each form of declaration, and not by a form that passes it on', () => {
    for (const form of ['const a = 1', 'function a() {}', 'class a {}', 'interface a {}', 'type a = 1'])
      expect(twice([`export ${form};`, 'export const a = 1, b = 2;'])).toEqual([
        expect.stringContaining('exports a, as does src/a/0.ts'),
      ]);
    expect(twice(['export const a = 1;', "export { a } from './0.ts';", 'const a = 1;'])).toEqual([]);
    expect(twice(['export function a(): void;\nexport function a() {}', 'export const b = 1;'])).toEqual([]);
  });

  const dead = (text: string, other: string, path = 'src/run/a.ts') => {
    const taker = { path: 'test/run/a.test.ts', text: other };
    const found = exportsAreUsed([parse({ path, text })], { takers: [taker], entryPoints: ['src/index.ts'] });
    return found.map(({ line, message }) => `${line}: ${/exports (\w+)/.exec(message)?.[1]}`);
  };

  test('is found in each form in which a file exports', () => {
    const forms =
      'export const a = 1, b = 2;\nexport function f() {}\nexport class C {}\nexport interface I {}\nexport type T = 1;';
    expect(dead(forms, '')).toEqual(['1: a', '1: b', '2: f', '3: C', '4: I', '5: T']);
    expect(dead("export { a, b as c } from './d.ts';", '')).toEqual(['1: a', '1: c']);
    expect(dead('export const a = 1;', '', 'src/index.ts')).toEqual([]);
  });

  test('counts as used by each form of import of its file, and by no other mention', () => {
    const used = (other: string) => dead('export const a = 1;', other).length === 0;
    for (const names of ['{ a }', 'type { a }', '{ b, type a }', '{ a as b }', '{\n  b,\n  a,\n}', '* as all'])
      expect(used(`import ${names} from '../../src/run/a.ts';`)).toBe(true);
    expect(used("export { a } from '../../src/run/a.ts';")).toBe(true);
    expect(used("const { a } = await import('../../src/run/a.ts');")).toBe(true);
    for (const other of [
      "import { a } from '../../src/run/b.ts';",
      "import { b } from '../../src/run/a.ts';",
      'const a = 1;',
    ])
      expect(used(other)).toBe(false);
  });
});
