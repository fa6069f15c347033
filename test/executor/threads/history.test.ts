import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Message, memoryStore } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply } from 'pawl/testing';
import { afterAll, describe, expect, test } from 'vitest';
import { torture } from '../../crash/random.ts';
import { toolOf } from '../../fixtures/host.ts';
import { textsIn, threadHost } from './thread-host.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-threads-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** `PAWL_TURNS=250` makes it 1,000. */
const TURNS = Number(process.env.PAWL_TURNS ?? (torture > 1 ? 250 : 25));
const PARTS = 4;

const textsOf = async (thread: ReturnType<typeof threadHost>['thread']) =>
  textsIn((await thread.messages()).map(({ message }) => message));

const summary: readonly Message[] = [{ role: 'user', content: [{ type: 'text', text: 'in short' }] }];

describe('the history of a thread', () => {
  test('is compacted once: a later turn gets the short history and what came after it, and messages() stays whole (web 14)', async () => {
    let asked = 0;
    const compactor = (messages: readonly Message[]) => {
      asked += 1;
      return messages.length > 4 ? summary : messages;
    };
    const { thread, host, ended } = threadHost({
      store: memoryStore(),
      script: Array.from({ length: 4 }, (_, i) => reply(`answer ${i + 1} ${'long '.repeat(200)}`)),
      compactor: (messages: readonly Message[]) => compactor(messages) as never,
      contextTokens: { fast: 700 },
    });
    for (const id of ['m1', 'm2', 'm3', 'm4']) await ended((await thread.send({ id, text: id })).runId);
    const seen = host.model.calls.map(({ messages }) => textsIn(messages).map((text) => text.slice(0, 8)));
    expect(seen).toEqual([['m1'], ['m1', 'answer 1', 'm2'], ['in short'], ['in short', 'answer 3', 'm4']]);
    expect(asked).toBe(1);
    expect((await textsOf(thread)).map((text) => text.slice(0, 8))).toEqual([
      ...['m1', 'answer 1', 'm2', 'answer 2', 'm3', 'answer 3', 'm4', 'answer 4'],
    ]);
  });

  test('has the message and the answer of a pipeline, not the conversations of its phases (web 9)', async () => {
    const phases = [
      { name: 'draft', instructions: 'Draft.' },
      { name: 'polish', instructions: 'Polish {{.draft}}.' },
    ];
    const { thread, host, ended } = threadHost({
      store: memoryStore(),
      agent: { phases } as never,
      script: [reply('a draft'), reply('a poem'), reply('another draft'), reply('another poem')],
    });
    await ended((await thread.send({ id: 'm1', text: 'write' })).runId);
    expect(await textsOf(thread)).toEqual(['write', 'a poem']);
    await ended((await thread.send({ id: 'm2', text: 'again' })).runId);
    expect(await textsOf(thread)).toEqual(['write', 'a poem', 'again', 'another poem']);
    expect(host.model.calls.map(({ messages }) => textsIn(messages)).slice(2)).toEqual([
      ['write', 'a poem', 'again'],
      ['write', 'a poem', 'again'],
    ]);
  });

  test('is stored once: a record holds its own messages alone, also after each of its saves (web 14)', async () => {
    const store = memoryStore();
    const saved: number[] = [];
    const watched = {
      ...store,
      append: async (...given: Parameters<typeof store.append>) => {
        saved.push(given[0].messages.length);
        return store.append(...given);
      },
    };
    const script = [reply('one'), callTool('look', {}), callTool('look', {}), reply('two')];
    const { thread, ended } = threadHost({ store: watched, script, tools: [toolOf('look')] });
    await ended((await thread.send({ id: 'm1', text: 'first' })).runId);
    const { runId } = await thread.send({ id: 'm2', text: 'second' });
    await ended(runId);
    const record = await store.load(runId, { ended: true });
    expect(record?.thread).toEqual({ id: 't', upTo: 2 });
    expect(record?.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'tool',
      'assistant',
    ]);
    expect(record?.earlier).toBeUndefined();
    expect(saved.reduce((sum, count) => sum + count, 0)).toBe(6);
  });

  test('grows a store by what is said in each turn, and its last turn loads at once (web 38)', async () => {
    const path = join(folder, 'long.db');
    const sizes: number[] = [];
    const compactor = (messages: readonly Message[]) => (messages.length > 20 ? summary : messages);
    for (let part = 0; part < PARTS; part++) {
      const store = sqliteStore({ path, durability: 'process' });
      const { thread, ended } = threadHost({
        ...{ store, compactor: compactor as never, contextTokens: { fast: 8_000 }, retention: { outcomes: 0 } },
        script: Array.from({ length: TURNS }, () => reply('x'.repeat(500))),
      });
      for (let i = 0; i < TURNS; i++)
        await ended((await thread.send({ id: `${part}-${i}`, text: 'y'.repeat(500) })).runId);
      if (part === PARTS - 1) {
        const { length } = await thread.messages({ limit: 10_000 });
        expect(length).toBe(2 * PARTS * TURNS);
        const key = { callerId: 'ada', id: 't' };
        expect((await store.threads.history(key, length)).length).toBeLessThan(60);
      }
      await store.close();
      sizes.push(statSync(path).size);
    }
    const grown = sizes.map((size, part) => size - (sizes[part - 1] ?? 0)).slice(1);
    expect(Math.max(...grown) / Math.min(...grown)).toBeLessThan(1.1);
  }, 120_000);
});
