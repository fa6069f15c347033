import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { fromModelResponse, loadCheckpoint } from 'pawl/fan-out';
import { describe, expect, test } from 'vitest';
import { decodeFanOut, encodeFanOut } from '../../src/fan-out/checkpoint.ts';
import { torture } from '../crash/random.ts';
import { freshFolder } from './fresh-folder.ts';
import { answer, checkpointOf, nothing } from './sample-answers.ts';

describe('a file that is no checkpoint', () => {
  const sound = encodeFanOut(checkpointOf(fromModelResponse(answer), fromModelResponse(nothing)));
  const codeOf = (text: string): unknown => {
    try {
      decodeFanOut(text, '/some/ask.json');
      return 'none';
    } catch (error) {
      expect((error as Error).message).toContain('/some/ask.json');
      return (error as { code?: unknown }).code;
    }
  };
  const [first] = JSON.parse(sound).responses;
  const changed = (change: object) => JSON.stringify({ ...JSON.parse(sound), ...change });

  test('one that is cut at any character is refused as damaged (fan-out 3)', () => {
    for (let end = 0; end < sound.trimEnd().length; end++)
      expect(codeOf(sound.slice(0, end)), `${end}`).toBe('CHECKPOINT_CORRUPT');
    expect(codeOf(sound.trimEnd())).toBe('none');
  });

  test.for([
    ['nothing', ''],
    ['a byte order mark', `\ufeff${sound}`],
    ['zeros, as a file system may leave them', '\0'.repeat(500)],
    ['two of them', sound + sound],
    ['null', 'null'],
    ['a list', '[]'],
    ['a version that is null', changed({ version: null })],
    ['a version from before', changed({ version: 0 })],
    ['a version that is a text', changed({ version: '1' })],
  ])('%s is refused as damaged (fan-out 3)', ([, text = '']) => {
    expect(codeOf(text)).toBe('CHECKPOINT_CORRUPT');
  });

  test('each field that is missing or of a wrong type is refused as damaged (fan-out 3)', () => {
    const wrong: Readonly<Record<string, readonly unknown[]>> = {
      prompt: [undefined, null, 5, ['x']],
      timestamp: [undefined, null, true, {}, '', 'today', '2026-11-23', '2026-13-40T08:00:00Z', '1795302000000'],
      adapter_ids: [undefined, 'fast', [1], { 0: 'fast' }],
      verbose: [undefined, null, 'true', 1],
      responses: [undefined, {}, [null], [[]], ['x'], [first, first]],
      ranking: [null, [], 'fast', { order: 'fast', reason: '' }, { order: [1], reason: '' }, { order: [] }],
    };
    for (const [key, values] of Object.entries(wrong)) {
      for (const value of values)
        expect(codeOf(changed({ [key]: value })), `${key}: ${value}`).toBe('CHECKPOINT_CORRUPT');
    }
  });

  test('each field of a response that is missing or of a wrong type is refused as damaged (fan-out 3)', () => {
    const needed = ['model_id', 'latency_ms', 'input_tokens', 'output_tokens', 'cost_usd', 'interrupted', 'completed'];
    const optional = ['text', 'reasoning_tokens', 'proposed_writes', 'tool_calls', 'error', 'stop_reason', 'steps'];
    const strange = [null, { a: 'b' }, [7]];
    // A list or an object without entries may be null.
    const mayBeNull = ['proposed_writes', 'tool_calls'];
    for (const key of [...needed, ...optional]) {
      for (const value of optional.includes(key) ? strange : [...strange, undefined]) {
        if (value === null && mayBeNull.includes(key)) continue;
        const text = changed({ responses: [{ ...first, [key]: value }] });
        expect(codeOf(text), `${key}: ${JSON.stringify(value)}`).toBe('CHECKPOINT_CORRUPT');
      }
    }
  });

  test.for([{ path: undefined }, { path: 5 }, { content: null }, { delete: 'yes' }, { base: 5 }, { base: {} }])(
    'a proposed write with %j is refused as damaged (fan-out 3)',
    (change) => {
      const write = { path: 'a', content: 'b', ...change };
      expect(codeOf(changed({ responses: [{ ...first, proposed_writes: [write] }] }))).toBe('CHECKPOINT_CORRUPT');
    },
  );

  test.for([2, 1.5, 999])('version %d is refused as newer, with any other content (fan-out 3)', (version) => {
    expect(codeOf(changed({ version }))).toBe('CHECKPOINT_TOO_NEW');
    expect(codeOf(JSON.stringify({ version }))).toBe('CHECKPOINT_TOO_NEW');
  });

  test('bytes that are no UTF-8 are refused as damaged, and stay as they are (fan-out 3)', async () => {
    const path = join(freshFolder(), 'ask.json');
    const bytes = Buffer.from(sound);
    bytes[bytes.indexOf('Yes.')] = 0xff;
    writeFileSync(path, bytes);
    await expect(loadCheckpoint(path)).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' });
    expect(readFileSync(path).equals(bytes)).toBe(true);
  });

  test('what any change of one byte leaves is read as a checkpoint or refused by a code, never taken otherwise (fan-out 3)', () => {
    fc.assert(
      fc.property(fc.nat(sound.length - 1), fc.string({ unit: 'binary', maxLength: 2 }), (at, piece) => {
        const code = codeOf(sound.slice(0, at) + piece + sound.slice(at + 1));
        expect(['none', 'CHECKPOINT_CORRUPT', 'CHECKPOINT_TOO_NEW']).toContain(code);
      }),
      { numRuns: 120 * torture },
    );
  });
});
