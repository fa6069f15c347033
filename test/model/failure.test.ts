import { APICallError, LoadAPIKeyError, LoadSettingError } from '@ai-sdk/provider';
import { describe, expect, test } from 'vitest';
import { brokenOff, failureOf, isSetupFailure, isTooLong, statusOfError } from '../../src/model/failure.ts';
import { toErrorData } from '../../src/values/error-data.ts';
import {
  BudgetExceededError,
  ModelError,
  ModelStalledError,
  NotJsonError,
  PortTimeoutError,
  ReplyTooLargeError,
  ShutdownError,
} from '../../src/values/errors.ts';

const noon = Date.UTC(2026, 0, 1, 12);
const judge = (error: unknown) => failureOf(error, { now: () => noon });
const kindOf = (error: unknown) => judge(error).kind;

const withCode = (code: string, cause?: unknown) => Object.assign(new Error(code, { cause }), { code });
interface Answer {
  readonly isRetryable?: boolean;
  readonly cause?: unknown;
  readonly responseHeaders?: Record<string, string>;
}
const apiError = (statusCode: number | undefined, extra: Answer = {}) =>
  new APICallError({
    message: 'x',
    url: 'http://x',
    requestBodyValues: {},
    ...(statusCode ? { statusCode } : {}),
    ...extra,
  });
/** As the AI SDK throws it after its own retries. */
const retryError = (errors: readonly unknown[], reason = 'maxRetriesExceeded') =>
  Object.assign(new Error('Failed after 3 attempts'), {
    name: 'AI_RetryError',
    reason,
    errors,
    lastError: errors.at(-1),
  });

describe('an error that may pass (waiting 27)', () => {
  test.for([408, 409, 425, 429, 500, 501, 502, 503, 504, 529, 599])('status %i', (status) => {
    expect(kindOf({ statusCode: status })).toBe('passing');
    expect(kindOf(new ModelError('failed', { cause: apiError(status) }))).toBe('passing');
    expect(kindOf(apiError(status, { isRetryable: false }))).toBe('passing');
    expect(kindOf({ code: status, message: 'within a stream' })).toBe('passing');
  });

  test.for([
    'ECONNRESET',
    'ECONNREFUSED',
    'ETIMEDOUT',
    'EPIPE',
    'EAI_AGAIN',
    'EHOSTUNREACH',
    'ENETUNREACH',
    'UND_ERR_SOCKET',
    'UND_ERR_CONNECT_TIMEOUT',
    'UND_ERR_HEADERS_TIMEOUT',
    'UND_ERR_BODY_TIMEOUT',
    'UND_ERR_DESTROYED',
    'ConnectionRefused',
  ])('a connection that failed with %s', (code) => {
    expect(kindOf(withCode(code))).toBe('passing');
    expect(kindOf(new TypeError('fetch failed', { cause: withCode(code) }))).toBe('passing');
    expect(kindOf(new ModelError('x', { cause: apiError(undefined, { cause: withCode(code) }) }))).toBe('passing');
  });

  test.for(['overloaded_error', 'server_error', 'rate_limit_exceeded'])('an error within a stream, %s', (word) => {
    expect(kindOf(new ModelError('x', { cause: { type: word, message: 'x' } }))).toBe('passing');
    expect(kindOf({ code: word, type: 'unknown' })).toBe('passing');
  });

  test.for([
    ['a fetch that failed without a code', new TypeError('fetch failed')],
    ['a fetch that failed, in the words of a browser', new TypeError('Failed to fetch')],
    ['a body that broke off', new TypeError('terminated')],
    ['what the provider says may pass', new ModelError('x', { cause: apiError(400, { isRetryable: true }) })],
    ['a stall', new ModelStalledError('x')],
    ['a time limit of the connection', Object.assign(new Error('x'), { name: 'TimeoutError' })],
    ['a reply that broke off', brokenOff('x')],
    ['an answer that the provider package finds incomplete', { name: 'AI_InvalidResponseDataError' }],
    ['an answer that is not JSON', { name: 'AI_JSONParseError' }],
    ['the cause of an error with a number that is no status', { code: 20, cause: { statusCode: 503 } }],
    ['the outermost error that says anything', withCode('EPIPE', { statusCode: 400 })],
    ['the last attempt of the AI SDK', retryError([apiError(400), apiError(503)])],
    [
      'the addresses of one host, all refused',
      new AggregateError([withCode('ECONNREFUSED'), withCode('ECONNREFUSED')]),
    ],
    ['one of several models', new AggregateError([apiError(400), apiError(401), apiError(503)])],
    [
      'a group within a group',
      new ModelError('x', { cause: new AggregateError([new AggregateError([apiError(429)])]) }),
    ],
  ] as const)('%s', ([, error]) => {
    expect(kindOf(error)).toBe('passing');
  });
});

describe('an error that a person must look at (waiting 27)', () => {
  test.for([401, 402, 403, 404])('status %i', (status) => {
    expect(kindOf({ statusCode: status })).toBe('blocked');
    expect(kindOf(new ModelError('failed', { cause: apiError(status) }))).toBe('blocked');
    expect(kindOf(apiError(status, { cause: withCode('ECONNRESET') }))).toBe('blocked');
    expect(kindOf(retryError([apiError(status)], 'errorNotRetryable'))).toBe('blocked');
  });

  test('a host that does not exist, though the provider package says that it may pass', () => {
    const wrong = withCode('ENOTFOUND');
    expect(kindOf(apiError(undefined, { isRetryable: true, cause: wrong }))).toBe('blocked');
    expect(kindOf(new TypeError('fetch failed', { cause: wrong }))).toBe('blocked');
    expect(kindOf(new AggregateError([wrong, apiError(400)]))).toBe('blocked');
  });

  test('a key that an error within a stream refuses', () => {
    expect(kindOf({ type: 'authentication_error' })).toBe('blocked');
  });
});

describe('a process without a key or a setting of its provider (waiting 27)', () => {
  const noKey = new LoadAPIKeyError({ message: 'no key' });
  const noSetting = new LoadSettingError({ message: 'no region' });

  test.for([
    ['a key', noKey],
    ['a setting', noSetting],
    ['behind the error of the call', new ModelError('x', { cause: noKey })],
    ['as plain data', toErrorData(new ModelError('x', { cause: noKey }))],
    ['in each model of a list', new ModelError('x', { cause: new AggregateError([noKey, noSetting]) })],
  ] as const)('%s: the setup failed, and the provider is not to blame', ([, error]) => {
    expect(isSetupFailure(error)).toBe(true);
    expect(kindOf(error)).toBe('blocked');
  });

  test.for([
    ['one model of a list', new AggregateError([noKey, apiError(503)])],
    ['a key that the provider refuses', apiError(401)],
    ['a group without members', new AggregateError([])],
    ['nothing', undefined],
  ] as const)('%s: no failure of the setup', ([, error]) => {
    expect(isSetupFailure(error)).toBe(false);
  });
});

const unreadable = new Proxy(
  {},
  {
    get: () => {
      throw new Error('get');
    },
  },
);
const revoked = Proxy.revocable([], {});
revoked.revoke();
const itsOwnCause: { cause?: unknown } = {};
itsOwnCause.cause = itsOwnCause;
const itsOwnMember: { errors: unknown[] } = { errors: [] };
itsOwnMember.errors.push(itsOwnMember, itsOwnMember);
const itsOwnData: { data?: unknown } = {};
itsOwnData.data = itsOwnData;
const endless = (): unknown =>
  Object.create(null, { cause: { get: endless }, errors: { get: () => Array.from({ length: 9 }, endless) } });
const chainOf = (length: number, last: unknown): unknown =>
  Array.from({ length }).reduce((cause: unknown) => ({ cause }), last);

describe('a refusal of the request (edges 5)', () => {
  test.for([400, 413, 414, 415, 422, 431])('status %i', (status) => {
    expect(kindOf({ statusCode: status })).toBe('final');
    expect(kindOf(new ModelError('failed', { cause: apiError(status) }))).toBe('final');
    expect(kindOf(apiError(status, { cause: withCode('ECONNRESET') }))).toBe('final');
  });

  test.for([
    ['what the host says is', Object.assign(new Error('x'), { isRetryable: false })],
    ['an error of Pawl that is not the model', new BudgetExceededError('x', { cause: apiError(503) })],
    ['the same behind an error of a middleware', new Error('x', { cause: new BudgetExceededError('quota') })],
    ['a port that did not answer', new PortTimeoutError('x', { cause: withCode('ETIMEDOUT') })],
    ['a reply that is too large', new ReplyTooLargeError('x')],
    ['a shutdown', new ShutdownError('x')],
    ...[
      'AI_UnsupportedFunctionalityError',
      'AI_InvalidPromptError',
      'AI_InvalidArgumentError',
      'AI_MessageConversionError',
      'AI_InvalidMessageRoleError',
    ].map((name) => [name, { name, message: 'quota' }] as const),
    ['the type of an error within a stream', { type: 'invalid_request_error', message: 'x' }],
    ['the same as the package wraps it', new ModelError('x', { cause: { data: { type: 'invalid_request_error' } } })],
    ['a class of another vendor', { type: 'BadRequestError', message: 'not multimodal' }],
    ['a number within a stream', { code: 400, message: 'not multimodal' }],
    ['a number as text', { code: ' 422 ', message: 'x' }],
    ['a number in the data of a vendor', new ModelError('x', { cause: { data: { error: { code: 400 } } } })],
    ['an error as text', new ModelError('x', { cause: { data: { error: 'Invalid argument: tools' } } })],
  ] as const)('%s', ([, error]) => {
    expect(kindOf(error)).toBe('final');
  });

  test('a mark of the AI SDK is a default, and says nothing', () => {
    expect(kindOf(apiError(undefined, { isRetryable: false }))).toBe('passing');
    const marker = { [Symbol.for('vercel.ai.gateway.error')]: true };
    expect(kindOf(Object.assign(new Error('x'), { ...marker, isRetryable: false, statusCode: 200 }))).toBe('passing');
  });
});

describe('an error that says nothing Pawl knows may pass (edges 5)', () => {
  test.for([405, 406, 407, 410, 412, 421, 423, 424, 426, 428, 451, 498, 499])('status %i', (status) => {
    expect(kindOf({ statusCode: status })).toBe('passing');
    expect(kindOf(new ModelError('failed', { cause: apiError(status) }))).toBe('passing');
  });

  test.for([
    ['an abort of the provider', Object.assign(withCode('EPIPE'), { name: 'AbortError' })],
    ['an unknown error', new ModelError('x', { cause: new Error('x') })],
    ['an unknown code', withCode('ERR_INVALID_URL')],
    ['a number that is no status', { code: 20, statusCode: '500' }],
    ['a number above all statuses', { code: 10_054 }],
    ['a value that is not JSON in an answer', new ModelError('x', { cause: new NotJsonError('x') })],
    ['a word of a vendor for a crowd', { type: 'upstream_error', code: 'stream_read_error', message: 'at capacity' }],
    ['a number as text', { code: '429', message: 'slow down' }],
    ['an answer in another form', { name: 'AI_TypeValidationError', message: 'Value: {"billing":"quota"}' }],
    ['a name that objects have', { type: 'constructor', code: 'toString' }],
    ['null', null],
    ['a string', '529'],
    ['a group without members', new AggregateError([])],
    ['an error that is its own cause', itsOwnCause],
    ['an error that is its own member', itsOwnMember],
    ['an error with ever new causes and members', endless()],
    ['a cause far below the error', chainOf(10_000, { statusCode: 503 })],
    ['a proxy that refuses everything', unreadable],
    ['a group whose list cannot be read', { errors: revoked.proxy, lastError: revoked.proxy }],
    ['a group that says it is endless', { errors: { length: 1e12 } }],
    ['a group whose length is no number', { errors: { length: unreadable } }],
    ['a data that is its own data', itsOwnData],
  ] as const)('%s', ([, error]) => {
    expect(kindOf(error)).toBe('passing');
  });

  test.for([
    ['a bug of a host', new TypeError('x is not a function')],
    ['the same behind the error of a middleware', new Error('x', { cause: new ReferenceError('y') })],
    ['a wrong call of fetch', withCode('UND_ERR_INVALID_ARG')],
  ] as const)('%s says so', ([, error]) => {
    expect(judge(error)).toEqual({ kind: 'passing', isBug: true });
  });

  test('the failures of fetch are no bug, in any runtime', () => {
    for (const message of ['fetch failed', 'Load failed', 'error sending request for url (http://x)', 'terminated'])
      expect(judge(new TypeError(message))).toEqual({ kind: 'passing' });
    expect(judge(new TypeError('x', { cause: withCode('ECONNRESET') }))).toEqual({ kind: 'passing' });
  });

  test('no error is looked through at length', () => {
    let reads = 0;
    const counted = (): unknown =>
      new Proxy(
        {},
        {
          get: (_, key) => {
            reads += 1;
            if (key === 'errors') return Array.from({ length: 1_000 }, counted);
            return key === 'cause' ? counted() : undefined;
          },
        },
      );
    expect(kindOf(counted())).toBe('passing');
    expect(reads).toBeLessThan(5_000);
  });
});

describe('the words of an account (edges 5)', () => {
  const refused = (status: number, message: string, extra: object = {}) =>
    new ModelError('x', { cause: Object.assign(apiError(status), { message, ...extra }) });

  test.for([
    'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade.',
    'You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.',
    'You exceeded your current quota, please check your plan.',
    'API key not valid. Please pass a valid API key.',
    'API key expired. Please renew the API key.',
    'User location is not supported for the API use.',
    'Country, region, or territory not supported',
    'The caller does not have permission',
    'Payment required',
    'This organization has been disabled.',
    'The model `gpt-0` does not exist or you do not have access to it.',
    "Error code: 400 - {'error': {'message': 'Your credit is used up', 'type': 'x'}}",
  ])('count before the number: %s', (message) => {
    expect(kindOf(refused(400, message))).toBe('blocked');
    expect(kindOf(refused(503, message))).toBe('blocked');
    expect(kindOf({ error: { message } })).toBe('blocked');
    expect(kindOf(new Error('the gateway failed', { cause: { data: { error: message } } }))).toBe('blocked');
    expect(kindOf({ statusCode: 400, responseBody: JSON.stringify({ detail: message }) })).toBe('blocked');
  });

  test.for(['insufficient_quota', 'billing_error', 'InsufficientCredits', 'permission_denied', 'PERMISSION_DENIED'])(
    'as a label: %s',
    (word) => {
      expect(kindOf({ type: word, message: 'x' })).toBe('blocked');
      expect(kindOf({ code: word, statusCode: 400 })).toBe('blocked');
      expect(kindOf(refused(429, 'x', { data: { error: { code: word } } }))).toBe('blocked');
    },
  );

  test('are not those of the request that an error quotes', () => {
    const quoted = [
      'messages.0: "what is my billing quota?" is not supported',
      "Invalid value: 'My credit card was declined'. Supported values are: 'text'.",
      'Unterminated {"content": "the payment"}',
    ];
    for (const message of quoted) expect(kindOf(refused(400, message))).toBe('final');
    const requestBodyValues = { messages: [{ content: 'billing quota' }] };
    expect(kindOf(refused(400, 'x', { requestBodyValues }))).toBe('final');
    const responseBody = '{"error":{"message":"bad","input":"billing quota"}}';
    expect(kindOf(refused(400, 'x', { responseBody }))).toBe('final');
  });

  test('mean a rate limit where a 429 says when to come again', () => {
    const message = 'You exceeded your current quota. Quota exceeded for requests per minute. Please retry in 34s.';
    expect(kindOf(refused(429, message))).toBe('passing');
    expect(judge(refused(429, 'quota', { responseHeaders: { 'retry-after': '7' } }))).toEqual({
      kind: 'passing',
      retryAfterMs: 7_000,
    });
    const data = { error: { code: 429, message: 'quota', details: [{}, { retryDelay: '34.5s' }] } };
    expect(judge(refused(429, 'quota', { data }))).toEqual({ kind: 'passing', retryAfterMs: 34_500 });
    const body = { responseBody: '[{"error":{"message":"no quota is left"}}]' };
    expect(kindOf(refused(429, 'Too Many Requests', body))).toBe('blocked');
  });

  test('are looked for in a bounded part of a text, in linear time', () => {
    const long = `${'"'.repeat(50_000)}${"a' '".repeat(50_000)}`;
    const errors = Array.from({ length: 16 }, () => ({ message: long, data: { message: long, error: long } }));
    expect(kindOf(new AggregateError(errors))).toBe('passing');
  });
});

describe('the status of a failure (edges 5)', () => {
  test('is the number of the response, or the one in its place', () => {
    expect(statusOfError(new ModelError('x', { cause: apiError(503) }))).toBe(503);
    expect(statusOfError({ data: { error: { code: '429' } } })).toBe(429);
    expect(statusOfError(new Error('x'))).toBeUndefined();
    expect(statusOfError(unreadable)).toBeUndefined();
  });
});

test('a conversation that is too long is distinguished from other refusals (edges 8)', () => {
  const isLong = (error: unknown) => isTooLong(error, { now: () => noon });
  const message = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.";
  expect(isLong(new ModelError('x', { cause: Object.assign(apiError(400), { message }) }))).toBe(true);
  expect(isLong({ code: 'context_length_exceeded' })).toBe(true);
  expect(isLong({ statusCode: 400, message: 'prompt is too long: 208310 tokens > 200000 maximum' })).toBe(true);
  expect(isLong({ statusCode: 429, message: 'prompt is too long' })).toBe(false);
  expect(isLong(apiError(400))).toBe(false);
});

describe('the time that a provider asks for (waiting 28)', () => {
  const asked = (responseHeaders: Record<string, string>) => judge(apiError(429, { responseHeaders })).retryAfterMs;

  test('is in seconds, a date, or in milliseconds, which are more exact', () => {
    expect(asked({ 'retry-after': '7' })).toBe(7_000);
    expect(asked({ 'retry-after': '1.5' })).toBe(1_500);
    expect(asked({ 'retry-after': new Date(noon + 9_000).toUTCString() })).toBe(9_000);
    expect(asked({ 'retry-after': new Date(noon - 9_000).toUTCString() })).toBe(0);
    expect(asked({ 'retry-after-ms': '250', 'retry-after': '1' })).toBe(250);
    expect(asked({ 'retry-after': 'soon', 'retry-after-ms': '-4' })).toBeUndefined();
    expect(asked({})).toBeUndefined();
  });

  test('is found in causes, in retries of the AI SDK and in groups', () => {
    const error = apiError(429, { responseHeaders: { 'retry-after': '7' } });
    for (const around of [
      new ModelError('x', { cause: error }),
      retryError([apiError(503), error]),
      new AggregateError([apiError(400), error]),
      new ModelError('x', { cause: new AggregateError([retryError([error])]) }),
    ])
      expect(judge(around)).toEqual({ kind: 'passing', retryAfterMs: 7_000 });
  });

  test('counts for a blocked model too, and for no final error', () => {
    const responseHeaders = { 'retry-after': '7' };
    expect(judge(apiError(403, { responseHeaders }))).toEqual({ kind: 'blocked', retryAfterMs: 7_000 });
    expect(judge(apiError(400, { responseHeaders }))).toEqual({ kind: 'final' });
  });

  test('is a finite number for any header', () => {
    expect(asked({ 'retry-after': '9'.repeat(400) })).toBe(Number.MAX_SAFE_INTEGER);
    const headers = { 'retry-after': 9, 'retry-after-ms': unreadable };
    expect(judge({ statusCode: 429, responseHeaders: headers })).toEqual({ kind: 'passing' });
    expect(judge({ statusCode: 429, responseHeaders: unreadable })).toEqual({ kind: 'passing' });
  });
});
