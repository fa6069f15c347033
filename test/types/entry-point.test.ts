import * as pawl from 'pawl';
import { createExecutor, type Executor } from 'pawl';
import * as kit from 'pawl/stores/kit';
import { expect, test } from 'vitest';
import { type ExecutorInside, insideOf } from '../../src/executor/inside.ts';

/** A machine of your own as a run. */
const ofWorkflows: readonly string[] = ['ask', 'defineWorkflow', 'step', 'waitForSignal'];

test('pawl offers at most 20 names at run time besides those of workflows', () => {
  const names = Object.keys(pawl).filter((name) => !ofWorkflows.includes(name));
  expect(names.sort()).toEqual([
    'PawlError',
    'createAudit',
    'createBudget',
    'createCompactor',
    'createCritic',
    'createEscalator',
    'createExecutor',
    'createPalette',
    'defineAgent',
    'defineSkill',
    'defineTool',
    'diagnose',
    'encrypt',
    'fromAiSdk',
    'isPawlError',
    'jsonLogger',
    'memoryStore',
    'rateLimits',
    'retryOf',
    'toolContent',
  ]);
  expect(names.length).toBeLessThanOrEqual(20);
});

test('pawl/stores/kit has the names for authors of records and stores, and none of pawl', () => {
  const names = [
    'asSnapshot',
    'checkRunId',
    'classifyCheckpointOutcome',
    'createCheckpointer',
    'createCheckpointerFactory',
  ];
  const records = ['decodeCheckpoint', 'encodeCheckpoint', 'finalizeCheckpoint', 'interruptedRun', 'migrateRecord'];
  const others = ['parseCheckpoint', 'quarantinedRun', 'toCheckpoint', 'toResumeState', 'storeFrom'];
  const views = ['estimateTokens', 'modelUses', 'splitForCompaction'];
  expect(Object.keys(kit)).toEqual(expect.arrayContaining([...names, ...records, ...others, ...views]));
  expect(Object.keys(kit).filter((name) => name in pawl)).toEqual([]);
});

test('the type of an executor has no member that only other parts of the package need', () => {
  const hasNone: [Extract<keyof Executor, keyof ExecutorInside>] extends [never] ? true : false = true;
  expect(hasNone).toBe(true);
  const executor = createExecutor({});
  for (const each of [executor, { ...executor }])
    expect(insideOf(each)).toMatchObject({ hasJournal: false, lingerMs: 0 });
  for (const other of [undefined, {}]) expect(() => insideOf(other as never)).toThrow(TypeError);
});
