import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { callModel } from '../../src/model/call.ts';
import type { ReplyPiece } from '../../src/model/reply-pieces.ts';
import type { ModelReply } from '../../src/run/reply.ts';
import { finish, requestOf, streaming, text } from './fake-model.ts';
import { shownBy } from './shown-pieces.ts';

async function piecesOf(
  ...parts: unknown[]
): Promise<{ pieces: ReplyPiece[]; content: ModelReply['message']['content'] }> {
  const pieces: ReplyPiece[] = [];
  const request = requestOf({ onPiece: (piece) => void pieces.push(piece) });
  const { message } = await callModel(streaming(...parts, finish), request);
  return { pieces, content: message.content };
}

const input = (id: string, ...deltas: unknown[]) => [
  { type: 'tool-input-start', id, toolName: 'look' },
  ...deltas.map((delta) => ({ type: 'tool-input-delta', id, delta })),
];
const call = (id: string, args: string) => ({ type: 'tool-call', toolCallId: id, toolName: 'look', input: args });

/** The texts of a message by block; the arguments of calls as their JSON text. */
const textsOf = (content: ModelReply['message']['content']) =>
  content.map((part) =>
    'text' in part ? part.text : part.type === 'tool-call' ? JSON.stringify(part.input) : undefined,
  );

describe('the pieces of a reply', () => {
  test('name the index of their part in the message, and where in its text they begin', async () => {
    const { pieces, content } = await piecesOf(
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: '😀' },
      { type: 'reasoning-delta', id: 'r', delta: 'hm' },
      { type: 'reasoning-end', id: 'r' },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'aGk=' } },
      ...text('answer'),
      ...input('c', '{"a"', ':1}'),
      call('c', '{"a":1}'),
    );
    expect(pieces).toEqual([
      { type: 'reasoning', block: 0, offset: 0, text: '😀' },
      { type: 'reasoning', block: 0, offset: 2, text: 'hm' },
      { type: 'end', block: 0 },
      { type: 'file', block: 1, mediaType: 'image/png' },
      { type: 'text', block: 2, offset: 0, text: 'answer' },
      { type: 'end', block: 2 },
      { type: 'tool-input', block: 3, offset: 0, callId: 'c', name: 'look', text: '{"a"' },
      { type: 'tool-input', block: 3, offset: 4, callId: 'c', name: 'look', text: ':1}' },
      { type: 'end', block: 3 },
    ]);
    expect(content.map(({ type }) => type)).toEqual(['reasoning', 'file', 'text', 'tool-call']);
  });

  test('of interleaved calls belong each to its own block', async () => {
    const { pieces, content } = await piecesOf(
      ...input('a', '{"n":'),
      ...input('b', '{"n"'),
      { type: 'tool-input-delta', id: 'a', delta: '1}' },
      { type: 'tool-input-delta', id: 'b', delta: ':2}' },
      call('b', '{"n":2}'),
      call('a', '{"n":1}'),
    );
    expect(shownBy(pieces)).toEqual(['{"n":1}', '{"n":2}']);
    expect(textsOf(content)).toEqual(['{"n":1}', '{"n":2}']);
  });

  test('do not count a block that ended without content: the message drops it', async () => {
    const { pieces, content } = await piecesOf(
      ...text('', 'e'),
      ...text('one', 'a'),
      ...text('', 'f'),
      ...text('two', 'b'),
    );
    expect(content).toHaveLength(2);
    expect(shownBy(pieces)).toEqual(['one', 'two']);
    expect(pieces.some(({ type }) => type === 'void')).toBe(false);
  });

  test('are void when a block that was open before them stayed empty', async () => {
    const { pieces, content } = await piecesOf(
      { type: 'text-start', id: 't' },
      { type: 'reasoning-delta', id: 'r', delta: 'hm' },
      { type: 'text-end', id: 't' },
    );
    expect(content).toMatchObject([{ type: 'reasoning' }]);
    expect(pieces).toEqual([{ type: 'reasoning', block: 1, offset: 0, text: 'hm' }, { type: 'void' }]);
  });

  test('are void when a block had already been taken for empty', async () => {
    const { pieces } = await piecesOf(...text('', 'e'), ...text('one', 'a'), {
      type: 'text-delta',
      id: 'e',
      delta: 'late',
    });
    expect(pieces.at(-1)).toEqual({ type: 'void' });
  });

  test('come as well for calls that were never announced, and never with a control character in a name that is no tool name (edges 9)', async () => {
    const { pieces } = await piecesOf(
      { type: 'tool-input-delta', id: 'x', delta: '{}' },
      call('x', '{}'),
      { type: 'tool-input-start', id: 'y', toolName: 'rm -rf /\u001b[2J' },
      { type: 'tool-input-delta', id: 'y', delta: '{}' },
      { ...call('y', '{}'), toolName: 'rm -rf /\u001b[2J' },
    );
    expect(pieces.flatMap((piece) => ('name' in piece ? [piece.name] : []))).toEqual(['unknown', 'rm -rf /\ufffd[2J']);
  });

  test('are no pieces that are not text: such deltas are skipped', async () => {
    const { pieces } = await piecesOf(
      { type: 'text-start', id: 't' },
      ...[undefined, null, 7, { a: 1 }, ''].map((delta) => ({ type: 'text-delta', id: 't', delta })),
      ...input('c', undefined, 3, ''),
      call('c', '{}'),
    );
    expect(pieces).toEqual([]);
  });

  test('have the sources that a page can show, without their metadata', async () => {
    const url = { type: 'source', sourceType: 'url', id: 's1', url: 'https://a.example' };
    const document = { type: 'source', sourceType: 'document', id: 's2', mediaType: 'text/plain', title: 'T' };
    const { pieces } = await piecesOf(
      { ...url, title: 'A', providerMetadata: { a: { b: 1 } } },
      { ...document, filename: 'a.txt' },
      { ...url, title: 7 },
      { ...url, url: 7 },
      { ...url, url: `https://a.example/${'x'.repeat(9_000)}` },
      { ...document, title: undefined },
      { ...document, sourceType: 'other' },
      ...text('hi'),
    );
    expect(pieces.flatMap((piece) => (piece.type === 'source' ? [piece.source] : []))).toEqual([
      { sourceType: 'url', id: 's1', url: 'https://a.example', title: 'A' },
      { sourceType: 'document', id: 's2', mediaType: 'text/plain', title: 'T', filename: 'a.txt' },
      { sourceType: 'url', id: 's1', url: 'https://a.example' },
    ]);
  });

  const id = fc.constantFrom('a', 'b', 'c');
  const delta = fc.constantFrom('', 'x', 'yz');
  const kind = fc.constantFrom('text', 'reasoning');
  const part = fc.oneof(
    fc.record({ type: kind.map((of) => `${of}-start`), id }),
    fc.record({ type: kind.map((of) => `${of}-delta`), id, delta }),
    fc.record({ type: kind.map((of) => `${of}-end`), id }),
    fc.record({ type: fc.constant('tool-input-start'), id, toolName: fc.constant('look') }),
    fc.record({ type: fc.constant('tool-input-delta'), id, delta }),
    fc.constant({ type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'aGk=' } }),
  );

  test('are the text of the message, or void, in whichever order a provider sends its parts', async () => {
    let valid = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 12 }), async (parts) => {
        const ends = ['a', 'b', 'c'].map((each) => call(each, '"end"'));
        const { pieces, content } = await piecesOf(...parts, ...ends);
        if (pieces.some(({ type }) => type === 'void')) return;
        valid += 1;
        const shown = shownBy(pieces);
        for (const [block, each] of content.entries()) {
          if ('text' in each) expect(shown[block] ?? '').toBe(each.text);
          else if (each.type === 'file') expect(pieces).toContainEqual({ type: 'file', block, mediaType: 'image/png' });
        }
        expect(shown.length).toBeLessThanOrEqual(content.length);
      }),
      { numRuns: 300, seed: 16 },
    );
    expect(valid).toBeGreaterThan(150);
  });

  test('of thousands of interleaved blocks take time in proportion to their number', async () => {
    const count = 5_000;
    const blocks = Array.from({ length: count }, (_, i) => ({ type: 'text-delta', id: `${i}`, delta: 'x' }));
    const { pieces, content } = await piecesOf(...blocks, ...blocks);
    expect(content).toHaveLength(count);
    expect(shownBy(pieces)).toEqual(Array.from({ length: count }, () => 'xx'));
  });
});
