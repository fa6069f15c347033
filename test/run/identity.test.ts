import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  budgetKeyOf,
  childOfCall,
  childRunId,
  fingerprintOf,
  idempotencyKeyOf,
  modelCallKeyOf,
  outcomeIdOf,
} from '../../src/run/identity.ts';

const nothing = { agentId: 'a', prompt: 'Go.', images: [], callerId: '', channelId: '', guildId: '', inputs: {} };
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

describe('the fingerprint of a request', () => {
  test('is SHA-256 of canonical JSON without the fields that are empty, so that a later field changes no old fingerprint', () => {
    expect(fingerprintOf(nothing)).toBe(sha256('{"agentId":"a","prompt":"Go."}'));
    const image = { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AQID' } } as const;
    const whole = {
      ...nothing,
      callerId: 'ann',
      channelId: 'c',
      guildId: 'g',
      inputs: { b: 1, a: [2] },
      images: [image],
    };
    expect(fingerprintOf(whole)).toBe(
      sha256(
        '{"agentId":"a","callerId":"ann","channelId":"c","guildId":"g",' +
          '"images":[{"data":{"data":"AQID","type":"data"},"mediaType":"image/png","type":"file"}],' +
          '"inputs":{"a":[2],"b":1},"prompt":"Go."}',
      ),
    );
  });

  test('is the same for any order of the keys of its inputs', () => {
    const one = fingerprintOf({ ...nothing, inputs: { a: { x: 1, y: 2 }, b: 3 } });
    expect(fingerprintOf({ ...nothing, inputs: { b: 3, a: { y: 2, x: 1 } } })).toBe(one);
  });

  test('differs for each field, also where the texts of two fields change places', () => {
    const requests = [
      nothing,
      { ...nothing, agentId: 'b' },
      { ...nothing, prompt: 'Go' },
      { ...nothing, callerId: 'x' },
      { ...nothing, channelId: 'x' },
      { ...nothing, guildId: 'x' },
      { ...nothing, inputs: { callerId: 'x' } },
      { ...nothing, inputs: { x: null } },
      { ...nothing, prompt: '\u00e9' },
      { ...nothing, prompt: 'e\u0301' },
      { ...nothing, prompt: '\ud800' },
      { ...nothing, prompt: '\ufffd' },
    ];
    expect(new Set(requests.map(fingerprintOf)).size).toBe(requests.length);
  });
});

const call = (callId: string) => ({ callId });

test('the idempotency key is SHA-256 of the JSON of run, birth and call: no two pairs that concatenate to one text share it (edges 17)', () => {
  expect(idempotencyKeyOf({ runId: 'a', birth: 'b1' }, call('b:c'))).toBe(sha256('["a","b1","tool","b:c"]'));
  expect(idempotencyKeyOf({ runId: 'a' }, call('b:c'))).not.toBe(idempotencyKeyOf({ runId: 'a:b' }, call('c')));
});

describe('a run without a birth, which an older version began', () => {
  const run = { runId: 'a' };

  test('keeps the keys, the child ids and the outcome id of that version (edges 17)', () => {
    expect(idempotencyKeyOf(run, call('b:c'))).toBe(sha256('["a","tool","b:c"]'));
    expect(idempotencyKeyOf(run, { callId: 'c', hasOldKey: true })).toBe('a:c');
    expect(childOfCall(run, { callId: 'c', hasOldKey: true })).toBe('a~c');
    expect(modelCallKeyOf(run, 3, undefined)).toBe(sha256('["a","model",3]'));
    expect(modelCallKeyOf(run, 3, 1)).toBe(sha256('["a","model",3,1]'));
    expect([budgetKeyOf(run, { turn: 3, phase: undefined }), budgetKeyOf(run, { turn: 3, phase: 1 })]).toEqual([
      'a:3',
      'a:1.3',
    ]);
    expect([outcomeIdOf(run), outcomeIdOf(run, 2)]).toEqual(['a:1', 'a:2']);
  });
});

test('two runs under one id share no key, no child and no outcome id: each has a birth of its own (edges 17)', () => {
  const namesOf = (birth: string) => {
    const run = { runId: 'a', birth };
    const budget = [budgetKeyOf(run, { turn: 1, phase: undefined }), budgetKeyOf(run, { turn: 1, phase: 0 })];
    const models = [modelCallKeyOf(run, 1, undefined), modelCallKeyOf(run, 1, 0)];
    return [idempotencyKeyOf(run, call('c')), childRunId(run, 'c'), outcomeIdOf(run), ...budget, ...models];
  };
  const second = namesOf('b2');
  expect(namesOf('b1').filter((name) => second.includes(name))).toEqual([]);
});

describe('the id of a child', () => {
  test('is ~ and 52 characters of base32, for any ids of its parent and call', () => {
    const bytes = createHash('sha256').update('["victim","b1","call-1"]').digest();
    const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
    const letters = (bits.match(/.{1,5}/g) ?? []).map(
      (five) => 'abcdefghijklmnopqrstuvwxyz234567'[parseInt(five.padEnd(5, '0'), 2)],
    );
    expect(childRunId({ runId: 'victim', birth: 'b1' }, 'call-1')).toBe(`~${letters.join('')}`);
    for (const callId of ['', 'c'.repeat(10_000), '\ud800', '../..'])
      expect(childRunId({ runId: 'v' }, callId)).toMatch(/^~[a-z2-7]{52}$/);
  });

  test('differs where parent and call concatenate to one text, and for texts that only look the same', () => {
    const pairs = [
      ['a', 'b~c'],
      ['a~b', 'c'],
      ['a', '\u00e9'],
      ['a', 'e\u0301'],
      ['\u00e9', 'a'],
      ['e\u0301', 'a'],
    ] as const;
    expect(new Set(pairs.map(([runId, callId]) => childRunId({ runId }, callId))).size).toBe(pairs.length);
  });
});
