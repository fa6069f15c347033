import { defineTool, memoryStore, type Notice } from 'pawl';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { afterCrash } from '../fixtures/watched-store.ts';

/** A function for `notify`, and what it got. */
function noting() {
  const notices: Notice[] = [];
  return { notices, notify: (notice: Notice) => void notices.push(notice) };
}

const refund = defineTool({
  name: 'refund',
  description: 'Pays back.',
  input: { type: 'object' },
  effect: 'once',
  needsApproval: true,
  execute: async () => 'paid',
});

describe('notify', () => {
  test('gets a parking again from each process that looks, with one id, and from none twice (operations 12)', async () => {
    const clock = testClock(1_000);
    const store = memoryStore({ clock });
    const dead = hostOf({ script: [callTool('look'), hang()], tools: [toolOf('look')], store, clock });
    await dead.start({ runId: 'r' });
    await until(async () => (await store.load('r'))?.iteration === 1);
    const after = await afterCrash(store);
    // The process that parks it has no `notify`, as one that died before its notice.
    await hostOf({ tools: [toolOf('look')], store: after, clock }).executor.park('r', 'look at it', {
      by: { id: 'ada' },
    });
    const [one, other] = [noting(), noting()];
    for (const { notify } of [one, other]) {
      const { executor } = hostOf({ tools: [toolOf('look')], store: after, clock, notify });
      await executor.recover();
      for (let i = 0; i < 200; i++) await clock.advance(1_000);
      await executor.shutdown();
    }
    const notice = { kind: 'parked', noticeId: 'r:parked:PARKED:1', runId: 'r', agentId: 'worker', code: 'PARKED' };
    expect([one.notices, other.notices]).toMatchObject([[notice], [notice]]);
  });

  test('gets a wait for a person when it is older than notifyAfterMs, and no content of it (operations 12)', async () => {
    const clock = testClock(1_000);
    const store = memoryStore({ clock });
    const { notices, notify } = noting();
    const script = [callTool('refund', { to: 'secret' }), reply('done')];
    const defaults = { waitLingerMs: 10, notifyAfterMs: 600_000 };
    const host = hostOf({ script, tools: [refund], store, clock, notify, defaults });
    await host.executor.recover();
    await host.start({ runId: 'r' });
    for (let i = 0; i < 500; i++) await clock.advance(1_000);
    expect(notices).toEqual([]);
    for (let i = 0; i < 300; i++) await clock.advance(1_000);
    expect(notices).toMatchObject([{ kind: 'waiting', runId: 'r', agentId: 'worker', wait: 'approval' }]);
    expect(notices[0]?.noticeId).toBe(`r:waiting:${(notices[0] as { waitId: string }).waitId}`);
    expect(JSON.stringify(notices)).not.toContain('secret');
    await host.executor.shutdown();
  });

  test('gets a once call of unknown outcome before the save that settles it, and a log line names the run and the call (operations 10, 12)', async () => {
    const store = memoryStore();
    const dead = hostOf({
      script: [callTool('pay')],
      tools: [toolOf('pay', 'once', () => new Promise(() => {}))],
      store,
    });
    await dead.start({ runId: 'r' });
    await until(async () => (await store.load('r'))?.openStep?.calls[0]?.state === 'started');
    const { notices, notify } = noting();
    const host = hostOf({ tools: [toolOf('pay', 'once')], store: await afterCrash(store), notify });
    await host.run({ runId: 'r' });
    const [notice] = notices;
    expect(notices).toHaveLength(1);
    expect(notice).toMatchObject({ kind: 'unknown-outcome', runId: 'r', agentId: 'worker', tool: 'pay' });
    const lines = host.warned.filter(({ fields }) => fields.event === 'call.unknown');
    const { callId } = notice as Extract<Notice, { kind: 'unknown-outcome' }>;
    expect(lines.map(({ fields }) => fields)).toMatchObject([
      { level: 'error', runId: 'r', agentId: 'worker', tool: 'pay', callId },
    ]);
    expect(lines[0]?.message).toContain('tool pay');
    expect(notice?.noticeId).toMatch(/^r:unknown:.+:1$/);
  });

  test('gets an end that onOutcome does not accept once, however often it is delivered (operations 12)', async () => {
    const clock = testClock(1_000);
    const store = memoryStore({ clock });
    const { notices, notify } = noting();
    let asked = 0;
    const onOutcome = () => {
      asked += 1;
      return Promise.reject(new Error('not now'));
    };
    const host = hostOf({ store, clock, notify, onOutcome });
    await host.executor.recover();
    await host.run({ runId: 'r' });
    for (let i = 0; i < 200 && asked < 3; i++) {
      await clock.advance(1_000);
      await settle();
    }
    expect(asked).toBeGreaterThanOrEqual(3);
    expect(notices).toMatchObject([{ kind: 'undelivered', runId: 'r' }]);
    expect(notices[0]?.noticeId).toBe(`${(notices[0] as { outcomeId: string }).outcomeId}:undelivered`);
    await host.executor.shutdown();
  });
});
