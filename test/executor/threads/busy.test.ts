import { memoryStore } from 'pawl';
import { callTool, reply, type ScriptedEntry } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, toolOf, until } from '../../fixtures/host.ts';
import { textsIn, threadHost } from './thread-host.ts';

/** A thread whose first run is live, in a tool call. */
async function busyThread(rest: Parameters<typeof threadHost>[0] = {}) {
  const passed = gate<string>();
  const work = toolOf('work', 'read', () => passed.pass());
  const script: ScriptedEntry[] = [callTool('work', {}), reply('one'), reply('two'), reply('three'), reply('four')];
  const given = threadHost({ store: memoryStore(), tools: [work], script, defaults: { controlMs: 5 }, ...rest });
  const first = await given.thread.send({ id: 'm1', text: 'first' });
  await passed.reached;
  return { ...given, first, release: () => passed.open('worked') };
}

const textsOf = async (thread: ReturnType<typeof threadHost>['thread']) =>
  textsIn((await thread.messages()).map(({ message }) => message));

describe('a message that finds a live run', () => {
  test('waits in the order of its arrival (web 11)', async () => {
    const { thread, ended, release } = await busyThread();
    const [second, third] = [
      await thread.send({ id: 'm2', text: 'second' }),
      await thread.send({ id: 'm3', text: 'third' }),
    ];
    expect([second.state, third.state]).toEqual(['queued', 'queued']);
    release();
    await ended(third.runId);
    expect(await textsOf(thread)).toEqual(['first', 'one', 'second', 'two', 'third', 'three']);
  });

  test('is refused beyond maxQueued, and a repeated one is not counted (web 11)', async () => {
    const { thread, release, first, ended } = await busyThread({ thread: { maxQueued: 1 } });
    await thread.send({ id: 'm2', text: 'second' });
    await expect(thread.send({ id: 'm3', text: 'third' })).rejects.toMatchObject({
      code: 'THREAD_FULL',
      retry: 'later',
    });
    expect((await thread.send({ id: 'm2', text: 'second' })).state).toBe('known');
    release();
    await ended(first.runId);
  });

  test('is refused with `reject`, and leaves nothing (web 11)', async () => {
    const { thread, release, first, ended } = await busyThread();
    await expect(thread.send({ id: 'm2', text: 'second', onBusy: 'reject' })).rejects.toMatchObject({
      code: 'THREAD_BUSY',
    });
    expect(await thread.turn('m2')).toBeUndefined();
    release();
    await ended(first.runId);
    expect((await thread.send({ id: 'm2', text: 'second', onBusy: 'reject' })).state).toBe('started');
  });

  test('cancels it with `interrupt`, and is next, before the others (web 11)', async () => {
    const { thread, host, ended, first } = await busyThread({
      script: [callTool('work', {}), reply('now'), reply('then')],
    });
    const queued = await thread.send({ id: 'm2', text: 'second' });
    const urgent = await thread.send({ id: 'm3', text: 'urgent', onBusy: 'interrupt' });
    expect(urgent.state).toBe('queued');
    expect((await ended(first.runId)).status).toBe('cancelled');
    await ended(queued.runId);
    expect(await textsOf(thread)).toEqual(['first', 'urgent', 'now', 'second', 'then']);
    expect(textsIn(host.model.calls[1]?.messages ?? [])).toEqual(['first', 'urgent']);
  });

  test('reaches the live run with `steer`, and is a message of its turn (web 11)', async () => {
    const { thread, host, ended, first, release } = await busyThread();
    const steered = await thread.send({ id: 'm2', text: 'also this', onBusy: 'steer' });
    expect(steered).toEqual({ runId: first.runId, state: 'steered' });
    await until(() =>
      host.executor
        .control(first.runId)
        .unread()
        .then((count) => count === 0),
    );
    release();
    await ended(first.runId);
    expect(textsIn(host.model.calls[1]?.messages ?? [])).toContain('also this');
    expect(await textsOf(thread)).toEqual(['first', 'also this', 'one']);
    expect(await thread.turn('m2')).toEqual({ messageId: 'm2', runId: first.runId, state: 'steered' });
    expect((await thread.messages()).map(({ id }) => id)).toContain('m2');
    expect(await thread.send({ id: 'm2', text: 'also this' })).toEqual({ runId: first.runId, state: 'known' });
    expect(host.model.calls).toHaveLength(2);
  });

  test('that was steered and not delivered becomes a turn of its own (web 11)', async () => {
    const answering = gate<void>();
    const script: ScriptedEntry[] = [() => answering.pass().then(() => reply('one')), reply('two')];
    const { thread, host, ended } = threadHost({
      store: memoryStore(),
      script,
      defaults: { controlMs: 600_000 },
    });
    const first = await thread.send({ id: 'm1', text: 'first' });
    await answering.reached;
    expect((await thread.send({ id: 'm2', text: 'too late', onBusy: 'steer' })).state).toBe('steered');
    answering.open();
    await ended(first.runId);
    await until(async () => (await thread.turn('m2'))?.state === 'ended');
    expect(await textsOf(thread)).toEqual(['first', 'one', 'too late', 'two']);
    expect(host.model.calls).toHaveLength(2);
  });

  test('with a file is not steered, and waits for its turn (web 11)', async () => {
    const { thread, ended, release } = await busyThread();
    const parts = [
      { type: 'text', text: 'look' },
      { type: 'file', mediaType: 'image/png', data: new Uint8Array([1, 2, 3]), filename: 'a.png' },
    ] as const;
    const sent = await thread.send({ id: 'm2', parts, onBusy: 'steer' });
    expect(sent.state).toBe('queued');
    release();
    await ended(sent.runId);
    const message = (await thread.messages()).find(({ id }) => id === 'm2')?.message;
    expect(message?.content).toEqual([
      { type: 'text', text: 'look' },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AQID' }, filename: 'a.png' },
    ]);
  });

  test('waits behind a run that waits for a person, and names what it waits for (web 12)', async () => {
    const ask = toolOf('ask', 'read', (_, context) => context.ask({ question: 'Really?' }));
    const script: ScriptedEntry[] = [callTool('ask', {}), reply('one'), reply('two')];
    const { thread, host, ended } = threadHost({ store: memoryStore(), tools: [ask], script });
    const first = await thread.send({ id: 'm1', text: 'first' });
    await until(async () => (await host.executor.waiting()).length === 1);
    const second = await thread.send({ id: 'm2', text: 'second' });
    expect(second).toMatchObject({ state: 'queued', waits: [{ kind: 'question', question: 'Really?' }] });
    const [wait] = second.waits ?? [];
    await host.executor.control(first.runId).answer(wait?.id ?? '', 'yes');
    await ended(second.runId);
    expect(await textsOf(thread)).toEqual(['first', 'one', 'second', 'two']);
  });

  test('interrupts a run that rests, and withdraws its waits (web 11)', async () => {
    const ask = toolOf('ask', 'read', (_, context) => context.ask({ question: 'Really?' }));
    const script: ScriptedEntry[] = [callTool('ask', {}), reply('two')];
    const store = memoryStore();
    const { thread, host, ended } = threadHost({ store, tools: [ask], script, defaults: { waitLingerMs: 1 } });
    const first = await thread.send({ id: 'm1', text: 'first' });
    await until(async () => (await store.due.countResting()) === 1);
    const second = await thread.send({ id: 'm2', text: 'second', onBusy: 'interrupt' });
    await ended(second.runId);
    expect(await thread.turn('m1')).toMatchObject({ runId: first.runId, state: 'ended' });
    expect(await host.executor.waiting()).toEqual([]);
    expect(await textsOf(thread)).toEqual(['first', 'second', 'two']);
  });

  test('is next after the live run was cancelled by hand (web 13)', async () => {
    const { thread, ended, first } = await busyThread({ script: [callTool('work', {}), reply('two')] });
    const second = await thread.send({ id: 'm2', text: 'second' });
    expect(await thread.cancel('enough')).toBe(first.runId);
    expect((await ended(second.runId)).status).toBe('ok');
    expect(await textsOf(thread)).toEqual(['first', 'second', 'two']);
    expect(await thread.cancel()).toBeUndefined();
  });
});
