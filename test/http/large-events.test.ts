import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { HttpOptions } from 'pawl/http';
import { callTool, hang, type TestClock, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { settle, toolOf, until } from '../fixtures/host.ts';
import { loopTurns } from '../fixtures/loop-turns.ts';
import { type Sent, type WebHost, webHost } from './web-host.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** More than a few pieces of a stream. */
const CHARS = 300_000;
const STEPS = 3;

/** A live run with large results. */
async function largeRun(clock: TestClock, options: Partial<HttpOptions> = {}): Promise<WebHost> {
  let steps = 0;
  const host = webHost({
    script: [...Array.from({ length: STEPS }, (_, i) => callTool('large', { i })), hang()],
    tools: [toolOf('large', 'read', () => `${++steps} `.padEnd(CHARS, 'x'))],
    http: { clock, ...options },
  });
  await host.start({ runId: 'r', callerId: 'ada' });
  await until(() => steps === STEPS && host.model.calls.length === STEPS + 1);
  return host;
}

/** A stream that is read until a large event has begun, and then as the test says. */
async function reader(host: WebHost, { after, ...sent }: Sent & { readonly after?: string } = {}) {
  const response = await host.open('/runs/r/events', {
    ...sent,
    ...(after === undefined ? {} : { headers: { 'last-event-id': after } }),
  });
  const body = response.body?.getReader();
  const decoder = new TextDecoder();
  const seen = { text: '', hasBegun: false, isBroken: false, isOver: false, most: 0 };
  const take = async () => {
    try {
      const { done, value = new Uint8Array() } = (await body?.read()) ?? {};
      seen.isOver ||= done === true;
      seen.most = Math.max(seen.most, value.length);
      seen.text += decoder.decode(value, { stream: true });
      seen.hasBegun ||= value.length > 60_000;
    } catch {
      seen.isBroken = true;
    }
  };
  const begin = async () => {
    while (!seen.hasBegun && !seen.isBroken && !seen.isOver) await take();
  };
  void begin();
  return {
    seen,
    /** Reads the rest of what is there. */
    readOn: async (isEnough: (text: string) => boolean) => {
      while (!isEnough(seen.text) && !seen.isBroken && !seen.isOver) await take();
    },
    leave: () => body?.cancel(),
  };
}

function eventsIn(text: string) {
  // A frame that was cut has no empty line behind it.
  const frames = text.split('\n\n').slice(0, -1);
  return frames.flatMap((frame) => {
    const [, id] = /^id: (.*)$/m.exec(frame) ?? [];
    const [, data] = /^data: (.*)$/m.exec(frame) ?? [];
    return id === undefined || data === undefined ? [] : [{ id, event: JSON.parse(data) as { type: string } }];
  });
}

/** The events with large results that streams have read. */
function notedResults({ executor }: WebHost): WeakRef<object>[] {
  const values: WeakRef<object>[] = [];
  const { events } = executor;
  Object.assign(executor, {
    events: (...args: Parameters<typeof events>) => {
      const read = events(...args);
      return {
        next: async () => {
          const next = await read.next();
          if (next.value?.type === 'tool.done') values.push(new WeakRef(next.value));
          return next;
        },
        return: () => read.return?.(),
        [Symbol.asyncIterator]() {
          return this;
        },
      };
    },
  });
  return values;
}

const results = (text: string) => eventsIn(text).filter(({ event }) => event.type === 'tool.done').length;

describe('Large events', () => {
  test('of a caller are in memory for two streams at a time; others wait with their cursor alone (edges 26)', async () => {
    const host = await largeRun(testClock());
    const readers = await Promise.all(Array.from({ length: 5 }, () => reader(host)));
    const begun = () => readers.filter(({ seen }) => seen.hasBegun);
    await until(() => begun().length === 2);
    await settle(100);
    expect(begun()).toHaveLength(2);
    // Another caller has places of its own.
    const other = await reader(host, { as: 'root:boss' });
    await until(() => other.seen.hasBegun);
    expect(begun()).toHaveLength(2);
    // Who has taken its event makes room for the next one.
    const [first] = begun();
    void first?.readOn((text) => results(text) === STEPS);
    await until(() => begun().length === 3);
    // So does who leaves, also while it waits.
    for (const each of [...readers, other]) if (each !== first) await each.leave();
    await until(() => results(first?.seen.text ?? '') === STEPS);
    await first?.leave();
  });

  test('are sent in pieces of 64 KiB, each when the reader waits for it: nothing else is in a buffer (edges 26)', async () => {
    const host = await largeRun(testClock());
    const one = await reader(host);
    await until(() => one.seen.hasBegun);
    await settle(50);
    const taken = one.seen.text.length;
    await one.readOn((text) => results(text) === STEPS);
    expect(taken).toBeLessThan(70_000);
    expect(one.seen.most).toBe(65_536);
    await one.leave();
  });

  test('have a turn of the event loop each, for any reader: a request of another caller comes between (edges 26)', async () => {
    const host = await largeRun(testClock());
    const turn = loopTurns();
    const turns: number[] = [];
    const callers = ['ada', 'root:a', 'root:b', 'root:c', 'root:d'];
    await Promise.all(
      callers.map(async (as) => {
        const one = await reader(host, { as });
        await until(() => one.seen.hasBegun);
        // The turn in which the first piece came is that of the work.
        turns.push(turn());
        await one.leave();
      }),
    );
    expect(new Set(turns).size).toBe(callers.length);
  });

  test('leave memory 1 s after their reader has taken something, and are read again from there when it reads on (edges 26)', async () => {
    const clock = testClock();
    const host = await largeRun(clock);
    const values = notedResults(host);
    const readers = await Promise.all(Array.from({ length: 3 }, () => reader(host)));
    const begun = () => readers.filter(({ seen }) => seen.hasBegun);
    await until(() => begun().length === 2);
    await clock.advance(999);
    await settle();
    expect(begun()).toHaveLength(2);
    const alive = () => {
      collect();
      return values.filter((value) => value.deref()).length;
    };
    await until(() => alive() === 2);
    await clock.advance(1);
    // Their places are free.
    await until(() => begun().length === 3);
    await until(() => alive() === 1);
    await clock.advance(1_000);
    await until(() => alive() === 0);
    for (const each of readers) {
      await each.readOn((text) => results(text) === STEPS);
      expect(each.seen.text).toBe(readers[0]?.seen.text);
      await each.leave();
    }
    expect(results(readers[0]?.seen.text ?? '')).toBe(STEPS);
    expect(clock.pending).toBe(0);
  });

  test('that have changed meanwhile break the stream of a reader that has a part of them (edges 26)', async () => {
    const clock = testClock();
    const host = await largeRun(clock);
    const one = await reader(host);
    await until(() => one.seen.hasBegun);
    await clock.advance(1_000);
    const { events } = host.executor;
    Object.assign(host.executor, {
      async *events(...args: Parameters<typeof events>) {
        for await (const event of events(...args)) yield { ...event, isOther: true };
      },
    });
    await one.readOn((text) => results(text) > 0);
    expect([one.seen.isBroken, results(one.seen.text)]).toEqual([true, 0]);
  });

  test('have no comment inside, however long their reader takes (edges 26)', async () => {
    const clock = testClock();
    const host = await largeRun(clock, { heartbeatMs: 100 });
    const one = await reader(host);
    await until(() => one.seen.hasBegun);
    await clock.advance(300);
    await one.readOn((text) => results(text) === STEPS);
    expect(results(one.seen.text)).toBe(STEPS);
    await one.leave();
  });

  test('of a reader that takes nothing for 10 s end with its stream: it continues behind its last event (edges 26)', async () => {
    const clock = testClock();
    const host = await largeRun(clock);
    const cut = await Promise.all(Array.from({ length: 2 }, () => reader(host)));
    await until(() => cut.every(({ seen }) => seen.hasBegun));
    await clock.advance(10_000);
    for (const each of cut) {
      await each.readOn((text) => results(text) === 1);
      expect(each.seen.isBroken).toBe(true);
      expect(results(each.seen.text)).toBe(0);
    }
    // What comes back has the rest, each event once.
    const had = eventsIn(cut[0]?.seen.text ?? '');
    const again = await reader(host, { after: had.at(-1)?.id ?? '' });
    await again.readOn((text) => results(text) === STEPS);
    const all = await reader(host);
    await all.readOn((text) => results(text) === STEPS);
    expect([...had, ...eventsIn(again.seen.text)]).toEqual(eventsIn(all.seen.text));
    await again.leave();
    await all.leave();
    expect(clock.pending).toBe(0);
  });

  test('are in memory for two of the streams that have read them, not for those that wait for their turn (edges 26)', async () => {
    const host = await largeRun(testClock());
    const values: WeakRef<object>[] = [];
    Object.assign(host.executor, {
      async *events(_: string, { signal }: { signal: AbortSignal }) {
        const output = { type: 'text', value: 'x'.repeat(CHARS) };
        values.push(new WeakRef(output));
        yield { type: 'tool.done', runId: 'r', seq: 1, at: 0, cursor: 'c1', output };
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
    });
    const readers: Awaited<ReturnType<typeof reader>>[] = [];
    for (let i = 0; i < 6; i++) {
      readers.push(await reader(host));
      await settle();
    }
    expect(readers.filter(({ seen }) => seen.hasBegun)).toHaveLength(2);
    expect(values).toHaveLength(6);
    await until(() => {
      collect();
      return values.filter((value) => value.deref()).length === 2;
    });
    for (const { leave } of readers) await leave();
  });
});
