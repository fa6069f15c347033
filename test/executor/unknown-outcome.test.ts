import { memoryStore } from 'pawl';
import { callTool, callTools, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, type HostOptions, hostOf, toolOf, until } from '../fixtures/host.ts';

const reset = () => Object.assign(new Error('it broke'), { code: 'ECONNRESET' });
const broken = (effect: 'once' | 'idempotent' = 'once') => toolOf('pay', effect, async () => Promise.reject(reset()));

function parkingHost(options: HostOptions = {}) {
  const store = memoryStore();
  const host = hostOf({ store, onUnknownOutcome: 'park', tools: [broken()], ...options });
  return { ...host, store };
}

const resultsIn = (messages: readonly { role: string; content: unknown }[] = []) =>
  messages.flatMap(({ role, content }) =>
    role === 'tool' ? (content as { output: { value: unknown } }[]).map(({ output }) => output.value) : [],
  );

describe("a once call whose connection breaks, with onUnknownOutcome: 'park'", () => {
  test('parks its run as a crash does; after the unpark the model reads that it is unknown, and no call is made (edges 11)', async () => {
    const { run, executor, store, model, warned } = parkingHost({ script: [callTool('pay'), reply('I will ask.')] });
    expect(await run({ runId: 'r' })).toMatchObject({ status: 'interrupted', error: { code: 'RUN_PARKED' } });
    expect(await store.load('r')).toMatchObject({
      attempts: 0,
      parked: { code: 'OUTCOME_UNKNOWN', reason: expect.stringContaining('pay: it broke') },
      openStep: { calls: [{ state: 'started', effect: 'once' }] },
    });
    expect(warned.filter(({ message }) => message === 'run: parked')).toHaveLength(1);
    expect(await run({ runId: 'r' })).toMatchObject({ error: { code: 'RUN_PARKED' } });

    await executor.unpark('r');
    const result = await run({ runId: 'r' });
    expect(result).toMatchObject({ status: 'ok', output: 'I will ask.' });
    expect(resultsIn(result.messages)).toEqual([expect.stringContaining('or its connection broke')]);
    expect(model.calls).toHaveLength(2);
  });

  test('leaves no secret of the error in the store, a list, an event, a log or a notice (edges 11, 19)', async () => {
    const notices: unknown[] = [];
    const events: unknown[] = [];
    const told = parkingHost({
      ...{ script: [callTool('pay')], journal: true },
      notify: (notice) => void notices.push(notice),
      observers: [{ onEvent: (event) => void events.push(event) }],
      redact: (text: string) => text.replaceAll('it broke', '[hidden]'),
    });
    const { run, executor, store, warned } = told;
    await run({ runId: 'r' });
    expect(await store.load('r')).toMatchObject({ parked: { reason: expect.stringContaining('pay: [hidden]') } });
    const shown: unknown[] = [
      await store.load('r'),
      await executor.list(),
      await executor.explain('r'),
      notices,
      events,
      warned,
    ];
    for (const each of shown) expect(JSON.stringify(each)).toContain('pay: [hidden]');
    shown.push(await store.journal.read('r', { after: -1, limit: 100 }));
    expect(JSON.stringify(shown)).not.toContain('it broke');
    await executor.shutdown();
    // Another process has the redacted reason, and its model the sentence without it.
    const next = parkingHost({ store, script: [reply('So.')] });
    await next.executor.unpark('r');
    expect((await next.run({ runId: 'r' })).status).toBe('ok');
    expect(JSON.stringify(next.model.calls)).not.toContain('it broke');
  });

  test('waits for the other calls with effects, whose results are recorded, and begins none (edges 11)', async () => {
    const mailing = gate<string>();
    const made: string[] = [];
    const mail = toolOf('mail', 'once', () => mailing.pass());
    const late = toolOf('late', 'once', async () => void made.push('late'));
    const script = [callTools(['mail', 'pay', 'late'].map((name) => ({ name, input: {} }))), reply('So.')];
    const { start, executor, store } = parkingHost({
      ...{ script, tools: [mail, broken(), late] },
      defaults: { toolConcurrency: 2 },
    });
    const run = await start({ runId: 'r' });
    await mailing.reached;
    await until(() => executor.get('r')?.actor?.getSnapshot().context.cause !== undefined, 'the stop');
    mailing.open('mailed');
    expect(await run.result).toMatchObject({ status: 'interrupted', error: { code: 'RUN_PARKED' } });
    expect((await store.load('r'))?.openStep?.calls.map(({ state }) => state)).toEqual(['done', 'started', 'planned']);
    expect(made).toEqual([]);
    await executor.unpark('r');
    const { messages } = await (await start({ runId: 'r' })).result;
    expect(resultsIn(messages).slice(0, 2)).toEqual(['mailed', expect.stringMatching(/^Outcome unknown/)]);
    expect(made).toEqual(['late']);
  });

  test('is only told to the model without a store, with `tell`, and for a call that may be repeated (edges 11)', async () => {
    const script = () => [callTool('pay'), reply('So.')];
    const hosts = [
      hostOf({ script: script(), tools: [broken()], onUnknownOutcome: 'park' }),
      parkingHost({ script: script(), onUnknownOutcome: 'tell' }),
      parkingHost({ script: script(), tools: [broken('idempotent')] }),
    ];
    for (const { run } of hosts) expect(await run()).toMatchObject({ status: 'ok', output: 'So.' });
  });
});
