import { memoryStore, type SignalOptions } from 'pawl';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { gate, hostOf, settle, toolOf } from '../../fixtures/host.ts';
import { watchedStore } from '../../fixtures/watched-store.ts';

// A signal that means nothing to the test runner; what others listen to is not told of it.
const signal = 'SIGUSR2';
const interrupted = 128 + 12;
const tell = (name: NodeJS.Signals = signal) => void process.emit(name, name);

/** A host with a run in the middle of a call, and every exit it would have taken. */
async function hostThatListens(options: SignalOptions & { readonly effect?: 'read' | 'once' } = {}) {
  const { effect = 'read', ...signalOptions } = options;
  const clock = testClock();
  const calling = gate<string>();
  const host = hostOf({
    clock,
    store: memoryStore({ clock }),
    tools: [toolOf('work', effect, () => calling.pass())],
    script: [callTool('work', {}), reply('done')],
  });
  const exits: number[] = [];
  const exit = (code: number) => void exits.push(code);
  const listening = host.executor.shutdownOnSignals({ signals: [signal], exit, ...signalOptions });
  onTestFinished(() => listening[Symbol.dispose]());
  const run = await host.start({ runId: 'r' });
  await calling.reached;
  const warnings = () => host.warned.map(({ message }) => message);
  return { executor: host.executor, warnings, clock, calling, run, exits, exit, listening };
}

describe('executor.shutdownOnSignals (faults 21, 22, 23)', () => {
  test('leaves the runs at the first signal, and exits when they are left: with 128 + n', async () => {
    const { run, exits } = await hostThatListens();
    tell();
    expect(await run.result).toMatchObject({ status: 'interrupted', error: { code: 'ERR_SHUTDOWN' } });
    await settle();
    expect(exits).toEqual([interrupted]);
  });

  test.for([
    ['a run was left', 75],
    ['none was', 0],
  ] as const)('exits after a SIGTERM, where %s, with %i', async ([what, code]) => {
    const others = process.listeners('SIGTERM');
    for (const other of others) process.off('SIGTERM', other);
    onTestFinished(() => {
      for (const other of others) process.on('SIGTERM', other);
    });
    const { exits, run } = await hostThatListens({ signals: ['SIGTERM'] });
    if (what === 'none was') await run.cancel();
    tell('SIGTERM');
    await settle();
    expect(exits).toEqual([code]);
  });

  test('exits at once at the second signal, but takes one that comes within 100 ms for the first', async () => {
    const { exits, clock } = await hostThatListens({ effect: 'once' });
    tell();
    await clock.advance(99);
    tell();
    expect(exits).toEqual([]);
    await clock.advance(1);
    tell();
    expect(exits).toEqual([interrupted]);
  });

  test('exits when drainMs is over, during any work: a call, or the host’s own end', async () => {
    const { exits, clock, warnings } = await hostThatListens({ drainMs: 1_000, onSignal: () => new Promise(() => {}) });
    tell();
    await clock.advance(999);
    expect(exits).toEqual([]);
    await clock.advance(1);
    expect(exits).toEqual([interrupted]);
    expect(warnings()).toEqual(['executor: the process ends before everything was closed']);
  });

  test('says in its last line how many runs it could not leave in time (operations 27)', async () => {
    const clock = testClock();
    let isHung = false;
    const store = watchedStore({ before: () => isHung && new Promise(() => {}) }, memoryStore({ clock }));
    const host = hostOf({ script: [hang()], store, clock });
    const exits: number[] = [];
    const exit = (code: number) => void exits.push(code);
    const listening = host.executor.shutdownOnSignals({ signals: [signal], exit, drainMs: 1_000 });
    onTestFinished(() => listening[Symbol.dispose]());
    await host.start({ runId: 'r' });
    isHung = true;
    tell();
    await clock.advance(1_000);
    await settle();
    expect(exits).toHaveLength(1);
    const line = { event: 'drain.cut', level: 'error', signal, drainMs: 1_000, live: 1 };
    expect(host.warned.at(-1)?.fields).toMatchObject(line);
  });

  test('tells the host at once, and again when the runs are left; what the host does then is waited for', async () => {
    const { exits, calling } = await hostThatListens({
      effect: 'once',
      onSignal: async (name, left) => {
        heard.push(name);
        await left;
        heard.push('left');
        await closing.pass();
      },
    });
    const heard: string[] = [];
    const closing = gate();
    tell();
    expect(heard).toEqual([signal]);
    calling.open('worked');
    await closing.reached;
    await settle();
    expect({ heard, exits }).toEqual({ heard: [signal, 'left'], exits: [] });
    closing.open();
    await settle();
    expect(exits).toEqual([interrupted]);
  });

  test.each([
    ['throws', () => Promise.reject(new Error('no'))],
    [
      'throws at once',
      () => {
        throw new Error('no');
      },
    ],
  ])('ends in good order when onSignal %s', async (_, onSignal) => {
    const { exits, warnings } = await hostThatListens({ onSignal });
    tell();
    await settle();
    expect({ exits, warnings: warnings() }).toEqual({ exits: [interrupted], warnings: ['run: onSignal threw'] });
  });

  test('with `exit: false` leaves the end of the process to the host', async () => {
    const left = gate();
    const { run } = await hostThatListens({ exit: false, onSignal: (_, all) => all.then(left.open) });
    tell();
    await left.pass();
    await settle();
    expect((await run.result).status).toBe('interrupted');
  });

  test('waits for every executor of the process before it exits', async () => {
    const quick = await hostThatListens();
    const slow = await hostThatListens({ effect: 'once' });
    tell();
    await settle();
    expect((await quick.run.result).status).toBe('interrupted');
    expect([quick.exits, slow.exits]).toEqual([[], []]);
    slow.calling.open('worked');
    await settle();
    expect([quick.exits, slow.exits]).toEqual([[interrupted], [interrupted]]);
  });

  test('listens to nothing else, leaves the listeners of others alone, and goes when it is disposed of', async () => {
    const before = listeners();
    let heard = 0;
    const other = () => void heard++;
    process.on(signal, other);
    onTestFinished(() => void process.off(signal, other));
    const { listening, exits, run } = await hostThatListens();
    expect(listeners()).toEqual({ ...before, [signal]: (before[signal] ?? 0) + 2 });
    listening[Symbol.dispose]();
    listening[Symbol.dispose]();
    tell();
    await settle();
    expect(heard).toBe(1);
    expect(exits).toEqual([]);
    expect(run.actor.getSnapshot().status).toBe('active');
    process.off(signal, other);
    expect(listeners()).toEqual(before);
  });

  test('called again puts the new options in the place of the old ones', async () => {
    const { executor, exits, exit, listening } = await hostThatListens();
    const again: number[] = [];
    const second = executor.shutdownOnSignals({ signals: [signal], exit: (code) => void again.push(code) });
    onTestFinished(() => second[Symbol.dispose]());
    expect(() => executor.shutdownOnSignals({ signals: ['SIGKILL'], exit })).toThrow(TypeError);
    listening[Symbol.dispose]();
    tell();
    await settle();
    expect({ exits, again }).toEqual({ exits: [], again: [interrupted] });
  });

  test('is over when the executor is shut down', async () => {
    const before = listeners();
    const { executor, exits } = await hostThatListens();
    await executor[Symbol.asyncDispose]();
    expect(listeners()).toEqual(before);
    expect(exits).toEqual([]);
  });

  test.each([[{ signals: ['SIGKILL'] }], [{ signals: ['sigterm'] }], [{ drainMs: 0 }], [{ drainMs: Number.NaN }]])(
    'refuses %j with a TypeError and listens to nothing',
    (wrong) => {
      const before = listeners();
      const { executor } = hostOf();
      expect(() => executor.shutdownOnSignals(wrong as SignalOptions)).toThrow(TypeError);
      expect(listeners()).toEqual(before);
    },
  );
});

function listeners(): Record<string, number> {
  return Object.fromEntries(process.eventNames().map((name) => [String(name), process.listenerCount(name)]));
}
