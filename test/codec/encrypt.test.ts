import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { encrypt } from 'pawl';
import type { Place } from 'pawl/stores/kit';
import { describe, expect, test } from 'vitest';
import { codecOf, first, keyOf, second } from './keys.ts';

const place: Place = { runId: 'run-1', part: 'head' };
const corrupt = expect.objectContaining({ code: 'CHECKPOINT_CORRUPT' });

const anyText = fc.string({ unit: 'grapheme', maxLength: 200 });
const anyPlace = fc.record({ runId: anyText, part: anyText });

describe('encrypt (recovery 11)', () => {
  test('gives back any text, at its place', () => {
    const codec = codecOf();
    fc.assert(
      fc.property(anyText, anyPlace, (text, at) => {
        expect(codec.open(codec.seal(text, at), at)).toBe(text);
      }),
    );
  });

  test('opens at no other place: not in another run, not as another part', () => {
    const codec = codecOf();
    fc.assert(
      fc.property(anyText, anyPlace, anyPlace, (text, at, other) => {
        fc.pre(at.runId !== other.runId || at.part !== other.part);
        expect(() => codec.open(codec.seal(text, at), other)).toThrow(corrupt);
      }),
    );
  });

  test('cannot be moved by ids and parts that read alike when they are joined', () => {
    const codec = codecOf();
    const sealed = codec.seal('x', { runId: 'a', part: 'b,c' });
    expect(() => codec.open(sealed, { runId: 'a","b', part: 'c' })).toThrow(corrupt);
    expect(() => codec.open(sealed, { runId: 'a,b', part: 'c' })).toThrow(corrupt);
  });

  test('gives another text each time: equal texts cannot be recognised as equal', () => {
    const codec = codecOf();
    const sealed = Array.from({ length: 1_000 }, () => codec.seal('the same', place));
    expect(new Set(sealed).size).toBe(1_000);
    const ivs = sealed.map((text) =>
      Buffer.from(text.split('.')[2] ?? '', 'base64')
        .subarray(0, 12)
        .toString('hex'),
    );
    expect(new Set(ivs).size).toBe(1_000);
  });

  test('says which key a text is sealed with, in letters that stand anywhere', () => {
    expect(codecOf().seal('x \n\u0000\ud83d\ude00', place)).toMatch(/^gcm1\.first\.[A-Za-z0-9+/]+=*$/);
  });

  test('refuses a text of which any bit has changed, was cut off or was added', () => {
    const codec = codecOf();
    const sealed = codec.seal('{"iteration":1}', place);
    const [form, id, body = ''] = sealed.split('.');
    const bytes = Buffer.from(body, 'base64');
    let refused = 0;
    const expectRefused = (changed: Buffer) => {
      expect(() => codec.open(`${form}.${id}.${changed.toString('base64')}`, place)).toThrow(corrupt);
      refused += 1;
    };
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expectRefused(changed);
    }
    for (let length = 0; length < bytes.length; length++) expectRefused(bytes.subarray(0, length));
    expectRefused(Buffer.concat([bytes, Buffer.from([0])]));
    expect(refused).toBe(bytes.length * 9 + 1);
    for (const text of ['', 'gcm1', 'gcm1.first', 'gcm2.first.AAAA', 'first.AAAA', '.first.AAAA', 'gcm1..AAAA']) {
      expect(() => codec.open(text, place)).toThrow(corrupt);
    }
  });

  test('reads what older keys sealed, and seals with the current one', () => {
    const before = codecOf().seal('old', place);
    const after = encrypt({ keys: { ...first, ...second }, current: 'second' });
    expect(after.open(before, place)).toBe('old');
    expect(after.seal('new', place)).toMatch(/^gcm1\.second\./);
  });

  test('names the key that is missing, and never shows a key', () => {
    const sealed = codecOf().seal('secret words', place);
    const other = encrypt({ keys: second, current: 'second' });
    expect(() => other.open(sealed, place)).toThrow(
      expect.objectContaining({ code: 'KEY_MISMATCH', message: expect.stringContaining('the key first,') }),
    );
  });

  test('does not take a key of one id for that of another', () => {
    const sealed = codecOf().seal('x', place);
    const both = encrypt({ keys: { first: keyOf(2), second: keyOf(1) }, current: 'second' });
    expect(() => both.open(sealed, place)).toThrow(corrupt);
    expect(() => both.open(sealed.replace('.first.', '.second.'), place)).toThrow(corrupt);
  });

  test('takes keys as bytes or as base64', () => {
    const bytes = randomBytes(32);
    const sealed = encrypt({ keys: { k: bytes }, current: 'k' }).seal('x', place);
    expect(encrypt({ keys: { k: bytes.toString('base64') }, current: 'k' }).open(sealed, place)).toBe('x');
  });

  test.for([
    ['a short key', { keys: { k: Buffer.alloc(31, 7) }, current: 'k' }],
    ['a long key', { keys: { k: Buffer.alloc(33, 7) }, current: 'k' }],
    ['an empty key, as of a missing variable', { keys: { k: '' }, current: 'k' }],
    ['a key that is no base64', { keys: { k: 'correct horse battery staple!!!' }, current: 'k' }],
    ['an id with a dot', { keys: { 'a.b': keyOf(7) }, current: 'a.b' }],
    ['an empty id', { keys: { '': keyOf(7) }, current: '' }],
    ['a current key that is not there', { keys: { k: keyOf(7) }, current: 'other' }],
    ['a current key that every object has', { keys: { k: keyOf(7) }, current: 'constructor' }],
  ] as const)('refuses %s with a TypeError, which does not show it', ([, options]) => {
    const error = thrownBy(() => encrypt(options));
    expect(error).toBeInstanceOf(TypeError);
    expect((error as Error).message).not.toMatch(/correct horse|BwcH|0707/);
  });

  const random = Buffer.from(keyOf('good'));
  const text = random.toString('base64');

  test.for([
    ['without its padding', text.slice(0, -1)],
    ['in the URL-safe alphabet', Buffer.alloc(32, 0xfb).toString('base64url')],
    ['with a line end, as of a file', `${text}\n`],
    ['with a space in it', `${text.slice(0, 20)} ${text.slice(20)}`],
    ['with characters that base64 does not have', `${text.slice(0, 20)}*${text.slice(20)}`],
    ['with text behind it', `${text}AAAA`],
    ['with other bits in its last character', `${text.slice(0, -2)}${nextCharacter(text.at(-2) ?? '')}=`],
    ['of 31 bytes', random.subarray(1).toString('base64')],
    ['of 33 bytes', Buffer.concat([random, random.subarray(0, 1)]).toString('base64')],
    ['as 64 hexadecimal digits', random.toString('hex')],
  ] as const)('refuses the base64 of a key %s, and says how to make one', ([, key]) => {
    const { message } = thrownBy(() => encrypt({ keys: { k: key }, current: 'k' })) as TypeError;
    expect(message).toMatch(/^encrypt: the key k must be 32 random bytes, or their base64 .*; make one with: node -e /);
    expect(message).not.toContain(key.slice(0, 12));
  });

  test.for([
    ['all zeros', Buffer.alloc(32), 'it is all zeros'],
    ['one byte over and over', Buffer.alloc(32, 0x9c), 'all of its bytes are the same'],
    ['a few bytes over and over', Buffer.alloc(32, random.subarray(0, 8)), 'it has only 8 different bytes'],
    ['half a key, twice', Buffer.alloc(32, random.subarray(0, 16)), 'its second half repeats the first'],
    ['bytes that count up', Buffer.from(Array.from({ length: 32 }, (_, i) => 200 + i)), 'its bytes count up or down'],
    ['a passphrase of 32 characters', Buffer.from('my Dog has 3 fleas & a cat named'), 'it is text'],
    ['a hexadecimal text of 32 digits', random.toString('hex').slice(0, 32), 'it is text'],
    ['the number 1', Buffer.from(`${'00'.repeat(31)}01`, 'hex'), 'it has only 2 different bytes'],
  ] as const)('refuses %s as a key, as bytes and as base64, and says why', ([, key, why]) => {
    const bytes = Buffer.from(key);
    for (const form of [bytes, new Uint8Array(bytes), bytes.toString('base64')]) {
      const { message } = thrownBy(() => encrypt({ keys: { k: form }, current: 'k' })) as TypeError;
      expect(message).toContain(`encrypt: the key k is not random: ${why}`);
      expect(message).toContain('randomBytes(32)');
      for (const shown of [bytes.toString(), bytes.toString('base64'), bytes.toString('hex')]) {
        expect(message).not.toContain(shown.slice(0, 12));
      }
    }
  });

  test('never refuses a key of random bytes', () => {
    for (let i = 0; i < 5_000; i++) {
      const key = randomBytes(32);
      expect(() => encrypt({ keys: { bytes: key, text: key.toString('base64') }, current: 'text' })).not.toThrow();
    }
  });

  test('a codec that is printed shows no key', () => {
    const key = Buffer.from(keyOf(1));
    const codec = codecOf({ keys: { first: key } });
    const printed = `${JSON.stringify(codec)} ${Object.values(codec).map(String).join(' ')}`;
    for (const form of ['base64', 'hex', 'latin1'] as const) expect(printed).not.toContain(key.toString(form, 0, 8));
  });
});

/** The next one in the alphabet of base64: where bits are left over, it decodes to the same bytes. */
function nextCharacter(character: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  return alphabet[alphabet.indexOf(character) + 1] ?? '';
}

function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return undefined;
}

describe('the hashes that encrypt gives for searches (web 16)', () => {
  test('are the same in all processes with the same keys, the current key first', () => {
    const both = { keys: { ...first, ...second } };
    const hash = (codec: ReturnType<typeof encrypt>, text: string, what = 'caller') => codec.lookups?.(text, what);
    const [one] = hash(encrypt({ ...both, current: 'first' }), 'ada') ?? [];
    expect(hash(encrypt({ ...both, current: 'second' }), 'ada')?.[1]).toBe(one);
    expect(hash(encrypt({ keys: first, current: 'first' }), 'ada')).toEqual([one]);
  });

  test('differ by text, by kind and by key, and say nothing of the text', () => {
    fc.assert(
      fc.property(anyText, anyText, (text, other) => {
        fc.pre(text !== other);
        const [hash = ''] = codecOf().lookups?.(text, 'caller') ?? [];
        expect(hash).toMatch(/^[\w-]{43}$/);
        expect(codecOf().lookups?.(other, 'caller')[0]).not.toBe(hash);
        expect(codecOf().lookups?.(text, 'agent')[0]).not.toBe(hash);
        expect(encrypt({ keys: second, current: 'second' }).lookups?.(text, 'caller')[0]).not.toBe(hash);
      }),
    );
  });
});
