import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createExecutor, defineAgent, defineTool, type JournalEvent, memoryStore } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';

const stores = {
  memory: () => memoryStore(),
  SQLite: () => sqliteStore({ path: join(mkdtempSync(join(tmpdir(), 'pawl-journal-')), 'runs.db') }),
};

const agentOf = (effect: 'read' | 'once', execute: () => Promise<string> | string) =>
  defineAgent({
    id: 'desk',
    instructions: 'Work.',
    tools: [defineTool({ name: 'look', description: 'Looks.', input: { type: 'object' }, effect, execute })],
  });

describe.each(Object.keys(stores) as (keyof typeof stores)[])('the journal of a run in %s', (name) => {
  test.each(['read', 'once'] as const)(
    'tells a reader of another executor what a run with a %s tool did (web 1, 4)',
    async (effect) => {
      const checkpoints = stores[name]();
      const gate = Promise.withResolvers<string>();
      const agent = agentOf(effect, () => gate.promise);
      const host = createExecutor({
        models: { fast: scriptedModel([callTool('look', { at: 'a' }), reply('It is well.')]) },
        checkpoints,
        journal: { flushMs: 1 },
      });
      const other = createExecutor({ models: { fast: scriptedModel([]) }, checkpoints, journal: true });
      const run = await host.start(agent, { runId: 'r', prompt: 'Look.' });
      const early: JournalEvent[] = [];
      const reading = (async () => {
        for await (const event of other.events('r')) {
          early.push(event);
          if (event.type === 'tool.started') gate.resolve('well');
        }
      })();
      await run.result;
      await reading;
      const late = early.at(-1);
      expect(late).toMatchObject({ type: 'run.ended', status: 'ok', output: 'It is well.' });
      await host.shutdown();
      await other.shutdown();
    },
  );

  test('has the last event of a run whose record stays: a turn of a thread (web 1, 9)', async () => {
    const agent = agentOf('read', () => 'well');
    await using host = createExecutor({
      models: { fast: scriptedModel([reply('It is well.')]) },
      checkpoints: stores[name](),
      journal: { flushMs: 1 },
    });
    const { runId } = await host.thread('t', { agent, callerId: 'ada' }).send({ id: 'm', text: 'Look.' });
    const events: JournalEvent[] = [];
    for await (const event of host.events(runId)) events.push(event);
    expect(events.at(-1)).toMatchObject({ type: 'run.ended', status: 'ok', output: 'It is well.' });
  });
});
