import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decodeLine,
  encodeLine,
  isIntact,
  type RawLine,
  readLastLine,
  readLineAt,
  readLines,
  splitLines,
} from '../../src/files/lines.ts';

/** Something to read from, as an open file is. */
const fileOf = (bytes: Buffer) => ({
  read: async (length: number, position: number) => bytes.subarray(position, position + length),
});

async function read(bytes: Buffer): Promise<{ lines: RawLine[]; torn: RawLine | undefined }> {
  const lines: RawLine[] = [];
  let torn: RawLine | undefined;
  for await (const batch of readLines(fileOf(bytes))) {
    lines.push(...batch.lines);
    torn = batch.torn ?? torn;
  }
  return { lines, torn };
}

const field = fc.oneof(
  fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
  fc.integer(),
);
const line = fc.record({ kind: fc.constantFrom('a', 'state'), fields: fc.array(field, { minLength: 1 }) });

describe('a checked line', () => {
  test('says what it was given, whatever text stands in its fields (recovery 4)', () => {
    fc.assert(
      fc.property(line, ({ kind, fields }) => {
        expect(decodeLine(encodeLine(kind, fields))).toEqual({ kind, fields: fields.map(String) });
      }),
    );
  });

  test('says nothing when any bit of it is flipped (recovery 6)', () => {
    const bytes = encodeLine('state', [7, JSON.stringify({ text: 'äöü 😀 \t \n', at: 1.5 })]);
    expect(decodeLine(bytes)?.fields[0]).toBe('7');
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const damaged = Buffer.from(bytes);
      damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      for (const part of splitLines(damaged)) expect(decodeLine(part.bytes), `bit ${bit}`).toBeUndefined();
    }
  });

  test('says nothing when it is cut anywhere, and is never taken for one with a damaged end (recovery 6)', () => {
    const bytes = encodeLine('state', [7, '{"iteration":1}']);
    for (let length = 0; length < bytes.length; length++) {
      const cut = bytes.subarray(0, length);
      expect([decodeLine(cut), isIntact(cut)], `${length} bytes`).toEqual([undefined, false]);
    }
    const flipped = Buffer.from(bytes);
    flipped[flipped.length - 1] = 0x0b;
    expect([decodeLine(flipped), isIntact(flipped)]).toEqual([undefined, true]);
  });
});

describe('a file of lines', () => {
  const sizes = fc.array(fc.oneof(fc.nat(40), fc.constantFrom(5_000, 262_130, 262_144, 700_000)), { maxLength: 8 });

  test('reads back line by line, long ones and a torn end too (recovery 4)', async () => {
    await fc.assert(
      fc.asyncProperty(sizes, fc.nat(30), async (all, tornLength) => {
        const written = all.map((size, i) => encodeLine('a', [i, `"${'x'.repeat(size)}"`]));
        const torn = encodeLine('a', ['"this line was never finished"']).subarray(0, tornLength);
        const bytes = Buffer.concat([...written, torn]);
        const found = await read(bytes);
        expect(found.lines.map((each) => each.bytes.length)).toEqual(written.map((each) => each.length));
        for (const [i, each] of found.lines.entries()) {
          expect(decodeLine(each.bytes)?.fields[0]).toBe(String(i));
          expect((await readLineAt(fileOf(bytes), each.at))?.equals(each.bytes)).toBe(true);
        }
        expect(found.torn?.bytes.toString() ?? '').toBe(torn.toString());
      }),
      { numRuns: 40 },
    );
  });

  test('gives its last line without the others being read, and none when its end is torn (recovery 4)', async () => {
    for (const size of [0, 10, 4_080, 5_000, 40_000]) {
      const last = encodeLine('state', [`"${'y'.repeat(size)}"`]);
      const before = encodeLine('a', [`"${'x'.repeat(100_000)}"`]);
      for (const bytes of [last, Buffer.concat([before, last])]) {
        const found = await readLastLine(fileOf(bytes), bytes.length);
        expect([found?.at, found?.bytes.equals(last)]).toEqual([bytes.length - last.length, true]);
        expect(await readLastLine(fileOf(bytes), bytes.length - 1)).toBeUndefined();
      }
    }
    expect(await readLastLine(fileOf(Buffer.alloc(0)), 0)).toBeUndefined();
    expect((await readLastLine(fileOf(Buffer.from('\n')), 1))?.bytes.toString()).toBe('\n');
  });
});
