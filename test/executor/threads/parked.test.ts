import { type Message, memoryStore } from 'pawl';
import { callTool, reply, type ScriptedEntry } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { torture } from '../../crash/random.ts';
import { gate, hostOf, toolOf, until } from '../../fixtures/host.ts';
import { notingBudget } from '../../fixtures/noting-ports.ts';
import { killsBehindParked, killsOfParking, leftAndParked } from './kill-sweeps.ts';
import { requestsOf, stores, textsIn, threadHost } from './thread-host.ts';

/** A host whose budget refuses every call from the nth on, until it is raised, and a thread whose first turn is parked by that. */
async function parkedThread(script: readonly ScriptedEntry[], rest: Parameters<typeof threadHost>[0] = {}) {
  const limit = { calls: 1 };
  const budget = notingBudget({ refuse: () => limit.calls-- <= 0 });
  const pay = toolOf('pay', 'once', async () => 'paid 5');
  const given = threadHost({
    ...{ store: memoryStore(), journal: true, tools: [pay], script: [callTool('pay', {}), ...script] },
    ...rest,
    ports: { ...rest.ports, budget },
  });
  const { thread, host } = given;
  const first = await thread.send({ id: 'm1', text: 'pay' });
  await until(async () => (await host.executor.find(first.runId))?.status === 'parked', 'the parking');
  limit.calls = 99;
  return { ...given, first, limit, requests: requestsOf(host) };
}

const rolesIn = (messages: readonly Message[] = []) => messages.map(({ role }) => role);

/** In memory at each write, in SQLite at each fourth one; under torture at each. */
const strideOf = (name: string) => (torture > 1 || name === 'memory' ? 1 : 4);

describe.each(Object.entries(stores))('a turn that is parked, in %s', (name, store) => {
  test('does not hold up its conversation: the next message is answered, and the model reads its calls (edges 31)', async () => {
    const { thread, host, ended, first, requests } = await parkedThread([reply('You paid 5.'), reply('Yes.')], {
      store: store(),
    });
    const second = await thread.send({ id: 'm2', text: 'did you pay?' });
    expect(second.state).toBe('started');
    expect(await ended(second.runId)).toMatchObject({ status: 'ok', output: 'You paid 5.' });
    expect(rolesIn(requests()[1])).toEqual(['user', 'assistant', 'tool', 'user']);
    expect(JSON.stringify(requests()[1])).toContain('paid 5');
    const shown = (await thread.messages()).map(({ message }) => message);
    expect(textsIn(shown)).toEqual(['pay', 'did you pay?', 'You paid 5.']);
    const third = await thread.send({ id: 'm3', text: 'sure?' });
    await ended(third.runId);
    expect(rolesIn(requests()[2])).toEqual(['user', 'assistant', 'tool', 'user', 'assistant', 'user']);
    expect(await ended(first.runId)).toMatchObject({ status: 'error', error: { code: 'BUDGET_EXCEEDED' } });
    expect(await host.executor.find(first.runId)).toMatchObject({
      status: 'ended',
      outcome: { error: { code: 'BUDGET_EXCEEDED', message: expect.stringContaining('was answered without it') } },
    });
  });

  test('is out of reach of `unpark` then, which says why and what to do (edges 31)', async () => {
    const { thread, host, ended, first } = await parkedThread([reply('Two.')], { store: store() });
    await ended((await thread.send({ id: 'm2', text: 'next' })).runId);
    const refused = host.executor.unpark(first.runId);
    await expect(refused).rejects.toMatchObject({ code: 'RUN_NOT_FOUND', retry: 'never' });
    await expect(refused).rejects.toThrow(/has ended .*BUDGET_EXCEEDED.*send its message again/);
  });

  test('and the message behind it survive a kill at any write: the next process answers it once (edges 31)', async () => {
    await killsBehindParked(store, 'recover', strideOf(name));
  });

  test.each(['work', 'sweep'] as const)(
    'and the message behind it survive a kill at any write: a later %s answers it, without another message (edges 31)',
    async (repairs) => {
      await killsBehindParked(store, repairs, torture > 1 ? 1 : 4);
    },
  );
});

test.each(Object.entries(stores))(
  'a kill at any write of the process that parks a turn leaves the message behind it to a worker, in %s (edges 31)',
  async (name, store) => {
    await killsOfParking(store, strideOf(name));
  },
);

const parkedRun = async (host: ReturnType<typeof threadHost>['host'], runId: string) =>
  until(async () => (await host.executor.find(runId))?.status === 'parked', 'the parking');

describe('a turn that is parked', () => {
  test('is in no later request, if it made no calls (edges 31)', async () => {
    const asked = gate<never>();
    const store = memoryStore();
    const { first, park } = await leftAndParked(store, 'TOO_MANY_ATTEMPTS', { script: [() => asked.pass()] });
    await asked.reached;
    await park();
    const { thread, host, ended } = threadHost({ store });
    for (const id of ['m2', 'm3']) await ended((await thread.send({ id, text: id })).runId);
    expect(textsIn(host.model.calls[0]?.messages ?? [])).toEqual(['m2']);
    expect(textsIn(host.model.calls[1]?.messages ?? [])).toEqual(['m2', 'done', 'm3']);
    expect(await ended(first.runId)).toMatchObject({ status: 'error', error: { code: 'TOO_MANY_ATTEMPTS' } });
  });

  test('leaves the model a sentence for a call of which it is not known whether it took effect (edges 31)', async () => {
    const paying = gate<never>();
    const script = [callTool('pay', {}), reply('I do not know.')];
    const tools = [toolOf('pay', 'once', () => paying.pass())];
    const store = memoryStore();
    const { park } = await leftAndParked(store, 'OUTCOME_UNKNOWN', { script, tools });
    await paying.reached;
    await park();
    const { thread, host, ended } = threadHost({ store, tools });
    await ended((await thread.send({ id: 'm2', text: 'did you pay?' })).runId);
    const request = host.model.calls.at(-1)?.messages ?? [];
    expect(rolesIn(request)).toEqual(['user', 'assistant', 'tool', 'user']);
    expect(JSON.stringify(request)).toContain('It may or may not have taken effect');
  });

  test('withdraws its question, and leaves the model a sentence for the call (edges 31)', async () => {
    const ask = toolOf('ask', 'once', (_, context) => context.ask({ question: 'Really?' }));
    const { thread, host, ended } = threadHost({
      ...{ store: memoryStore(), tools: [ask], script: [callTool('ask', {}), reply('I do not know.')] },
      defaults: { waitLingerMs: 1 },
    });
    const first = await thread.send({ id: 'm1', text: 'pay' });
    await until(async () => (await host.executor.find(first.runId))?.status === 'waiting', 'the question');
    await host.executor.park(first.runId, 'looking into it');
    await ended((await thread.send({ id: 'm2', text: 'did you pay?' })).runId);
    const request = host.model.calls.at(-1)?.messages ?? [];
    expect(rolesIn(request)).toEqual(['user', 'assistant', 'tool', 'user']);
    expect(JSON.stringify(request)).toContain('This call waited, and had not ended');
    expect(await host.executor.waiting()).toEqual([]);
    expect(await ended(first.runId)).toMatchObject({ status: 'error', error: { code: 'PARKED' } });
  });

  test('ends at once if messages wait behind it, and they have their turns in order (edges 31)', async () => {
    const passed = gate<string>();
    const refusals = [false, true];
    const { thread, host, ended } = threadHost({
      ...{ store: memoryStore(), tools: [toolOf('work', 'read', () => passed.pass())] },
      script: [callTool('work', {}), reply('two'), reply('three')],
      ports: { budget: notingBudget({ refuse: () => refusals.shift() ?? false }) },
    });
    const first = await thread.send({ id: 'm1', text: 'first' });
    await passed.reached;
    const second = await thread.send({ id: 'm2', text: 'second' });
    const third = await thread.send({ id: 'm3', text: 'third' });
    expect([second.state, third.state]).toEqual(['queued', 'queued']);
    passed.open('worked');
    expect(await ended(first.runId)).toMatchObject({ status: 'error', error: { code: 'BUDGET_EXCEEDED' } });
    await ended(third.runId);
    const shown = textsIn((await thread.messages()).map(({ message }) => message));
    expect(shown).toEqual(['first', 'second', 'two', 'third', 'three']);
    expect(host.warnings.filter((each) => each === 'run: parked')).toHaveLength(1);
  });

  test.each(['queue', 'steer', 'reject', 'interrupt'] as const)(
    'is no live run for a message with `%s`, and ends with its code (edges 31)',
    async (onBusy) => {
      const { thread, ended, first } = await parkedThread([reply('Two.')]);
      const second = await thread.send({ id: 'm2', text: 'next', onBusy });
      expect(second.state).toBe('started');
      expect(await thread.turn('m2')).toMatchObject({ runId: second.runId });
      expect(await ended(second.runId)).toMatchObject({ output: 'Two.' });
      expect(await ended(first.runId)).toMatchObject({ error: { code: 'BUDGET_EXCEEDED' } });
    },
  );

  test('ends once for two messages that come together, and both are answered (edges 31)', async () => {
    const told: string[] = [];
    const { thread, host, ended, first } = await parkedThread([reply('Two.'), reply('Three.')]);
    const sent = await Promise.all(['m2', 'm3'].map((id) => thread.send({ id, text: id })));
    for (const { runId } of sent) expect((await ended(runId)).status).toBe('ok');
    for await (const event of host.executor.events(first.runId)) told.push(event.type);
    expect(told.filter((type) => type === 'run.ended')).toHaveLength(1);
    expect(told.indexOf('run.parked')).toBeLessThan(told.indexOf('run.ended'));
  });

  test('stays parked for its own message, sent again, and for a message that the thread knows (edges 31)', async () => {
    const { thread, host, first } = await parkedThread([]);
    expect(await thread.send({ id: 'm1', text: 'pay' })).toMatchObject({ runId: first.runId, state: 'known' });
    await parkedRun(host, first.runId);
  });

  test('is begun again by thread.retry, in its place (edges 10, 31)', async () => {
    const { thread, host, ended, first } = await parkedThread([reply('Paid.')]);
    const again = await thread.retry('m1');
    expect(again.runId).not.toBe(first.runId);
    expect(await ended(again.runId)).toMatchObject({ output: 'Paid.' });
    expect(textsIn((await thread.messages()).map(({ message }) => message))).toEqual(['pay', 'Paid.']);
    expect(await host.executor.find(first.runId)).toBeNull();
  });

  test('is continued by an unpark if no message came, and its thread with it (edges 18, 31)', async () => {
    const { thread, host, ended, first } = await parkedThread([reply('Paid.'), reply('Two.')]);
    await host.executor.unpark(first.runId);
    await host.executor.recover();
    expect(await ended(first.runId)).toMatchObject({ status: 'ok', output: 'Paid.' });
    await ended((await thread.send({ id: 'm2', text: 'next' })).runId);
    expect(textsIn((await thread.messages()).map(({ message }) => message))).toEqual(['pay', 'Paid.', 'next', 'Two.']);
  });

  test('is ended by thread.cancel as cancelled, and removed by thread.delete (web 13, 15)', async () => {
    const cancelled = await parkedThread([]);
    expect(await cancelled.thread.cancel('it stays broken')).toBe(cancelled.first.runId);
    expect(await cancelled.ended(cancelled.first.runId)).toMatchObject({ status: 'cancelled' });
    const deleted = await parkedThread([]);
    await deleted.thread.delete();
    expect(await deleted.thread.messages()).toEqual([]);
    expect(await deleted.host.executor.find(deleted.first.runId)).toBeNull();
  });

  test('is unparked by one process or passed by a message to another: never both (edges 31)', async () => {
    for (const isFirst of [true, false]) {
      const store = memoryStore();
      const here = await parkedThread([reply('One.'), reply('Two.')], { store });
      const there = threadHost({ store, journal: true });
      const send = () => there.thread.send({ id: 'm2', text: 'next' });
      const unpark = () =>
        here.host.executor.unpark(here.first.runId).then(
          () => true,
          () => false,
        );
      const [unparked, second] = isFirst
        ? await Promise.all([unpark(), send()])
        : ((await Promise.all([send(), unpark()])).toReversed() as [boolean, Awaited<ReturnType<typeof send>>]);
      await here.host.executor.recover();
      await there.host.executor.recover();
      await until(async () => (await there.thread.turn('m2'))?.state === 'ended', 'the answer');
      const found = await there.host.executor.find(here.first.runId);
      const status = unparked ? 'ok' : 'error';
      expect(found).toMatchObject({ status: 'ended', outcome: { status } });
      expect(await there.host.executor.find(second.runId)).toMatchObject({ outcome: { status: 'ok' } });
    }
  });

  test('is left to a person after a restore, until the next message comes (edges 27, 31)', async () => {
    const passed = gate<string>();
    const tools = [toolOf('work', 'read', () => passed.pass())];
    const store = memoryStore();
    const script = [callTool('work', {})];
    const { before, first, park } = await leftAndParked(store, 'RESTORED', { script, tools });
    await passed.reached;
    await before.thread.send({ id: 'm2', text: 'second' });
    await park();
    const { thread, host, ended } = threadHost({ store, tools });
    await host.executor.recover();
    expect(await thread.turn('m2')).toMatchObject({ state: 'queued' });
    await parkedRun(host, first.runId);
    const third = await thread.send({ id: 'm3', text: 'third' });
    await ended(third.runId);
    const shown = textsIn((await thread.messages()).map(({ message }) => message));
    expect(shown).toEqual(['first', 'second', 'done', 'third', 'done']);
  });
});

test('the look for threads that a parked turn holds up ends, also where a store gives the same page each time (edges 31)', async () => {
  const inner = memoryStore();
  let asked = 0;
  const row = { queued: 1, cursor: 'one' } as never;
  const list = async () => {
    asked += 1;
    if (asked > 20) throw new Error('the store was asked without an end');
    return Array.from({ length: 100 }, () => row);
  };
  const host = hostOf({ store: { ...inner, threads: { ...inner.threads, list } } });
  const worker = host.executor.work();
  await until(() => asked > 0);
  await worker.drain();
  await host.executor.shutdown();
  expect(asked).toBe(2);
});
