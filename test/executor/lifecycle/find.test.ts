import { defineTool, memoryStore } from 'pawl';
import { callTool, fail, hang, reply } from 'pawl/testing';
import { afterEach, describe, expect, test } from 'vitest';
import { gate, type HostOptions, hostOf, toolOf, until } from '../../fixtures/host.ts';
import { change } from '../../fixtures/left-runs.ts';
import { withoutMarks } from '../../fixtures/watched-store.ts';

const left: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const leave of left.splice(0)) await leave();
});
const someHost = (options: HostOptions) => {
  const host = hostOf(options);
  left.push(() => host.executor.shutdown());
  return host;
};

describe('executor.find', () => {
  test('finds a run that is live here, with its caller and its waits', async () => {
    const ask = defineTool({
      name: 'ask',
      description: 'Asks.',
      input: { type: 'object' },
      execute: (_, context) => context.ask({ question: 'Which one?' }),
    });
    const host = someHost({ script: [callTool('ask', {})], tools: [ask], store: memoryStore() });
    await host.start({ runId: 'r', callerId: 'ada', labels: { team: 'x' } });
    await until(() => host.executor.run$('r')?.get().state === 'running.waiting');
    expect(await host.executor.find('r')).toMatchObject({
      runId: 'r',
      status: 'live',
      meta: { callerId: 'ada' },
      labels: { team: 'x' },
      waits: [{ kind: 'question', question: 'Which one?' }],
    });
  });

  test('of a run that is about to continue here shows what its record has: whose it is, its labels and its waits', async () => {
    const store = memoryStore();
    const ask = toolOf('ask', 'read', (_, context) => context.ask({ question: 'Which one?' }));
    const defaults = { waitLingerMs: 1 };
    const first = someHost({ script: [callTool('ask', {})], tools: [ask], store, defaults });
    const { result } = await first.start({ runId: 'r', callerId: 'ada', labels: { team: 'x' } });
    expect((await result).status).toBe('waiting');
    const claiming = gate();
    const claim: typeof store.claim = (...given) => claiming.pass().then(() => store.claim(...given));
    const slow = { ...store, claim };
    const second = someHost({ script: [], tools: [ask], store: slow });
    const started = second.executor.start(second.agent, { runId: 'r', prompt: 'Go.', callerId: 'ada' });
    await claiming.reached;
    const line = await second.executor.find('r');
    claiming.open();
    await started;
    expect(line).toMatchObject({
      status: 'live',
      meta: { callerId: 'ada', prompt: 'Go.' },
      labels: { team: 'x' },
      waits: [{ kind: 'question', question: 'Which one?' }],
    });
  });

  test('finds a stored run, and says who works on it only if that is asked', async () => {
    const store = memoryStore();
    const first = someHost({ script: [hang()], store });
    const second = someHost({ script: [], store });
    await first.start({ runId: 'r', callerId: 'ada' });
    await until(() => first.model.calls.length === 1);
    // Others that were recorded in the same moment.
    for (let i = 0; i < 120; i++) await first.start({ runId: `a${i}` });
    expect(await second.executor.find('r')).toMatchObject({ status: 'interrupted', meta: { callerId: 'ada' } });
    expect(await second.executor.find('r', { owner: true })).toMatchObject({
      status: 'live',
      owner: expect.any(String),
    });
    await first.executor.shutdown();
    const line = await second.executor.find('r', { owner: true });
    expect(line).toMatchObject({ status: 'interrupted', usage: { inputTokens: 0 } });
    expect(line).not.toHaveProperty('owner');
    await change(store, 'r', (record) => ({ ...record, parked: { code: 'X', reason: 'by hand' } }));
    expect(await second.executor.find('r')).toMatchObject({ status: 'parked', code: 'X', reason: 'by hand' });
  });

  test('finds the outcome of a run that has ended while it is kept, and null for an unknown one', async () => {
    const store = memoryStore();
    const host = someHost({ script: [reply('done')], store });
    await (await host.start({ runId: 'r', callerId: 'ada' })).result;
    const other = someHost({ script: [], store });
    const found = await other.executor.find('r');
    expect(found).toMatchObject({ runId: 'r', status: 'ended', outcome: { status: 'ok', output: 'done' } });
    expect(found).not.toHaveProperty('outcome.fingerprint');
    expect(await other.executor.find('unknown')).toBeNull();
    await expect(other.executor.find('')).rejects.toMatchObject({ code: 'INVALID_RUN_ID' });
    await expect(other.executor.find('r', { holder: true } as never)).rejects.toThrow(TypeError);
  });

  test('of a record whose outcome is not delivered yet shows how it ended, and whose it is', async () => {
    const store = withoutMarks(memoryStore());
    const host = someHost({
      script: [reply('done')],
      store,
      onOutcome: () => Promise.reject(new Error('not now')),
    });
    await (await host.start({ runId: 'r', callerId: 'ada' })).result;
    await host.executor.shutdown();
    const other = someHost({ script: [], store });
    expect(await other.executor.find('r')).toMatchObject({
      status: 'ended',
      outcome: { status: 'ok', output: 'done' },
      meta: { callerId: 'ada' },
    });
  });

  test('without a store finds live runs, and results in memory, but no refused start', async () => {
    const host = someHost({ script: [fail(Object.assign(new Error('no'), { statusCode: 400 })), hang()] });
    await (await host.start({ runId: 'r' })).result;
    await host.start({ runId: 'live' });
    expect(await host.executor.find('r')).toMatchObject({ status: 'ended', outcome: { status: 'error' } });
    expect(await host.executor.find('live')).toMatchObject({ status: 'live' });
    expect(await host.executor.find('unknown')).toBeNull();
  });
});

describe('executor.list', () => {
  test('lists only the runs of a caller, live and stored', async () => {
    const store = memoryStore();
    const first = someHost({ script: [hang(), hang()], store });
    await first.start({ runId: 'a', callerId: 'ada' });
    await first.start({ runId: 'b', callerId: 'bob' });
    const second = someHost({ script: [hang()], store });
    await second.start({ runId: 'c', callerId: 'ada' });
    const ids = (await second.executor.list({ callerId: 'ada' })).map(({ runId }) => runId);
    expect(ids).toEqual(['c', 'a']);
    await expect(second.executor.list({ callerId: 7 as never })).rejects.toThrow('callerId must be a string');
  });
});
