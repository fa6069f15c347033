import { createExecutor, memoryStore } from 'pawl';
import { describe, expect, test } from 'vitest';
import parcel from '../cli/agents/parcel.ts';
import { until } from '../fixtures/host.ts';
import { webHost } from './web-host.ts';

const stop = { event: { type: 'stop', by: 'ada' }, id: 'click-7' };

/** A store with the run `p` of a workflow: of ada, and at rest. */
async function stored() {
  const checkpoints = memoryStore();
  const executor = createExecutor({ store: checkpoints, workflows: [parcel], defaults: { waitLingerMs: 1 } });
  await executor.start(parcel, { runId: 'p', callerId: 'ada', input: undefined });
  await until(async () => (await executor.waiting({ kind: 'question' })).length === 1);
  await executor.shutdown();
  return checkpoints;
}

describe('POST /runs/:runId/events', () => {
  test('gives an event to a live workflow: 200, and its machine takes it (workflow 25)', async () => {
    const host = webHost({ workflows: [parcel] });
    const run = await host.executor.start(parcel, { runId: 'p', callerId: 'ada', input: undefined });
    await until(async () => (await host.executor.waiting({ kind: 'question' })).length === 1);
    expect(await host.ask('/runs/p/events', { body: stop })).toMatchObject({
      status: 200,
      body: { runId: 'p', state: 'recorded' },
    });
    expect(await run.result).toMatchObject({ status: 'ok' });
  });

  test('keeps an event for a stored workflow, in a process that does not know it: 202, and once for an id (workflow 25)', async () => {
    const checkpoints = await stored();
    const host = webHost({ store: checkpoints });
    for (const _ of [1, 2])
      expect(await host.ask('/runs/p/events', { body: stop })).toMatchObject({
        status: 202,
        body: { runId: 'p', state: 'sent' },
      });
    expect(await checkpoints.commands.inbox({ runId: 'p' })).toMatchObject([
      { command: { id: 'click-7', event: stop.event } },
    ]);
  });

  test('refuses with mustTake an event that the state does not take: 409, and nothing is kept (workflow 18, 25)', async () => {
    const checkpoints = await stored();
    const host = webHost({ store: checkpoints, workflows: [parcel] });
    const send = (type: string) => host.ask('/runs/p/events', { body: { event: { type }, mustTake: true } });
    expect(await send('rush')).toMatchObject({ status: 409, body: { code: 'EVENT_NOT_TAKEN' } });
    expect(await checkpoints.commands.inbox({ runId: 'p' })).toEqual([]);
    expect((await send('stop')).status).toBe(202);
  });

  test('refuses an event of XState with 400, a run that is over or of another caller with 404, and a run of an agent with 501 (workflow 18, 25)', async () => {
    const host = webHost({ store: await stored() });
    await (await host.start({ runId: 'a', callerId: 'ada' })).result;
    const status = async (runId: string, type: string, as = 'ada') => {
      const { status, body } = await host.ask(`/runs/${runId}/events`, { as, body: { event: { type } } });
      return [status, body.code];
    };
    expect(await status('p', 'xstate.done.actor.pay')).toEqual([400, 'EVENT_INVALID']);
    expect(await status('p', '')).toEqual([400, 'BAD_REQUEST']);
    expect(await status('p', 'stop', 'bob')).toEqual([404, 'NOT_FOUND']);
    expect(await status('a', 'stop', 'root:boss')).toEqual([404, 'NOT_FOUND']);
    await admit(host, 'b');
    expect(await status('b', 'stop')).toEqual([501, 'UNSUPPORTED']);
  });
});

/** A stored run of an agent, which no process has begun. */
async function admit({ executor, agent }: ReturnType<typeof webHost>, runId: string): Promise<void> {
  await executor.start(agent, { runId, callerId: 'ada', prompt: 'Go.' }, { drive: 'later' });
}
