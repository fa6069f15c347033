import { APICallError } from '@ai-sdk/provider';
import { describe, expect, test } from 'vitest';
import { brokenOff, isRetryable } from '../../src/model/failure.ts';
import { ModelError, ModelStalledError } from '../../src/values/errors.ts';

const withCode = (code: string, cause?: unknown) => Object.assign(new Error(code, { cause }), { code });
const apiError = (statusCode: number | undefined, extra: { isRetryable?: boolean; cause?: unknown } = {}) =>
  new APICallError({
    message: 'x',
    url: 'http://x',
    requestBodyValues: {},
    ...(statusCode ? { statusCode } : {}),
    ...extra,
  });
const endless: { cause?: unknown } = {};
endless.cause = endless;

describe('worth another attempt (executor 8)', () => {
  test.for([408, 409, 425, 429, 500, 502, 503, 504, 529])('status %i', (status) => {
    expect(isRetryable({ statusCode: status })).toBe(true);
    expect(isRetryable(new ModelError('failed', { cause: apiError(status) }))).toBe(true);
    expect(isRetryable({ code: status, message: 'within a stream' })).toBe(true);
  });

  test.for([
    'ECONNRESET',
    'ECONNREFUSED',
    'ETIMEDOUT',
    'EPIPE',
    'UND_ERR_SOCKET',
    'UND_ERR_CONNECT_TIMEOUT',
    'UND_ERR_HEADERS_TIMEOUT',
    'UND_ERR_BODY_TIMEOUT',
  ])('a connection that failed with %s', (code) => {
    expect(isRetryable(new TypeError('fetch failed', { cause: withCode(code) }))).toBe(true);
  });

  test.for([
    ['what the provider says is', new ModelError('x', { cause: apiError(400, { isRetryable: true }) })],
    ['a stall', new ModelStalledError('x')],
    ['a reply that broke off', brokenOff('x')],
    ['an answer that the provider package finds incomplete', { name: 'AI_InvalidResponseDataError' }],
    ['the cause of an error with a number that is no status', { code: 20, cause: { statusCode: 503 } }],
    ['the outermost error that says anything', withCode('EPIPE', { statusCode: 400 })],
  ] as const)('%s', ([, error]) => {
    expect(isRetryable(error)).toBe(true);
  });
});

describe('final (executor 8)', () => {
  test.for([400, 401, 403, 404, 413, 422])('status %i', (status) => {
    expect(isRetryable({ statusCode: status })).toBe(false);
    expect(isRetryable(new ModelError('failed', { cause: apiError(status) }))).toBe(false);
    expect(isRetryable(apiError(status, { cause: withCode('ECONNRESET') }))).toBe(false);
  });

  test.for([
    ['what the provider says is', apiError(500, { isRetryable: false })],
    ['an abort', Object.assign(withCode('EPIPE'), { name: 'AbortError' })],
    ['a host that does not exist', apiError(undefined, { isRetryable: true, cause: withCode('ENOTFOUND') })],
    ['an error that nobody knows', new ModelError('x', { cause: new Error('x') })],
    ['a code that nobody knows', withCode('ERR_INVALID_URL')],
    ['a number that is no status', { code: 20, statusCode: '500' }],
    ['a number above all statuses', { code: 10_054 }],
    ['null', null],
    ['a string', '529'],
    ['an error that is its own cause', endless],
    [
      'a proxy that refuses everything',
      new Proxy(
        {},
        {
          get: () => {
            throw new Error('get');
          },
        },
      ),
    ],
  ] as const)('%s', ([, error]) => {
    expect(isRetryable(error)).toBe(false);
  });
});
