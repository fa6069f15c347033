import * as pawl from 'pawl';
import { isPawlError, PawlError } from 'pawl';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { checkRunId } from '../../src/run/identity.ts';
import { withDeadline } from '../../src/values/deadline.ts';
import { hasCode, readProperty, toErrorData } from '../../src/values/error-data.ts';
import * as errors from '../../src/values/errors.ts';
import { bounded, failures, otherCauses, shutdowns } from '../fixtures/finalize-table.ts';

const classes = Object.entries(errors) as [
  string,
  new (message?: string, options?: { cause?: unknown }) => PawlError,
][];

const otherCodes: Readonly<Record<string, string>> = { ShutdownError: 'ERR_SHUTDOWN', WorkflowError: 'WORKFLOW_ERROR' };

describe('the errors', () => {
  test.for(classes)(
    '%s has its class name in upper snake case as its code, its name, and a cause when one is given',
    ([name, Class]) => {
      const cause = new Error('why');
      const error = new Class('what happened', { cause });
      const snake = name
        .replace(/Error$/, '')
        .replace(/(?<=[a-z])(?=[A-Z])/g, '_')
        .toUpperCase();
      expect(error.code).toBe(otherCodes[name] ?? snake);
      expect(error).toMatchObject({ name, message: 'what happened', cause });
      expect(error).toBeInstanceOf(Error);
      expect(error).toBeInstanceOf(PawlError);
      expect((error as unknown as Record<symbol, unknown>)[Symbol.for('pawl.error')]).toBe(true);
      expect(new Class().message).toBe('');
    },
  );

  test('have codes of which no two are equal', () => {
    const codes = classes.map(([, Class]) => new Class().code);
    expect(new Set(codes).size).toBe(codes.length);
    expect(codes.length).toBeGreaterThan(20);
  });
});

describe('what a user has of the errors', () => {
  test('is one class, made with a code, and one question: no other class is exported', () => {
    expect(Object.keys(pawl).filter((name) => name.endsWith('Error'))).toEqual(['isPawlError', 'PawlError']);
    const cause = new Error('EIO');
    const error = new PawlError('STORE_FULL', 'the disk is full', { cause });
    expect(error).toMatchObject({
      name: 'PawlError',
      code: 'STORE_FULL',
      message: 'the disk is full',
      cause,
      retry: 'later',
    });
    expect(new PawlError('MINE').retry).toBe('never');
  });

  test('isPawlError knows each error by its code, of this copy of the package and of another', () => {
    for (const [, Class] of classes) {
      const error = new Class('x');
      expect([isPawlError(error), isPawlError(error, error.code), isPawlError(error, 'OTHER')]).toEqual([
        true,
        true,
        false,
      ]);
    }
    const copy = Object.assign(new Error('x'), { code: 'LEASE_LOST', [Symbol.for('pawl.error')]: true });
    expect([isPawlError(copy, 'LEASE_LOST'), isPawlError(copy, 'STORE_FULL')]).toEqual([true, false]);
  });

  test.for([undefined, null, 'STORE_FULL', new TypeError('x'), Object.assign(new Error('x'), { code: 'STORE_FULL' })])(
    'isPawlError of %o is false',
    (value) => expect([isPawlError(value), isPawlError(value, 'STORE_FULL')]).toEqual([false, false]),
  );

  test('the first answer is on the error of a second one', () => {
    const answered = { how: 'approve', at: 5 };
    const error: unknown = new errors.AlreadyAnsweredError('x', { answered });
    expect(isPawlError(error, 'ALREADY_ANSWERED') && error.answered).toBe(answered);
  });
});

describe('anything thrown, as plain data', () => {
  test('is an object of strings that JSON can hold, for any thrown value (executor 1, faults 17)', () => {
    const anything = [...shutdowns, ...otherCauses, ...failures];
    for (const { make } of anything) {
      const data = bounded(() => toErrorData(make()), 10_000);
      expect(JSON.parse(JSON.stringify(data))).toEqual(data);
      expect(data).toMatchObject({ name: expect.any(String), code: expect.any(String), message: expect.any(String) });
    }
  });

  test('keeps name, code, message and the chain of causes', () => {
    const error = Object.assign(
      new TypeError('outer', { cause: Object.assign(new Error('inner'), { code: 'EPIPE' }) }),
      { code: 'X' },
    );
    expect(toErrorData(error)).toEqual({
      name: 'TypeError',
      code: 'X',
      message: 'outer',
      cause: { name: 'Error', code: 'EPIPE', message: 'inner' },
    });
  });

  test('has the fallback code where the error brought none, or one that is no string', () => {
    expect(toErrorData(new Error('x')).code).toBe('RUN_PANIC');
    expect(toErrorData(new Error('x'), 'MODEL').code).toBe('MODEL');
    expect(toErrorData(Object.assign(new Error('x'), { code: 7 })).code).toBe('RUN_PANIC');
  });

  test('has no code for a cause without one: only the error itself gets the fallback code (edges, small)', () => {
    const store = new errors.StoreUnavailableError('the store is away', { cause: new Error('ECONNREFUSED') });
    expect(toErrorData(store)).toEqual({
      name: 'StoreUnavailableError',
      code: 'STORE_UNAVAILABLE',
      message: 'the store is away',
      cause: { name: 'Error', message: 'ECONNREFUSED' },
    });
    expect(toErrorData(new Error('x', { cause: new Error('y') }), 'MODEL')).toMatchObject({ code: 'MODEL' });
    expect(toErrorData(new Error('x', { cause: new Error('y') }), 'MODEL').cause).toEqual({
      name: 'Error',
      message: 'y',
    });
  });

  test('of a primitive says what it was', () => {
    expect(toErrorData('broken')).toMatchObject({ message: expect.stringContaining('broken'), code: 'RUN_PANIC' });
    expect(toErrorData(null).message).not.toBe('');
  });

  test('is cut to a size that a record can bear, in message and in chain', () => {
    let error = new Error('x'.repeat(1_000_000));
    for (let i = 0; i < 1_000; i++) error = new Error(`layer ${i}`, { cause: error });
    expect(JSON.stringify(toErrorData(error)).length).toBeLessThan(100_000);
    expect(toErrorData(new Error('x'.repeat(1_000_000))).message.length).toBeLessThan(10_000);
  });

  test('is found by code as the error itself was, one and several layers deep', () => {
    for (const layers of [0, 1, 5]) {
      let error: Error = new errors.ShutdownError();
      for (let i = 0; i < layers; i++) error = new Error('outer', { cause: error });
      expect(hasCode(toErrorData(error), 'ERR_SHUTDOWN')).toBe(true);
    }
  });

  test('a property that cannot be read reads as undefined', () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    for (const value of [undefined, null, proxy]) expect(readProperty(value, 'code')).toBeUndefined();
    expect(readProperty('text', 'length')).toBe(4);
  });
});

describe('a wait with a deadline', () => {
  test('ends with the answer, or with PORT_TIMEOUT that names what was waited for, and leaves no timer', async () => {
    const clock = testClock();
    expect(await withDeadline(Promise.resolve(7), { ms: 10, clock, what: 'x' })).toBe(7);
    await expect(withDeadline(Promise.reject(new Error('own')), { ms: 10, clock, what: 'x' })).rejects.toThrow('own');
    const late = withDeadline(new Promise(() => {}), { ms: 10, clock, what: 'store.save' });
    const refused = expect(late).rejects.toThrow(new errors.PortTimeoutError('store.save did not answer within 10 ms'));
    await clock.advance(10);
    await refused;
    await expect(withDeadline(Promise.reject(new Error('late')), { ms: 1, clock, what: 'x' })).rejects.toThrow();
    expect(clock.pending).toBe(0);
  });
});

describe('a run id (checkpoint 12)', () => {
  test.for(['a', 'x'.repeat(512), 'é'.repeat(256), '../..', 'a\0b', '__proto__', '👍'])('%j is one', (id) => {
    expect(checkRunId(id)).toBe(id);
  });
  test.for(['', 'x'.repeat(513), 'é'.repeat(257), 'a\ud800', undefined, null, 7, {}])('%j is none', (id) => {
    expect(() => checkRunId(id)).toThrow(expect.objectContaining({ code: 'INVALID_RUN_ID' }));
  });
});
