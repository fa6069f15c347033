import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { memoryStore } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { crashTest } from 'pawl/testing';
import { afterAll, describe, expect, test } from 'vitest';

import { torture } from '../crash/random.ts';
import { refundOf } from './refund.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-workflow-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each([
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore({ path: join(folder, 'runs.db') })],
])('a workflow on %s, killed at each boundary', (_, open) => {
  test.each(['small', 'large'])(
    'has the same end, and repeats no call that was recorded: a %s refund (workflow 3, 7, 26)',
    async (order) => {
      const store = open();
      const report = await crashTest({
        workflow: refundOf({ paid: [] }),
        input: { order },
        store: () => store,
        limit: torture > 1 ? 1_000 : 30,
        doubleCrashes: torture > 1 ? 200 : 10,
        answers: ({ kind }) => (kind === 'timer' ? undefined : { how: 'answer', value: 'yes' }),
      });
      expect(report.violations).toEqual([]);
      expect(report.undisturbed.status).toBe('ok');
      expect(report.boundaries).toBeGreaterThan(20);
      expect(report.crashes).toBeGreaterThan(40);
    },
  );
});
