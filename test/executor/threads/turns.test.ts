import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { memoryStore } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, fail, reply, type ScriptedEntry } from 'pawl/testing';
import { afterAll, describe, expect, test } from 'vitest';
import { gate, toolOf } from '../../fixtures/host.ts';
import { textsIn, threadHost } from './thread-host.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-threads-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
const stores = {
  memory: () => memoryStore(),
  SQLite: () => sqliteStore({ path: join(folder, `${files++}.db`) }),
};

describe.each(Object.entries(stores))('a thread in %s', (_, makeStore) => {
  test('gives each turn the history of the turns before it (web 9)', async () => {
    const { thread, host, ended } = threadHost({
      store: makeStore(),
      script: [reply('one'), reply('two'), reply('three')],
    });
    for (const id of ['m1', 'm2', 'm3']) await ended((await thread.send({ id, text: `say ${id}` })).runId);
    expect(host.model.calls.map(({ messages }) => textsIn(messages))).toEqual([
      ['say m1'],
      ['say m1', 'one', 'say m2'],
      ['say m1', 'one', 'say m2', 'two', 'say m3'],
    ]);
    const messages = await thread.messages();
    expect(textsIn(messages.map(({ message }) => message))).toEqual([
      'say m1',
      'one',
      'say m2',
      'two',
      'say m3',
      'three',
    ]);
    expect(messages.map(({ id, index }) => [id.replace(/^t-\w+/, 'run'), index])).toEqual([
      ['m1', 0],
      ['run:1', 1],
      ['m2', 2],
      ['run:1', 3],
      ['m3', 4],
      ['run:1', 5],
    ]);
  });

  test('lets a message wait for its turn, and names the live run (web 11)', async () => {
    const slow = gate<void>();
    const script: ScriptedEntry[] = [async () => slow.pass().then(() => reply('one')), reply('two')];
    const { thread, host, ended } = threadHost({ store: makeStore(), script });
    const first = await thread.send({ id: 'm1', text: 'first' });
    await slow.reached;
    const second = await thread.send({ id: 'm2', text: 'second' });
    expect([first.state, second.state]).toEqual(['started', 'queued']);
    expect(host.model.calls).toHaveLength(1);
    slow.open();
    await ended(second.runId);
    expect(host.model.calls.map(({ messages }) => textsIn(messages)).at(1)).toEqual(['first', 'one', 'second']);
  });

  test('knows a repeated message, during its run and after it, and refuses other content under its id (web 10)', async () => {
    const { thread, host, ended } = threadHost({ store: makeStore() });
    const first = await thread.send({ id: 'm1', text: 'go' });
    expect(await thread.send({ id: 'm1', text: 'go' })).toEqual({ runId: first.runId, state: 'known' });
    await ended(first.runId);
    expect(await thread.send({ id: 'm1', text: 'go' })).toEqual({ runId: first.runId, state: 'known' });
    await expect(thread.send({ id: 'm1', text: 'stop' })).rejects.toMatchObject({ code: 'THREAD_MESSAGE_CONFLICT' });
    expect(host.model.calls).toHaveLength(1);
  });

  test('is continued by another process if the first one dies before the run begins: nothing is lost (web 13)', async () => {
    const store = makeStore();
    const dead = threadHost({ store, script: [] });
    // Its process dies right after the commit: the run is never started there.
    await dead.host.executor.shutdown({ drainMs: 1 });
    const { runId, state } = await dead.thread.send({ id: 'm1', text: 'go' });
    expect(state).toBe('started');
    const next = threadHost({ store });
    await next.host.executor.recover();
    await next.ended(runId);
    expect(textsIn((await next.thread.messages()).map(({ message }) => message))).toEqual(['go', 'done']);
  });

  test('keeps what a failed turn has recorded, without a call that has no result (web 9)', async () => {
    const tool = toolOf('look', 'read', async () => 'seen');
    const script: ScriptedEntry[] = [
      callTool('look', {}, 'c1'),
      fail(Object.assign(new Error('no'), { statusCode: 400 })),
      reply('fine'),
    ];
    const { thread, host, ended } = threadHost({ store: makeStore(), script, tools: [tool] });
    const first = await ended((await thread.send({ id: 'm1', text: 'go' })).runId);
    expect(first.status).not.toBe('ok');
    await ended((await thread.send({ id: 'm2', text: 'again' })).runId);
    const roles = (await thread.messages()).map(({ message }) => message.role);
    expect(roles).toEqual(['user', 'assistant', 'tool', 'user', 'assistant']);
    expect(host.model.calls.at(-1)?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user']);
  });

  test('of another caller does not exist (web 9)', async () => {
    const { thread, host, ended } = threadHost({ store: makeStore() });
    await ended((await thread.send({ id: 'm1', text: 'mine' })).runId);
    const other = host.executor.thread('t', { agent: host.agent, callerId: 'eve' });
    expect(await other.messages()).toEqual([]);
    expect(await other.turn('m1')).toBeUndefined();
    await expect(other.rewind('m1')).rejects.toMatchObject({ code: 'THREAD_MISSING' });
    await other.delete();
    expect(await thread.messages()).toHaveLength(2);
    expect((await host.executor.threads({ callerId: 'eve' })).map(({ id }) => id)).toEqual([]);
    expect(
      (await host.executor.threads({ callerId: 'ada' })).map(({ id, turns, messages }) => [id, turns, messages]),
    ).toEqual([['t', 1, 2]]);
  });
});
