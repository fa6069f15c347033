import { statSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { AppendingStore } from '../../src/store/port.ts';
import { nextStep, sampleRecord, userMessage } from '../../src/testing/store-contract/records.ts';
import { kinds } from './encrypted-stores.ts';
import { codecOf } from './keys.ts';

describe.for(kinds)('the size of an encrypted $name store (recovery 4)', ({ fresh, open }) => {
  test('steps of 5 KB keep at most 1.5 times what they say: encryption takes a third', async () => {
    const path = fresh();
    const store = open(path, codecOf()) as AppendingStore & ReturnType<typeof open>;
    let record = sampleRecord('run');
    await store.save(record);
    let said = 0;
    for (let n = 0; n < 200; n++) {
      const messages = [userMessage(`${n}`.padEnd(2_400, 'x')), userMessage('y'.repeat(2_400))];
      const step = nextStep(record, messages);
      await store.append(step.delta);
      record = step.record;
      said += JSON.stringify(messages).length;
    }
    expect(await store.load('run')).toEqual(record);
    await store.close();
    const { size } = statSync(path);
    expect(size / said).toBeLessThan(1.5);
    expect(size / said).toBeGreaterThan(1.3);
  });
});
