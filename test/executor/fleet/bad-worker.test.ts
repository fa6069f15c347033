import { type Model, memoryStore } from 'pawl';
import { reply, scriptedModel } from 'pawl/testing';
import { expect, test } from 'vitest';
import { brokenSetups, goodModels, payer, paying } from '../../fixtures/broken-setups.ts';
import { hostOf, until } from '../../fixtures/host.ts';

const RUNS = 40;
const defaults = { waitLingerMs: 1, dueMs: 5 };
const faults = ['a tier that no model serves', 'a missing key'] as const;

/** Runs that have worked, and whose approvals have come. */
async function approvedRuns() {
  const store = memoryStore();
  const agents = [payer()];
  const models = () => scriptedModel([...paying]);
  const { executor } = hostOf({ models, agents, store, defaults });
  const agent = agents[0] as (typeof agents)[number];
  await Promise.all(Array.from({ length: RUNS }, (_, i) => executor.run(agent, { runId: `r${i}`, prompt: 'Go.' })));
  await executor.shutdown();
  // It has no agent: one that has takes up each run as soon as it is approved, and asks its model for the payment again.
  const approver = hostOf({ models, store, defaults }).executor;
  for (const { runId, id } of await approver.waiting({ limit: RUNS })) await approver.control(runId).approve(id);
  await approver.shutdown();
  return { store, agents };
}

test.for(faults)(
  'a fleet of two workers, one of them deployed with %s: no run of 40 is ended by it, and it takes few of them (edges 33)',
  async (fault) => {
    const { store, agents } = await approvedRuns();
    const { models = goodModels } = brokenSetups[fault] ?? {};
    const shared = { agents, store, defaults };
    // Made for each run: a script is read once.
    const broken = (tier: string) => (models() as Readonly<Record<string, Model>>)[tier] as Model;
    const bad = hostOf({ ...shared, models: broken });
    const good = hostOf({ ...shared, models: () => scriptedModel([reply('done')]) });
    const since = performance.now();
    const worker = bad.executor.work({ concurrency: 4, dueMs: 5 });
    await until(() => worker.stats().taken > 0);
    good.executor.work({ concurrency: 4, dueMs: 5 });
    const outcomes = () => Promise.all(Array.from({ length: RUNS }, (_, i) => store.outcomes.find(`r${i}`)));
    await until(async () => (await outcomes()).every((outcome) => outcome !== null));
    console.log(`${RUNS} runs beside a worker with ${fault}: ${((performance.now() - since) / 1_000).toFixed(1)} s`);
    expect((await outcomes()).map((outcome) => outcome?.status)).toEqual(Array(RUNS).fill('ok'));
    // One batch at most: then it leaves the agent alone.
    expect(worker.stats().taken).toBeLessThanOrEqual(4);
    await Promise.all([bad.executor.shutdown(), good.executor.shutdown()]);
  },
);
