import type { RunEvent } from 'pawl';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { settle, toolOf, until } from '../fixtures/host.ts';
import { type Sent, type WebHost, webHost } from './web-host.ts';

type Journaled = RunEvent & { readonly cursor: string };

/** Reads a stream piece by piece. */
async function follow(host: WebHost, path: string, sent?: Sent) {
  const response = await host.open(path, sent);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  let end: 'open' | 'clean' | 'broken' = 'open';
  const next = async () => {
    try {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
      if (done) end = 'clean';
      else text += value;
      return !done;
    } catch {
      end = 'broken';
      return false;
    }
  };
  return {
    response,
    next,
    toEnd: async () => {
      while (await next());
      return end;
    },
    cancel: () => reader?.cancel(),
    get text() {
      return text;
    },
    get end() {
      return end;
    },
    get frames() {
      return framesIn(text);
    },
  };
}

function framesIn(text: string) {
  const parts = text.split('\n\n').filter((part) => part.includes('data: '));
  return parts.map((part) => {
    const field = (name: string) =>
      part
        .split('\n')
        .find((line) => line.startsWith(`${name}: `))
        ?.slice(name.length + 2);
    return { id: field('id'), event: JSON.parse(field('data') ?? 'null') as Journaled };
  });
}

/** Replaces the journal of a host. */
function journal(
  host: WebHost,
  events: (runId: string, options: { after?: string; signal: AbortSignal }) => AsyncIterable<Journaled>,
) {
  Object.assign(host.executor, { events });
}

const event = (seq: number, body: object) =>
  ({ runId: 'r', seq, at: 0, cursor: `c${seq}`, ...body }) as unknown as Journaled;
const started = event(1, { type: 'run.started' });
const ended = event(2, { type: 'run.ended', status: 'ok', output: 'done' });

async function liveHost(http: Parameters<typeof webHost>[0] = {}) {
  const host = webHost({ script: [hang()], ...http });
  await host.start({ runId: 'r', callerId: 'ada' });
  await until(() => host.model.calls.length === 1);
  return host;
}

describe('GET /runs/:runId/events', () => {
  test('streams each event with its cursor as id, without caching and buffering, and ends cleanly after the end of the run (web 23)', async () => {
    const gate = Promise.withResolvers<string>();
    const host = webHost({
      script: [callTool('wait', {}), reply('done')],
      tools: [toolOf('wait', 'read', () => gate.promise)],
    });
    await host.start({ runId: 'r', callerId: 'ada' });
    const stream = await follow(host, '/runs/r/events');
    expect(stream.response.status).toBe(200);
    expect(Object.fromEntries(stream.response.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    });
    await stream.next();
    expect(stream.text.startsWith('retry: 1000\n\n')).toBe(true);
    gate.resolve('fine');
    expect(await stream.toEnd()).toBe('clean');
    const types = stream.frames.map(({ event: { type } }) => type);
    expect([types[0], types.at(-1)]).toEqual(['run.started', 'run.ended']);
    for (const {
      id,
      event: { cursor },
    } of stream.frames)
      expect(id).toBe(cursor);
  });

  test('continues after Last-Event-ID, which counts more than `after` (web 23)', async () => {
    const host = await liveHost();
    const asked: unknown[] = [];
    journal(host, async function* (_, { after }) {
      asked.push(after);
      yield ended;
    });
    await (await follow(host, '/runs/r/events')).toEnd();
    await (await follow(host, '/runs/r/events?after=c1')).toEnd();
    await (await follow(host, '/runs/r/events?after=c1', { headers: { 'last-event-id': 'c7' } })).toEnd();
    expect(asked).toEqual([undefined, 'c1', 'c7']);
  });

  test('says 400 to a place that is none, and 410 if the events are gone (web 22, 23)', async () => {
    const host = await liveHost();
    expect((await host.ask('/runs/r/events?after=x')).status).toBe(400);
    expect((await host.ask(`/runs/r/events?after=${'1'.repeat(2_000)}`)).status).toBe(400);
    await host.executor.control('r').cancel();
    journal(host, async function* () {
      yield* [];
      throw Object.assign(new Error('gone'), { code: 'JOURNAL_GONE', [Symbol.for('pawl.error')]: true });
    });
    const gone = await host.ask('/runs/r/events', { as: 'root:boss' });
    expect([gone.status, gone.body.code]).toEqual([410, 'JOURNAL_GONE']);
  });

  test('says 204 to a reader that has the end (web 23)', async () => {
    const host = await liveHost();
    await host.executor.control('r').cancel();
    journal(host, async function* (_, { after }) {
      if (after !== 'c2') yield* [started, ended];
    });
    const whole = await follow(host, '/runs/r/events', { as: 'root:boss' });
    expect(await whole.toEnd()).toBe('clean');
    expect(whole.frames.map(({ id }) => id)).toEqual(['c1', 'c2']);
    const { status, body } = await host.ask('/runs/r/events?after=c2', { as: 'root:boss' });
    expect([status, body]).toEqual([204, '']);
  });

  test('answers within 500 ms to a reader of an ended run, also if its first event takes longer (web 23)', async () => {
    const clock = testClock();
    const host = await liveHost({ http: { clock } });
    await host.executor.control('r').cancel();
    const gate = Promise.withResolvers<void>();
    journal(host, async function* () {
      await gate.promise;
      yield ended;
    });
    const opening = follow(host, '/runs/r/events');
    await until(() => clock.pending > 0);
    await settle();
    await clock.advance(500);
    const stream = await opening;
    expect(stream.response.status).toBe(200);
    gate.resolve();
    expect(await stream.toEnd()).toBe('clean');
    expect(stream.frames.map(({ id }) => id)).toEqual(['c2']);
  });

  test('breaks, and does not end, if the events end before the run or fail: the host is leaving, or its store is lost (web 24)', async () => {
    const host = await liveHost();
    journal(host, async function* () {
      yield started;
    });
    expect(await (await follow(host, '/runs/r/events')).toEnd()).toBe('broken');
    journal(host, async function* () {
      yield started;
      throw new Error('the store is away');
    });
    expect(await (await follow(host, '/runs/r/events')).toEnd()).toBe('broken');
    journal(host, async function* () {});
    expect(await (await follow(host, '/runs/r/events')).toEnd()).toBe('broken');
    // The third is the same line as the first, which is written once a minute.
    expect(host.httpWarned).toHaveLength(2);
  });

  test('breaks without a warning when its host shuts down: that is no fault (web 24)', async () => {
    const host = await liveHost();
    const stream = await follow(host, '/runs/r/events');
    const end = stream.toEnd();
    await host.executor.shutdown();
    expect(await end).toBe('broken');
    expect(host.httpWarned).toEqual([]);
  });

  test('a shutdown breaks the open streams (web 24)', async () => {
    const host = await liveHost();
    const stream = await follow(host, '/runs/r/events');
    await stream.next();
    await host.executor.shutdown();
    // The run is left, and has not ended: `interrupted` is no end.
    await stream.toEnd();
    expect(stream.end).toBe('broken');
  });

  test('sends a comment each heartbeatMs while nothing happens (web 23)', async () => {
    const clock = testClock();
    const host = await liveHost({ http: { clock, heartbeatMs: 1_000 } });
    journal(host, (_, { signal }) => silent(signal));
    const stream = await follow(host, '/runs/r/events');
    await stream.next();
    const beat = stream.next();
    await clock.advance(999);
    expect(stream.text).not.toContain(':\n\n');
    await clock.advance(1);
    await beat;
    expect(stream.text.endsWith('\n\n:\n\n')).toBe(true);
    await stream.cancel();
    expect(clock.pending).toBe(0);
  });

  test('asks again who reads each reauthorizeMs: a grant that ended breaks the stream, and so does another caller (web 24)', async () => {
    const faults: readonly (() => unknown)[] = [
      () => null,
      () => ({ callerId: 'bob' }),
      () => {
        throw new Error('no');
      },
    ];
    for (const fault of faults) {
      const clock = testClock();
      let grant: () => unknown = () => ({ callerId: 'ada' });
      const host = await liveHost({ http: { clock, reauthorizeMs: 5_000, authorize: () => grant() as never } });
      journal(host, (_, { signal }) => silent(signal));
      const stream = await follow(host, '/runs/r/events');
      await clock.advance(5_000);
      await settle();
      expect(stream.end).toBe('open');
      grant = fault;
      const over = stream.toEnd();
      await clock.advance(5_000);
      expect(await over).toBe('broken');
      expect(clock.pending).toBe(0);
    }
  });

  test('gives a caller maxStreams, others theirs, and each back when it is left, ended or refused (web 22, 23)', async () => {
    const host = await liveHost({ http: { maxStreams: 2 } });
    journal(host, (_, { signal }) => silent(signal));
    const open = () => follow(host, '/runs/r/events');
    const [first, second] = [await open(), await open()];
    const third = await host.ask('/runs/r/events');
    expect([third.status, third.body.code, third.headers.get('retry-after')]).toEqual([429, 'TOO_MANY_STREAMS', '5']);
    const root = await follow(host, '/runs/r/events', { as: 'root:boss' });
    expect(root.response.status).toBe(200);
    await first.cancel();
    const again = await open();
    expect(again.response.status).toBe(200);
    await second.cancel();
    await again.cancel();
    await root.cancel();
    journal(host, () => {
      throw new TypeError('not a cursor');
    });
    for (let i = 0; i < 5; i++) expect((await host.ask('/runs/r/events?after=x')).status).toBe(400);
  });

  test('a client that leaves frees its place and ends the reading of the events (web 23)', async () => {
    const host = await liveHost({ http: { maxStreams: 1 } });
    const signals: AbortSignal[] = [];
    journal(host, (_, { signal }) => {
      signals.push(signal);
      return silent(signal);
    });
    for (let i = 0; i < 3; i++) {
      const client = new AbortController();
      const stream = await follow(host, '/runs/r/events', { signal: client.signal });
      expect(stream.response.status).toBe(200);
      client.abort();
      expect(await stream.toEnd()).toBe('broken');
    }
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true]);
  });

  test('reads no further than its reader: an event is made when its reader waits for it (web 36, edges 26)', async () => {
    const host = await liveHost();
    let read = 0;
    journal(host, async function* () {
      for (;;) yield event(++read, { type: 'model.delta', text: 'x'.repeat(1_000) });
    });
    const response = await host.open('/runs/r/events');
    await settle(200);
    expect(read).toBe(0);
    const reader = response.body?.getReader();
    // The first piece is the time after which a browser connects again.
    for (let i = 0; i < 4; i++) await reader?.read();
    await settle(200);
    expect(read).toBe(3);
    await reader?.cancel();
  });

  test('shows neither the message of an error nor the process of a run; the process only to who sees everything (web 22, 39)', async () => {
    const host = await liveHost();
    const error = {
      name: 'Error',
      code: 'ECONNREFUSED',
      message: 'postgres://u:secret@db',
      cause: { message: 'secret' },
    };
    journal(host, async function* () {
      yield event(1, { type: 'run.started', owner: 'host|1|2|3' });
      yield event(2, { type: 'model.retry', error });
      yield event(3, { type: 'wait.opened', wait: { id: 'w', kind: 'retry', error } });
      yield event(5, { type: 'run.parked', code: 'MODEL_OUTAGE', reason: 'key secret', by: { id: 'secret-operator' } });
      yield event(6, { type: 'run.unparked', by: { id: 'secret-operator' } });
      yield event(4, { type: 'run.ended', status: 'error', output: '', error: { ...error, code: 'MODEL' } });
    });
    const mine = await follow(host, '/runs/r/events');
    await mine.toEnd();
    expect(mine.text).not.toMatch(/secret|ECONN|host\|/);
    expect(mine.frames.at(-1)?.event).toMatchObject({ error: { code: 'MODEL', message: 'The model failed' } });
    const all = await follow(host, '/runs/r/events', { as: 'root:boss' });
    await all.toEnd();
    expect(all.text).toContain('host|1|2|3');
    expect(all.text).toContain('secret-operator');
    expect(all.text).not.toContain('u:secret');
  });
});

/** Events that never come. */
async function* silent(signal: AbortSignal): AsyncGenerator<Journaled> {
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  yield* [];
}
