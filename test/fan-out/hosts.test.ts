import { loadCheckpoint } from 'pawl/fan-out';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { settle, toolOf } from '../fixtures/host.ts';
import { asked, freshPath } from './asking.ts';
import { freshFolder } from './fresh-folder.ts';

const boom = (): never => {
  throw new Error('of the host');
};
const rejects = () => Promise.reject(new Error('of the host'));
const look = toolOf('look');
const models = { a: [callTool('look'), reply('of a')], b: [reply('of b')] };

describe('a host that misbehaves', () => {
  test.for<readonly [what: string, options: object]>([
    ['onEvent that throws', { onEvent: boom }],
    ['onEvent that rejects', { onEvent: rejects }],
    ['onEvent that is no function', { onEvent: 'x' }],
    ['onResponse that throws', { onResponse: boom }],
    ['onResponse that rejects', { onResponse: rejects }],
    ['inspect that throws', { inspect: boom }],
    ['inspect that rejects', { inspect: rejects }],
    ['a logger that throws', { logger: { warn: boom }, onEvent: boom }],
    ['a logger that rejects', { logger: { warn: rejects }, onEvent: boom }],
    ['a clock that throws', { clock: { now: boom, monotonic: boom, setTimeout: boom, clearTimeout: boom } }],
    ['ids that throw', { ids: boom }],
    ['ids that are all the same', { ids: () => 'one' }],
    ['ids that are none', { ids: () => ({}) as string }],
    ['random that throws', { random: boom }],
    ['prices that throw', { prices: boom }],
  ])('%s changes no answer (fan-out 1)', async ([, options]) => {
    const path = freshPath();
    const failures: unknown[] = [];
    const note = (error: unknown) => void failures.push(error);
    process.on('unhandledRejection', note).on('uncaughtException', note);
    try {
      const call = asked({ models, tools: [look], path });
      const { responses, interrupted, saveError, path: kept } = await call.start(options);
      expect(responses.map(({ text, stopReason }) => [text, stopReason])).toEqual([
        ['of a', 'answered'],
        ['of b', 'answered'],
      ]);
      expect([interrupted, saveError]).toEqual([false, undefined]);
      expect((await loadCheckpoint(String(kept)))?.responses.map(({ completed }) => completed)).toEqual([true, true]);
      await settle();
    } finally {
      process.off('unhandledRejection', note).off('uncaughtException', note);
    }
    expect(failures).toEqual([]);
  });

  test('what its callbacks throw is logged (fan-out 1)', async () => {
    const call = asked({ models: { a: [reply('of a')] }, onEvent: boom, onResponse: boom });
    await call.start();
    const messages = call.warned.map(({ message }) => message);
    expect(messages).toContain('fan-out: onEvent threw');
    expect(messages).toContain('fan-out: onResponse threw');
  });
});

describe('a host that changes what it gets', () => {
  const write = callTool('write_file', { path: 'new.txt', content: 'hello' });
  const spoil = (value: object): void => {
    for (const [name, field] of Object.entries(value)) {
      if (typeof field === 'object' && field !== null) spoil(field);
      Object.assign(value, { [name]: 'spoiled' });
    }
  };

  test('a host’s change of a turn or an answer changes neither the result nor the file (fan-out 1)', async () => {
    const [path, told] = [freshPath(), new Set<string>()];
    const noted = (what: string) => (value: object) => {
      told.add(what);
      spoil(value);
    };
    const models = { a: [write, callTool('look'), reply('of a')], b: [reply('of b')] };
    const call = asked({ models, path, root: freshFolder(), tools: [look] });
    const result = await call.start({
      onTurn: noted('turn'),
      onResponse: noted('answer'),
      judge: ({ responses }) => {
        const order = responses.map(({ modelId }) => modelId);
        noted('judge')(responses);
        return order;
      },
    });
    expect([...told].sort()).toEqual(['answer', 'judge', 'turn']);
    const proposedWrites = [{ path: 'new.txt', content: 'hello', base: null }];
    const kept = [{ modelId: 'a', text: 'of a', proposedWrites, toolCalls: { write_file: 1 } }, { modelId: 'b' }];
    expect(result).toMatchObject({ responses: kept, ranking: { order: ['a', 'b'] } });
    expect((await loadCheckpoint(String(result.path)))?.responses).toMatchObject(kept);
  });

  test('an answer from an earlier process is not changed by it either (fan-out 5)', async () => {
    const path = freshPath();
    const call = asked({ models: { a: [write, reply('of a')], b: [hang(), hang()] }, path, root: freshFolder() });
    for (let times = 0; times < 2; times++) {
      const caller = new AbortController();
      await call.start({
        signal: caller.signal,
        onResponse: (response) => {
          spoil(response);
          caller.abort();
        },
      });
    }
    const proposedWrites = [{ path: 'new.txt', content: 'hello', base: null }];
    expect((await loadCheckpoint(path))?.responses[0]).toMatchObject({ modelId: 'a', text: 'of a', proposedWrites });
  });
});

describe('what a host gets', () => {
  test('an answer after the last event of its run (fan-out 1)', async () => {
    const told: string[] = [];
    await asked({ models, tools: [look] }).start({
      onEvent: async (id, { type }) => void told.push(`${id} ${type}`),
      onResponse: ({ modelId }) => void told.push(`${modelId} answers`),
    });
    for (const id of ['a', 'b']) {
      const own = told.filter((each) => each.startsWith(id));
      expect(own.slice(-2)).toEqual([`${id} run.ended`, `${id} answers`]);
    }
  });

  test('every event of every model, in the order of each (fan-out 1)', async () => {
    const seen = new Map<string, number[]>();
    const call = asked({ models, tools: [look] });
    await call.start({ onEvent: (id, { seq }) => seen.set(id, [...(seen.get(id) ?? []), seq]) });
    expect([...seen.keys()].sort()).toEqual(['a', 'b']);
    for (const seqs of seen.values()) expect(seqs).toEqual(seqs.map((_, i) => i + 1));
  });

  test('each answer once, as soon as it is there, those of an earlier process too (fan-out 5)', async () => {
    const path = freshPath();
    const told: string[] = [];
    const call = asked({ models: { a: [reply('of a')], b: [() => new Promise(() => {}), reply('of b')] }, path });
    const caller = new AbortController();
    await call.start({
      signal: caller.signal,
      onResponse: ({ modelId, text }) => {
        told.push(`${modelId}: ${text}`);
        caller.abort();
      },
    });
    expect(told).toEqual(['a: of a', 'b: ']);
    told.length = 0;
    await call.start({ onResponse: ({ modelId, text }) => void told.push(`${modelId}: ${text}`) });
    expect([told, call.calls()]).toEqual([
      ['a: of a', 'b: of b'],
      [1, 2],
    ]);
  });
});
