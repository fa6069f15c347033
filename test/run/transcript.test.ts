import { inspect } from 'node:util';
import fc from 'fast-check';
import type { Message } from 'pawl';
import { describe, expect, test } from 'vitest';
import { Transcript } from '../../src/run/transcript.ts';
import { dropEncoding, encodeMessage, enterMessage, enterStored, sizeOfMessage } from '../../src/values/message.ts';
import { said } from '../fixtures/states.ts';

const calling = (...ids: string[]): Message =>
  enterMessage({
    role: 'assistant',
    content: ids.map((toolCallId) => ({ type: 'tool-call', toolCallId, toolName: 'x', input: {} })),
  });
const texts = (transcript: Transcript) =>
  transcript.slice().map(({ content }) => (content as unknown as [{ text: string }])[0].text);

describe('a transcript', () => {
  test('is a value: appending gives a new view, and the old one stays as it was', () => {
    const empty = Transcript.of([]);
    const one = empty.append(said('a'));
    const two = one.append(said('b'), said('c'));
    expect([empty.length, one.length, two.length]).toEqual([0, 1, 3]);
    expect(texts(one)).toEqual(['a']);
    expect(texts(two)).toEqual(['a', 'b', 'c']);
  });

  test('appended to twice from one view gives two that know nothing of each other', () => {
    const base = Transcript.of([said('a')]);
    const left = base.append(said('left'));
    const right = base.append(said('right'), calling('right-call'));
    const leftMore = left.append(said('left more'));
    expect(texts(leftMore)).toEqual(['a', 'left', 'left more']);
    expect(texts(right).slice(0, 2)).toEqual(['a', 'right']);
    expect(leftMore.hasCallId('right-call')).toBe(false);
    expect(base.length).toBe(1);
  });

  test('two empty ones share nothing', () => {
    const first = Transcript.of([]).append(said('a'));
    expect(Transcript.of([]).length).toBe(0);
    expect(texts(Transcript.of([]).append(said('b')))).toEqual(['b']);
    expect(texts(first)).toEqual(['a']);
  });

  test('behaves as a list does after any appends to any of its views', () => {
    const steps = fc.array(
      fc.record({ view: fc.nat(), texts: fc.array(fc.string({ maxLength: 3 }), { maxLength: 3 }) }),
      { maxLength: 20 },
    );
    fc.assert(
      fc.property(steps, (all) => {
        const views: [Transcript, string[]][] = [[Transcript.of([]), []]];
        for (const { view, texts: added } of all) {
          const [transcript, list] = views[view % views.length] as [Transcript, string[]];
          views.push([transcript.append(...added.map(said)), [...list, ...added]]);
        }
        for (const [transcript, list] of views) {
          expect(texts(transcript)).toEqual(list);
          expect(transcript.length).toBe(list.length);
          expect(transcript.size).toBe(
            Buffer.byteLength(
              transcript
                .slice()
                .map((message) => JSON.stringify(message))
                .join(''),
            ),
          );
          expect(transcript.at(-1)).toEqual(transcript.slice().at(-1));
          expect(transcript.at(0)).toEqual(transcript.slice()[0]);
        }
      }),
    );
  });

  test('finds messages from both ends, and nothing outside', () => {
    const three = Transcript.of([said('a'), said('b'), said('c')]);
    expect([three.at(0), three.at(2), three.at(-1), three.at(-3)]).toEqual([
      said('a'),
      said('c'),
      said('c'),
      said('a'),
    ]);
    expect([three.at(3), three.at(-4), Transcript.of([]).at(-1)]).toEqual([undefined, undefined, undefined]);
    expect(three.slice(1)).toEqual([said('b'), said('c')]);
  });

  test('does not show what was appended to a newer view', () => {
    const old = Transcript.of([said('a')]);
    old.append(said('b'));
    expect(old.at(1)).toBeUndefined();
    expect(old.slice()).toHaveLength(1);
    expect(old.size).toBe(Buffer.byteLength(JSON.stringify(said('a'))));
  });

  test('knows the tool calls and the URLs of its own messages, and none of a newer view', () => {
    const url = { type: 'url', url: 'https://example.com/a.png' };
    const image = { role: 'user', content: [{ type: 'file', mediaType: 'image/png', data: url }] };
    const old = Transcript.of([calling('a')]);
    const newer = old.append(calling('b', 'a'), enterMessage(image));
    expect([old.hasCallId('a'), old.hasCallId('b'), old.hasUrls]).toEqual([true, false, false]);
    expect([newer.hasCallId('a'), newer.hasCallId('b'), newer.hasUrls]).toEqual([true, true, true]);
    // A copy of the older view, made because the newer one has gone ahead.
    const other = old.append(said('c'));
    expect([other.hasCallId('a'), other.hasCallId('b'), other.hasUrls]).toEqual([true, false, false]);
  });

  test('gives a summary to code that prints or encodes it, and keeps the conversation to itself', () => {
    const transcript = Transcript.of([said('a secret')]);
    expect(JSON.stringify({ transcript })).not.toContain('secret');
    expect(JSON.parse(JSON.stringify(transcript))).toEqual({ messages: 1, size: transcript.size });
    expect(inspect({ transcript }, { depth: 9, showHidden: true })).not.toContain('secret');
    expect(Object.keys(transcript)).toEqual(['length']);
  });

  test('grows without copying: ten thousand appends take no longer a piece at the end than at the start', () => {
    // The time of the quickest of some pieces: others take the machine away at times, but not in each of them.
    const time = (transcript: Transcript, pieces: number): [Transcript, number] => {
      let [grown, least] = [transcript, Number.POSITIVE_INFINITY];
      for (let piece = 0; piece < pieces; piece++) {
        const begun = performance.now();
        for (let i = 0; i < 500; i++) grown = grown.append(said('x'));
        least = Math.min(least, performance.now() - begun);
      }
      return [grown, least];
    };
    const [first, early] = time(Transcript.of([said('x')]), 10);
    const [longer] = time(first, 40);
    const [, late] = time(longer, 10);
    expect(late).toBeLessThan(10 * early + 5);
  });
});

describe('a message that enters', () => {
  test('is copied, deep-frozen and encoded once', () => {
    const given = { role: 'user', content: [{ type: 'text', text: 'a', providerOptions: { x: { y: [1] } } }] };
    const entered = enterMessage(given);
    given.content.length = 0;
    expect(entered).toEqual({
      role: 'user',
      content: [{ type: 'text', text: 'a', providerOptions: { x: { y: [1] } } }],
    });
    expect(() => Object.assign(entered.content[0] as object, { text: 'b' })).toThrow(TypeError);
    expect(enterMessage(entered)).toBe(entered);
  });

  test.for([
    ['text', 'spoiled'],
    ['a number', 7],
    ['nothing', null],
    ['a list', [{ role: 'user' }]],
  ] as const)('%s is refused: it is no message (checkpoint 11)', ([, value]) => {
    expect(() => enterMessage(value, 'messages[3]')).toThrow(
      expect.objectContaining({ code: 'NOT_JSON', message: expect.stringMatching(/^messages\[3\] is not a message/) }),
    );
  });

  test('is encoded and measured as JSON.stringify does, also after its text was dropped', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const message = enterMessage({
          role: 'user',
          content: [{ type: 'text', text: 'x', providerOptions: { x: value } }],
        });
        const text = JSON.stringify(message);
        const stored = enterStored(JSON.parse(text) as Message);
        for (const each of [message, stored]) {
          expect(encodeMessage(each)).toBe(text);
          dropEncoding(each);
          expect(sizeOfMessage(each)).toBe(Buffer.byteLength(text));
          expect(encodeMessage(each)).toBe(text);
        }
      }),
    );
  });

  test('read from a store is frozen and taken as it is', () => {
    const parsed = JSON.parse('{"role":"user","content":[{"type":"text","text":"a"}]}') as Message;
    expect(enterStored(parsed)).toBe(parsed);
    expect(Object.isFrozen(parsed.content[0])).toBe(true);
    expect(enterMessage(parsed)).toBe(parsed);
  });
});
