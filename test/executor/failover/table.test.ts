import { APICallError, EmptyResponseBodyError, LoadAPIKeyError } from '@ai-sdk/provider';
import type { RunEvent } from 'pawl';
import { reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { modelOf, streamOf } from '../../model/fake-model.ts';
import { listHost, named } from './lists.ts';

const api = (statusCode: number, message = 'no', responseHeaders: Record<string, string> = {}) =>
  new APICallError({ message, url: 'http://x', requestBodyValues: {}, statusCode, responseHeaders });
const refused = () =>
  Object.assign(new TypeError('fetch failed'), { cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }) });

/** A failure, and what it means for a list of one. In a longer one the next model answers, but for what refuses the request itself. */
const failures = [
  ['a connection that is refused', refused(), 'waits'],
  ['a connection that breaks', Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }), 'waits'],
  ['an overloaded provider', api(529), 'waits'],
  ['a broken provider', api(500), 'waits'],
  ['too many requests', api(429), 'waits'],
  ['too many requests, with a time', api(429, 'slow down', { 'retry-after': '20' }), 'waits'],
  ['a quota that is used up', api(429, 'You exceeded your current quota, see billing.'), 'error MODEL'],
  ['a wrong key', api(401), 'error MODEL'],
  ['a key that is not there', new LoadAPIKeyError({ message: 'no key' }), 'error MODEL'],
  ['a model that is not there', api(404), 'error MODEL'],
  ['an empty body', new EmptyResponseBodyError(), 'waits'],
  ['a request that is refused', api(400), 'ends'],
] as const;

const begun = [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: 'half of' },
];
const finish = {
  type: 'finish',
  finishReason: { unified: 'stop', raw: 'stop' },
  usage: { inputTokens: {}, outputTokens: {} },
};
const places = {
  'before the first piece': () => undefined,
  'in the text': (error: unknown) => [...begun, { type: 'error', error }],
  'in the arguments of a call': (error: unknown) => [
    { type: 'tool-input-start', id: 'c', toolName: 'look' },
    { type: 'tool-input-delta', id: 'c', delta: '{"q":' },
    { type: 'error', error },
  ],
  'after the end': (error: unknown) => [...begun, { type: 'text-end', id: 't' }, finish, { type: 'error', error }],
} as const;
type Place = keyof typeof places;

const cells = failures.flatMap(([what, error, alone]) =>
  (Object.keys(places) as Place[]).flatMap((place) => [1, 2, 3].map((size) => ({ what, error, alone, place, size }))),
);

describe('a list of models', () => {
  test.for(cells)(
    'of $size, whose models fail with $what $place, the last one apart (failover 2, 3, 4, 5, 30)',
    async (cell) => {
      const { error, alone, place, size } = cell;
      const failing = () =>
        modelOf(async () => {
          const parts = places[place](error);
          if (!parts) throw error;
          return { stream: streamOf(parts) };
        });
      const list = Array.from({ length: size }, (_, at) => {
        const model = at > 0 && at === size - 1 ? named('google/pro', [reply('done')]) : failing();
        return Object.assign(model, { provider: 'p', modelId: `m${at}` });
      });
      const host = listHost(list as never);
      const run = await host.start({ runId: 'r' });
      for (let seconds = 0; seconds < 100; seconds += 20) await host.clock.advance(20_000);
      const result = await run.result;
      const shown = { status: result.status, output: result.output };
      // Nothing follows the end of an answer.
      if (place === 'after the end') return expect(shown).toEqual({ status: 'ok', output: 'half of' });
      if (alone === 'ends') return expect(result).toMatchObject({ status: 'error', error: { code: 'MODEL' } });
      if (size > 1) {
        expect(shown).toEqual({ status: 'ok', output: 'done' });
        const handed = host
          .of('model.fallback')
          .map((event) => (event as Extract<RunEvent, { type: 'model.fallback' }>).to);
        return expect(handed).toEqual(list.slice(1).map(({ provider, modelId }) => `${provider}/${modelId}`));
      }
      const [status, code] = alone.split(' ');
      return expect(result).toMatchObject(
        code ? { status, error: { code } } : { status: 'waiting', waits: [{ kind: 'retry' }] },
      );
    },
  );
});
