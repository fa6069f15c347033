import type { Agent, ExecutorOptions, ResumeState, RunOptions } from 'pawl';
import { fail, hang, type RecordingCheckpointer, recordingCheckpointer, recordingFactory, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { ShutdownError } from '../../src/values/errors.ts';
import { type HostOptions, hostOf, until } from '../fixtures/host.ts';
import { notingBudget } from '../fixtures/noting-ports.ts';

/*
 * A host's own handle: a checkpointer that it gives with the start, or one of its own factory, whose store no executor reads. The
 * host recovers such a run itself, and must hear of each exit.
 */

const kinds = ['a checkpointer of the start', 'a factory without a store'] as const;

/** A host with a handle of this kind: the options of its starts, and all handles that it made. */
function handle(kind: (typeof kinds)[number]) {
  const own = recordingCheckpointer();
  const factory = recordingFactory();
  const isOwn = kind === 'a checkpointer of the start';
  return {
    options: isOwn ? { checkpointer: own } : {},
    host: isOwn ? {} : { ports: { checkpointer: factory } },
    get made(): readonly RecordingCheckpointer[] {
      return isOwn ? [own] : factory.checkpointers;
    },
  };
}

const state: ResumeState = { history: [{ role: 'user', content: [{ type: 'text', text: 'Go.' }] }] };
const ways: { readonly [name: string]: RunOptions } = { resumed: { resume: state }, started: {} };

interface Fault {
  readonly host?: HostOptions;
  readonly broken?: (agent: Agent) => Agent;
  readonly code: string;
}

const thrown = (what: string) => () => {
  throw new Error(`${what} are away`);
};
const models = (given: unknown) => ({ models: given as ExecutorOptions['models'] });
const lazy = { description: 'x', inputSchema: thrown('the schemas'), execute: () => 'x' } as never;

const faults: { readonly [name: string]: Fault } = {
  'a tier that no model serves': { host: models({ deep: reply }), code: 'UNKNOWN_TIER' },
  'models that throw': { host: models(thrown('the secrets')), code: 'UNKNOWN_TIER' },
  'models that reject': { host: models(() => Promise.reject(new Error('no secrets'))), code: 'UNSUPPORTED' },
  'models that give nothing': { host: models(() => undefined), code: 'UNKNOWN_TIER' },
  'a value that is no model': { host: models({ fast: 'claude' }), code: 'UNSUPPORTED' },
  'a tool that is not registered': { host: { agent: { tools: ['pay'] } }, code: 'UNKNOWN_TOOL' },
  'a lazy schema that throws': { host: { agent: { tools: { pay: lazy } } }, code: 'RUN_PANIC' },
  'an agent that cannot be read': {
    broken: (agent) => ({
      ...agent,
      get instructions(): string {
        return thrown('the instructions')();
      },
    }),
    code: 'RUN_PANIC',
  },
};

const cells = kinds.flatMap((kind) =>
  Object.keys(ways)
    // A new run of a factory has no handle yet.
    .filter((way) => way === 'resumed' || kind === kinds[0])
    .flatMap((way) => Object.keys(faults).map((fault) => ({ kind, way, fault }))),
);

describe('a handle of the host', () => {
  test.for(cells)(
    'gets `fail` once, of a run that is $way with $kind: $fault (edges 3)',
    async ({ kind, way, fault }) => {
      const { host = {}, broken = (agent: Agent) => agent, code } = faults[fault] as Fault;
      const own = handle(kind);
      const { executor, agent } = hostOf({ ...own.host, ...host });
      const run = await executor.start(broken(agent), { prompt: 'Go.', runId: 'r' }, { ...own.options, ...ways[way] });
      expect(await run.result).toMatchObject({ status: 'error', error: { code } });
      expect(own.made.map(({ failed, completed, states }) => [failed, completed, states.length])).toEqual([[1, 0, 0]]);
      expect(own.made[0]?.error).toMatchObject({ code });
    },
  );

  test('is not begun by a factory for a new run that cannot begin (edges 3)', async () => {
    const own = handle(kinds[1]);
    expect(await hostOf({ ...own.host, agent: { tools: ['pay'] } }).run()).toMatchObject({ status: 'error' });
    expect(own.made).toEqual([]);
  });

  test.for(kinds)('gets `fail` of a model call without its key, with %s (edges 3)', async (kind) => {
    const own = handle(kind);
    const error = Object.assign(new Error('the key is missing'), { name: 'AI_LoadAPIKeyError' });
    const host = hostOf({ ...own.host, script: [fail(error)] });
    expect(await host.run({}, { ...own.options, resume: state })).toMatchObject({ status: 'error' });
    expect(own.made.map(({ failed }) => failed)).toEqual([1]);
  });

  test.for(kinds)(
    'is begun and failed once where its first save fails and the run must be durable, with %s (edges 3)',
    async (kind) => {
      const failed: unknown[] = [];
      const refusing = {
        save: async () => Promise.reject(new Error('the disk is gone')),
        complete: async () => {},
        fail: async (error: unknown) => void failed.push(error),
      };
      const isOwn = kind === kinds[0];
      const host = hostOf({
        requireDurable: true,
        ...(isOwn ? {} : { ports: { checkpointer: { begin: async () => refusing } } }),
      });
      const result = await host.run({}, isOwn ? { checkpointer: refusing } : {});
      expect(result).toMatchObject({ status: 'error', error: { code: 'NOT_DURABLE' } });
      expect(failed).toHaveLength(1);
    },
  );

  test.for(kinds)(
    'is left alone, and the error says so, where the budget refuses the start, with %s (edges 3)',
    async (kind) => {
      const own = handle(kind);
      const { host, options } = own;
      const budget = notingBudget({ refuseCheck: true });
      const { run } = hostOf({ ...host, ports: { ...host.ports, budget } });
      const result = await run({}, { ...options, resume: state });
      expect(result).toMatchObject({ status: 'error', error: { code: 'BUDGET_EXCEEDED' } });
      expect(result.error?.message).toContain('the checkpointer of this start is left as it is');
      expect(own.made.map(({ failed }) => failed)).toEqual(kind === kinds[0] ? [0] : []);
    },
  );

  test.for(kinds)('is left alone where the phases have changed, with %s (edges 3)', async (kind) => {
    const own = handle(kind);
    const phases = [{ name: 'plan', instructions: 'Plan.' }];
    const { run } = hostOf({ ...own.host, agent: { phases } });
    const completedPhases = [{ name: 'other', output: 'x', usage: { inputTokens: 0, outputTokens: 0 } }];
    const resume = { ...state, completedPhases } as never;
    const result = await run({}, { ...own.options, resume });
    expect(result).toMatchObject({ status: 'error', error: { code: 'DEFINITION_CHANGED' } });
    expect(result.error?.message).toContain('the checkpointer of this start is left as it is');
    expect(own.made.map(({ failed }) => failed)).toEqual(kind === kinds[0] ? [0] : []);
  });

  test('is left alone by a start whose id belongs to another live run (edges 3)', async () => {
    const own = handle(kinds[1]);
    const host = hostOf({ ...own.host, script: [hang()] });
    const first = await host.start({ runId: 'r' });
    await until(() => host.model.calls.length === 1);
    const result = await host.run({ runId: 'r', prompt: 'Another.' });
    expect(result).toMatchObject({ status: 'error', error: { code: 'RUN_ID_CONFLICT' } });
    expect(own.made.map(({ failed }) => failed)).toEqual([0]);
    await first.cancel();
  });

  test('is left alone by a start after the shutdown, which is no end of its run (edges 3)', async () => {
    const own = handle(kinds[0]);
    const host = hostOf({ ...models(thrown('the secrets')), script: [reply('x')] });
    const signal = AbortSignal.abort(new ShutdownError('the host is shutting down'));
    const result = await host.run({}, { ...own.options, resume: state, signal });
    expect(result).toMatchObject({ status: 'interrupted' });
    expect(own.made.map(({ failed }) => failed)).toEqual([0]);
  });
});
