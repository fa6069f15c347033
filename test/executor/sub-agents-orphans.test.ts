import { createPalette, defineAgent, diagnose, type RunCheckpoint, type RunOutcome } from 'pawl';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { answeringModel, promptOf, resultsOf, turnsOf } from '../fixtures/answering-model.ts';
import { childId } from '../fixtures/child-id.ts';
import { hostOf, settle, settledUnless, toolOf, until } from '../fixtures/host.ts';
import { type Left, mortalProcess, nothing } from '../fixtures/mortal-process.ts';

const palette = createPalette({
  agents: [
    defineAgent({ id: 'lead', instructions: 'lead', subAgents: ['worker'] }),
    defineAgent({ id: 'worker', instructions: 'worker' }),
  ],
});

/** A host whose agent asks a lead, who asks a worker; the worker's turn is what the test says. */
function hostWith(process: ReturnType<typeof mortalProcess>, worker: () => ReturnType<typeof hang>) {
  const outcomes: RunOutcome[] = [];
  const model = answeringModel((request) => {
    if (request.system === 'worker') return worker();
    if (turnsOf(request) > 0) return reply('end');
    return callTool(request.system === 'Work.' ? 'agent__lead' : 'agent__worker', { prompt: promptOf(request) }, 'c');
  });
  const host = hostOf({
    models: { fast: process.model(model) },
    agent: { subAgents: ['lead'] },
    store: process.store,
    ports: { palette },
    onOutcome: (outcome) => void outcomes.push(outcome),
  });
  return { ...host, model, outcomes };
}

/** What a process leaves that died while the worker was at work: `r`, `r~c` and `r~c~c`. */
async function leftAtWork(): Promise<Left> {
  const process = mortalProcess();
  const host = hostWith(process, hang);
  void host.start({ runId: 'r' });
  await until(() => host.model.calls.length === 3);
  process.die();
  const left = await process.left();
  const family = ['r', childId('r', 'c'), childId('r', 'c', 'c')];
  expect(left.records.map(({ meta }) => meta.runId).toSorted()).toEqual(family.toSorted());
  return left;
}

const without = (left: Left, ...gone: string[]): Left => ({
  ...left,
  records: left.records.filter(({ meta }) => !gone.includes(meta.runId)),
});

const changed = (left: Left, runId: string, by: (record: RunCheckpoint) => RunCheckpoint): Left => ({
  ...left,
  records: left.records.map((record) => (record.meta.runId === runId ? by(record) : record)),
});

describe('recover', () => {
  test('takes up the root of a tree alone: the others are left to their parents, and continue (supervision 7)', async () => {
    const { executor, model } = hostWith(mortalProcess(await leftAtWork()), () => reply('worked'));
    const report = await executor.recover();
    expect(report.resumed).toEqual([{ runId: 'r' }]);
    expect(report.skipped).toHaveLength(2);
    expect(report.skipped).toEqual(
      expect.arrayContaining([
        { runId: childId('r', 'c'), reason: 'its parent run r continues it' },
        { runId: childId('r', 'c', 'c'), reason: `its parent run ${childId('r', 'c')} continues it` },
      ]),
    );
    expect(await executor.get('r')?.result).toMatchObject({ status: 'ok' });
    expect(model.calls.map(({ system }) => system)).toEqual(['worker', 'lead', 'Work.']);
  });

  test('ends a child without its parent, with no model call: its outcome is delivered, its record goes (supervision 7)', async () => {
    const process = mortalProcess(without(await leftAtWork(), 'r', childId('r', 'c', 'c')));
    const { executor, model, outcomes } = hostWith(process, hang);
    expect((await executor.recover()).resumed).toEqual([{ runId: childId('r', 'c') }]);
    await until(async () => (await process.store.listInterrupted()).length === 0);
    expect(outcomes).toMatchObject([{ runId: childId('r', 'c'), status: 'cancelled', iterations: 0 }]);
    expect(model.calls).toHaveLength(0);
  });

  test('ends a whole branch whose root is gone, at once: also those whose parents are such orphans (supervision 7)', async () => {
    const process = mortalProcess(without(await leftAtWork(), 'r'));
    const { executor, model, outcomes } = hostWith(process, hang);
    await executor.recover();
    await until(async () => (await process.store.listInterrupted()).length === 0);
    expect(outcomes.map(({ runId, status }) => `${runId} ${status}`).toSorted()).toEqual(
      [`${childId('r', 'c')} cancelled`, `${childId('r', 'c', 'c')} cancelled`].toSorted(),
    );
    expect(model.calls).toHaveLength(0);
  });

  test('leaves a child alone whose parent is parked, or cannot be taken up just now (supervision 7)', async () => {
    const all = await leftAtWork();
    for (const left of [
      changed(all, 'r', (record) => ({ ...record, parked: { code: 'X', reason: 'by hand' } })),
      changed(all, 'r', (record) => ({ ...record, meta: { ...record.meta, agentId: 'gone' } })),
    ]) {
      const process = mortalProcess(left);
      const { executor, model } = hostWith(process, hang);
      expect((await executor.recover()).resumed).toEqual([]);
      await settle();
      expect(model.calls).toHaveLength(0);
      expect(await process.store.listInterrupted()).toHaveLength(3);
    }
  });

  test('ends a child below a parked run whose own root has ended, as diagnose says (supervision 7)', async () => {
    const left = without(await leftAtWork(), 'r');
    const [mid, leaf] = [childId('r', 'c'), childId('r', 'c', 'c')];
    const process = mortalProcess(
      changed(left, mid, (record) => ({ ...record, parked: { code: 'X', reason: 'by hand' } })),
    );
    const reasons = new Map<string, string>();
    for await (const { runId, reason } of diagnose(process.store)) reasons.set(runId, reason);
    expect(reasons.get(leaf)).toContain('ended as cancelled');
    const { executor, outcomes, model } = hostWith(process, hang);
    const { resumed, parked } = await executor.recover();
    expect([resumed, parked]).toEqual([[{ runId: leaf }], [{ runId: mid, reason: 'X: it is parked: by hand' }]]);
    await until(() => outcomes.length === 1);
    expect(outcomes).toMatchObject([{ runId: leaf, status: 'cancelled' }]);
    expect(model.calls).toHaveLength(0);
  });

  test('takes a run for a child only when a call of another began it: a parentRunId of the host’s is its own matter (supervision 7)', async () => {
    const first = mortalProcess();
    const host = hostWith(first, hang);
    void host.start({ runId: 'own', parentRunId: 'a-run-of-yesterday' });
    await until(() => host.model.calls.length === 3);
    first.die();
    const { executor } = hostWith(mortalProcess(await first.left()), () => reply('worked'));
    expect((await executor.recover()).resumed).toEqual([{ runId: 'own' }]);
    expect(await executor.get('own')?.result).toMatchObject({ status: 'ok' });
  });

  test('reports a child of an agent that the palette no longer has, and touches it not (recovery 1)', async () => {
    const process = mortalProcess(without(await leftAtWork(), 'r', childId('r', 'c', 'c')));
    const host = hostOf({ store: process.store, ports: { palette: createPalette({}) } });
    const { skipped, resumed } = await host.executor.recover();
    expect(resumed).toEqual([]);
    expect(skipped).toEqual([{ runId: childId('r', 'c'), reason: expect.stringContaining('AGENT_NOT_FOUND') }]);
    expect(await process.store.listInterrupted()).toHaveLength(1);
  });
});

test('a parent is not parked while its child gets on: what a child records is progress of those above it (recovery 2, supervision 7)', async () => {
  const worker = defineAgent({ id: 'worker', instructions: 'worker', tools: [toolOf('look')] });
  let left: Left = nothing;
  let steps = 0;
  for (let life = 1; life <= 6; life++) {
    const process = mortalProcess(left);
    // In each of its lives the child gets one step further, and then the process dies.
    let made = 0;
    const model = answeringModel((request) => {
      const turn = turnsOf(request);
      if (request.system === 'Work.')
        return turn === 0 ? callTool('agent__worker', { prompt: 'x' }, 'c') : reply(resultsOf(request).join());
      made += 1;
      if (made > 1 && life < 6) return new Promise<never>(() => {});
      return turn < 5 ? callTool('look', { turn }, `look-${turn}`) : reply('all done');
    });
    const host = hostOf({
      models: { fast: process.model(model) },
      agent: { subAgents: ['worker'] },
      store: process.store,
      ports: { palette: createPalette({ agents: [worker] }) },
    });
    const result = await settledUnless(host.run({ runId: 'r' }), () => made > 1 && life < 6);
    if (result) {
      expect(result).toMatchObject({ status: 'ok', output: 'all done' });
      expect(life).toBe(6);
      return;
    }
    process.die();
    left = await process.left();
    const child = left.records.find(({ meta }) => meta.runId === childId('r', 'c'));
    expect(child?.iteration).toBe(++steps);
  }
});

test('damaged records that name each other as parents block no process: each is ended like an orphan (recovery 6)', async () => {
  const process = mortalProcess(await leftAtWork());
  const record = (await process.store.load(childId('r', 'c'))) as RunCheckpoint;
  for (const [runId, parentRunId] of [
    ['a', 'b'],
    ['b', 'a'],
  ] as const) {
    await process.store.save({
      ...record,
      meta: { ...record.meta, runId: `~${runId}` },
      parent: { runId: `~${parentRunId}`, callId: 'c', rootRunId: `~${parentRunId}` },
    });
  }
  const host = hostWith(process, () => reply('found'));
  await host.executor.recover();
  await settle();
  expect(
    (await process.store.listInterrupted()).map(({ runId }) => runId).filter((runId) => runId.startsWith('~')),
  ).toEqual([]);
});
