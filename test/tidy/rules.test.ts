import { describe, expect, test } from 'vitest';
import * as rules from './rules.ts';
import { parse } from './source.ts';

const judge = (rule: rules.Rule, text: string, path = 'src/run/a.ts') =>
  rule(parse({ path, text })).map(({ line, message }) => `${line}: ${message}`);

const statements = (count: number) => 'x();\n'.repeat(count);

describe('each tidy rule fires on bad code, and leaves good code alone', () => {
  test('lines of a file, whether or not it ends in a newline', () => {
    const rule = rules.linesPerFile(250);
    expect(judge(rule, statements(251))).toEqual(['251: 251 lines, at most 250']);
    expect(judge(rule, statements(250))).toEqual([]);
    expect(judge(rule, `${statements(250)}x()`)).toEqual(['251: 251 lines, at most 250']);
  });

  test('lines of a function, from its first to its last', () => {
    const rule = rules.linesPerFunction(70);
    const body = (lines: number) => `{\n${statements(lines - 2)}}`;
    expect(judge(rule, `\nconst a = () => ${body(71)};`)).toEqual(['2: a has 71 lines, at most 70']);
    expect(judge(rule, `class A { m() ${body(71)} }`)).toEqual(['1: m has 71 lines, at most 70']);
    expect(judge(rule, `const o = { m() ${body(71)} };`)).toEqual(['1: m has 71 lines, at most 70']);
    expect(judge(rule, `function f() ${body(71)}`)).toEqual(['1: f has 71 lines, at most 70']);
    expect(judge(rule, `setup(() => ${body(71)});`)).toEqual(['1: a function has 71 lines, at most 70']);
    expect(judge(rule, `function f() ${body(70)}`)).toEqual([]);
    expect(judge(rule, `setup({\n${'a: 1,\n'.repeat(80)}}).createMachine({\n${'a: 1,\n'.repeat(80)}});`)).toEqual([]);
  });

  test('parameters of functions and of signatures', () => {
    const rule = rules.parametersPerFunction(3, ['save']);
    expect(judge(rule, 'function f(a = 1, { b }, [c], ...d) {}')).toEqual(['1: f has 4 parameters, at most 3']);
    expect(judge(rule, 'interface A { f(a: 1, b: 1, c: 1, d: 1): 1 }')).toEqual(['1: f has 4 parameters, at most 3']);
    expect(judge(rule, 'class A { save(a, b, c, d, e) {} }')).toEqual(['1: save has 5 parameters, at most 4']);
    expect(judge(rule, 'class A { save(a, b, c, d) {} }')).toEqual([]);
    expect(judge(rule, 'function f(this: A, a, b, c) {}')).toEqual([]);
    expect(judge(rule, 'type F<A, B, C, D> = (a: A, b: B, c: C) => D;')).toEqual([]);
  });

  test('imports against the table: every form counts, types too', () => {
    const rule = rules.importsFollow({ 'src/run': ['src/a', '!src/a/b', 'src/c*'], 'src/run/free': ['src/x'] });
    const refused = ['1: src/run must not import src/x/y.ts'];
    expect(judge(rule, "import { y } from '../x/y.ts';")).toEqual(refused);
    expect(judge(rule, "import '../x/y.ts';")).toEqual(refused);
    expect(judge(rule, "import type { Y } from '../x/y.ts';")).toEqual(refused);
    expect(judge(rule, "export type { Y } from '../x/y.ts';")).toEqual(refused);
    expect(judge(rule, "type Y = import('../x/y.ts').Y;")).toEqual(refused);
    expect(judge(rule, "await import('../x/y.ts');")).toEqual(refused);
    expect(judge(rule, "import '../a/b.ts';")).toHaveLength(1);
    expect(judge(rule, "import '../ab.ts';")).toHaveLength(1);
    expect(judge(rule, "import './b.ts';\nimport '../a/x.ts';\nimport '../cd.ts';\nawait import(name);")).toEqual([]);
    expect(judge(rule, "import '../x/y.ts';", 'src/run/free.ts')).toEqual([]);
    expect(judge(rule, '', 'src/elsewhere.ts')).toEqual(['1: has no row in the import table']);
  });

  test('packages against the table: unknown ones, wrong places, types loaded as values', () => {
    const rule = rules.packagesFollow({ 'node:*': { from: ['src'] }, 'node:fs': { from: ['src/store'] } });
    expect(judge(rule, "import 'zod';")).toEqual(['1: must not import zod']);
    expect(judge(rule, "await import('node:fs');")).toEqual(['1: must not import node:fs']);
    expect(judge(rule, "import 'node:fs';", 'src/store/a.ts')).toEqual([]);
    expect(judge(rule, "import 'node:path';")).toEqual([]);
    expect(judge(rule, "import 'node:path';", 'machines/a.ts')).toHaveLength(1);
    const types = rules.packagesFollow({ spec: { from: ['src'], typeOnly: true } });
    const refused = ['1: spec is for types: write `import type`'];
    expect(judge(types, "import { type A } from 'spec';")).toEqual(refused);
    expect(judge(types, "export { a } from 'spec';")).toEqual(refused);
    expect(judge(types, "import type { A } from 'spec';\nexport type { B } from 'spec/b';")).toEqual([]);
  });

  test('circles of values, and circles of types that leave their folder', () => {
    const file = (path: string, text: string) => parse({ path, text });
    const messages = (...files: ReturnType<typeof file>[]) => rules.noCycles(files).map(({ message }) => message);
    const [b, c] = [file('src/run/b.ts', "\nimport './c.ts';"), file('src/run/c.ts', "export { a } from './a.ts';")];
    const all = 'src/run/a.ts, src/run/b.ts, src/run/c.ts';
    expect(messages(file('src/run/a.ts', "import './b.ts';"), b, c)).toEqual([`circle of values: ${all}`]);
    expect(messages(file('src/run/a.ts', "import './a.ts';"))).toEqual(['circle of values: src/run/a.ts']);
    expect(messages(file('src/run/a.ts', "import type { B } from './b.ts';"), b, c)).toEqual([]);
    expect(messages(file('src/run/a.ts', ''), b, c)).toEqual([]);
    const up = file('src/store/a.ts', "import type { B } from './b.ts';\nimport type { X } from '../run/x.ts';");
    const x = file('src/run/x.ts', "import type { B } from '../store/b.ts';");
    expect(messages(up, file('src/store/b.ts', "import type { A } from './a.ts';"), x)).toEqual([
      'circle of folders: src/store/a.ts, src/store/b.ts, src/run/x.ts',
    ]);
  });

  test('areas that import each other, by whichever files', () => {
    const file = (path: string, text: string) => parse({ path, text });
    const down = file('src/store/sqlite/a.ts', "import { b } from '../../sqlite/b.ts';");
    const up = file('src/sqlite/c.ts', "import type { D } from '../store/d.ts';");
    const others = [
      file('src/sqlite/b.ts', ''),
      file('src/store/d.ts', "import './e.ts';"),
      file('src/store/e.ts', ''),
    ];
    const messages = (...files: ReturnType<typeof file>[]) =>
      rules.areasInOneDirection(files).map(({ message }) => message);
    expect(messages(down, ...others)).toEqual([]);
    expect(messages(down, up, ...others)).toEqual(['areas that import each other: src/store, src/sqlite']);
  });

  test('small files that only their neighbour imports', () => {
    const limits = { lines: 60, apart: ['src/run/port'], entryPoints: ['src/run/index.ts'] };
    const small = (path: string, importers: readonly string[], lines = 59) => {
      const name = path.split('/').at(-1);
      const files = importers.map((importer) => parse({ path: importer, text: `import '../run/${name}';` }));
      return rules.noSmallParts([parse({ path, text: statements(lines) }), ...files], limits).length;
    };
    expect(small('src/run/a.ts', ['src/run/b.ts'])).toBe(1);
    expect(small('src/run/a.ts', ['src/run/b.ts'], 60)).toBe(0);
    expect(small('src/run/a.ts', ['src/run/b.ts', 'src/run/c.ts'])).toBe(0);
    expect(small('src/run/a.ts', ['src/store/b.ts'])).toBe(0);
    expect(small('src/run/a.ts', [])).toBe(0);
    expect(small('src/run/port.ts', ['src/run/b.ts'])).toBe(0);
    expect(small('src/run/a.ts', ['src/run/index.ts'])).toBe(0);
  });

  test('files directly in a folder', () => {
    const folder = (count: number) =>
      Array.from({ length: count }, (_, i) => parse({ path: `src/run/a${i}.ts`, text: '' }));
    const below = parse({ path: 'src/run/deep/a.ts', text: '' });
    expect(rules.filesPerFolder([...folder(20), below], 20)).toEqual([]);
    expect(rules.filesPerFolder([...folder(21), below], 20)).toEqual([
      { path: 'src/run', line: 1, message: 'holds 21 files, at most 20' },
    ]);
  });

  test('default exports', () => {
    expect(judge(rules.noDefaultExport, '\nexport default 1;')).toEqual(['2: default export']);
    expect(judge(rules.noDefaultExport, 'const a = 1;\nexport { a as default };')).toEqual(['2: default export']);
    expect(judge(rules.noDefaultExport, "export const a = 1;\nexport { default as b } from 'b';")).toEqual([]);
  });

  test('export stars', () => {
    expect(judge(rules.noExportStar, "export * from './b.ts';")).toHaveLength(1);
    expect(judge(rules.noExportStar, "export type * as b from './b.ts';")).toHaveLength(1);
    expect(judge(rules.noExportStar, "import * as b from './b.ts';\nexport { c } from './b.ts';")).toEqual([]);
  });

  test('any, at any depth', () => {
    expect(judge(rules.noAny, '\ntype A = Record<string, (any | B)[]>;')).toEqual(['2: any']);
    expect(judge(rules.noAny, 'const any: unknown = "any";')).toEqual([]);
  });

  test('WeakMaps and WeakSets of a module, in one area', () => {
    const rule = rules.noModuleWeakMap('src/executor/');
    const text =
      'const a = new WeakMap<X, Y>();\nexport const b: WeakSet<X> = new WeakSet();\nfunction f() {\n  const c = new Map();\n}';
    const found = ['1: a WeakMap of the module', '2: a WeakSet of the module'];
    expect(judge(rule, text, 'src/executor/run/a.ts')).toEqual(found);
    expect(judge(rule, text, 'src/model/a.ts')).toEqual([]);
  });

  test('notes about unfinished work', () => {
    expect(judge(rules.noUnfinishedWork, '\n// TODO: later')).toEqual(['2: TODO']);
    expect(judge(rules.noUnfinishedWork, '/* FIXME */\n/* XXX */')).toEqual(['1: FIXME', '2: XXX']);
    expect(judge(rules.noUnfinishedWork, 'const todoList = 1; // todo lists')).toEqual([]);
  });

  test('names of files and folders', () => {
    const bad = ['src/run/openStep.ts', 'src/run/open_step.ts', 'src/Run/a.ts', 'src/run/utils.ts', 'src/helpers/a.ts'];
    for (const path of [...bad, 'src/run/common.ts', 'src/run/manager.ts', 'src/run/types.ts']) {
      expect(judge(rules.goodNames, '', path)).toHaveLength(1);
    }
    expect(judge(rules.goodNames, '', 'src/run/open-step.ts')).toEqual([]);
  });

  test('states without a description, nested ones and partial ones too', () => {
    const rule = rules.statesAreDescribed;
    expect(judge(rule, "s.createMachine({\nstates: {\na: { description: 'A' },\nb: {} } });")).toEqual([
      '4: state b has no description',
    ]);
    expect(judge(rule, "m({ states: { a: { description: 'A', states: { 'b-c': {} } } } });")).toHaveLength(1);
    expect(judge(rule, 'm({ states: ({ [a]: {} satisfies B }) as const });')).toHaveLength(1);
    expect(judge(rule, 's.createStateConfig({ on: {} });')).toEqual(['1: createStateConfig has no description']);
    expect(judge(rule, "m({ states: { ...phases, loop, a: make(), b: { description: '' } } });")).toEqual([]);
  });

  test('docstrings of functions, methods and classes that begin with a tag', () => {
    const rule = rules.docstringsBeginWithSentence;
    const refused = (line: number, name: string, tag: string) => [
      `${line}: the docstring of ${name} begins with ${tag}: say first what it does`,
    ];
    expect(judge(rule, '/** @throws {TypeError} */\nfunction f() {}')).toEqual(refused(2, 'f', '@throws'));
    expect(judge(rule, '/**\n * @internal\n * Reads. */\nexport async function f() {}')).toEqual(
      refused(4, 'f', '@internal'),
    );
    expect(judge(rule, '/** @internal */\nexport class A {}')).toEqual(refused(2, 'A', '@internal'));
    expect(judge(rule, 'class A {\n/** @returns b */\nstatic m() {} }')).toEqual(refused(3, 'm', '@returns'));
    expect(judge(rule, '/** @example f() */\nexport const f = () => 1;')).toEqual(refused(2, 'f', '@example'));
    expect(judge(rule, 'class A {\n/** @param a */\nconstructor(a) {} }')).toEqual([]);
    expect(judge(rule, '/** Reads `@a`. @throws {TypeError} */\nexport function f() {}')).toEqual([]);
    expect(judge(rule, '/** @type {number} */\nconst a = 1;\nfunction f() {}\nclass A { m() {} }')).toEqual([]);
  });

  test('exported functions and classes without a docstring', () => {
    const rule = rules.exportsHaveDocstrings;
    const refused = (line: number, name: string) => [
      `${line}: ${name} is exported and has no docstring: say in its first sentence what it returns or does`,
    ];
    expect(judge(rule, 'export function f() {}')).toEqual(refused(1, 'f'));
    expect(judge(rule, '/** Reads. */\nconst a = 1;\nexport const f = () => a;')).toEqual(refused(3, 'f'));
    expect(judge(rule, '// Reads.\nexport class A {}')).toEqual(refused(2, 'A'));
    expect(judge(rule, '/** Reads. */\nexport async function f() {}\nfunction g() {}\nexport const a = 1;')).toEqual(
      [],
    );
  });

  test('words that are not plain English, in comments and in long literals', () => {
    const rule = rules.plainWords;
    const refused = (line: number, words: string, instead: string) => [
      `${line}: "${words}" is not plain English: ${instead}`,
    ];
    expect(judge(rule, '\n/** Whoever calls holds the lock. */')).toEqual(
      refused(2, 'whoever', 'a person, the caller, the reader'),
    );
    expect(judge(rule, '/**\n * The run goes\n * on.\n */')).toEqual(refused(2, 'goes on', 'continue'));
    expect(judge(rule, 'a();\n  // The lock is let\n  // go.')).toEqual(refused(2, 'let go', 'release'));
    expect(judge(rule, "throw new Error('the run was told of it long ago');")).toEqual(
      refused(1, 'was told', 'read, get, know'),
    );
    expect(judge(rule, 'const a = `run\nis owned by somebody else`;')).toEqual(
      refused(2, 'somebody', 'a person, the caller, the reader'),
    );
    expect(judge(rule, '// Nobody hears it.')).toEqual([
      ...refused(1, 'nobody', 'no person, no process'),
      ...refused(1, 'hears', 'get, read'),
    ]);
    expect(judge(rule, "const a = 'nobody';\nconst nobody = whatever(a);")).toEqual([]);
    expect(judge(rule, '// files on hand; sha256-aNewh; logo on; heard; bystands in; goes only; told apart')).toEqual(
      [],
    );
    expect(judge(rule, '// It goes.\na(); // On line 2.')).toEqual([]);
    expect(rules.plainPage({ path: 'docs/a.md', text: 'Text.\nIt runs for\never.\n' })).toEqual([
      { path: 'docs/a.md', line: 2, message: '"for ever" is not plain English: without an end' },
    ]);
  });

  test('a file that does not parse is an error, not a pass', () => {
    expect(() => parse({ path: 'src/run/a.ts', text: 'const = 1' })).toThrow(/src\/run\/a.ts does not parse/);
  });
});
