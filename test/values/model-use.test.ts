import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MAX_RUN_MODELS, modelName, modelUses, type RunModel, withModel } from '../../src/values/model-use.ts';
import { addSpend, addUsage, noSpend, noUsage, type Spend, type Usage } from '../../src/values/usage.ts';

interface Played {
  models?: readonly RunModel[];
  iteration: number;
  usage: Usage;
  spend?: Spend;
}

const tokens = (inputTokens: number): Usage => ({ ...noUsage, inputTokens, outputTokens: 1 });

/** A run after turns of these models. */
function played(turns: readonly { model: string; input: number; usd?: number | undefined }[]): Played {
  const begin: Played = { iteration: 0, usage: noUsage };
  return turns.reduce<Played>(
    (run, { model, input, usd }) => ({
      models: withModel(run, model),
      iteration: run.iteration + 1,
      usage: addUsage(run.usage, tokens(input)),
      ...(usd === undefined && !run.spend
        ? {}
        : { spend: addSpend(run.spend ?? noSpend, { tokens: input, usd: usd ?? 0, seconds: 1 }) }),
    }),
    begin,
  );
}

describe('what each model of a run used', () => {
  test('a run with one model keeps its name alone, and its record stays the same object with each further turn (studio 7)', () => {
    const run = played([{ model: 'p/a', input: 10 }]);
    expect(run.models).toEqual([{ model: 'p/a' }]);
    expect(withModel(run, 'p/a')).toBe(run.models);
    expect(modelUses(run)).toEqual([{ model: 'p/a', turns: 1, usage: run.usage }]);
  });

  test('a model that takes over, and the first one again, each have their own turns, tokens and cost (studio 7)', () => {
    const run = played([
      { model: 'p/a', input: 10, usd: 1 },
      { model: 'p/b', input: 100, usd: 2 },
      { model: 'p/a', input: 1, usd: 4 },
    ]);
    expect(modelUses(run)).toEqual([
      { model: 'p/b', turns: 1, usage: tokens(100), spend: { tokens: 100, usd: 2, seconds: 1 } },
      { model: 'p/a', turns: 2, usage: addUsage(tokens(10), tokens(1)), spend: { tokens: 11, usd: 5, seconds: 2 } },
    ]);
  });

  test('turns of a record that names no model have none, and a run without a turn has no rows (studio 7)', () => {
    const old = { iteration: 2, usage: tokens(5) };
    expect(modelUses(old)).toEqual([{ model: '', turns: 2, usage: tokens(5) }]);
    const on = { ...old, models: withModel(old, 'p/a'), iteration: 3, usage: addUsage(old.usage, tokens(1)) };
    expect(modelUses(on)).toEqual([
      { model: '', turns: 2, usage: tokens(5) },
      { model: 'p/a', turns: 1, usage: tokens(1) },
    ]);
    expect(modelUses({ iteration: 0, usage: noUsage })).toEqual([]);
  });

  test(`in any order of models, all rows together are what the run used, and no more than ${MAX_RUN_MODELS + 1} are kept (studio 7)`, () => {
    const turn = fc.record({
      model: fc.nat(30).map((n) => `p/${n}`),
      input: fc.nat(1_000),
      usd: fc.option(fc.nat(9), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 60 }), (turns) => {
        const run = played(turns);
        const uses = modelUses(run);
        expect(uses.length).toBeLessThanOrEqual(MAX_RUN_MODELS + 1);
        expect(new Set(uses.map(({ model }) => model)).size).toBe(uses.length);
        expect(uses.reduce((sum, { turns: own }) => sum + own, 0)).toBe(turns.length);
        expect(uses.reduce((sum, { usage }) => addUsage(sum, usage), noUsage)).toEqual(run.usage);
        const usd = uses.reduce((sum, { spend }) => sum + (spend?.usd ?? 0), 0);
        expect(usd).toBeCloseTo(run.spend?.usd ?? 0);
      }),
    );
  });

  test('a name has at most 200 characters, and a model whose getters throw has one too (studio 7)', () => {
    expect(modelName({ provider: 'openai', modelId: 'gpt-5' })).toBe('openai/gpt-5');
    expect(modelName({ provider: 'x'.repeat(1_000), modelId: '' })).toHaveLength(200);
    const hostile = {
      get provider(): string {
        throw new Error('no');
      },
      modelId: Symbol('m'),
    };
    expect(modelName(hostile)).toBe('/');
  });
});
