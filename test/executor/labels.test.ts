import {
  type Audit,
  type AuditRecorder,
  createExecutor,
  createPalette,
  defineAgent,
  type Invocation,
  type Labels,
  memoryStore,
  type ObservedRun,
  type RunEvent,
  type RunInfo,
} from 'pawl';
import { callTool, hang, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { hostMachine, startHost } from '../fixtures/host-machine.ts';
import { watchedStore } from '../fixtures/watched-store.ts';

const blue = { team: 'blue', ticket: 'T-7' };

describe('the labels of an invocation', () => {
  test('are stored with the first record, and a process that takes the run over keeps them', async () => {
    const store = memoryStore();
    const first = hostOf({ script: [hang()], store });
    await first.start({ runId: 'r', labels: blue });
    expect((await store.load('r'))?.labels).toEqual(blue);
    await first.executor.shutdown();

    const tools = [toolOf('look')];
    const next = hostOf({ script: [callTool('look'), hang()], tools, store });
    await next.executor.recover();
    await until(async () => (await store.load('r'))?.iteration === 1);
    expect((await store.load('r'))?.labels).toEqual(blue);
    await next.executor.shutdown();
  });

  test('are a copy: what the host changes later changes nothing', async () => {
    const store = memoryStore();
    const host = hostOf({ script: [hang()], store });
    const labels: Record<string, string> = { team: 'blue' };
    await host.start({ runId: 'r', labels });
    labels.team = 'red';
    expect(await host.executor.list()).toMatchObject([{ runId: 'r', labels: { team: 'blue' } }]);
    await host.executor.shutdown();
  });

  test('are part of the request: the same id with others is RUN_ID_CONFLICT, with the same the run, and none is as an empty object', async () => {
    const store = memoryStore();
    const host = hostOf({ script: [hang(), hang()], store });
    await host.start({ runId: 'r', labels: { a: '1', b: '2' } });
    expect((await host.start({ runId: 'r', labels: { b: '2', a: '1' } })).accepted).toBe('joined');
    for (const labels of [{}, { a: '1' }, { a: '1', b: '3' }]) {
      expect(await host.run({ runId: 'r', labels })).toMatchObject({ error: { code: 'RUN_ID_CONFLICT' } });
    }
    await host.start({ runId: 'plain' });
    expect((await host.start({ runId: 'plain', labels: {} })).accepted).toBe('joined');
    expect(await store.load('plain')).not.toHaveProperty('labels');
    await host.executor.shutdown();
  });

  test.for([
    ['33 names', Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`n${i}`, '']))],
    ['more than 1,024 bytes of UTF-8 together', { n: 'é'.repeat(512) }],
    ['a lone surrogate', { n: 'x\ud800' }],
  ] as const)('with %s are refused with INVALID_LABELS, and nothing is stored', async ([, labels]) => {
    const store = watchedStore();
    const host = hostOf({ store });
    const run = await host.start({ labels: labels as Labels });
    expect([run.accepted, run.error?.code]).toEqual(['refused', 'INVALID_LABELS']);
    expect([host.model.calls, store.methods.filter((name) => name !== 'release')]).toEqual([[], []]);
  });

  test('of 32 names and of 1,024 bytes are taken, hostile names too', async () => {
    const many = Object.fromEntries(Array.from({ length: 32 }, (_, i) => [`n${i}`, 'x']));
    const long = { n: 'x'.repeat(1_023) };
    const hostile = JSON.parse('{"__proto__":"p","constructor":"c","":"empty"}') as Labels;
    for (const labels of [many, long, hostile]) {
      const store = memoryStore();
      const host = hostOf({ script: [hang()], store });
      await host.start({ runId: 'r', labels });
      expect(JSON.stringify((await store.load('r'))?.labels)).toBe(JSON.stringify(labels));
      expect(await host.executor.list({ labels })).toMatchObject([{ runId: 'r' }]);
      await host.executor.shutdown();
    }
    expect(({} as { p?: unknown }).p).toBeUndefined();
  });

  test.for([7, 'team', null, ['team'], { team: 7 }, { team: undefined }])(
    'that are %j are a TypeError',
    async (labels) => {
      await expect(hostOf().start({ labels } as unknown as Invocation)).rejects.toThrow(TypeError);
    },
  );

  test('in a Map or a Set are a TypeError: their entries are no properties, and would be lost', async () => {
    const host = hostOf({ store: memoryStore() });
    for (const labels of [new Map([['team', 'blue']]), new Set(['team'])] as unknown as Labels[]) {
      await expect(host.start({ labels })).rejects.toThrow(TypeError);
      await expect(host.executor.list({ labels })).rejects.toThrow(TypeError);
    }
  });

  test('are in what observers and the audit get of a run, also when another process continues, parks or cancels it', async () => {
    const store = memoryStore();
    const seen: string[] = [];
    const noted = (where: string, { runId, labels }: RunInfo) => void seen.push(`${where} ${runId} ${labels?.team}`);
    const audit: Audit = {
      startRun: (info) => {
        noted('audit', info);
        return { record: () => {}, close: async () => {} } as unknown as AuditRecorder;
      },
    } as Audit;
    const observers = [{ onEvent: ({ type }: RunEvent, { info }: ObservedRun) => noted(type, info) }];
    const options = { store, ports: { audit }, observers, requireDurable: true };
    const first = hostOf({ ...options, script: [hang(), hang()] });
    for (const runId of ['on', 'aside']) await first.start({ runId, labels: blue });
    await first.start({ runId: 'plain' });
    await first.executor.shutdown();
    const died = await store.load('aside');
    if (died) await store.save({ ...died, attempts: 3 });
    const next = hostOf({ ...options, script: [hang(), hang()] });
    seen.length = 0;
    await next.executor.recover();
    await next.executor.control('aside').cancel();
    await next.executor.shutdown();
    expect(seen).toEqual(expect.arrayContaining(['audit on blue', 'run.resumed on blue', 'run.parked aside blue']));
    expect(seen.filter((each) => each === 'audit aside blue')).toHaveLength(2);
    expect(seen.filter((each) => !each.endsWith(each.includes('plain') ? 'undefined' : 'blue'))).toEqual([]);
  });

  test('go to the children of the run', async () => {
    const store = memoryStore();
    const helper = defineAgent({ id: 'helper', instructions: 'Help.' });
    const agent = defineAgent({ id: 'lead', instructions: 'Lead.', subAgents: ['helper'] });
    const models = { fast: scriptedModel([callTool('agent__helper', { prompt: 'Help.' }), hang()]) };
    const ports = { palette: createPalette({ agents: [helper] }) };
    const executor = createExecutor({ models, ports, store });
    await executor.start(agent, { prompt: 'Go.', runId: 'lead', labels: blue });
    await until(async () => (await executor.list({ labels: blue })).length === 2);
    expect((await store.listInterrupted()).map((run) => 'labels' in run && run.labels)).toEqual([blue, blue]);
    await executor.shutdown();
  });

  test('are not redacted, and a middleware is given them', async () => {
    const store = memoryStore();
    const seen: unknown[] = [];
    const noted = <T>(labels: Labels, next: () => T): T => {
      seen.push(labels);
      return next();
    };
    const host = hostOf({
      script: [callTool('look'), hang()],
      tools: [toolOf('look')],
      store,
      redact: (text) => text.replaceAll('blue', '***'),
      middleware: [
        {
          model: (call, next) => noted(call.labels, next),
          tool: (call, next) => noted(call.labels, next),
        },
      ],
    });
    await host.start({ runId: 'r', prompt: 'Go blue.', labels: blue });
    await until(async () => (await store.load('r'))?.iteration === 1);
    expect(await store.load('r')).toMatchObject({ labels: blue, meta: { prompt: 'Go ***.' } });
    await until(() => seen.length > 2, 'the second model call');
    expect(seen).toEqual([blue, blue, blue]);
    await host.executor.shutdown();
  });
});

describe('executor.list by labels', () => {
  test('gives the live and the stored runs that have all of them', async () => {
    const store = memoryStore();
    const first = hostOf({ script: [hang(), hang(), hang()], store });
    await first.start({ runId: 'both', labels: blue });
    await first.start({ runId: 'team', labels: { team: 'blue' } });
    await first.start({ runId: 'none' });
    const ids = async (host: typeof first, labels: Labels) =>
      (await host.executor.list({ labels })).map((run) => run.runId).sort();
    const expected = async (host: typeof first) => {
      expect(await ids(host, {})).toEqual(['both', 'none', 'team']);
      expect(await ids(host, { team: 'blue' })).toEqual(['both', 'team']);
      expect(await ids(host, blue)).toEqual(['both']);
      expect(await ids(host, { team: 'red' })).toEqual([]);
      expect(await ids(host, { toString: '' })).toEqual([]);
    };
    await expected(first);
    await first.executor.shutdown();
    await expected(hostOf({ store }));
  });

  test.for([7, ['team'], { team: 7 }])('with labels that are %j is a TypeError', async (labels) => {
    await expect(hostOf().executor.list({ labels } as never)).rejects.toThrow(/executor\.list: labels/);
  });
});

describe("a run that a host's machine begins", () => {
  test('says so in its record, also after it was taken over; one that a start began does not', async () => {
    const store = memoryStore();
    const first = hostOf({ script: [hang(), hang()], store });
    const host = startHost(hostMachine(first.executor, first.agent, { prompt: 'Go.', runId: 'hosted' }));
    await until(async () => (await store.load('hosted')) !== null);
    await first.start({ runId: 'started' });
    expect((await store.load('hosted'))?.hosted).toBe(true);
    expect(await store.load('started')).not.toHaveProperty('hosted');
    host.stop();
    await first.executor.shutdown();

    const next = hostOf({ script: [callTool('look'), hang()], tools: [toolOf('look')], store });
    await next.start({ runId: 'hosted' });
    await until(async () => (await store.load('hosted'))?.iteration === 1);
    expect((await store.load('hosted'))?.hosted).toBe(true);
    await next.executor.shutdown();
  });
});
