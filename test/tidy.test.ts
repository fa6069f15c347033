import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import * as rules from './tidy/rules.ts';
import { parse } from './tidy/source.ts';
import { entryPoints } from './toolchain/entry-points.ts';

/** What a store can do: its own methods, and its groups. */
const storePorts = [
  'src/store/port',
  'src/store/thread-port',
  'src/store/journal-port',
  'src/store/due-port',
  'src/store/history-port',
  'src/store/deliveries/port',
  'src/store/counting/port',
  'src/store/schedules/port',
  'src/store/limits/port',
];

/** What a store stands on: the port, the rules that stores share, records. No other store. */
const belowStores = [
  ...storePorts,
  'src/store/read-only',
  'src/store/owner',
  'src/store/rules',
  'src/store/commands',
  'src/store/cursor',
  'src/store/counting',
  'src/store/due',
  'src/store/group-commit',
  'src/store/store-of',
  'src/store/store-driver',
  'src/store/store-from',
  'src/store/reading',
  'src/store/taking/in-turns',
  'src/store/topics',
  'src/store/deliveries',
  'src/store/schedules',
  'src/store/limits',
  'src/store/encoding',
  'src/record',
  'src/run',
  'src/values',
];

/** What every part of the executor may use: of stores and batteries only their ports. */
const insideExecutor = ['src/executor/effects', 'src/executor/run', 'src/executor/services', 'src/executor/host'];
const belowExecutor = [
  'src/values',
  'src/log',
  'src/run',
  'src/record',
  ...storePorts,
  'src/store/capabilities',
  'src/store/reading/record-part',
  'src/store/checkpointer',
  'src/store/factory',
  'src/store/checked-store',
  'src/store/cursor',
  'src/store/memory/memory-store',
  'src/store/owner',
  'src/model',
  'src/tool',
  'src/agent',
  'src/workflow',
  'src/budget/port',
  'src/audit/port',
  'src/audit/recording',
  'src/critic/port',
  'src/compaction/port',
  'src/palette/port',
  'src/schedules',
  'src/limits/port',
  'machines',
];

/** Which area may import which others: imports go down only. An area may always import itself; the longest matching prefix counts. */
const importTable: rules.ImportTable = {
  'src/values': [],
  'src/log': ['src/values'],
  'src/run': ['src/values'],
  'src/record': ['src/run', 'src/values'],
  'src/files': ['src/values'],
  'src/codec': ['src/values'],
  machines: ['src/run', 'src/values'],
  'src/store/port': [...storePorts, 'src/record', 'src/run', 'src/values'],
  'src/store/thread-port': [...storePorts, 'src/record', 'src/values'],
  'src/store/journal-port': [...storePorts, 'src/record', 'src/run'],
  'src/store/due-port': [...storePorts, 'src/run'],
  'src/store/history-port': [...storePorts, 'src/record', 'src/run'],
  'src/store/deliveries/port': ['src/run'],
  'src/store/counting/port': [],
  'src/store/limits/port': [],
  'src/store/schedules/port': ['src/record', 'src/run'],
  'src/store/capabilities': [...storePorts, 'src/store/read-only', 'src/values'],
  'src/store/encoding': ['src/record', 'src/run', 'src/values', 'src/codec/port'],
  'src/store': ['src/store/encoding', 'src/record', 'src/run', 'src/values', 'src/codec/port'],
  'src/store/rules': [
    ...storePorts,
    'src/store/commands',
    'src/store/due',
    'src/store/owner',
    'src/store/encoding',
    'src/record',
    'src/run',
    'src/values',
  ],
  'src/store/memory': [...belowStores],
  'src/store/sqlite': [...belowStores, 'src/codec/port', 'src/sqlite/errors'],
  'src/store/sqlite/index': ['src/store/sqlite', 'src/budget/sqlite'],
  'src/store/sqlite/connection': [
    'src/store/sqlite',
    'src/store/encoding',
    'src/store/rules/lease-clock',
    'src/sqlite',
  ],
  'src/store/postgres': [...belowStores, 'src/codec/port'],
  'src/store/postgres/index': ['src/store/postgres'],
  'src/store/postgres/budget': ['src/store/postgres', 'src/budget', 'src/values'],
  'src/sqlite': ['src/values', 'src/files/private-modes'],
  'src/model': ['src/run', 'src/values'],
  'src/tool': ['src/run', 'src/values'],
  'src/agent': ['src/tool', 'src/model/port', 'src/model/tier', 'src/run', 'src/values'],
  'src/budget/port': ['src/run', 'src/values'],
  'src/budget': ['src/run', 'src/values', 'src/sqlite'],
  'src/audit/port': ['src/run', 'src/values', 'src/budget/port'],
  'src/audit/recording': ['src/run', 'src/values', 'src/audit/port'],
  'src/audit': ['src/record', 'src/run', 'src/values', 'src/agent/names', ...storePorts, 'src/store/capabilities'],
  'src/critic/port': ['src/run', 'src/values'],
  'src/critic': ['src/run', 'src/values', 'src/model', 'machines/critic'],
  'src/compaction/port': ['src/run', 'src/values', 'src/model/port'],
  'src/compaction': ['src/run', 'src/values', 'src/model'],
  'src/palette': ['src/agent', 'src/values'],
  'src/workflow': ['src/agent', 'src/tool', 'src/run', 'src/values'],
  'src/limits': [...storePorts, 'src/store/capabilities', 'src/run', 'src/values'],
  'src/schedules': ['src/log', 'src/store/schedules/port', 'src/agent', 'src/workflow', 'src/run', 'src/values'],
  // executor > drive, fleet > lifecycle > effects > run > services > host
  'src/executor/host': [...belowExecutor],
  'src/executor/services': ['src/executor/host', ...belowExecutor],
  'src/executor/run': ['src/executor/services', 'src/executor/host', ...belowExecutor],
  'src/executor/effects': ['src/executor/run', 'src/executor/services', 'src/executor/host', ...belowExecutor],
  'src/executor/lifecycle': [...insideExecutor, ...belowExecutor],
  'src/executor/drive': ['src/executor/lifecycle', ...insideExecutor, ...belowExecutor],
  'src/executor/fleet': ['src/executor/lifecycle', ...insideExecutor, ...belowExecutor],
  'src/executor/inside': ['src/executor/executor', 'src/record/checkpoint', 'src/run/result', 'src/values/message'],
  'src/executor/executor': ['src/executor', ...belowExecutor],
  'src/executor/wiring': ['src/executor', ...belowExecutor],
  'src/testing': [
    'src/values',
    'src/run',
    'src/record',
    'src/store',
    'src/model',
    'src/tool',
    'src/agent',
    'src/workflow',
    'src/executor/executor',
    'src/executor/host/options',
    'machines/context',
  ],
  'src/edits': ['src/index', 'src/kit', 'src/values', 'src/run', 'src/files', 'src/store/owner'],
  'src/edits/root': ['src/edits/errors', 'src/files/errors'],
  'src/fan-out': [
    'src/index',
    'src/log',
    'src/edits',
    'src/values',
    'src/run',
    'src/files',
    'src/store/sqlite/index',
    'src/store/owner',
    'src/budget/prices',
    'src/executor/host/guard',
    'src/executor/host/guarded-clock',
    'machines/index',
  ],
  'src/http': [
    'src/index',
    'src/log',
    'src/executor/inside',
    'src/values',
    'src/run/command',
    'src/run/journal/reader',
    'src/run/journal/reply-view',
    'src/run/request',
    'src/run/waits/sent-answer',
    'src/run/waits/wait',
    'src/tool/json-schema',
  ],
  // Types only: a test looks at what the bundle for a browser has.
  'src/client': ['src/http/problem', 'src/http/runs', 'src/index', 'src/run', 'src/values'],
  'src/ag-ui': ['src/index', 'src/executor/inside', 'src/http', 'src/run/journal/reply-view', 'src/values'],
  'src/react': ['src/client/index', 'src/index', 'src/run/journal/reply-view', 'src/values'],
  'src/restate': ['src/index'],
  'src/lab': [
    'src/index',
    'src/executor/inside',
    'src/agent/names',
    'src/compaction/port',
    'src/record/steps',
    'src/run',
    'src/tool',
    'src/values',
  ],
  'src/otel': ['src/index', 'src/values'],
  'src/studio': [
    'src/index',
    'src/log',
    'src/executor/inside',
    'src/kit',
    'src/http',
    'src/fan-out/index',
    'src/fan-out/file-claim',
    'src/edits/index',
    'src/record',
    'src/run',
    'src/store/owner',
    'src/store/port',
    'src/studio/page/chart/round',
    'src/tool/toolbox',
    'src/values',
  ],
  // What the server sends, and nothing that would bring the server into the page.
  'src/studio/page': ['src/studio/wire', 'src/studio/fan-out-wire', 'src/studio/machine/wire', 'src/run/waits/wait'],
  'src/cli/ui': ['src/index', 'src/values', 'src/run/waits/wait'],
  'src/cli/open': [
    'src/workflow/workflow',
    'src/cli/ui',
    'src/cli/arguments',
    'src/cli/command',
    'src/cli/own-package',
    'src/index',
    'src/kit',
    'src/store/sqlite/index',
    'src/store/postgres/index',
    'src/record/run-tree',
    'src/record/listed-status',
    'src/record/verdict',
    'src/values',
  ],
  'src/cli': [
    'src/files',
    'src/http/index',
    'src/index',
    'src/kit',
    'src/lab/index',
    'src/store/sqlite/index',
    'src/fan-out/index',
    'src/budget/genai-prices',
    'src/run',
    'src/record/interrupted',
    'src/record/run-tree',
    'src/record/listed-status',
    'src/record/reopen',
    'src/record/steps',
    'src/record/verdict',
    'src/store/read-only',
    'src/http/authorize',
    'src/http/node-listener',
    'src/http/problem',
    'src/studio/index',
    'src/studio/assets',
    'src/values',
  ],
  'src/kit': [
    'src/run',
    'src/record',
    'src/store',
    'src/values',
    'src/budget/store',
    'src/compaction/split',
    'src/executor',
    'src/codec/port',
  ],
  'src/index': [
    'src',
    '!src/kit',
    '!src/testing',
    '!src/cli',
    '!src/client',
    '!src/react',
    '!src/restate',
    '!src/otel',
    '!src/lab',
    '!src/studio',
    '!src/fan-out',
    '!src/edits',
    '!src/http',
    '!src/ag-ui',
    '!src/sqlite',
    '!src/store/sqlite',
    '!src/store/postgres',
    '!src/budget/sqlite*',
  ],
};

/** Which area may import which package. What is not listed may not be imported at all. */
const packageTable: rules.PackageTable = {
  xstate: { from: ['src', 'machines'] },
  '@xstate/store': { from: ['src'] },
  immer: { from: ['src/run/change'] },
  '@standard-schema/spec': { from: ['src'], typeOnly: true },
  '@ai-sdk/provider': { from: ['src'], typeOnly: true },
  '@cfworker/json-schema': { from: ['src/tool'] },
  '@ag-ui/core': { from: ['src/ag-ui'], typeOnly: true },
  '@restatedev/restate-sdk': { from: ['src/restate'] },
  '@opentelemetry/api': { from: ['src/otel'] },
  react: { from: ['src/react'] },
  // Bundled into the page of Studio: who installs Pawl does not install them.
  preact: { from: ['src/studio/page'] },
  'preact/*': { from: ['src/studio/page'] },
  // The path of the built page, from the sources.
  built: { from: ['src/studio/page-files'] },
  'node:*': { from: ['src'] },
  'node:sqlite': { from: ['src/store/sqlite', 'src/sqlite', 'src/budget/sqlite*'] },
  '@pydantic/genai-prices': { from: ['src/budget/genai-prices'] },
};

/** Functions that may take four parameters, because the contract names them all. */
const fourParameters: readonly string[] = ['keep', 'claim', 'close', 'constructor', 'buildCheckpoint'];

const fileSize = rules.linesPerFile(400);
const functionSize = rules.linesPerFunction(70);
const parameterCount = rules.parametersPerFunction(3, fourParameters);
const imports = rules.importsFollow(importTable);
const packages = rules.packagesFollow(packageTable);

/** Small files that stand alone: ports, effects, of which each is a file, and the table of routes. */
const smallParts = {
  lines: 60,
  apart: [
    ...['audit', 'budget', 'codec', 'compaction', 'critic', 'model', 'palette', 'store'].map(
      (area) => `src/${area}/port`,
    ),
    'src/executor/effects',
    'src/http/routes',
    // A handler of its own for each thing that Studio answers with; the build replaces one module by the page.
    'src/studio',
  ],
  entryPoints: entryPoints.map(({ source }) => source),
};

const root = fileURLToPath(new URL('..', import.meta.url));
const sources = globSync('{src,machines}/**/*.{ts,tsx}', { cwd: root })
  .map((path) => path.replaceAll('\\', '/'))
  .sort()
  .map((path) => parse({ path, text: readFileSync(`${root}/${path}`, 'utf8') }));

const found = (rule: rules.Rule) => report(sources.flatMap(rule));
const report = (findings: rules.Finding[]) => findings.map((each) => `${each.path}:${each.line} ${each.message}`);

describe('src and machines', () => {
  test('hold some files to look at', () => expect(sources.length).toBeGreaterThan(0));
  test('no file is longer than 400 lines', () => expect(found(fileSize)).toEqual([]));
  test('no function is longer than 70 lines', () => expect(found(functionSize)).toEqual([]));
  test('no function takes more than 3 parameters', () => expect(found(parameterCount)).toEqual([]));
  test('each area imports only what the table allows, types included', () => expect(found(imports)).toEqual([]));
  test('each area imports only its packages, and type packages as types', () => expect(found(packages)).toEqual([]));
  test('no files import each other in a circle, but for types of one folder', () =>
    expect(report(rules.noCycles(sources))).toEqual([]));
  test('areas import each other in one direction: no import runs back up', () =>
    expect(report(rules.areasInOneDirection(sources))).toEqual([]));
  test('no folder holds more than 20 files', () => expect(report(rules.filesPerFolder(sources, 20))).toEqual([]));
  test('no file of less than 60 lines is there for one other of its folder only', () =>
    expect(report(rules.noSmallParts(sources, smallParts))).toEqual([]));
  test('nothing is exported as default', () => expect(found(rules.noDefaultExport)).toEqual([]));
  test('nothing is exported by a star', () => expect(found(rules.noExportStar)).toEqual([]));
  test('nothing is typed any', () => expect(found(rules.noAny)).toEqual([]));
  test('no module of the executor keeps a WeakMap: its entries belong to the services of one executor, or to a run', () =>
    expect(found(rules.noModuleWeakMap('src/executor/'))).toEqual([]));
  test('no work is left as a note', () => expect(found(rules.noUnfinishedWork)).toEqual([]));
  test('the docstring of a function or a class begins with a sentence, not with a tag', () =>
    expect(found(rules.docstringsBeginWithSentence)).toEqual([]));
  test('each exported function and class has a docstring', () =>
    expect(found(rules.exportsHaveDocstrings)).toEqual([]));
  test('an asynchronous function begins with a verb, and not with a participle', () =>
    expect(found(rules.asyncBeginsWithVerb)).toEqual([]));
  test('files are kebab-case and named by what they hold', () => expect(found(rules.goodNames)).toEqual([]));
});

describe('the stores', () => {
  test('are each made by storeFrom of a driver', () => {
    const stores = sources.filter(({ path }) => /^src\/store\/\w+\/\w+-store\.ts$/.test(path));
    expect(stores.length).toBe(3);
    expect(stores.filter(({ text }) => !text.includes('storeFrom(')).map(({ path }) => path)).toEqual([]);
  });

  test('leave to the shared rules who may write and which revision fits', () => {
    const rule = /\b(?:grantLease|checkWrite|isNewRevision|checkReplaceable)\b/;
    const places = ['rules/writes', 'rules/ownership', 'rules/lease', 'encoding/revision'].map(
      (name) => `src/store/${name}.ts`,
    );
    expect(sources.filter(({ text }) => rule.test(text)).map(({ path }) => path)).toEqual(places.sort());
  });
});

describe('words', () => {
  test('comments, messages and help texts are plain English', () =>
    expect(report(sources.flatMap(rules.plainWords))).toEqual([]));
  test('the documentation is plain English', () => {
    const pages = globSync(['*.md', 'docs/*.md', 'docs/{contract,examples}/**/*.md'], { cwd: root }).map((path) =>
      path.replaceAll('\\', '/'),
    );
    const findings = pages.map((path) => rules.plainPage({ path, text: readFileSync(`${root}/${path}`, 'utf8') }));
    expect(pages.length).toBeGreaterThan(1);
    expect(report(findings.flat())).toEqual([]);
  });
});

describe('tests', () => {
  test('start no process that holds the stdout or stderr of its worker, which Vitest would wait for after the summary', () => {
    const files = globSync('test/**/*.ts', {
      cwd: root,
      exclude: ['test/toolchain/**', 'test/docs/.blocks/**', 'test/tidy.test.ts'],
    });
    const inheriting = files.filter((path) => readFileSync(`${root}/${path}`, 'utf8').includes("'inherit'"));
    expect(files.length).toBeGreaterThan(100);
    expect(inheriting).toEqual([]);
  });
});

describe('machines', () => {
  test('each state says what it is in a description', () => {
    const machines = sources.filter(({ path }) => path.startsWith('machines/'));
    expect(report(machines.flatMap(rules.statesAreDescribed))).toEqual([]);
  });
});

describe('the tables', () => {
  const judge = (rule: rules.Rule, path: string, text: string) => report(rule(parse({ path, text })));

  test.for([
    ['src/values/a.ts', '../run/x.ts', './x.ts'],
    ['src/run/a.ts', '../record/x.ts', '../values/x.ts'],
    ['src/record/a.ts', '../store/x.ts', '../run/x.ts'],
    ['src/files/a.ts', '../run/x.ts', '../values/x.ts'],
    ['src/codec/a.ts', '../store/x.ts', '../values/x.ts'],
    ['src/store/sqlite/a.ts', '../../codec/encrypt.ts', '../../codec/port.ts'],
    ['src/store/port.ts', './encoding/x.ts', '../record/x.ts'],
    ['src/store/encoding/a.ts', '../port.ts', '../../record/x.ts'],
    ['src/store/sqlite/a.ts', '../postgres/x.ts', '../rules/lease.ts'],
    ['src/store/rules/a.ts', '../store-from.ts', '../due.ts'],
    ['src/store/postgres/a.ts', '../checkpointer.ts', '../encoding/x.ts'],
    ['src/store/memory/a.ts', '../../files/x.ts', '../port.ts'],
    ['src/model/a.ts', '../tool/x.ts', '../run/x.ts'],
    ['src/tool/a.ts', '../model/x.ts', '../run/x.ts'],
    ['machines/run.ts', '../src/model/x.ts', '../src/run/x.ts'],
    ['src/executor/host/a.ts', '../services/x.ts', '../../store/port.ts'],
    ['src/executor/services/a.ts', '../run/x.ts', '../host/x.ts'],
    ['src/executor/run/a.ts', '../effects/x.ts', '../services/x.ts'],
    ['src/executor/effects/a.ts', '../lifecycle/x.ts', '../run/x.ts'],
    ['src/executor/lifecycle/a.ts', '../../store/sqlite/index.ts', '../effects/x.ts'],
    ['src/executor/host/a.ts', '../../budget/budget.ts', '../../budget/port.ts'],
    ['src/executor/host/a.ts', '../../audit/sqlite.ts', '../../audit/port.ts'],
    ['src/executor/host/a.ts', '../../critic/critic.ts', '../../critic/port.ts'],
    ['src/executor/host/a.ts', '../../compaction/compactor.ts', '../../compaction/port.ts'],
    ['src/executor/host/a.ts', '../../palette/palette.ts', '../../palette/port.ts'],
    ['src/executor/effects/a.ts', '../../testing/x.ts', '../../../machines/run.ts'],
    ['src/budget/a.ts', '../executor/host/x.ts', '../run/x.ts'],
    ['src/sqlite/a.ts', '../store/sqlite/index.ts', './errors.ts'],
    ['src/store/sqlite/sqlite-store.ts', '../../budget/sqlite.ts', '../../sqlite/errors.ts'],
    ['src/audit/a.ts', '../executor/host/x.ts', '../store/port.ts'],
    ['src/critic/a.ts', '../executor/host/x.ts', '../../machines/critic.ts'],
    ['src/compaction/a.ts', '../executor/host/x.ts', '../model/x.ts'],
    ['src/palette/a.ts', '../executor/host/x.ts', '../agent/x.ts'],
    ['src/testing/a.ts', '../cli/x.ts', '../executor/executor.ts'],
    ['src/edits/a.ts', '../fan-out/x.ts', '../files/x.ts'],
    ['src/edits/root/a.ts', '../plan.ts', '../errors.ts'],
    ['src/client/a.ts', '../executor/host/x.ts', '../run/command.ts'],
    ['src/react/a.ts', '../client/connection.ts', '../client/index.ts'],
    ['src/cli/a.ts', '../executor/host/x.ts', '../store/sqlite/index.ts'],
    ['src/cli/ui/a.ts', '../open/x.ts', '../../values/x.ts'],
    ['src/cli/open/a.ts', '../commands/x.ts', '../ui/x.ts'],
    ['src/index.ts', './store/sqlite/index.ts', './store/memory/memory-store.ts'],
    ['src/index.ts', '../machines/run.ts', './executor/lifecycle/x.ts'],
  ] as const)('%s must not import %s, but may import %s', ([path, bad, good]) => {
    expect(judge(imports, path, `import type { A } from '${bad}';`)).toHaveLength(1);
    expect(judge(imports, path, `import type { A } from '${good}';`)).toEqual([]);
  });

  test.for([
    ['src/run/a.ts', 'zod', '@standard-schema/spec'],
    ['src/run/a.ts', '@cfworker/json-schema', '@ai-sdk/provider'],
    ['src/files/a.ts', 'node:sqlite', 'node:fs/promises'],
    ['src/index.ts', 'pawl/testing', '@xstate/store'],
    ['machines/run.ts', 'node:fs', 'xstate'],
    ['src/executor/host/a.ts', '@cfworker/json-schema', 'xstate'],
  ] as const)('%s must not import %s, but may import %s', ([path, bad, good]) => {
    expect(judge(packages, path, `import type { A } from '${bad}';`)).toHaveLength(1);
    expect(judge(packages, path, `import type { A } from '${good}';`)).toEqual([]);
  });

  test('a new folder needs a row', () =>
    expect(judge(imports, 'src/new/a.ts', '')).toEqual(['src/new/a.ts:1 has no row in the import table']));

  test('@ai-sdk/provider and @standard-schema/spec are never loaded at run time', () => {
    for (const name of ['@ai-sdk/provider', '@standard-schema/spec']) {
      expect(judge(packages, 'src/run/a.ts', `import { type A } from '${name}';`)).toHaveLength(1);
    }
  });
});
