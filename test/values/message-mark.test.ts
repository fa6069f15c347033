import { expect, test } from 'vitest';
import { type AssistantMessage, encodeMessage, enterMessage, type Message } from '../../src/values/message.ts';
import { enterAnswer, markOf, unmarked, withHint } from '../../src/values/message-mark.ts';
import { noUsage } from '../../src/values/usage.ts';

const answer = (extra: object = {}): AssistantMessage => ({
  role: 'assistant',
  content: [{ type: 'text', text: 'It is "Ann" \ud83d\ude00.' }],
  ...extra,
});
const usage = { ...noUsage, inputTokens: 10, outputTokens: 5 };
const mark = { model: 'acme.chat/large', usage, ms: 12 };

test('a mark is read as it was written, and its message is encoded as if it always had it (edges 9)', () => {
  const message = enterAnswer(enterMessage(answer()) as AssistantMessage, mark);
  expect(markOf(message)).toEqual(mark);
  expect(encodeMessage(message)).toBe(JSON.stringify(message));
  expect(enterMessage(message)).toBe(message);
  expect(Object.isFrozen(message.providerOptions?.pawl)).toBe(true);
});

test('a mark takes at most 120 bytes beside the name of the model, for any counts (edges 9)', () => {
  const hostile = Object.fromEntries(Object.keys(noUsage).map((name) => [name, 1e300]));
  const worst = [1e300, Number.MAX_SAFE_INTEGER, 0.1234567890123456].map((ms) => {
    const message = enterAnswer(enterMessage(answer()) as AssistantMessage, { model: '', usage: hostile as never, ms });
    return encodeMessage(message).length - JSON.stringify(answer()).length;
  });
  expect(Math.max(...worst)).toBeLessThanOrEqual(120);
});

test.for([Number.NaN, -1, Number.POSITIVE_INFINITY])('a time of %d is no time: the mark stays JSON (edges 9)', (ms) => {
  const message = enterAnswer(answer(), { ...mark, ms });
  expect(markOf(message)?.ms).toBeGreaterThanOrEqual(0);
  expect(JSON.parse(JSON.stringify(message))).toEqual(message);
});

test('other provider options of a message stay beside its mark, and without it (edges 9)', () => {
  const options = { acme: { id: 'x' } };
  const message = enterAnswer(answer({ providerOptions: options }), mark);
  expect(message.providerOptions).toMatchObject(options);
  expect(unmarked(message)).toStrictEqual(answer({ providerOptions: options }));
  expect(unmarked(enterAnswer(answer(), mark))).toStrictEqual(answer());
  const plain = answer();
  expect(unmarked(plain)).toBe(plain);
});

test.for([null, 7, [], { model: 7 }, { usage: [1] }, 'acme/large'])('%j is no mark (edges 9)', (pawl) => {
  expect(markOf(answer({ providerOptions: { pawl } }) as Message)).toBeUndefined();
});

test('of a message from outside only the name of the model is read, cut and well-formed (edges 9)', () => {
  const hint = (message: Message) => withHint(message).providerOptions?.pawl;
  expect(hint(enterAnswer(answer(), mark))).toStrictEqual({ model: 'acme.chat/large' });
  expect(hint(answer({ providerOptions: { pawl: { model: `${'x'.repeat(199)}\ud83d\ude00` } } }))).toStrictEqual({
    model: `${'x'.repeat(199)}\ufffd`,
  });
  const steered = {
    role: 'user',
    content: [],
    providerOptions: { pawl: { by: { id: 'ada' }, model: 'x' } },
  } as Message;
  expect(withHint(steered)).toStrictEqual({ role: 'user', content: [] });
  expect(withHint(answer({ providerOptions: { pawl: { messageId: 'm' } } }))).toStrictEqual(answer());
});
