import fc from 'fast-check';
import type { Message } from 'pawl';
import { estimateTokens } from 'pawl/stores/kit';
import { arbitraries } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { answered, said } from '../compaction/histories.ts';

const of = (content: readonly object[], role = 'assistant') =>
  estimateTokens([{ role, content } as unknown as Message]);

describe('estimateTokens', () => {
  test('is a quarter of the characters, and 4 for each message', () => {
    expect(estimateTokens([])).toBe(0);
    expect(estimateTokens([said('12345678')])).toBe(6);
    expect(estimateTokens([said('123456789'), answered('1234')])).toBe(7 + 5);
    expect(estimateTokens([{ role: 'system', content: '12345678' }])).toBe(6);
  });

  test('counts thoughts, and the JSON of calls and results', () => {
    expect(of([{ type: 'reasoning', text: '12345678' }])).toBe(6);
    const call = { type: 'tool-call', toolCallId: 'c', toolName: 'look', input: { q: 'cats' } };
    expect(of([call])).toBe(4 + 1 + Math.ceil('{"q":"cats"}'.length / 4));
    const result = (output: object) => of([{ type: 'tool-result', toolCallId: 'c', toolName: 'look', output }], 'tool');
    expect(result({ type: 'text', value: '12345678' })).toBe(6);
    expect(result({ type: 'json', value: { n: 12_345 } })).toBe(4 + 3);
    expect(result({ type: 'execution-denied', reason: '12345678' })).toBe(6);
  });

  test('takes a file for 1,000, however large it is, in a tool’s result too', () => {
    const file = { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'A'.repeat(1e6) } };
    expect(of([file], 'user')).toBe(1_004);
    const output = { type: 'content', value: [{ type: 'text', text: '12345678' }, file] };
    expect(of([{ type: 'tool-result', toolCallId: 'c', toolName: 'shoot', output }], 'tool')).toBe(1_006);
    expect(of([{ ...file, data: { type: 'text', text: '12345678' } }], 'user')).toBe(6);
  });

  test('is a number for any part of a transcript', () => {
    for (const part of [
      { type: 'custom', kind: 'x.y' },
      { type: 'text' },
      { type: 'tool-call' },
      { type: 'tool-result' },
      {},
    ])
      expect(of([part])).toBeGreaterThanOrEqual(4);
  });

  test('grows with every message, and is the sum of its parts', () => {
    fc.assert(
      fc.property(arbitraries(fc).transcript, fc.nat(20), (messages, at) => {
        const [head, tail] = [messages.slice(0, at), messages.slice(at)];
        expect(estimateTokens(head) + estimateTokens(tail)).toBe(estimateTokens(messages));
        if (tail.length > 0) expect(estimateTokens(messages)).toBeGreaterThan(estimateTokens(head));
      }),
    );
  });
});
