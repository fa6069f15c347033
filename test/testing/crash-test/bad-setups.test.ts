import { type CheckpointStore, defineAgent, memoryStore } from 'pawl';
import type { Claim } from 'pawl/stores/kit';
import { type CrashTestOptions, callTool, crashTest, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import type { BadSetup } from '../../../src/testing/crash-test/bad-setup.ts';
import { play, type Scene } from '../../../src/testing/crash-test/history.ts';
import { judgeHistories } from '../../../src/testing/crash-test/judge.ts';
import type { StopAt } from '../../../src/testing/crash-test/life.ts';
import { ModelMemory } from '../../../src/testing/crash-test/model.ts';
import { toolOf } from '../../fixtures/host.ts';
import { withoutDue } from '../../fixtures/watched-store.ts';
import { honestStore } from './lying-stores.ts';

const paid: string[] = [];
const pay = toolOf('pay', 'once', async (_, { runId }) => {
  paid.push(runId);
  return 'paid';
});
const till = defineAgent({ id: 'till', instructions: 'Charge once.', tools: [pay] });
const model = () => scriptedModel([callTool('pay'), reply('Charged.')]);
const charging = (rest: Partial<CrashTestOptions> = {}) =>
  crashTest({ agent: till, prompt: 'Charge.', model, limit: 14, doubleCrashes: 4, ...rest });

describe('a process with a broken setup that boots between two others', () => {
  test('ends no run of an agent with a once call, parks none, and gives each back (edges 34)', async () => {
    for (const store of [memoryStore(), honestStore(new Map())]) {
      paid.length = 0;
      const report = await charging({ store: () => store });
      expect(report.violations).toEqual([]);
      expect(report.undisturbed).toEqual({ status: 'ok', output: 'Charged.' });
      expect(report.badSetups).toBeGreaterThan(6);
      expect(new Set(paid).size).toBe(paid.length);
    }
  });

  test('is drawn the same in each repeat (edges 34)', async () => {
    const [one, two] = [await charging({ limit: 7 }), await charging({ limit: 7 })];
    expect(two).toEqual(one);
    expect(one.badSetups).toBeGreaterThan(2);
  });
});

/** Stores of hosts that take a process with a broken setup for a fault of the run. */
const impatient: { readonly [name: string]: { readonly open: () => CheckpointStore; readonly detail: RegExp } } = {
  'counts every claim as a start': {
    detail: /counted a start of run/,
    open: () => {
      const store = withoutDue(memoryStore());
      const claims = new Map<string, number>();
      return {
        ...store,
        claim: async (...args: Parameters<typeof store.claim>) => {
          claims.set(args[0], (claims.get(args[0]) ?? 0) + 1);
          return store.claim(...args);
        },
        load: async (runId: string) => {
          const record = await store.load(runId);
          return record && { ...record, attempts: claims.get(runId) ?? 0 };
        },
      } as CheckpointStore;
    },
  },
  'parks what a process gave back': {
    detail: /with .* parked run .*: SETUP: given up/,
    open: () => {
      const store = memoryStore();
      const release = async (claim: Claim) => {
        const record = await store.load(claim.runId);
        if (record?.setup) await store.save({ ...record, parked: { code: 'SETUP', reason: 'given up' } }, { claim });
        await store.release(claim);
      };
      return { ...store, release } as CheckpointStore;
    },
  },
};

describe('a process with a broken setup that changes a run', () => {
  test.each(Object.entries(impatient))('is reported with a store that %s (edges 34)', async (_, { open, detail }) => {
    const store = open();
    const { violations } = await charging({ store: () => store, doubleCrashes: 0 });
    expect(violations).toContainEqual({
      promise: 'i',
      crashAt: expect.any(String),
      detail: expect.stringMatching(detail),
    });
  });

  const failing = (name: string, error: Error): BadSetup => {
    const refuse = () => Promise.reject(error);
    return { name, models: (whole) => () => ({ ...whole, doGenerate: refuse, doStream: refuse }) };
  };
  const key = failing('no key', Object.assign(new Error('no key'), { name: 'AI_LoadAPIKeyError' }));
  // What an executor would make of it that takes the error for an answer of the provider.
  const answer = failing('no key', Object.assign(new Error('no key'), { statusCode: 400 }));

  test.each([
    ['not reported when it gave the run back', key, []],
    ['reported when it ended the run', answer, ['a process with no key ended the run: error, MODEL: ']],
  ])('is %s (edges 34)', async (_, setup, expected) => {
    const memory = new ModelMemory();
    const sceneOf = (whole: boolean): Scene => {
      const store = memoryStore();
      const modelFor = () => (whole ? memory.remember(model()) : memory.recall(model));
      return {
        job: {
          agent: till,
          invocation: { prompt: 'Charge.' },
          tools: [],
          executor: {},
          memory,
          modelFor,
          isAlone: true,
        },
        open: async () => ({ store, bare: store }),
        within: (_what, work) => work,
        spareLives: 4,
        isAskedAgain: false,
        badBoot: () => ({ setup, isWorker: false }),
      };
    };
    const dies: StopAt = ({ when, what }) => (when === 'after' && what === 'tool pay' ? 'crash' : undefined);
    const whole = await play(sceneOf(true), 'r', []);
    const history = await play(sceneOf(false), 'r', [dies]);
    const rules = { errorsInARow: 3, redoneSteps: 1, hasPhasesAnew: false, isAlone: true, isAppending: true };
    const found = judgeHistories(history, whole, rules).filter(({ promise }) => promise === 'i');
    expect(found.map(({ detail }) => detail)).toEqual(expected.map((text) => expect.stringContaining(text)));
    expect(history.ledger.badSetups).toBe(1);
  });
});
