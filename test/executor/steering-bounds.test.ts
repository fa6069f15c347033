import { type Message, memoryStore, type Run } from 'pawl';
import { callTool, reply } from 'pawl/testing';
import { expect, test } from 'vitest';
import { createActor } from 'xstate';
import { gate, hostOf, toolOf, until } from '../fixtures/host.ts';
import { afterCrash } from '../fixtures/watched-store.ts';

const say = (text: string) => ({ role: 'user' as const, content: [{ type: 'text' as const, text }] });
const texts = (messages: readonly Message[]) => messages.map((message) => JSON.stringify(message.content));

test('what a host machine says to a run that is still resolving waits, is stored, and is in the first request (supervision 9)', async () => {
  const store = memoryStore();
  const { executor, agent, model } = hostOf({ store, script: [reply('done')] });
  const actor = createActor(executor.logic(agent), { input: { prompt: 'Go.', runId: 'r' } });
  const ended = new Promise<void>((resolve) => void actor.subscribe({ complete: resolve }));
  actor.start();
  expect(actor.getSnapshot().value).toBe('resolving');
  actor.send({ type: 'run.steer', message: say('And be kind.'), receipt: 'a' });
  await ended;
  expect(texts(model.calls[0]?.messages ?? [])).toEqual([
    expect.stringContaining('Go.'),
    expect.stringContaining('kind'),
  ]);
  expect(actor.getSnapshot().output).toMatchObject({ status: 'ok', undelivered: [] });
});

test('the 1,001st message that waits is refused with a clear error, and the thousand before it are delivered (executor 9)', async () => {
  const atWork = gate();
  const { start, model } = hostOf({
    tools: [toolOf('work', 'read', () => atWork.pass())],
    script: [callTool('work', {}), reply('done')],
  });
  const run = await start();
  await atWork.reached;
  const thousand = Promise.all(Array.from({ length: 1_000 }, (_, i) => run.steer(`message ${i}`)));
  await expect(run.steer('one too many')).rejects.toMatchObject({
    code: 'UNDELIVERED',
    message: expect.stringContaining('1000'),
  });
  expect(new Set(await thousand)).toEqual(new Set(['queued']));
  atWork.open();
  expect((await run.result).status).toBe('ok');
  expect(model.calls[1]?.messages).toHaveLength(3 + 1_000);
});

test('what is said to a run of which only the outcome is left is refused, and not acknowledged: no model ever reads it (executor 11)', async () => {
  const store = memoryStore();
  const dying = hostOf({ store, script: [reply('the answer')], onOutcome: () => new Promise(() => {}) });
  void dying.run({ runId: 'r' });
  await until(async () => (await store.load('r'))?.outcome);
  const next = hostOf({ store: await afterCrash(store), script: [] });
  const starting = next.start({ runId: 'r' });
  const run = next.executor.get('r') as Run;
  const said = run.steer('And be kind.');
  await expect(said).rejects.toMatchObject({ code: 'UNDELIVERED', message: expect.stringContaining('is over') });
  expect(await (await starting).result).toMatchObject({ status: 'ok', output: 'the answer', undelivered: [] });
});
