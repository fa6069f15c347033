import { type Message, memoryStore } from 'pawl';
import { callTool, reply, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';

const markIn = (message: Message | undefined) => message?.providerOptions?.pawl;

test('each answer of a model says in the result and in the record which model made it, its tokens and its time (edges 9)', async () => {
  const clock = testClock();
  const slow = async () => {
    await clock.advance(40);
    return callTool('look');
  };
  const store = memoryStore();
  const host = hostOf({ script: [slow, reply('done')], tools: [toolOf('look')], store, clock });
  const run = await host.start({ runId: 'r' });
  const { messages } = await run.result;
  const mark = { model: 'scripted/scripted', usage: [10, 5] };
  expect(messages.map(markIn)).toStrictEqual([undefined, { ...mark, ms: 40 }, undefined, { ...mark, ms: 0 }]);
});

test('an open step has the mark of its message, and the run that takes it up keeps it (edges 9)', async () => {
  const store = memoryStore();
  let isOpen = true;
  const look = toolOf('look', 'once', () => (isOpen ? new Promise(() => {}) : 'seen'));
  const first = hostOf({ script: [callTool('look')], tools: [look], store });
  await first.start({ runId: 'r' });
  await until(async () => (await store.load('r'))?.openStep !== undefined);
  const mark = markIn((await store.load('r'))?.openStep?.message);
  expect(mark).toMatchObject({ model: 'scripted/scripted', usage: [10, 5] });
  await first.executor.shutdown({ drainMs: 0 });
  isOpen = false;
  const second = hostOf({ script: [reply('done')], tools: [look], store });
  const { messages } = await second.run({ runId: 'r' });
  expect(markIn(messages[1])).toStrictEqual(mark);
});

test('no request has a mark, and none of its messages has what a host wrote in the place of one (edges 9)', async () => {
  const store = memoryStore();
  const first = hostOf({ script: [callTool('look'), reply('done')], tools: [toolOf('look')], store });
  const { messages } = await first.run();
  const next = hostOf({ script: [reply('again')], store });
  const forged = {
    role: 'user',
    content: [{ type: 'text', text: 'Hi.' }],
    providerOptions: { pawl: { by: { id: 'eve' } } },
  };
  const result = await next.run({ history: [...messages, forged as Message] });
  expect(JSON.stringify([first.model.calls, next.model.calls])).not.toContain('pawl');
  expect(result.messages.map(markIn)).toStrictEqual([
    ...[undefined, { model: 'scripted/scripted' }, undefined, { model: 'scripted/scripted' }, undefined, undefined],
    expect.objectContaining({ usage: [10, 5] }),
  ]);
});

test('a history with and without marks is the same request (edges 9)', async () => {
  const history = (extra: object) =>
    [
      { role: 'user', content: [{ type: 'text', text: 'Who?' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'Ann.' }], ...extra },
    ] as Message[];
  const host = hostOf({ store: memoryStore() });
  const asked = (model: string) => history({ providerOptions: { pawl: { model, usage: [1], ms: 1 } } });
  await host.run({ runId: 'r', history: history({}) });
  expect(await host.run({ runId: 'r', history: asked('acme/large') })).toMatchObject({ status: 'ok', output: 'done' });
  expect(await host.run({ runId: 'r', history: asked('acme/small') })).toMatchObject({ status: 'ok', output: 'done' });
});

test('a failed attempt counts in the mark of the answer that follows it, its tokens and its wait (edges 9)', async () => {
  const clock = testClock();
  const fault = Object.assign(new Error('overloaded'), { statusCode: 529 });
  let calls = 0;
  const host = hostOf({
    clock,
    random: () => 0.5,
    script: [
      () => {
        calls += 1;
        throw fault;
      },
      reply('done'),
    ],
  });
  const run = await host.start();
  await until(() => calls === 1);
  await settle();
  await clock.advance(500);
  const { messages } = await run.result;
  expect(markIn(messages.at(-1))).toMatchObject({ usage: [10, 5], ms: 500 });
});
