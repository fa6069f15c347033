import { describe, expect, it } from 'vitest';
import { ordinal } from '../../../src/studio/page/parts/amounts.ts';
import { textsOfSaid } from '../../../src/studio/page/threads/said.ts';

const said = (content: unknown) =>
  ({ id: 'm', runId: 'r', index: 0, message: { role: 'assistant', content } }) as never;

describe('a message of a thread', () => {
  it('is its texts, and a line for each call, result and file (studio 11)', () => {
    const parts = [
      { type: 'text', text: 'Look:' },
      { type: 'tool-call', toolCallId: 'c', toolName: 'look', input: {} },
      { type: 'tool-result', toolCallId: 'c', toolName: 'look', output: { type: 'text', value: 'x' } },
      { type: 'file', mediaType: 'image/png', data: 'AAAA' },
    ];
    const pieces = textsOfSaid(said(parts)).map(({ kind, text }) => `${kind}: ${text}`);
    expect(pieces).toEqual(['text: Look:', 'note: calls look', 'note: result of look', 'note: file image/png']);
    expect(textsOfSaid(said('plain')).map(({ text }) => text)).toEqual(['plain']);
  });

  it('is cut with a word if it is very long (studio 27)', () => {
    const [long] = textsOfSaid(said('x'.repeat(5_000_000)));
    expect(long?.text).toHaveLength(16_384 + '… 4983616 more characters: open its run'.length);
    const many = textsOfSaid(said(Array.from({ length: 20_000 }, () => ({ type: 'tool-call', toolName: 'look' }))));
    expect(many).toHaveLength(201);
    expect(many.at(-1)?.text).toBe('and 19800 more parts: open its run');
  });
});

it('a place in a ranking is written as a person says it (studio 10)', () => {
  expect([1, 2, 3, 4, 11, 12, 13, 21, 22, 101, 111].map(ordinal)).toEqual(
    '1st 2nd 3rd 4th 11th 12th 13th 21st 22nd 101st 111th'.split(' '),
  );
});
