import { describe, expect, test } from 'vitest';
import { callModel } from '../../src/model/call.ts';
import { ModelError } from '../../src/values/errors.ts';
import { finish, finishedBy, modelOf, replyOf, requestOf, streaming, text } from './fake-model.ts';

const errorOf = async (promise: Promise<unknown>) =>
  promise.then(
    () => expect.unreachable(),
    (error: ModelError) => error,
  );
const toolInput = (delta: string) => [
  { type: 'tool-input-start', id: 'c1', toolName: 'pay' },
  { type: 'tool-input-delta', id: 'c1', delta },
];
const payCall = { type: 'tool-call', toolCallId: 'c1', toolName: 'pay', input: '{}' };

describe('a stream that does not complete is a ModelError', () => {
  test.for([
    ['it closes without a finish part', text('hi'), /without a finish part/],
    ['it is empty', [], /without a finish part/],
    ['its finish reason is error', [...text('hi'), finishedBy('error')], /finish reason "error" \(why\)/],
    ['its finish reason is interrupted', [...text('hi'), finishedBy('interrupted')], /finish reason "interrupted"/],
    [
      'it reports an error',
      [...text('hi'), { type: 'error', error: new Error('overloaded') }, finish],
      /reported: overloaded/,
    ],
    ['it reports null as its error', [{ type: 'error', error: null }], /reported/],
    [
      'it asks for an approval',
      [{ type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' }, finish],
      /approvals/,
    ],
    ['a part is null', [null, finish], /model call failed/],
    ['a tool call has no name', [{ ...payCall, toolName: undefined }, finish], /without an id or a name/],
    [
      'a part holds what JSON cannot',
      [{ ...payCall, providerMetadata: { a: new Date() } }, finish],
      /providerOptions\.a is a Date/,
    ],
  ] as const)('%s', async ([, parts, message]) => {
    const error = await errorOf(replyOf(...parts));
    expect(error).toBeInstanceOf(ModelError);
    expect(error.message).toMatch(message);
  });

  test.for([
    ['without an end', toolInput('{"to":"bob","amount":1')],
    ['although they look complete', toolInput('{"to":"bob"}')],
    ['after their end', [...toolInput('{}'), { type: 'tool-input-end', id: 'c1' }]],
    ['without a start', [toolInput('{}')[1]]],
    ['of one call of two', [payCall, { type: 'tool-input-start', id: 'c2', toolName: 'pay' }]],
  ] as const)(
    'arguments that never become a call, %s: nothing of the reply is kept (executor 7)',
    async ([, parts]) => {
      const error = await errorOf(replyOf(...parts, finish));
      expect(error).toBeInstanceOf(ModelError);
      expect(error.message).toMatch(/within the arguments of call "c[12]"/);
    },
  );
});

const hostile = new Proxy(
  {},
  {
    get: () => {
      throw new Error('get');
    },
    getPrototypeOf: () => {
      throw new Error('prototype');
    },
  },
);
const throwingGetter = {
  get message() {
    throw new Error('getter');
  },
};
const throws = (thrown: unknown) => () => {
  throw thrown;
};
const rejects = (thrown: unknown) => () => Promise.reject(thrown);

describe('any value that a model throws is the cause of a ModelError (executor 1)', () => {
  test.for([
    ['an error', new Error('down')],
    ['null', null],
    ['undefined', undefined],
    ['a string', 'down'],
    ['a symbol', Symbol('down')],
    ['an object whose message getter throws', throwingGetter],
    ['a proxy that refuses everything', hostile],
  ] as const)('%s: thrown, rejected, and by its stream', async ([, thrown]) => {
    const broken = new ReadableStream({ pull: rejects(thrown) });
    for (const doStream of [throws(thrown), rejects(thrown), () => ({ stream: broken })]) {
      const error = await errorOf(callModel(modelOf(doStream), requestOf()));
      expect(error instanceof ModelError).toBe(true);
      expect(Object.hasOwn(error, 'cause') && Object.is(error.cause, thrown)).toBe(true);
    }
  });

  test('the message says what the cause said', async () => {
    const error = await errorOf(callModel(modelOf(rejects(new Error('HTTP 529'))), requestOf()));
    expect(error.message).toBe('the model call failed: HTTP 529');
  });

  test.for([undefined, null, 42, {}, { stream: null }, { stream: [] }])(
    'a doStream that gives %j has no stream',
    async (result) => {
      const error = await errorOf(
        callModel(
          modelOf(() => result),
          requestOf(),
        ),
      );
      expect(error).toBeInstanceOf(ModelError);
      expect(error.message).toMatch(/gave no stream/);
    },
  );

  test('a part whose getter throws', async () => {
    const part = {
      get type() {
        throw new Error('getter');
      },
    };
    expect(await errorOf(replyOf(part, finish))).toMatchObject({ code: 'MODEL', cause: { message: 'getter' } });
  });
});

describe('an observer of pieces', () => {
  test('gets each piece of text and reasoning in order (executor 20)', async () => {
    const heard: unknown[] = [];
    const parts = [
      { type: 'reasoning-delta', id: 'r', delta: 'why' },
      ...text('a'),
      ...text(''),
      ...text('b', '2'),
      finish,
    ];
    await callModel(streaming(...parts), requestOf({ onPiece: (piece) => heard.push(piece) }));
    expect(heard).toEqual([
      { type: 'reasoning', block: 0, offset: 0, text: 'why' },
      { type: 'text', block: 1, offset: 0, text: 'a' },
      { type: 'end', block: 1 },
      { type: 'text', block: 2, offset: 0, text: 'b' },
      { type: 'end', block: 2 },
    ]);
  });

  test('that throws changes nothing (executor 1)', async () => {
    const reply = await callModel(streaming(...text('hi'), finish), requestOf({ onPiece: throws(null) }));
    expect(reply.message.content).toEqual([{ type: 'text', text: 'hi' }]);
  });
});
