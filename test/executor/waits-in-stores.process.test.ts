import { memoryStore } from 'pawl';
import { postgresStore } from 'pawl/stores/postgres';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { freshPath } from '../store/sqlite/files.ts';

const server = whyNoPostgres === undefined ? postgresServer() : undefined;

/** Each opens its storage once more: two processes. */
const stores = {
  memory: () => {
    const store = memoryStore();
    return () => store;
  },
  SQLite: () => {
    const path = freshPath();
    return () => sqliteStore({ path, durability: 'process' });
  },
  PostgreSQL: () => {
    const schema = server?.freshSchema() ?? '';
    return () => postgresStore({ pool: server?.pool() as never, schema });
  },
};

/** A call that asks, waits for an event and sleeps; then it has its effect. */
const order = () =>
  toolOf('order', 'idempotent', async (_, context) => {
    const color = await context.ask({ question: 'Which color?' });
    const { cents } = (await context.waitFor('paid', { key: context.runId })) as { cents: number };
    await context.sleep(50);
    return `${color} for ${cents}`;
  });

const defaults = { waitLingerMs: 10, dueMs: 20, controlMs: 20 };

describe.for(Object.keys(stores) as (keyof typeof stores)[])('waits of a tool in the %s store', (name) => {
  test.skipIf(name === 'PostgreSQL' && server === undefined)(
    'a question, an event and a time, each in another process than its answer (waiting 8, 12)',
    async () => {
      const open = stores[name]();
      const boot = (script: readonly never[] = []) =>
        hostOf({ tools: [order()], store: open(), defaults, script: script as never });
      const first = boot([callTool('order', {})] as never);
      const rested = await (await first.start({ runId: 'r' })).result;
      expect(rested).toMatchObject({ status: 'waiting', waits: [{ kind: 'question' }] });
      await first.executor.shutdown();
      const worker = boot([reply('done')] as never);
      await worker.executor.recover();
      const store = open();
      const person = boot();
      const [wait] = (await store.load('r'))?.waiting?.waits ?? [];
      expect(await person.executor.control('r').answer(wait?.id ?? '', 'red')).toBe('sent');
      await until(async () => (await store.load('r'))?.waiting?.waits[0]?.kind === 'event', 'the wait for the event');
      const sent = await person.executor.signal('paid', { cents: 700 }, { key: 'r', id: 's1' });
      expect([{}, { to: 'r' }]).toContainEqual(sent);
      await until(async () => (await store.outcomes.find('r')) !== null, 'the end of the run');
      expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok', output: 'done' });
      expect(JSON.stringify(worker.model.calls[0]?.messages)).toContain('red for 700');
      await worker.executor.shutdown();
    },
  );

  test.skipIf(name === 'PostgreSQL' && server === undefined)(
    'an event that comes before its wait is there when the call asks (waiting 12, 37)',
    async () => {
      const open = stores[name]();
      const sender = hostOf({ store: open() });
      const tool = toolOf(
        'pay',
        'once',
        async (_, context) => `paid ${await context.waitFor('paid', { key: context.runId })}`,
      );
      const runIds = Array.from({ length: 20 }, (_, n) => `run ${n}`);
      for (const runId of runIds)
        expect(await sender.executor.signal('paid', runId, { key: runId, id: runId })).toEqual({});
      const host = hostOf({
        tools: [tool],
        store: open(),
        defaults: { controlMs: 20 },
        script: runIds.flatMap(() => [callTool('pay', {}), reply('done')]),
      });
      for (const runId of runIds) {
        expect(await (await host.start({ runId })).result).toMatchObject({ status: 'ok' });
        expect(JSON.stringify(host.model.calls.at(-1)?.messages)).toContain(`paid ${runId}`);
      }
    },
  );
});
