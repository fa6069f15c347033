import { defineAgent, type Invocation, memoryStore, type RunCheckpoint } from 'pawl';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf, until } from '../../fixtures/host.ts';
import { afterCrash, onlyRecord, plainStore } from '../../fixtures/watched-store.ts';

const tools = [toolOf('look')];
const image = { mediaType: 'image/png', data: 'AQID' };
const request: Invocation = {
  runId: 'r',
  prompt: 'Pay 10 to Ann.',
  callerId: 'ann',
  channelId: 'c',
  guildId: 'g',
  inputs: { account: 7 },
  images: [image],
};
const others: readonly (readonly [string, Partial<Invocation>])[] = [
  ['prompt', { prompt: 'Pay 20 to Ann.' }],
  ['caller', { callerId: 'eve' }],
  ['channel', { channelId: '' }],
  ['guild', { guildId: 'G' }],
  ['inputs', { inputs: { account: 8 } }],
  ['images', { images: [] }],
];
const conflict = { status: 'error', error: { code: 'RUN_ID_CONFLICT' }, output: '', messages: expect.anything() };
/** All that a stranger reads. */
const message = 'run id "r" belongs to another request: use another id, or repeat that request unchanged';

async function expectConflict(host: ReturnType<typeof hostOf>, given: Partial<Invocation>) {
  const run = await host.start({ ...request, ...given });
  expect(run).toMatchObject({ runId: 'r', accepted: 'refused', error: { code: 'RUN_ID_CONFLICT' } });
  expect(run.error?.message).toBe(message);
  const result = await run.result;
  expect(result).toMatchObject(conflict);
  expect(result.messages.map(({ role }) => role)).toEqual(['user']);
}

/** A run that has taken a step, and the store that its process left. */
async function stepTaken() {
  const store = memoryStore();
  const host = hostOf({ script: [callTool('look'), hang()], tools, store });
  const run = await host.start(request);
  await until(async () => (await store.load('r'))?.iteration === 1);
  return { store, host, run };
}

describe.for(others)('a start with the id of another request (another %s)', ([, other]) => {
  test.for([true, false])(
    'is refused while that run is live here, which continues (durable: %s)',
    async (isDurable) => {
      const host = hostOf({ script: [hang()], ...(isDurable ? { store: memoryStore() } : {}) });
      const first = await host.start(request);
      await expectConflict(host, other);
      expect(host.executor.get('r')?.actor === first.actor).toBe(true);
      expect(first.actor.getSnapshot().status).toBe('active');
    },
  );

  test('is refused while that run waits in the store, whose record stays as it was', async () => {
    const store = await afterCrash((await stepTaken()).store);
    const before = await onlyRecord(store);
    const host = hostOf({ script: [], tools, store });
    await expectConflict(host, other);
    expect(await onlyRecord(store)).toEqual(before);
  });

  test('is refused while another process works on that run', async () => {
    const { store } = await stepTaken();
    await expectConflict(hostOf({ script: [], tools, store }), other);
  });

  test.for(['this', 'a new'])('is refused after that run has ended, in %s process', async (where) => {
    const store = memoryStore();
    const first = hostOf({ script: [reply('secret')], store });
    expect((await first.run(request)).output).toBe('secret');
    const host = where === 'this' ? first : hostOf({ script: [], store });
    await expectConflict(host, other);
    // The request itself still gets its answer.
    expect(await host.run(request)).toMatchObject({ status: 'ok', output: 'secret' });
  });
});

describe('a start with the id of a run of another agent', () => {
  const other = defineAgent({ id: 'other', instructions: 'x' });
  const asked = (host: ReturnType<typeof hostOf>) => host.executor.start(other, request);

  test('is refused, live, stored or ended, and gets nothing of that run', async () => {
    const { host, store } = await stepTaken();
    const ended = memoryStore();
    await hostOf({ script: [reply('secret')], store: ended }).run(request);
    const hosts = [host, hostOf({ store }), hostOf({ store: await afterCrash(store) }), hostOf({ store: ended })];
    for (const each of hosts) {
      const run = await asked(each);
      expect([run.accepted, run.error?.code]).toEqual(['refused', 'RUN_ID_CONFLICT']);
      expect(run.error?.message).toBe(message);
    }
  });
});

describe('a repeated request', () => {
  test('meets the run for any order of its inputs, and any parentRunId', async () => {
    const host = hostOf({ script: [hang()], store: memoryStore() });
    const first = await host.start({ runId: 'r', inputs: { a: 1, b: { c: 2, d: 3 } } });
    const second = await host.start({ runId: 'r', inputs: { b: { d: 3, c: 2 }, a: 1 }, parentRunId: 'whose' });
    expect(second.actor === first.actor).toBe(true);
  });

  test('with an empty caller or no inputs is the request that left them out', async () => {
    const store = memoryStore();
    await hostOf({ store }).run({ runId: 'r' });
    const again = hostOf({ script: [], store });
    expect(await again.run({ runId: 'r', callerId: '', inputs: {}, images: [] })).toMatchObject({ status: 'ok' });
  });

  test('of ids that only look the same begins two runs', async () => {
    const host = hostOf({ script: [reply('one'), reply('two')], store: memoryStore() });
    expect((await host.run({ runId: '\u00e9' })).output).toBe('one');
    expect((await host.run({ runId: 'e\u0301' })).output).toBe('two');
  });
});

describe('two starts of one id that race', () => {
  test('in one turn, of two requests: the first begins, the second is refused', async () => {
    const host = hostOf({ script: [hang()], store: memoryStore() });
    const [first, second] = await Promise.all([host.start(request), host.start({ ...request, callerId: 'eve' })]);
    expect([first.accepted, second.accepted]).toEqual(['started', 'refused']);
    expect(second.error?.code).toBe('RUN_ID_CONFLICT');
  });

  test('a stranger that comes first to a stored run does not stop a repeated request', async () => {
    const store = await afterCrash((await stepTaken()).store);
    const host = hostOf({ script: [reply('paid')], tools, store });
    const [stranger, owner] = await Promise.all([host.start({ ...request, callerId: 'eve' }), host.start(request)]);
    expect([stranger.accepted, owner.accepted]).toEqual(['refused', 'resumed']);
    expect((await owner.result).output).toBe('paid');
  });

  test('while the first is being stopped, another request is refused and the same one joins', async () => {
    const host = hostOf({ script: [hang()], store: memoryStore() });
    const first = await host.start(request);
    const ending = first.cancel();
    await expectConflict(host, { prompt: 'Other.' });
    await ending;
  });

  test('of hosted runs of two requests: the second ends with RUN_ID_CONFLICT', async () => {
    const { createActor } = await import('xstate');
    const host = hostOf({ script: [hang()], store: memoryStore() });
    const logic = host.executor.logic(host.agent);
    const first = createActor(logic, { input: request }).start();
    const second = createActor(logic, { input: { ...request, callerId: 'eve' } }).start();
    await until(() => second.getSnapshot().status === 'done');
    expect(second.getSnapshot().output).toMatchObject({ status: 'error', error: { code: 'RUN_ID_CONFLICT' } });
    expect(first.getSnapshot().status).toBe('active');
  });
});

test('a start meets a run that was recovered here by its request, and another request does not', async () => {
  const store = await afterCrash((await stepTaken()).store);
  const host = hostOf({ script: [hang()], tools, store });
  await host.executor.recover();
  await expectConflict(host, { callerId: 'eve' });
  const again = await host.start(request);
  expect(again.accepted).toBe('joined');
  expect(again.actor === host.executor.get('r')?.actor).toBe(true);
});

describe('while a start of another request is looked at', () => {
  /** A store whose first load waits until it is told to answer. */
  async function slowStore() {
    const store = await afterCrash((await stepTaken()).store);
    const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const load = store.load.bind(store);
    store.load = async (runId) => {
      asked.resolve();
      await answer.promise;
      return load(runId);
    };
    return { store, asked: asked.promise, answer: answer.resolve };
  }

  test('recover waits for its refusal and takes the run up', async () => {
    const { store, asked, answer } = await slowStore();
    const host = hostOf({ script: [reply('paid')], tools, store });
    const stranger = host.start({ ...request, callerId: 'eve' });
    await asked;
    const recovering = host.executor.recover();
    await new Promise(setImmediate);
    answer();
    expect((await stranger).error?.code).toBe('RUN_ID_CONFLICT');
    expect(await recovering).toMatchObject({ resumed: [{ runId: 'r' }], skipped: [], failed: [] });
    expect((await host.executor.get('r')?.result)?.output).toBe('paid');
  });

  test('a host that is restored waits for its refusal and continues the run', async () => {
    const { createActor } = await import('xstate');
    const { store, asked, answer } = await slowStore();
    const host = hostOf({ script: [reply('paid')], tools, store });
    const { messages: _, ...head } = await onlyRecord(await afterCrash((await stepTaken()).store));
    const stranger = host.start({ ...request, callerId: 'eve' });
    await asked;
    const snapshot = { ...head, messages: [], stored: true, status: 'active', output: undefined, error: undefined };
    const actor = createActor(host.executor.logic(host.agent), { snapshot: snapshot as never, input: undefined });
    actor.start();
    answer();
    expect((await stranger).error?.code).toBe('RUN_ID_CONFLICT');
    await until(() => actor.getSnapshot().status === 'done');
    expect(actor.getSnapshot().output).toMatchObject({ status: 'ok', output: 'paid' });
  });
});

describe('a record', () => {
  test('keeps the fingerprint of its request, and so does the kept outcome', async () => {
    const { store, run } = await stepTaken();
    const { fingerprint } = await onlyRecord(store);
    expect(fingerprint).toMatch(/^[0-9a-f]{64}$/);
    await run.cancel();
    expect((await store.outcomes.find('r'))?.fingerprint).toBe(fingerprint);
  });

  test('without a fingerprint is compared by its stored request', async () => {
    const left = await onlyRecord((await stepTaken()).store);
    const { fingerprint: _, ...old } = left;
    for (const [, other] of others) {
      const store = memoryStore();
      await store.save(old as RunCheckpoint);
      await expectConflict(hostOf({ script: [], tools, store }), other);
    }
    const store = memoryStore();
    await store.save(old as RunCheckpoint);
    const host = hostOf({ script: [callTool('look'), hang()], tools, store });
    expect((await host.start(request)).accepted).toBe('resumed');
    await until(async () => (await store.load('r'))?.iteration === 2);
    expect((await onlyRecord(store)).fingerprint).toBe(left.fingerprint);
  });

  test('whose texts are redacted is met by its request, and by no other that looks the same when it is redacted', async () => {
    const redact = (text: string) => text.replaceAll(/\d{4}/g, '****');
    const store = memoryStore();
    const given = { runId: 'r', prompt: 'Charge card 1234.', inputs: { pin: '9876' } };
    const first = hostOf({ script: [hang()], store, redact });
    await first.start(given);
    expect((await store.load('r'))?.meta.prompt).toBe('Charge card ****.');
    await first.executor.shutdown();
    const host = hostOf({ script: [reply('charged')], store, redact });
    for (const other of [{ prompt: 'Charge card 5678.' }, { prompt: 'Charge card ****.' }, { inputs: { pin: '0000' } }])
      expect((await host.start({ ...given, ...other })).error?.code).toBe('RUN_ID_CONFLICT');
    expect((await host.run(given)).output).toBe('charged');
  });

  test('with a fingerprint is never compared by its redacted texts: another request may be redacted to the same', async () => {
    const redact = (text: string) => text.replaceAll(/\d{4}/g, '****');
    const store = memoryStore();
    const first = hostOf({ script: [hang()], store, redact });
    await first.start({ runId: 'r', prompt: 'Charge ****.' });
    const expectRefused = async (host: ReturnType<typeof hostOf>) =>
      expect((await host.start({ runId: 'r', prompt: 'Charge 1234.' })).error?.code).toBe('RUN_ID_CONFLICT');
    await expectRefused(first);
    await first.executor.shutdown();
    await expectRefused(hostOf({ script: [], store, redact }));
    await hostOf({ script: [reply('charged')], store, redact }).run({
      runId: 'r',
      prompt: 'Charge ****.',
    });
    await expectRefused(hostOf({ script: [], store, redact }));
  });

  test('whose request a migration renames is met by the request as it is now', async () => {
    const store = await afterCrash((await stepTaken()).store);
    const renamed = { id: 'renamed' };
    const migrate = (record: RunCheckpoint) => ({ ...record, meta: { ...record.meta, agentId: 'renamed' } });
    const boot = (script: Parameters<typeof hostOf>[0]) => hostOf({ ...script, tools, agent: renamed, store, migrate });
    const second = boot({ script: [callTool('look'), hang()] });
    expect((await second.start(request)).accepted).toBe('resumed');
    await until(async () => (await store.load('r'))?.iteration === 2);
    await second.executor.shutdown();
    expect((await boot({ script: [] }).start({ ...request, callerId: 'eve' })).error?.code).toBe('RUN_ID_CONFLICT');
    expect(await boot({ script: [reply('paid')] }).run(request)).toMatchObject({ status: 'ok', output: 'paid' });
  });

  test('of another request is not said to be one that migrate fails on', async () => {
    const store = await afterCrash((await stepTaken()).store);
    const migrate = () => {
      throw new Error('cannot read the account of Ann');
    };
    await expectConflict(hostOf({ script: [], tools, store, migrate }), { callerId: 'eve' });
  });

  test('is continued by recover and by a restored host as it is: nothing is compared', async () => {
    const store = await afterCrash((await stepTaken()).store);
    const host = hostOf({ script: [reply('paid')], tools, store });
    expect((await host.executor.recover()).resumed).toEqual([{ runId: 'r' }]);
    expect((await host.executor.get('r')?.result)?.output).toBe('paid');
  });
});

test('an outcome without a fingerprint cannot be compared, and is given to no start', async () => {
  const store = memoryStore();
  await hostOf({ script: [reply('secret')], store }).run(request);
  const { fingerprint: _, ...old } = (await store.outcomes.find('r')) as NonNullable<
    Awaited<ReturnType<typeof store.outcomes.find>>
  >;
  await store.outcomes.keep('r', old, Date.now() + 1_000_000);
  await expectConflict(hostOf({ script: [], store }), {});
});

test('an id whose run ended without a trace is free: not durable, or on a store that keeps no outcomes', async () => {
  for (const options of [{}, { store: plainStore() }]) {
    const host = hostOf({ script: [reply('one'), reply('two')], ...options });
    expect((await host.run(request)).output).toBe('one');
    expect((await host.run({ ...request, callerId: 'eve' })).output).toBe('two');
  }
});

test('a refused start of another request does not replace what executor.get gives of the run that has the id', async () => {
  const host = hostOf({ script: [reply('paid')], store: memoryStore() });
  await host.run(request);
  await expectConflict(host, { callerId: 'eve' });
  await until(async () => (await host.executor.get('r')?.result)?.output === 'paid');
  const next = hostOf({ script: [], tools, store: await afterCrash((await stepTaken()).store) });
  await expectConflict(next, { callerId: 'eve' });
  await until(() => next.executor.get('r') === undefined);
});
