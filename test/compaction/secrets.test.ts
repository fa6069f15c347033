import fc from 'fast-check';
import { createCompactor, type Message } from 'pawl';
import { reply, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { torture } from '../crash/random.ts';
import { answered, said, step } from './histories.ts';

const secret = 'hunter2-"quoted"-äöü';

async function request(messages: readonly Message[], secrets: Readonly<Record<string, readonly string[]>>) {
  const model = scriptedModel([reply('Sum.')]);
  const compact = createCompactor({ keepLast: 1, secrets, clock: testClock() });
  const { signal } = new AbortController();
  const result = await compact(messages, { tier: 'fast', tokens: 1, limit: 100_000, model, signal });
  return { text: JSON.stringify(model.calls[0]), result };
}

/** Whether a text stands in another one, as it is or as JSON has it, once or twice over. */
function isIn(text: string, value: string): boolean {
  const once = JSON.stringify(value).slice(1, -1);
  return [value, once, JSON.stringify(once).slice(1, -1)].some((form) => text.includes(form));
}

const logIn = (input: unknown, value = 'Welcome.') => [said('Go.'), ...step('log_in', input, value), said('?')];

describe('what is marked as secret', () => {
  test('is redacted in the request for a summary, field by field (executor 19)', async () => {
    const { text } = await request(logIn({ user: 'ada', password: secret }), { log_in: ['password'] });
    expect(isIn(text, secret)).toBe(false);
    expect(text).toContain('[redacted]');
    expect(text).toContain('ada');
  });

  test('may stand deeper, and in lists (executor 19)', async () => {
    const input = { card: { number: secret, holder: 'Ada' }, keys: [{ value: secret }, { value: 'other-secret' }] };
    const { text } = await request(logIn(input), { log_in: ['card.number', 'keys.value'] });
    expect([isIn(text, secret), isIn(text, 'other-secret'), text.includes('Ada')]).toEqual([false, false, true]);
  });

  test('may be anything: a number, a list, an object (executor 19)', async () => {
    const input = { pin: 12_345_678, codes: ['abcdef-1', 'abcdef-2'], token: { deep: [secret] } };
    const { text } = await request(logIn(input, `pin 12345678, code abcdef-2`), { log_in: ['pin', 'codes', 'token'] });
    for (const value of ['12345678', 'abcdef-1', 'abcdef-2', secret]) expect(isIn(text, value), value).toBe(false);
  });

  test('is taken out wherever a tool or the model repeats it (executor 19)', async () => {
    const messages = [
      said('Go.'),
      ...step('log_in', { password: secret }, `logged in with ${secret}`, `I use ${secret} now.`),
      ...step('dump', { env: { PASS: secret } }, JSON.stringify({ PASS: secret })),
      answered(`It was ${secret}.`),
      said('?'),
    ];
    expect(isIn((await request(messages, { log_in: ['password'] })).text, secret)).toBe(false);
  });

  test('is known also where its call is not part of what is summed up (executor 19)', async () => {
    const messages = [
      said('Go.'),
      answered(`The password is ${secret}.`),
      answered('Well.'),
      ...step('log_in', { password: secret }, 'ok'),
    ];
    expect(isIn((await request(messages, { log_in: ['password'] })).text, secret)).toBe(false);
  });

  test('is a whole input that has no fields (executor 19)', async () => {
    expect(isIn((await request(logIn(secret), { log_in: ['password'] })).text, secret)).toBe(false);
  });

  test('stays in the messages that are kept (executor 19)', async () => {
    const messages = [said('Go.'), answered('Yes.'), answered('Well.'), ...step('log_in', { password: secret }, 'ok')];
    const { result } = await request(messages, { log_in: ['password'] });
    expect(result.slice(2)).toEqual(messages.slice(3));
  });

  test('leaves other tools and other fields alone (executor 19)', async () => {
    const messages = [
      said('Go.'),
      ...step('__proto__', { password: 'visible' }, 'ok'),
      ...step('log_in', { user: 'ada' }, 'ok'),
      said('?'),
    ];
    const { text } = await request(messages, { log_in: ['password', 'user.name'] });
    expect(text).toContain('visible');
    expect(text).toContain('ada');
    expect(text).not.toContain('[redacted]');
  });

  test('is not searched for when it is too short to be distinct (executor 19)', async () => {
    const input = { pin: 'zq1', keys: [{ value: 'zq2' }] };
    const { text } = await request(logIn(input, 'took zq1 ms'), { log_in: ['pin', 'keys.value'] });
    expect(text).toContain('took zq1 ms');
    expect(text.match(/zq\d/g)).toEqual(['zq1']);
  });

  test('no random secret gets through, wherever it stands (executor 19)', async () => {
    const value = fc.string({ unit: 'grapheme', minLength: 6, maxLength: 40 }).filter((text) => text.trim().length > 5);
    const property = fc.asyncProperty(value, fc.nat(5_000), async (random, padding) => {
      const hidden = `key:${random}`;
      const messages = logIn({ password: hidden, note: 'x'.repeat(padding) }, `${'y'.repeat(padding)}${hidden}`);
      const { text } = await request(messages, { log_in: ['password'] });
      expect(isIn(text, hidden)).toBe(false);
    });
    await fc.assert(property, { numRuns: 60 * torture });
  });
});
