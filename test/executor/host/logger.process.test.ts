import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { createExecutor, jsonLogger } from 'pawl';
import { testClock } from 'pawl/testing';
import { describe, expect, test, vi } from 'vitest';
import { CancelledError, ModelError } from '../../../src/values/errors.ts';
import { torture } from '../../crash/random.ts';
import { hostOf } from '../../fixtures/host.ts';

/** What a logger writes, parsed. */
function logged(message: unknown, fields: unknown): Record<string, unknown> {
  const lines: string[] = [];
  jsonLogger({ write: (line) => lines.push(line), clock: testClock(Date.UTC(2026, 10, 22)) }).warn(
    message as string,
    fields as Record<string, unknown>,
  );
  expect(lines).toHaveLength(1);
  expect(lines[0]).not.toContain('\n');
  return JSON.parse(lines[0] ?? '');
}
const fieldOf = (value: unknown) => logged('m', { value }).value;
const nested = (depth: number): object => (depth === 0 ? {} : { inner: nested(depth - 1) });
const circle: Record<string, unknown> = { name: 'a' };
circle.self = circle;

describe('a line of the JSON logger', () => {
  test('is one object: time, level, message, and the fields beside them', () => {
    expect(logged('run: it\nbroke', { runId: 'r', count: 2, isOn: true, none: null })).toEqual({
      time: '2026-11-22T00:00:00.000Z',
      level: 'warn',
      message: 'run: it\nbroke',
      runId: 'r',
      count: 2,
      isOn: true,
      none: null,
    });
  });

  test('keeps its own three names, for any names of the fields', () => {
    const line = logged('m', { time: 1, level: 'error', message: 'other', runId: 'r' });
    expect(line).toEqual({ time: '2026-11-22T00:00:00.000Z', level: 'warn', message: 'm', runId: 'r' });
  });

  test.each([
    [
      'an error',
      new ModelError('down', { cause: new TypeError('x') }),
      {
        name: 'ModelError',
        code: 'MODEL',
        message: 'down',
        cause: { name: 'TypeError', message: 'x' },
      },
    ],
    ['a BigInt', 12n, '12'],
    ['a number that JSON has not', Number.NaN, 'NaN'],
    ['a function', () => 1, '[function]'],
    ['a symbol', Symbol('x'), '[symbol]'],
    ['bytes', new Uint8Array(5), '[5 bytes]'],
    ['a promise', new Promise(() => {}), '[promise]'],
    ['a date', new Date(0), '1970-01-01T00:00:00.000Z'],
    ['a date that is none', new Date(Number.NaN), null],
    ['what refers to itself', circle, { name: 'a', self: '[circular]' }],
    [
      'a getter that throws',
      Object.defineProperty({ a: 1 }, 'b', {
        enumerable: true,
        get: () => {
          throw null;
        },
      }),
      { a: 1, b: '[unreadable]' },
    ],
    [
      'a toJSON that throws',
      {
        toJSON: () => {
          throw new Error('x');
        },
      },
      '[unreadable]',
    ],
    ['a toJSON that says less', { key: 'secret', toJSON: () => ({ shown: 1 }) }, { shown: 1 }],
    [
      'a toJSON that gives another one, without end',
      (() => {
        const again = (): object => ({ toJSON: again });
        return again();
      })(),
      '[cut]',
    ],
    [
      'a proxy that refuses everything',
      new Proxy(
        {},
        {
          get: () => {
            throw new Error('x');
          },
          ownKeys: () => {
            throw new Error('x');
          },
        },
      ),
      '[unreadable]',
    ],
    [
      'a revoked proxy',
      (() => {
        const { proxy, revoke } = Proxy.revocable({}, {});
        revoke();
        return proxy;
      })(),
      '[unreadable]',
    ],
    ['the name __proto__', JSON.parse('{"__proto__":{"polluted":1}}'), JSON.parse('{"__proto__":{"polluted":1}}')],
    ['a list with holes', [undefined, () => 1, 1n], [null, '[function]', '1']],
  ] as const)('holds %s', (_, value, expected) => expect(fieldOf(value)).toEqual(expected));

  test('is bounded: long texts, long lists, many members and deep nesting are cut, and say so', () => {
    expect(fieldOf('x'.repeat(5_000))).toBe(`${'x'.repeat(4_000)}… [1000 more]`);
    expect(fieldOf(Array(1_000).fill(1))).toEqual([...Array(100).fill(1), '… [900 more]']);
    const many = Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`k${i}`, i]));
    expect(fieldOf(many)).toMatchObject({ k99: 99, '…': '[50 more]' });
    expect(JSON.stringify(fieldOf(nested(50)))).toContain('[cut]');
    const wide = Array.from({ length: 100 }, () => Array.from({ length: 100 }, () => 'y'.repeat(4_000)));
    expect(JSON.stringify(logged('z'.repeat(10_000_000), { wide })).length).toBeLessThan(50_000);
  });

  test('comes of anything at all', () => {
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withTypedArray: true,
      withSparseArray: true,
    });
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), anything, (message, value) => {
        expect(logged(message, { value })).toMatchObject({ level: 'warn', message });
        logged(value, value);
      }),
      { numRuns: 100 * torture },
    );
  });
});

describe('the JSON logger', () => {
  test('writes to stderr by default, and nothing to stdout', () => {
    const source = fileURLToPath(new URL('../../../src/executor/host/logger.ts', import.meta.url));
    const program = `import { jsonLogger } from ${JSON.stringify(source)}; jsonLogger().warn('100 %s', { a: 1 });`;
    const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
      encoding: 'utf8',
    });
    expect({ stdout, status, line: JSON.parse(stderr) }).toMatchObject({
      stdout: '',
      status: 0,
      line: { message: '100 %s', a: 1 },
    });
  });

  test('swallows what its write throws or rejects with, and a clock that is broken', async () => {
    const line = vi.fn();
    jsonLogger({
      write: () => {
        throw new Error('disk full');
      },
    }).warn('m', {});
    jsonLogger({ write: () => Promise.reject(new Error('disk full')) as never }).warn('m', {});
    jsonLogger({ write: line, clock: { now: () => Number.NaN } }).warn('m', {});
    jsonLogger({
      write: line,
      clock: {
        now: () => {
          throw null;
        },
      },
    }).warn('m', {});
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(line).toHaveBeenCalledTimes(2);
    expect(JSON.parse(line.mock.calls[0]?.[0]).time).toMatch(/^\d{4}-.*Z$/);
  });

  test('as the logger of an executor tells of a callback that threw, with the run', async () => {
    const lines: string[] = [];
    const host = hostOf({
      logger: jsonLogger({ write: (line) => lines.push(line) }),
      onOutcome: () => {
        throw new CancelledError('not now');
      },
    });
    await host.run({ runId: 'r-1' });
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      {
        level: 'warn',
        message: 'run: onOutcome failed',
        runId: 'r-1',
        error: { code: 'CANCELLED', message: 'not now' },
      },
      {},
    ]);
    expect(() => createExecutor({ models: { fast: host.model }, logger: jsonLogger() })).not.toThrow();
  });
});
