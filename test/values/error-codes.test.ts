import { readFileSync } from 'node:fs';
import { memoryStore, retryOf } from 'pawl';
import { hang } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import type { PawlError } from '../../src/values/error-codes.ts';
import { policyOf } from '../../src/values/error-codes.ts';
import { hasTrait, toErrorData } from '../../src/values/error-data.ts';
import * as errors from '../../src/values/errors.ts';
import { StoreFullError } from '../../src/values/errors.ts';
import { hostOf } from '../fixtures/host.ts';

const classes = Object.values(errors) as (new (message: string) => PawlError)[];

describe('the policy of an error', () => {
  test('stands on each class: `retry` is later or never', () => {
    const all = classes.map((Class) => new Class('x'));
    expect(all.length).toBeGreaterThan(30);
    expect(all.filter(({ retry }) => retry !== 'later' && retry !== 'never')).toEqual([]);
    const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');
    const listed = page.slice(page.indexOf('These are `later`'), page.indexOf('A code that is not'));
    const later = all.filter(({ retry }) => retry === 'later').map(({ code }) => code);
    expect([...listed.matchAll(/`([A-Z_]+)`/g)].map(([, code]) => code)).toEqual(later);
  });

  test.for(classes.map((Class) => new Class('x')))('is the same for the plain data of $code', (error) => {
    expect(retryOf(toErrorData(error))).toBe(error.retry);
    expect(retryOf(error)).toBe(error.retry);
  });

  test.for([undefined, null, 5, 'STORE_FULL', {}, { code: 'toString' }, { code: '__proto__' }, new Error('x')])(
    'of what is no error of Pawl is never: %s',
    (error) => {
      expect(retryOf(error)).toBe('never');
      expect(policyOf((error as { code?: string } | null | undefined)?.code)).toBeUndefined();
    },
  );

  test('is found in the causes of an error', () => {
    const inner = new errors.LeaseLostError('taken over');
    expect(hasTrait(new Error('save failed', { cause: inner }), 'ownership')).toBe(true);
    expect(hasTrait(new AggregateError([new errors.NotJsonError('x')]), 'isUnstorable')).toBe(true);
    expect(hasTrait(new Error('save failed'), 'isStoreAway')).toBe(false);
  });

  test('says `later` of a run that a full store refused, and `never` of a cancelled one', async () => {
    const store = memoryStore();
    const full = { ...store, save: () => Promise.reject(new StoreFullError('the disk is full')) };
    const refused = await hostOf({ store: full, requireDurable: true }).run();
    expect([refused.error?.code, retryOf(refused.error)]).toEqual(['NOT_DURABLE', 'later']);
    const live = await hostOf({ script: [hang()] }).start();
    const cancelled = await live.cancel('enough');
    expect([cancelled.error?.code, retryOf(cancelled.error)]).toEqual(['CANCELLED', 'never']);
  });
});
