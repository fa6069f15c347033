import { createExecutor, defineAgent, defineTool, type JournalEvent } from 'pawl';
import { postgresStore } from 'pawl/stores/postgres';
import { callTool, hang, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';

const server = postgresServer(['fsync=off']);

/** What a reader shows: the texts of each step, and which calls gave what. */
function shown(events: readonly JournalEvent[]): string[] {
  const lines: string[] = [];
  const texts = new Map<number, string>();
  for (const event of events) {
    if (event.type === 'model.delta') texts.set(event.step, (texts.get(event.step) ?? '') + event.text);
    if (event.type === 'step.snapshot')
      texts.set(event.step, event.content.map((part) => (part.type === 'text' ? part.text : '')).join(''));
    if (event.type === 'tool.done') lines.push(JSON.stringify(event.output));
    if (event.type === 'step.done') lines.push(`${event.step}: ${texts.get(event.step) ?? ''}`);
    if (event.type === 'run.ended') lines.push(`${event.status} ${event.output}`);
  }
  return lines;
}

describe.skipIf(whyNoPostgres)('the journal of a run in PostgreSQL', () => {
  test('is read on another host while the run works, after a cut, and from its beginning (web 1, 2, 4, 6)', async () => {
    const schema = server.freshSchema();
    const gate = Promise.withResolvers<string>();
    const last = Promise.withResolvers<void>();
    const look = defineTool({
      ...{ name: 'look', description: 'Looks.', input: { type: 'object' }, effect: 'once' },
      execute: () => gate.promise,
    });
    const agent = defineAgent({ id: 'desk', instructions: 'Work.', tools: [look] });
    const hostWith = (...script: Parameters<typeof scriptedModel>[0]) =>
      createExecutor({
        models: { fast: scriptedModel(script) },
        agents: [agent],
        store: postgresStore({ pool: server.pool(), schema }),
        journal: { flushMs: 1 },
      });
    const answer = () => last.promise.then(() => reply('It is well.'));
    await using host = hostWith(callTool('look', { at: 'a' }), answer);
    await using other = hostWith();
    const run = await host.start(agent, { runId: 'r', prompt: 'Look.' });
    const live: JournalEvent[] = [];
    for await (const event of other.events('r')) {
      live.push(event);
      if (event.type === 'tool.started') break;
    }
    const late: JournalEvent[] = [];
    gate.resolve('seen');
    for await (const event of other.events('r')) {
      late.push(event);
      if (event.type === 'step.done' && event.step === 1) break;
    }
    for await (const event of other.events('r', { newest: 1 })) {
      expect(event.type).not.toBe('run.started');
      break;
    }
    last.resolve();
    for await (const event of other.events('r', { after: live.at(-1)?.cursor })) live.push(event);
    expect((await run.result).status).toBe('ok');
    const first = ['{"type":"text","value":"seen"}', '1: '];
    expect(shown(late)).toEqual(first);
    expect(shown(live).slice(0, 2)).toEqual(first);
    expect(shown(live).at(-1)).toBe('ok It is well.');
  });

  test('says which process left it (studio 4)', async () => {
    const schema = server.freshSchema();
    const agent = defineAgent({ id: 'desk', instructions: 'Work.' });
    const host = () =>
      createExecutor({
        models: { fast: scriptedModel([hang()]) },
        agents: [agent],
        store: postgresStore({ pool: server.pool(), schema }),
        journal: true,
      });
    const leaving = host();
    await leaving.start(agent, { runId: 'r', prompt: 'Look.' });
    await leaving.shutdown();
    await using other = host();
    const owners: (string | undefined)[] = [];
    for await (const event of other.events('r')) {
      if (event.type === 'run.started' || event.type === 'run.left') owners.push(event.owner);
      if (event.type === 'run.left') break;
    }
    expect(owners).toEqual([expect.any(String), owners[0]]);
  });
});
