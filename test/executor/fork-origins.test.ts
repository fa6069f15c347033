import { type Message, memoryStore, type RunCheckpoint } from 'pawl';
import { callTool, hang, reply } from 'pawl/testing';
import { expect, test } from 'vitest';
import { type HostOptions, hostOf, toolOf, until } from '../fixtures/host.ts';
import { notingBudget } from '../fixtures/noting-ports.ts';

type Host = ReturnType<typeof hostOf>;

const calls = [callTool('look', { n: 1 }), callTool('pay', { n: 2 })];
const request = { runId: 'r', prompt: 'Go.' };
const earlier: Message[] = [
  { role: 'user', content: [{ type: 'text', text: 'Hello?' }] },
  { role: 'assistant', content: [{ type: 'text', text: 'Hello.' }] },
];
const whole = {
  ...request,
  images: [{ mediaType: 'image/png', data: 'AQID' }],
  inputs: { order: '17' },
  history: earlier,
};

/** Processes on one store, with tools that note how often they ran. */
function scene() {
  const store = memoryStore();
  const ran: string[] = [];
  const noted = (
    name: string,
    effect: 'read' | 'once',
    work: (host: { ask: (text: string) => Promise<unknown> }) => unknown = () => 'ok',
  ) =>
    toolOf(name, effect, async (_, { ask }) => {
      const result = await work({ ask: (question) => ask({ question }) });
      ran.push(name);
      return `${name}: ${result}`;
    });
  const tools = [noted('look', 'read'), noted('pay', 'once'), noted('order', 'read', ({ ask }) => ask('Which color?'))];
  const open = (options: HostOptions = {}) =>
    hostOf({
      ...{ store, tools, retention: { records: '1h' }, defaults: { waitLingerMs: 1 }, ...options },
    });
  return { store, ran, open };
}

type Scene = ReturnType<typeof scene>;
const asking: HostOptions = { approvals: ({ verdict, name }) => (name === 'pay' ? 'ask' : verdict) };

/** Waits for what a run asks, and answers it in another process. */
async function answered(host: Host, open: () => Host, answer: (host: Host, waitId: string) => Promise<unknown>) {
  const [wait] = await host.executor.waiting({ runId: 'r' });
  await host.executor.shutdown();
  const next = open();
  await answer(next, wait?.id ?? '');
  await next.executor.recover();
  await until(async () => (await next.executor.find('r'))?.status === 'ended');
}

interface Origin {
  /** Makes the run `r`, which has a step `look` before the cut. */
  readonly make: (scene: Scene) => Promise<unknown>;
  readonly fork: HostOptions;
  /** How the fork ends. */
  readonly ends: object;
  /** What its model reads in its first turn, and what it does not. */
  readonly reads?: string;
  readonly never?: string;
  readonly at?: number;
}

const done: HostOptions = { script: [reply('forked')] };
const ok = { status: 'ok', output: 'forked' };

const origins: Record<string, Origin> = {
  'waits for a person': {
    make: ({ open }) => open({ ...asking, script: calls }).run(request),
    fork: done,
    ends: ok,
  },
  'is parked': {
    make: async ({ open, store }) => {
      const host = open({ script: [...calls.slice(0, 1), hang()] });
      await host.start(request);
      await until(async () => (await store.load('r'))?.iteration === 1);
      await host.executor.shutdown({ drainMs: 0 });
      await host.executor.park('r', 'a look');
    },
    fork: done,
    ends: ok,
  },
  'has images, inputs and an earlier conversation': {
    make: ({ open }) => open({ script: [...calls, reply('done')] }).run(whole),
    fork: done,
    ends: ok,
    reads: 'Hello?',
  },
  'was steered before the cut': {
    make: ({ open }) => steered(open, 0),
    at: 2,
    fork: done,
    ends: ok,
    reads: 'Be quick.',
  },
  'was steered after the cut': {
    make: ({ open }) => steered(open, 0),
    fork: done,
    ends: ok,
    never: 'Be quick.',
  },
  'was steered, and has not read it': {
    make: async ({ open, store }) => {
      const host = open({ script: [...calls.slice(0, 1), hang()] });
      const run = await host.start(request);
      await until(async () => host.model.calls.length === 2 && (await store.load('r'))?.iteration === 1);
      await run.steer('Be quick.');
    },
    fork: done,
    ends: ok,
    never: 'Be quick.',
  },
  'had an approval after the cut': {
    make: async ({ open }) => {
      const host = open({ ...asking, script: calls });
      await host.run(request);
      await answered(
        host,
        () => open(done),
        (next, id) => next.executor.control('r').approve(id, { by: { id: 'ada' } }),
      );
    },
    fork: { ...asking, script: calls.slice(1) },
    ends: { status: 'waiting' },
  },
  'had an answer after the cut': {
    make: async ({ open }) => {
      const host = open({ script: [...calls.slice(0, 1), callTool('order')] });
      await host.run(request);
      await answered(
        host,
        () => open(done),
        (next, id) => next.executor.control('r').answer(id, 'blue'),
      );
    },
    fork: { script: [callTool('order')] },
    ends: { status: 'waiting' },
    never: 'blue',
  },
};

/** A run that a text reaches in one of its turns. */
async function steered(open: Scene['open'], turn: number) {
  const script = [...calls, reply('done')].map((entry, i) => async () => {
    if (i === turn) await host.executor.control('r').steer('Be quick.');
    return entry;
  });
  const host: Host = open({ script: script as never });
  await host.run(request);
}

const stored = async (scene: Scene, runId: string) =>
  (await scene.store.load(runId)) ?? (await scene.store.load(runId, { ended: true }));

test.for(Object.entries(origins))(
  'a fork of a run that %s has its first steps and its request, and nothing after the cut (lab 10, 11)',
  async ([, { make, fork, ends, reads, never, at = 1 }]) => {
    const all = scene();
    await make(all);
    const origin = await stored(all, 'r');
    const before = all.ran.length;
    const host = all.open(fork);
    const result = await (await host.executor.fork('r', { at, runId: 'f', effects: 'live' })).result;
    expect(result).toMatchObject({ ...ends, forkedFrom: { runId: 'r', at } });
    expect(all.ran.slice(before)).toEqual([]);
    const asked = JSON.stringify(host.model.calls[0]);
    expect(asked).toContain('look: ok');
    if (at === 1) expect(asked).not.toContain('pay: ');
    if (reads) expect(asked).toContain(reads);
    if (never) expect(JSON.stringify(host.model.calls)).not.toContain(never);
    const parts = ({ inputs = {}, images = [], earlier: conversation = [] }: Partial<RunCheckpoint>) => ({
      inputs,
      images,
      conversation,
    });
    expect(parts((await stored(all, 'f')) ?? {})).toEqual(parts(origin ?? {}));
    expect(await stored(all, 'r')).toEqual(origin);
  },
);

test('the model of a fork gets what that of its origin got, and its tools the inputs: images and the earlier conversation too (lab 10)', async () => {
  const { open } = scene();
  const given: unknown[] = [];
  const noted = (name: string) => toolOf(name, 'once', (_, { invocation }) => void given.push(invocation.inputs));
  const tools = [noted('look'), noted('pay')];
  const script = [...calls, reply('done')];
  const first = open({ script, tools });
  await first.run(whole);
  for (let at = 0; at < 3; at++) {
    const next = open({ script: script.slice(at), tools });
    await (await next.executor.fork('r', { at, effects: 'live' })).result;
    const [asked, told] = [next.model.calls[0], first.model.calls[at]];
    expect(asked?.messages).toEqual(told?.messages);
  }
  // Two calls of the origin, and those after each cut.
  expect(given).toEqual(Array(2 + 2 + 1).fill(whole.inputs));
});

test('a fork spends its own: its turns are charged under keys of its own, those before the cut are not, and its spend begins at 0 (lab 12)', async () => {
  const { open } = scene();
  const budget = notingBudget();
  const script = [...calls, reply('done')];
  const whole = await open({ script, ports: { budget } }).run(request);
  const before = [...budget.counted.keys()];
  const next = open({ script: script.slice(1), ports: { budget } });
  const fork = await (await next.executor.fork('r', { at: 1, runId: 'f', effects: 'live' })).result;
  expect([before.length, budget.counted.size]).toEqual([3, 3 + 2]);
  expect(fork.spend?.tokens).toBe((whole.spend?.tokens ?? 0) - 15);
  const [line] = (await next.executor.history()).filter(({ runId }) => runId === 'f');
  expect(line).toMatchObject({ usage: fork.usage });
});
