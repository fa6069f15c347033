import { mkdirSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { fileStoreOn } from '../../../src/store/file/file-store.ts';
import { sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { faultyFiles } from '../../files/faulty.ts';
import { freshDir } from './folder.ts';

test('a store whose parent folder may not be opened (mode 0711) takes its writes, and leaves one file of its owner (recovery 6)', async () => {
  const dir = freshDir();
  mkdirSync(dir, { recursive: true });
  const faults = faultyFiles();
  await using store = fileStoreOn(faults.files, { dir });
  faults.plan((call) => (call.method === 'syncFolder' && call.path === dirname(dir) ? 'EACCES' : undefined));
  for (let i = 0; i < 3; i++) await store.save(sampleRecord('run'));
  expect(faults.fired).toBeGreaterThan(0);
  expect(readdirSync(join(dir, 'owners'))).toHaveLength(1);
});
