import { createPalette, defineAgent, memoryStore, type RunCheckpoint, type RunOutcome, type Tool } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { answeringModel, turnsOf } from '../fixtures/answering-model.ts';
import { childId } from '../fixtures/child-id.ts';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { afterCrash } from '../fixtures/watched-store.ts';
import { freshDir } from '../store/folder.ts';

const helper = defineAgent({ id: 'helper', instructions: 'Help.', description: 'Helps.' });
const palette = createPalette({ agents: [helper] });
const callId = 'call-1';

/** A host whose agent asks the helper in its first turn; the helper gives `answer`. */
function family(store: ReturnType<typeof memoryStore>, answer: () => ReturnType<typeof reply> | Promise<never>) {
  const model = answeringModel((request) => {
    if (request.system === 'Help.') return answer();
    return turnsOf(request) === 0 ? callTool('agent__helper', { prompt: 'Help me.' }, callId) : reply('whole');
  });
  return hostOf({
    models: { fast: model },
    agent: { subAgents: ['helper'] },
    store,
    ports: { palette },
  });
}

const never = () => new Promise<never>(() => {});

test.for(['.', '..'])('no host begins a run with the id %s, which no URL can name (studio 31)', async (runId) => {
  const host = hostOf({ script: [], store: memoryStore() });
  const run = await host.start({ runId });
  expect([run.accepted, run.error?.code]).toEqual(['refused', 'INVALID_RUN_ID']);
  expect((await host.run({ runId: `${runId}.x` })).error?.code).not.toBe('INVALID_RUN_ID');
});

test('a stored run with an id that no URL can name is continued all the same, by its record (studio 31)', async () => {
  const store = memoryStore();
  const host = hostOf({ store, script: [hang()] });
  await host.start({ runId: 'r' });
  await until(async () => (await store.load('r')) !== null);
  const record = (await store.load('r')) as RunCheckpoint;
  await store.save({ ...record, meta: { ...record.meta, runId: '..' } });
  const next = hostOf({ store, script: [reply('Done.')] });
  await next.executor.recover();
  expect(await next.executor.get('..')?.result).toMatchObject({ status: 'ok', output: 'Done.' });
  await host.executor.shutdown();
});

describe('the ids of children', () => {
  test.for(['~', '~x', childId('victim', callId)])('cannot be given by a host: %s is INVALID_RUN_ID', async (runId) => {
    const { createActor } = await import('xstate');
    const host = hostOf({ script: [], store: memoryStore() });
    const run = await host.start({ runId });
    expect([run.accepted, run.error?.code]).toEqual(['refused', 'INVALID_RUN_ID']);
    const hosted = createActor(host.executor.logic(host.agent), { input: { prompt: 'Go.', runId } }).start();
    await until(() => hosted.getSnapshot().status === 'done');
    expect(hosted.getSnapshot().output).toMatchObject({ runId, error: { code: 'INVALID_RUN_ID' } });
  });

  test('are taken by all that looks after stored runs: load, list, get, park, unpark, control', async () => {
    const store = memoryStore();
    const host = family(store, never);
    await host.start({ runId: 'victim' });
    const id = childId('victim', callId);
    await until(async () => (await store.load(id)) !== null && host.executor.get(id) !== undefined);
    const next = hostOf({ store: await afterCrash(store) });
    expect((await next.executor.list()).map(({ runId }) => runId).sort()).toEqual(['victim', id]);
    await next.executor.park(id, 'a person looks');
    await next.executor.unpark(id);
    expect(await next.executor.control(id).cancel()).toBe('ended');
  });

  test('victim~call-1, started by a stranger, is a run of its own: the parent begins its own child', async () => {
    const store = memoryStore();
    const stranger = hostOf({ script: [reply('poison')], store });
    await stranger.run({ runId: 'victim~call-1', prompt: 'Help me.', parentRunId: 'victim' });
    const asked: string[] = [];
    const host = family(store, () => {
      asked.push('helper');
      return reply('honest');
    });
    const { messages } = await host.run({ runId: 'victim' });
    expect(asked).toEqual(['helper']);
    expect(JSON.stringify(messages)).toContain('honest');
    expect(JSON.stringify(messages)).not.toContain('poison');
  });

  test('a parent whose inputs have a key that an older version wrote begins its child with these inputs', async () => {
    const store = memoryStore();
    await family(store, never).start({ runId: 'old' });
    await until(async () => (await store.load('old'))?.openStep !== undefined);
    const dead = await afterCrash(store);
    await dead.delete(childId('old', callId));
    const record = (await dead.load('old')) as RunCheckpoint;
    await dead.save({ ...record, inputs: { 'pawl.module': 'x' } });
    const host = family(dead, () => reply('honest'));
    await host.executor.recover();
    const result = await host.executor.get('old')?.result;
    expect(result).toMatchObject({ status: 'ok', output: 'whole' });
    expect(JSON.stringify(result?.messages)).toContain('honest');
  });

  test('such a run of a stranger is recovered as a run of its own, with any parentRunId', async () => {
    const store = memoryStore();
    const first = hostOf({ script: [hang()], store });
    await first.start({ runId: 'gone~call-1', parentRunId: 'gone' });
    await until(() => first.model.calls.length === 1);
    const host = hostOf({ script: [reply('went on')], store: await afterCrash(store) });
    expect((await host.executor.recover()).resumed).toEqual([{ runId: 'gone~call-1' }]);
    expect(await host.executor.get('gone~call-1')?.result).toMatchObject({ status: 'ok', output: 'went on' });
  });

  test('a record under the id of a child that another call began is not taken for it', async () => {
    const store = memoryStore();
    await family(store, never).start({ runId: 'victim' });
    const id = childId('victim', callId);
    await until(async () => (await store.load(id)) !== null);
    const left = await afterCrash(store);
    const record = (await left.load(id)) as RunCheckpoint;
    await left.save({ ...record, parent: { runId: 'other', callId, rootRunId: 'other' } });
    const { messages } = await family(left, () => reply('poison')).run({ runId: 'victim' });
    expect(JSON.stringify(messages)).toContain('RUN_ID_CONFLICT');
  });
});

describe('the parent of a run', () => {
  test('is in its record: the call that began it, and the run at the top', async () => {
    const store = memoryStore();
    const lead = defineAgent({ id: 'lead', instructions: 'Lead.', subAgents: ['helper'] });
    const model = answeringModel((request) => {
      if (request.system === 'Help.') return never();
      const name = request.system === 'Lead.' ? 'agent__helper' : 'agent__lead';
      return callTool(name, { prompt: 'x' }, 'c');
    });
    const ports = { palette: createPalette({ agents: [helper, lead] }) };
    const host = hostOf({ models: { fast: model }, agent: { subAgents: ['lead'] }, store, ports });
    await host.start({ runId: 'r', parentRunId: 'whose' });
    const [child, grandchild] = [childId('r', 'c'), childId('r', 'c', 'c')];
    await until(async () => (await store.load(grandchild)) !== null);
    expect((await store.load('r'))?.parent).toBeUndefined();
    expect((await store.load(child))?.parent).toEqual({ runId: 'r', callId: 'c', rootRunId: 'r' });
    expect((await store.load(grandchild))?.parent).toEqual({ runId: child, callId: 'c', rootRunId: 'r' });
  });

  test.for([
    ['memory', () => memoryStore()],
    ['SQLite', () => sqliteStore({ path: `${freshDir()}.db` })],
  ] as const)('is listed by the %s store, after further saves as well', async ([, open]) => {
    const store = open();
    const parent = { runId: 'victim', callId, rootRunId: 'victim' };
    const host = family(store as ReturnType<typeof memoryStore>, never);
    await host.start({ runId: 'victim' });
    const id = childId('victim', callId);
    await until(async () => (await store.load(id)) !== null, 'the child');
    await host.executor.shutdown();
    const listed = await store.listInterrupted();
    expect(listed.find(({ runId }) => runId === id)).toMatchObject({ parent });
    expect(listed.find(({ runId }) => runId === 'victim')).not.toHaveProperty('parent');
  });

  test('is read from the record where the list of a host’s store does not say it: the child is left to its parent', async () => {
    const store = memoryStore();
    await family(store, never).start({ runId: 'victim' });
    const id = childId('victim', callId);
    await until(async () => (await store.load(id)) !== null);
    const left = await afterCrash(store);
    const listInterrupted: typeof left.listInterrupted = async (options) =>
      (await left.listInterrupted(options)).map((entry) => {
        if (!('meta' in entry)) return entry;
        const { parent: _, ...rest } = entry;
        return rest;
      });
    const host = family({ ...left, listInterrupted }, () => reply('helped'));
    const report = await host.executor.recover();
    expect(report.resumed).toEqual([{ runId: 'victim' }]);
    expect(report.skipped).toMatchObject([{ runId: id }]);
    expect(await host.executor.get('victim')?.result).toMatchObject({ status: 'ok', output: 'whole' });
  });
});

describe('a call that an older version began', () => {
  const openStep = (name: string, state: 'started' | 'planned') => ({
    message: {
      role: 'assistant',
      content: [{ type: 'tool-call', toolCallId: 'c', toolName: name, input: { prompt: 'x' } }],
    },
    calls: [
      { callId: 'c', name, input: { prompt: 'x' }, effect: 'idempotent', state, attempt: state === 'started' ? 1 : 0 },
    ],
  });

  async function oldStore(step: ReturnType<typeof openStep>) {
    const store = memoryStore();
    const first = hostOf({ script: [hang()], store });
    await first.start({ runId: 'r' });
    await until(() => first.model.calls.length === 1);
    const left = await afterCrash(store);
    const { fingerprint: _, ...record } = (await left.load('r')) as RunCheckpoint;
    await left.delete('r');
    await left.save({ ...record, attempts: 0, openStep: step as never });
    return left;
  }

  test('keeps its idempotency key over any number of crashes; a call of today gets today’s', async () => {
    let store = await oldStore(openStep('send', 'started'));
    const keys: string[] = [];
    const send = (isStuck: boolean): Tool =>
      toolOf('send', 'idempotent', (_, { callId: id, idempotencyKey }) => {
        keys.push(`${id} ${idempotencyKey}`);
        return isStuck ? never() : 'sent';
      });
    for (let crash = 0; crash < 2; crash++) {
      await hostOf({ tools: [send(true)], store }).start({ runId: 'r' });
      await until(() => keys.length === crash + 1);
      store = await afterCrash(store);
    }
    const last = hostOf({
      script: [callTool('send', {}, 'd'), reply('end')],
      tools: [send(false)],
      store,
    });
    expect((await last.run({ runId: 'r' })).status).toBe('ok');
    expect(keys.slice(0, 3)).toEqual(['c r:c', 'c r:c', 'c r:c']);
    expect(keys[3]).toMatch(/^d [0-9a-f]{64}$/);
  });

  test('that was only planned gets the key of today, and keeps it over a crash', async () => {
    const store = await oldStore(openStep('send', 'planned'));
    const keys: string[] = [];
    const stuck = toolOf('send', 'idempotent', (_, { idempotencyKey }) => {
      keys.push(idempotencyKey);
      return never();
    });
    await hostOf({ tools: [stuck], store }).start({ runId: 'r' });
    await until(() => keys.length === 1);
    await hostOf({ tools: [stuck], store: await afterCrash(store) }).start({ runId: 'r' });
    await until(() => keys.length === 2);
    expect(keys[0]).toMatch(/^[0-9a-f]{64}$/);
    expect(keys[1]).toBe(keys[0]);
  });

  test('finds its child under the id that version gave it', async () => {
    const store = await oldStore(openStep('agent__helper', 'started'));
    const record = (await store.load('r')) as RunCheckpoint;
    const { openStep: _, ...rest } = record;
    const messages = [{ role: 'user', content: [{ type: 'text', text: 'x' }] }] as const;
    const meta = { ...record.meta, runId: 'r~c', parentRunId: 'r', agentId: 'helper', prompt: 'x' };
    await store.save({ ...rest, meta, messages: messages as never });
    const host = family(store, () => reply('helped'));
    expect((await host.executor.recover()).resumed).toEqual([{ runId: 'r' }]);
    await host.executor.get('r')?.result;
    await settle();
    expect((await store.outcomes.find('r~c'))?.output).toBe('helped');
    expect(await store.listInterrupted()).toEqual([]);
  });

  test('gets no answer of a run that a stranger began under that id: its kept outcome has a fingerprint', async () => {
    const store = await oldStore(openStep('agent__helper', 'started'));
    const stranger = hostOf({ script: [reply('poison')], store });
    expect((await stranger.run({ runId: 'r~c', prompt: 'x', parentRunId: 'r' })).output).toBe('poison');
    const host = family(store, () => reply('helped'));
    await host.executor.recover();
    const result = await host.executor.get('r')?.result;
    expect(JSON.stringify(result?.messages)).toContain('RUN_ID_CONFLICT');
    expect(JSON.stringify(result?.messages)).not.toContain('poison');
  });

  test('gets the answer that its child gave before there were fingerprints', async () => {
    const store = await oldStore(openStep('agent__helper', 'started'));
    await hostOf({ script: [reply('helped')], store }).run({
      runId: 'r~c',
      prompt: 'x',
      parentRunId: 'r',
    });
    const { fingerprint: _, ...outcome } = (await store.outcomes.find('r~c')) as RunOutcome;
    await store.outcomes.keep('r~c', outcome, Date.now() + 60_000);
    const host = family(store, () => reply('asked again'));
    await host.executor.recover();
    const result = await host.executor.get('r')?.result;
    expect(JSON.stringify(result?.messages)).toContain('helped');
    expect(JSON.stringify(result?.messages)).not.toContain('asked again');
  });
});
