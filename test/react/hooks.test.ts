// @vitest-environment jsdom
import { act, createElement, type ReactElement, StrictMode } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { renderToString } from 'react-dom/server';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Client, ClientError, type ClientRun, type FollowEventsOptions } from '../../src/client/index.ts';
import { PawlProvider, useClient, useRun, useThread, useWaiting } from '../../src/react/index.ts';
import type { RunEventBody } from '../../src/run/events/body.ts';
import type { JournalEvent } from '../../src/run/journal/reader.ts';

/** The types of a browser would be those of the whole program. */
const { document } = globalThis as unknown as {
  readonly document: {
    createElement(name: string): Element & { readonly textContent: string | null };
    readonly hidden: boolean;
  };
};

/** A connection to the events of a run, which the test feeds. */
class Stream {
  readonly options: FollowEventsOptions;
  readonly #events: JournalEvent[] = [];
  #wake: (() => void) | undefined;
  #end: { readonly error?: unknown } | undefined;

  constructor(options: FollowEventsOptions = {}) {
    this.options = options;
    options.signal?.addEventListener('abort', () => this.#wake?.());
    options.onConnection?.('open');
  }

  send(...bodies: readonly RunEventBody[]): void {
    for (const body of bodies) this.#events.push({ ...body, runId: 'r', seq: 1, at: 0, cursor: '1' });
    this.#wake?.();
  }

  end(error?: unknown): void {
    this.#end = error === undefined ? {} : { error };
    this.#wake?.();
  }

  async *read(): AsyncGenerator<JournalEvent> {
    for (;;) {
      for (let event = this.#events.shift(); event; event = this.#events.shift()) yield event;
      if (this.options.signal?.aborted) return;
      if (this.#end?.error) throw this.#end.error;
      if (this.#end) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

/** A client whose server is the test. */
function fakeClient(methods: Partial<Record<string, (...given: never[]) => unknown>> = {}) {
  const streams: Stream[] = [];
  const calls: unknown[][] = [];
  const call =
    (name: string) =>
    async (...given: unknown[]) => {
      calls.push([name, ...given]);
      return (methods[name] as ((...given: unknown[]) => unknown) | undefined)?.(...given);
    };
  const run = (id: string) => ({
    id,
    events(options?: FollowEventsOptions) {
      const stream = new Stream(options);
      streams.push(stream);
      return stream.read();
    },
    ...Object.fromEntries(
      (['get', 'cancel', 'steer', 'answer', 'approve', 'deny'] satisfies (keyof ClientRun)[]).map((name) => [
        name,
        (...given: unknown[]) => call(`run.${name}`)(id, ...given),
      ]),
    ),
  });
  const thread = (id: string) => ({
    id,
    ...Object.fromEntries(
      ['get', 'messages', 'send', 'cancel', 'rewind'].map((name) => [
        name,
        (...given: unknown[]) => call(`thread.${name}`)(...given),
      ]),
    ),
  });
  const client = { run, thread, waiting: call('waiting') } as unknown as Client;
  return { client, streams, calls, named: (name: string) => calls.filter(([each]) => each === name) };
}

let roots: Root[] = [];
beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  vi.useFakeTimers();
});
afterEach(async () => {
  await act(async () => {
    for (const root of roots) root.unmount();
  });
  roots = [];
  await vi.advanceTimersByTimeAsync(5_000);
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** Shows an element. Returns its text, and what shows another or nothing. */
async function show(client: Client, element: ReactElement | null, isStrict = false) {
  const container = document.createElement('div');
  const root = createRoot(container);
  roots.push(root);
  const render = async (child: ReactElement | null) => {
    const tree = createElement(PawlProvider, { client }, child);
    await act(async () => root.render(isStrict ? createElement(StrictMode, null, tree) : tree));
    await frame();
  };
  await render(element);
  return { text: () => container.textContent ?? '', render };
}

/** Lets a frame pass. */
const frame = (ms = 200) => act(async () => void (await vi.advanceTimersByTimeAsync(ms)));

const delta = (text: string, offset: number): RunEventBody => ({
  type: 'model.delta',
  step: 1,
  block: 0,
  offset,
  kind: 'text',
  text,
});

let draws = 0;
function RunText({ id }: { readonly id: string }): ReactElement {
  const { status, connection, steps, error } = useRun(id);
  draws += 1;
  const texts = steps.flatMap(({ parts }) => parts.map((part) => ('text' in part ? part.text : part.type)));
  return createElement(
    'p',
    null,
    [status, connection, ...texts, (error as ClientError | undefined)?.code ?? ''].join(' '),
  );
}

describe('useRun', () => {
  test('shows a run from its first event to its end (web 33)', async () => {
    const { client, streams } = fakeClient();
    const page = await show(client, createElement(RunText, { id: 'r' }));
    expect(page.text()).toBe('loading open ');
    streams[0]?.send({ type: 'run.started' }, delta('Hello', 0));
    await frame();
    expect(page.text()).toBe('running open Hello ');
    streams[0]?.send({ type: 'run.ended', status: 'ok', output: 'Hello' });
    streams[0]?.end();
    await frame();
    expect(page.text()).toBe('ended closed Hello ');
  });

  test('has one connection for an id, however many components use it, also in StrictMode (web 33)', async () => {
    for (const isStrict of [false, true]) {
      const { client, streams } = fakeClient();
      const three = ['r', 'r', 's'].map((id, key) => createElement(RunText, { id, key }));
      const page = await show(client, createElement('div', null, three), isStrict);
      expect(streams).toHaveLength(2);
      streams[0]?.send(delta('Hi', 0));
      await frame();
      expect(page.text()).toBe('running open Hi running open Hi loading open ');
    }
  });

  test('keeps the connection while a component moves, and closes it a moment after the last has left (web 33)', async () => {
    const { client, streams } = fakeClient();
    const page = await show(client, createElement(RunText, { id: 'r', key: 'a' }));
    streams[0]?.send(delta('Hi', 0));
    await frame();
    await page.render(null);
    await frame(500);
    await page.render(createElement(RunText, { id: 'r', key: 'b' }));
    expect(page.text()).toBe('running open Hi ');
    expect(streams).toHaveLength(1);
    await page.render(null);
    expect(streams[0]?.options.signal?.aborted).toBe(false);
    await frame(1_000);
    expect(streams[0]?.options.signal?.aborted).toBe(true);
    await page.render(createElement(RunText, { id: 'r', key: 'c' }));
    expect(streams).toHaveLength(2);
    expect(page.text()).toBe('loading open ');
  });

  test('draws once a frame, however many events come in it (web 33)', async () => {
    const { client, streams } = fakeClient();
    const page = await show(client, createElement(RunText, { id: 'r' }));
    draws = 0;
    for (let i = 0; i < 500; i += 1) streams[0]?.send(delta('x', i));
    await frame();
    expect(draws).toBe(1);
    expect(page.text()).toBe(`running open ${'x'.repeat(500)} `);
  });

  test('follows another run when the id changes', async () => {
    const { client, streams } = fakeClient();
    const page = await show(client, createElement(RunText, { id: 'r' }));
    streams[0]?.send(delta('one', 0));
    await frame();
    await page.render(createElement(RunText, { id: 's' }));
    expect(page.text()).toBe('loading open ');
    streams[1]?.send(delta('two', 0));
    await frame(2_000);
    expect(page.text()).toBe('running open two ');
    expect(streams[0]?.options.signal?.aborted).toBe(true);
  });

  test('shows that the connection waits, and why it is closed', async () => {
    const { client, streams } = fakeClient();
    const page = await show(client, createElement(RunText, { id: 'r' }));
    streams[0]?.options.onConnection?.('waiting', new ClientError('away', { code: 'UNREACHABLE' }));
    await frame();
    expect(page.text()).toBe('loading waiting UNREACHABLE');
    streams[0]?.options.onConnection?.('open');
    await frame();
    expect(page.text()).toBe('loading open ');
    streams[0]?.end(new ClientError('no', { code: 'NOT_FOUND', status: 404 }));
    await frame();
    expect(page.text()).toBe('loading closed NOT_FOUND');
  });

  test('shows the result of a run whose events are gone', async () => {
    const { client, streams } = fakeClient({ 'run.get': () => ({ result: { status: 'ok', output: 'Hi' } }) });
    const page = await show(client, createElement(RunText, { id: 'r' }));
    streams[0]?.end(new ClientError('gone', { code: 'JOURNAL_GONE', status: 410 }));
    await frame();
    expect(page.text()).toBe('ended closed JOURNAL_GONE');
  });

  test('shows an error of the host that is none, and does not break the page', async () => {
    const { client, streams } = fakeClient();
    const page = await show(client, createElement(RunText, { id: 'r' }));
    streams[0]?.end('no token');
    await frame();
    expect(page.text()).toBe('loading closed ');
  });

  test('has actions that stay the same functions, and go to the run', async () => {
    const { client, calls, streams } = fakeClient();
    const seen = new Set<unknown>();
    function Actions(): null {
      const { cancel, steer, approve, deny, answer } = useRun('r');
      seen.add(cancel);
      void Promise.all(
        draws === 1 ? [cancel('enough'), steer('left'), approve('w'), deny('w'), answer('w', { how: 'wake' })] : [],
      );
      draws += 1;
      return null;
    }
    draws = 1;
    await show(client, createElement(Actions));
    streams[0]?.send(delta('x', 0));
    await frame();
    expect(draws).toBeGreaterThan(2);
    expect(seen.size).toBe(1);
    expect(calls).toEqual([
      ['run.cancel', 'r', 'enough'],
      ['run.steer', 'r', 'left'],
      ['run.approve', 'r', 'w'],
      ['run.deny', 'r', 'w'],
      ['run.answer', 'r', 'w', { how: 'wake' }],
    ]);
  });

  test('draws on a server without a connection, and keeps nothing there', () => {
    const { client, streams } = fakeClient();
    const tree = createElement(PawlProvider, { client }, createElement(RunText, { id: 'r' }));
    expect(renderToString(tree)).toBe('<p>loading connecting </p>');
    expect(streams).toEqual([]);
  });

  test('throws without a PawlProvider, with what to do', () => {
    expect(() => renderToString(createElement(RunText, { id: 'r' }))).toThrow('useRun has no PawlProvider above it');
  });
});

describe('useThread', () => {
  const message = (id: string, runId: string, index: number, role: 'user' | 'assistant') => ({
    id,
    runId,
    index,
    message: { role, content: [{ type: 'text', text: id }] },
  });
  const actions: { current?: ReturnType<typeof useThread> } = {};
  function ThreadText(): ReactElement {
    const thread = useThread('t', { agent: 'a' });
    actions.current = thread;
    const { status, messages, pending, live, error } = thread;
    const texts = live?.steps.flatMap(({ parts }) => parts.map((part) => ('text' in part ? part.text : ''))) ?? [];
    const shown = [...messages.map(({ id }) => id), ...pending.map(({ text }) => `(${text})`), ...texts];
    return createElement('p', null, [status, ...shown, (error as ClientError | undefined)?.code ?? ''].join(' '));
  }

  /** A thread on a server: its messages, turns and live run. */
  function serverOf() {
    const thread = { live: undefined as string | undefined, messages: [] as ReturnType<typeof message>[] };
    const fake = fakeClient({
      'thread.get': () => {
        if (thread.messages.length === 0) throw new ClientError('none', { code: 'NOT_FOUND', status: 404 });
        const runs = [...new Set(thread.messages.map(({ runId }) => runId))].reverse();
        return {
          id: 't',
          live: thread.live,
          turns: runs.map((runId) => ({ runId, messageId: runId, state: 'ended' })),
        };
      },
      'thread.messages': ({ after = -1 }: { after?: number }) => {
        const rest = thread.messages.filter(({ index }) => index > after);
        return { items: rest.slice(0, 2), ...(rest.length > 2 ? { next: '…' } : {}) };
      },
      'thread.send': ({ id }: { id: string }) => {
        const index = thread.messages.length;
        thread.live = `run-${index}`;
        thread.messages.push(message(id, thread.live, index, 'user'));
        return { runId: thread.live, state: 'started' };
      },
    });
    return { ...fake, thread };
  }

  test('shows a message at once, the answer as it comes, and both as recorded after its end (web 33)', async () => {
    const { client, streams, thread, calls } = serverOf();
    const page = await show(client, createElement(ThreadText));
    expect(page.text()).toBe('ready ');
    await act(async () => {
      void actions.current?.send({ text: 'Hi', id: 'm1' });
      await vi.advanceTimersByTimeAsync(0);
    });
    await frame();
    expect(page.text()).toBe('running m1 ');
    expect(calls).toContainEqual(['thread.send', { agent: 'a', text: 'Hi', id: 'm1' }]);
    streams[0]?.send(delta('Hello', 0));
    await frame();
    expect(page.text()).toBe('running m1 Hello ');
    thread.messages.push(message('a1', 'run-0', 1, 'assistant'));
    thread.live = undefined;
    streams[0]?.send({ type: 'run.ended', status: 'ok', output: 'Hello' });
    streams[0]?.end();
    await frame();
    expect(page.text()).toBe('ready m1 a1 ');
    expect(streams).toHaveLength(1);
  });

  test('shows a message that waits behind a live run as pending, and follows its run next', async () => {
    const { client, streams, thread } = serverOf();
    thread.messages.push(message('m1', 'run-0', 0, 'user'));
    thread.live = 'run-0';
    const page = await show(client, createElement(ThreadText));
    expect(page.text()).toBe('running m1 ');
    const sent = vi
      .spyOn(client, 'thread')
      .mockImplementation(
        (id) =>
          ({ ...fakeClient().client.thread(id), send: async () => ({ runId: 'run-2', state: 'queued' }) }) as never,
      );
    await act(async () => void actions.current?.send({ text: 'And?', id: 'm2' }));
    sent.mockRestore();
    await frame();
    expect(page.text()).toBe('running m1 (And?) ');
    thread.messages.push(message('a1', 'run-0', 1, 'assistant'), message('m2', 'run-2', 2, 'user'));
    thread.live = 'run-2';
    streams[0]?.send({ type: 'run.ended', status: 'ok', output: '' });
    streams[0]?.end();
    await frame();
    expect(page.text()).toBe('running m1 a1 m2 ');
    expect(streams).toHaveLength(2);
  });

  test('takes a message that the server refused off the page, and rejects', async () => {
    const { client, named } = fakeClient({
      'thread.get': () => ({ id: 't', turns: [] }),
      'thread.send': () => {
        throw new ClientError('busy', { code: 'THREAD_BUSY', status: 409 });
      },
    });
    const page = await show(client, createElement(ThreadText));
    const failures: unknown[] = [];
    await act(async () => void actions.current?.send('Hi').catch((error) => failures.push(error)));
    await frame();
    expect(failures).toMatchObject([{ code: 'THREAD_BUSY' }]);
    expect(page.text()).toBe('ready ');
    expect(named('thread.send')[0]?.[1]).toMatchObject({ text: 'Hi', id: expect.stringMatching(/^[0-9a-f]{32}$/) });
  });

  test('reads only what is new, by pages, and all of it when the thread was rewound', async () => {
    const { client, thread, named } = serverOf();
    thread.messages = [0, 1, 2].map((index) => message(`m${index}`, `run-${index}`, index, 'user'));
    const page = await show(client, createElement(ThreadText));
    expect(page.text()).toBe('ready m0 m1 m2 ');
    const asked = () => named('thread.messages').map(([, options]) => (options as { after?: number }).after);
    expect(asked()).toEqual([undefined, 1]);
    thread.messages.push(message('m3', 'run-3', 3, 'user'));
    actions.current?.refresh();
    await frame();
    expect(page.text()).toBe('ready m0 m1 m2 m3 ');
    expect(asked()).toEqual([undefined, 1, 2]);
    thread.messages.length = 1;
    await act(async () => void actions.current?.rewind('m0'));
    await frame();
    expect(page.text()).toBe('ready m0 ');
    expect(asked()).toEqual([undefined, 1, 2, undefined]);
    expect(named('thread.rewind')).toEqual([['thread.rewind', 'm0', undefined]]);
  });

  test('says why a thread cannot be read, and tries again where that may pass', async () => {
    let error: ClientError | undefined = new ClientError('away', { code: 'UNREACHABLE', retry: 'later' });
    const { client } = fakeClient({
      'thread.get': () => {
        if (error) throw error;
        return { id: 't', turns: [] };
      },
    });
    const page = await show(client, createElement(ThreadText));
    expect(page.text()).toBe('loading UNREACHABLE');
    error = undefined;
    await frame(5_000);
    expect(page.text()).toBe('ready ');
    error = new ClientError('no', { code: 'FORBIDDEN', status: 403 });
    actions.current?.refresh();
    await frame();
    expect(page.text()).toBe('failed FORBIDDEN');
  });
});

describe('useWaiting', () => {
  const actions: { current?: ReturnType<typeof useWaiting> } = {};
  function Waits(): ReactElement {
    const waiting = useWaiting({ kind: 'approval' });
    actions.current = waiting;
    return createElement(
      'p',
      null,
      `${waiting.status} ${waiting.waits.map(({ id }) => id)} ${waiting.error?.message ?? ''}`,
    );
  }

  test('lists open waits each 5 s, at once after an answer, once for all components, and not in a hidden page (web 33)', async () => {
    let items: unknown[] = [{ id: 'w1' }];
    const { client, named } = fakeClient({ waiting: () => ({ items }) });
    const page = await show(client, createElement('div', null, createElement(Waits), createElement(Waits)));
    expect(page.text()).toBe('ready w1 ready w1 ');
    expect(named('waiting')).toEqual([['waiting', { kind: 'approval' }]]);
    items = [];
    await act(async () => void actions.current?.approve({ runId: 'r', id: 'w1' }, { note: 'fine' }));
    await frame();
    expect(named('run.approve')).toEqual([['run.approve', 'r', 'w1', { note: 'fine' }]]);
    expect(page.text()).toBe('ready  ready  ');
    expect(named('waiting')).toHaveLength(2);
    await frame(5_000);
    expect(named('waiting')).toHaveLength(3);
    const hidden = vi.spyOn(document, 'hidden', 'get').mockReturnValue(true);
    await frame(20_000);
    expect(named('waiting')).toHaveLength(3);
    hidden.mockRestore();
    await frame(5_000);
    expect(named('waiting').length).toBeGreaterThan(3);
  });

  test('keeps the list of before while the server is away, with the error', async () => {
    let isAway = false;
    const { client } = fakeClient({
      waiting: () => {
        if (isAway) throw new ClientError('away', { code: 'UNREACHABLE' });
        return { items: [{ id: 'w1' }] };
      },
    });
    const page = await show(client, createElement(Waits));
    isAway = true;
    await frame(5_000);
    expect(page.text()).toBe('ready w1 away');
    isAway = false;
    await frame(5_000);
    expect(page.text()).toBe('ready w1 ');
  });
});

test('useClient gives the client of the provider', () => {
  const { client } = fakeClient();
  let found: Client | undefined;
  function Look(): null {
    found = useClient();
    return null;
  }
  renderToString(createElement(PawlProvider, { client }, createElement(Look)));
  expect(found).toBe(client);
});
