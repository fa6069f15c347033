import { type Codec, createExecutor, defineAgent, defineTool, memoryStore } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply, scriptedModel } from 'pawl/testing';
import { expect, test } from 'vitest';
import { toolOf } from '../../fixtures/host.ts';

test('executor.find reads no message of a stored run: who asks for the run of another caller costs nothing (web 39)', async () => {
  const store = memoryStore();
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object' },
    needsApproval: true,
    execute: () => '',
  });
  const agent = defineAgent({ id: 'desk', instructions: 'Pay.', tools: [pay] });
  const models = { fast: scriptedModel([callTool('pay')]) };
  const host = createExecutor({ models, store, defaults: { waitLingerMs: 1 } });
  expect((await host.run(agent, { runId: 'r', callerId: 'ada', prompt: 'Pay.' })).status).toBe('waiting');
  const asked: unknown[] = [];
  const watched = {
    ...store,
    load: (...args: Parameters<typeof store.load>) => {
      asked.push(args[1]?.messages);
      return store.load(...args);
    },
  };
  const other = createExecutor({ models, store: watched });
  expect(await other.find('r')).toMatchObject({ status: 'waiting', meta: { callerId: 'ada' } });
  expect(await other.find('unknown')).toBe(null);
  expect(new Set(asked)).toEqual(new Set([false]));
});

test('executor.find opens no message in SQLite (web 39)', async () => {
  const opened: string[] = [];
  const base64 = {
    seal: (text: string) => btoa(encodeURIComponent(text)),
    open: (text: string) => decodeURIComponent(atob(text)),
  };
  const codec: Codec = {
    seal: base64.seal,
    open: (text, { part }) => {
      opened.push(part);
      return base64.open(text);
    },
  };
  const store = sqliteStore({ path: ':memory:', codec });
  const agent = defineAgent({ id: 'desk', instructions: 'Look.', tools: [toolOf('look')] });
  const models = { fast: scriptedModel([callTool('look'), reply('fine')]) };
  const host = createExecutor({ models, store, retention: { records: 1e9, outcomes: 0 } });
  await host.run(agent, { runId: 'ended', prompt: 'Look.' });
  const other = createExecutor({ models, store });
  opened.length = 0;
  expect(await other.find('ended')).toMatchObject({ status: 'ended', outcome: { output: 'fine' } });
  expect(opened.filter((part) => part.startsWith('messages'))).toEqual([]);
  expect(opened).not.toEqual([]);
  await store.close();
});
