import { memoryStore, type Workflow } from 'pawl';
import { crashTest, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { dunningWith } from '../../docs/examples/workflows/dunning.ts';
import { orderWith } from '../../docs/examples/workflows/order.ts';
import { review } from '../../docs/examples/workflows/review.ts';
import { worldOf } from '../workflow/world.ts';

const DAY = 86_400_000;

/** What was done, once for each key; a step of `fails` does not succeed. */
function world(...fails: readonly string[]) {
  const done = new Map<string, string>();
  const act = async (what: string, of: string, key: string) => {
    if (fails.includes(what)) throw new Error(`no ${what}`);
    done.set(key, `${what} ${of}`);
  };
  return { act, done };
}

/** Kills a run at each write on its way. */
const killed = (workflow: Workflow, input: unknown, more: object = {}) => {
  const store = memoryStore();
  return crashTest({ workflow, input, store: () => store, limit: 12, doubleCrashes: 0, ...more });
};

describe('the example of an order', () => {
  test.each([
    [[], ['reserve 7', 'charge 7', 'ship 7'], ''],
    [['ship'], ['reserve 7', 'charge 7', 'refund 7', 'release 7'], 'no ship'],
    [['charge'], ['reserve 7', 'release 7'], 'no charge'],
  ])('with the failures %j does %j (workflow 31)', async (fails, does, why) => {
    const { act, done } = world(...fails);
    const order = orderWith(act);
    const { data } = await worldOf([order])
      .boot()
      .run(order, { runId: 'r', input: { order: '7' } });
    expect([[...done.values()], data]).toEqual([does, { why }]);
  });

  test('undoes what it did also if its process dies on the way (workflow 31)', async () => {
    const report = await killed(orderWith(world('ship').act), { order: '7' });
    expect(report.violations).toEqual([]);
    expect(report.crashes).toBeGreaterThan(5);
  });
});

describe('the example of a review', () => {
  const model = () => scriptedModel([reply('yes'), reply('no')]);

  test('publishes what two of two agents and a person agree on (workflow 31)', async () => {
    const { boot, settle } = worldOf([review], { models: { fast: model() } });
    const executor = boot();
    const run = await executor.start(review, { runId: 'r', input: { text: 'All is well.' } });
    await settle();
    const [wait] = await executor.waiting({ kind: 'question' });
    await executor.control('r').answer(wait?.id ?? '', 'yes');
    const { data } = await run.result;
    expect(data).toMatchObject({ isPublished: true, verdicts: [{}, {}, { by: 'chief', says: 'yes' }] });
  });

  test('needs no person where the agents agree, and withdraws the question (workflow 31)', async () => {
    const { boot } = worldOf([review], { models: { fast: scriptedModel([reply('no'), reply('no')]) } });
    const executor = boot();
    const { data } = await executor.run(review, { runId: 'r', input: { text: 'All is well.' } });
    expect(data).toMatchObject({ isPublished: false });
    expect(await executor.waiting()).toEqual([]);
  });

  test('asks no agent again in the process that continues it (workflow 31)', async () => {
    const asked = model();
    const { boot, pass, store } = worldOf([review], { models: { fast: asked } });
    const first = boot();
    await first.start(review, { runId: 'r', input: { text: 'All is well.' } });
    await pass(4_000);
    await first.shutdown();
    const second = boot();
    await second.recover();
    const [wait] = await second.waiting({ kind: 'question' });
    await second.control('r').answer(wait?.id ?? '', 'yes');
    await pass(8_000, 8);
    expect(await store.outcomes.find('r')).toMatchObject({ data: { isPublished: true } });
    expect(asked.calls).toHaveLength(2);
  });
});

describe('the example of a dunning', () => {
  // A sweep each second over 45 days is four million.
  const defaults = { waitLingerMs: 1_000, dueMs: DAY / 24, controlMs: DAY / 24 };

  test('sends its letters over 45 days, in whichever process is there, each once (workflow 31)', async () => {
    const { act, done } = world();
    const dunning = dunningWith(act);
    const { boot, pass, store } = worldOf([dunning], { defaults });
    const first = boot();
    await first.start(dunning, { runId: 'r', input: { customer: 'ada' } });
    await pass(4_000);
    await first.shutdown();
    const second = boot();
    await second.recover();
    const seen: unknown[] = [];
    for (const days of [14, 16, 15]) {
      await pass(days * DAY, days);
      await pass(DAY / 4, 6);
      seen.push([...done.values()]);
    }
    expect(seen).toEqual([['remind ada'], ['remind ada', 'warn ada'], ['remind ada', 'warn ada', 'suspend ada']]);
    expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok' });
  });

  test('ends when the invoice is paid, and sends nothing more (workflow 31)', async () => {
    const { act, done } = world();
    const dunning = dunningWith(act);
    const { boot, pass, store } = worldOf([dunning], { defaults });
    const executor = boot();
    await executor.start(dunning, { runId: 'r', input: { customer: 'ada' } });
    await pass(4_000);
    await pass(14 * DAY, 14);
    await pass(DAY / 4, 6);
    await executor.signal('paid', true, { key: 'ada', id: 's' });
    await pass(DAY / 4, 6);
    expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok' });
    await pass(60 * DAY, 60);
    expect([...done.values()]).toEqual(['remind ada']);
  });

  test('has the same end if its process dies on the way (workflow 31)', async () => {
    const answers = ({ kind }: { readonly kind: string }) =>
      kind === 'event' ? ({ how: 'answer', value: true } as const) : undefined;
    const report = await killed(dunningWith(world().act), { customer: 'ada' }, { answers });
    expect(report.violations).toEqual([]);
  });
});
