import { expect } from 'vitest';
import type { AppendingStore } from '../../src/store/port.ts';
import { nextStep, sampleRecord, userMessage } from '../../src/testing/store-contract/records.ts';

/** Loads a large record while `other` (the same storage) adds to it, and replaces it. @param size characters of a message */
export async function expectLoadInParts(store: AppendingStore, other: AppendingStore, size: number): Promise<void> {
  const messages = Array.from({ length: 40 }, (_, i) => userMessage(`${i}`.padEnd(size, 'x')));
  const old = sampleRecord('run', { messages });
  await store.save(old);
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  const loading = store.load('run');
  await other.append(nextStep(old).delta);
  expect((await loading)?.messages.length).toBeOneOf([40, 41]);
  clearInterval(timer);
  expect(turns).toBeGreaterThan(1);
  const replaced = sampleRecord('run', { messages: messages.slice(0, 30).reverse(), revision: 3 });
  const reloading = store.load('run');
  await other.save(replaced);
  const found = await reloading;
  const expected = found?.revision === 3 ? replaced.messages : nextStep(old).record.messages;
  expect(JSON.stringify(found?.messages)).toBe(JSON.stringify(expected));
}
