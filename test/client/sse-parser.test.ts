import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { type SseEvent, SseParser, SseSyntaxError } from '../../src/client/sse-parser.ts';

const parseWhole = (text: string, maxChars = 1_000): SseEvent[] => [...new SseParser(maxChars).push(text).events];

/** The standard's words, on the whole text at once. */
function reference(text: string): SseEvent[] {
  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\r|\n/);
  lines.pop();
  const events: SseEvent[] = [];
  let data: string[] = [];
  let id: string | undefined;
  for (const line of lines) {
    if (line === '') {
      if (data.length > 0) events.push(id === undefined ? { data: data.join('\n') } : { data: data.join('\n'), id });
      data = [];
      id = undefined;
      continue;
    }
    const [, name, value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (name === 'data') data.push(value);
    if (name === 'id') id = value;
  }
  return events;
}

const stream = fc
  .array(
    fc.tuple(
      fc.constantFrom('data: ', 'data:', 'data', 'id: a', 'id:b', ': ', 'event: x', 'retry: 5', 'dataset: ', ''),
      fc.constantFrom('', 'x', ' y', '\u{1F980}', 'z:z', '\uFEFF'),
      fc.constantFrom('\n', '\r', '\r\n', '\n\n', '\r\n\r\n', '\r\r'),
    ),
    { maxLength: 30 },
  )
  .map((lines) => lines.map(([name, value, end]) => (name.startsWith('id') ? name : name + value) + end).join(''));

describe('the parser of event streams', () => {
  test('reads what the standard says, however the stream is cut into pieces (web 33)', () => {
    fc.assert(
      fc.property(stream, fc.boolean(), fc.array(fc.nat({ max: 6 }), { maxLength: 60 }), (text, hasMark, sizes) => {
        const whole = hasMark ? `\uFEFF${text}` : text;
        const parser = new SseParser(1_000);
        const events: SseEvent[] = [];
        let at = 0;
        for (const size of sizes) {
          events.push(...parser.push(whole.slice(at, at + size)).events);
          at += size;
        }
        events.push(...parser.push(whole.slice(at)).events);
        expect(events).toEqual(reference(whole));
      }),
      { numRuns: 2_000 },
    );
  });

  test('drops an event that the end of the stream has cut (web 33)', () => {
    expect(parseWhole('data: a\n\ndata: b\n')).toEqual([{ data: 'a' }]);
  });

  test('gives an event when its empty line has come, without the second half of a CRLF (web 33)', () => {
    const parser = new SseParser(100);
    expect(parser.push('data: a\r\n\r').events).toEqual([{ data: 'a' }]);
    expect(parser.push('\ndata: b\r\r').events).toEqual([{ data: 'b' }]);
  });

  test('gives an id only to the event in which it stands, so that a reader knows what a server sends again (web 33)', () => {
    expect(parseWhole('id: 1\ndata: a\n\ndata: b\n\n')).toEqual([{ data: 'a', id: '1' }, { data: 'b' }]);
  });

  test('tells the reconnection time of the server, and ignores one that is no number', () => {
    expect(new SseParser(100).push('retry: 250\n\n').retryMs).toBe(250);
    expect(new SseParser(100).push('retry: soon\nretry: -1\n\n').retryMs).toBeUndefined();
  });

  test.for([
    ['a line without an end', 'data: '.padEnd(200, 'x')],
    ['a comment without an end', ':'.padEnd(200, 'x')],
    ['many lines of one event', 'data: 1234\n'.repeat(40)],
    ['many empty lines of data', 'data\n'.repeat(200)],
  ])('holds no more than its bound of %s, in one piece or in many (web 33)', ([, text]) => {
    const inOne = () => new SseParser(100).push(text ?? '');
    const inMany = () => {
      const parser = new SseParser(100);
      for (const char of text ?? '') parser.push(char);
    };
    expect(inOne).toThrow(SseSyntaxError);
    expect(inMany).toThrow('longer than 100 characters');
  });

  test('counts no event against the next one (web 33)', () => {
    expect(parseWhole('data: 12345678\n\n'.repeat(1_000), 20)).toHaveLength(1_000);
  });

  test.for(['id: \u0001', 'id: h\u00e9', 'id:', `id: ${'x'.repeat(5_000)}`, 'id: a b'])(
    'refuses an id that a request cannot send back: %j',
    (line) => expect(() => parseWhole(`${line}\ndata: a\n\n`, 10_000)).toThrow('which no header can hold'),
  );

  test('looks at each character once, and copies it once, however many pieces a line comes in (web 33)', () => {
    let scanned = 0;
    let copied = 0;
    // The stream of this test has no other end of a line.
    const exec = vi.spyOn(RegExp.prototype, 'exec').mockImplementation(function (this: RegExp, text) {
      const index = text.indexOf('\n', this.lastIndex);
      scanned += (index < 0 ? text.length : index + 1) - this.lastIndex;
      this.lastIndex = index + 1;
      return index < 0 ? null : (Object.assign(['\n'], { index, input: text }) as RegExpExecArray);
    });
    const join = vi.spyOn(Array.prototype, 'join').mockImplementation(function (this: unknown[], separator = ',') {
      const text = this.reduce<string>((all, each, i) => `${all}${i > 0 ? separator : ''}${each}`, '');
      copied += text.length;
      return text;
    });
    const pieces = ['data: ', ...Array<string>(2_000).fill('x'.repeat(50)), '\n', '\n'];
    const parser = new SseParser(10 ** 6);
    const events = pieces.flatMap((piece) => parser.push(piece).events);
    exec.mockRestore();
    join.mockRestore();
    expect(events[0]?.data).toHaveLength(100_000);
    expect(scanned).toBe(100_008);
    // Once from the pieces to the line, once from the lines to the data.
    expect(copied).toBe(2 * 100_000 + 6);
  });
});
