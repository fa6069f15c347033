import { describe, expect, test } from 'vitest';
import { readJson } from '../../src/http/body.ts';
import { systemClock } from '../../src/values/clock.ts';

const limits = { maxBodyBytes: 2 ** 24, bodyMs: 10_000, clock: systemClock };
const posted = (body: string) => readJson(new Request('http://a.example/', { method: 'POST', body }), limits);
const withKeys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]));

describe('a body', () => {
  test.for<[string, unknown]>([
    ['at its top', withKeys(85_000)],
    ['in a field', { inputs: withKeys(85_000) }],
    ['in a list', { messages: [{ parts: [withKeys(85_000)] }] }],
    ['in many objects', { parts: Array.from({ length: 85 }, () => withKeys(1_000)) }],
  ])(
    'with 85,000 keys %s is refused before it is parsed: that would hold the event loop (edges 29)',
    async ([, body]) => {
      const parse = JSON.parse;
      let parsed = 0;
      // Others parse too, as the runner of the tests does.
      JSON.parse = (...args) => {
        if (args[0].length > 100_000) parsed += 1;
        return parse(...args);
      };
      try {
        await expect(posted(JSON.stringify(body))).rejects.toMatchObject({ code: 'BAD_REQUEST' });
      } finally {
        JSON.parse = parse;
      }
      expect(parsed).toBe(0);
    },
  );

  test.for<[string, unknown]>([
    ['2,000 keys in one object', withKeys(2_000)],
    ['colons, braces and quotes in its texts', { text: '"{\\\\":{'.repeat(50_000), b: '\\', c: ['}:', '\\"'] }],
    ['many small objects', { parts: Array.from({ length: 20_000 }, (_, i) => ({ i, j: i })) }],
  ])('with %s is read (edges 29)', async ([, body]) => expect(await posted(JSON.stringify(body))).toEqual(body));

  test.for(['{', '{"a', '{"a":1}}', ':::', '"\\', '}{'])('that is no JSON (%j) is refused (edges 29)', async (body) => {
    await expect(posted(body)).rejects.toMatchObject({ code: 'BAD_REQUEST' });
  });
});
