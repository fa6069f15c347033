import { describe, expect, test } from 'vitest';
import { imagePartOf } from '../../src/run/request.ts';

const mediaType = 'image/png';
const partOf = (data: unknown) => imagePartOf({ mediaType, data: data as string }, 'images[0]').data;

describe('an image', () => {
  test.for([
    ['bytes', new Uint8Array([1, 2, 3]), { type: 'data', data: 'AQID' }],
    ['a part of a larger buffer', Buffer.from([9, 1, 2, 3, 9]).subarray(1, 4), { type: 'data', data: 'AQID' }],
    ['base64', 'AQID', { type: 'data', data: 'AQID' }],
    [
      'a URL',
      new URL('https://example.com/a b.png?x=1#y'),
      { type: 'url', url: 'https://example.com/a%20b.png?x=1#y' },
    ],
    ['the text of one', 'http://example.com/a.png', { type: 'url', url: 'http://example.com/a.png' }],
    ['a URL of a storage that the provider knows', 'gs://bucket/a.png', { type: 'url', url: 'gs://bucket/a.png' }],
  ] as const)('given as %s is plain JSON', ([, data, expected]) => {
    expect(partOf(data)).toEqual(expected);
    expect(JSON.parse(JSON.stringify(partOf(data)))).toEqual(expected);
  });

  test.for([
    ['nothing', undefined, /bytes, their base64, or a URL/],
    ['a number', 7, /bytes, their base64, or a URL/],
    ['a text with a colon that is no URL', 'a b: c', /neither base64 nor a URL/],
    ['a file of this machine', new URL('file:///etc/passwd'), /file: URL, which no provider can fetch/],
    ['a data: URL', 'data:image/png;base64,AQID', /data: URL.*pass the bytes or their base64/],
    ['a blob of this process', 'blob:nodedata:1', /blob: URL/],
  ] as const)('given as %s is refused: a TypeError says which and what to do', ([, data, message]) => {
    expect(() => partOf(data)).toThrow(TypeError);
    expect(() => partOf(data)).toThrow(message);
    expect(() => partOf(data)).toThrow(/^images\[0\]/);
  });

  test('needs a media type', () => {
    for (const image of [undefined, null, 'x', [], { data: 'AQID' }, { data: 'AQID', mediaType: 7 }]) {
      expect(() => imagePartOf(image as never, 'images[2]')).toThrow('images[2] needs a mediaType');
    }
  });
});
