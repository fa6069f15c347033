import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { loadCheckpoint } from 'pawl/fan-out';
import { sqliteStore } from 'pawl/stores/sqlite';
import { expect, test } from 'vitest';
import { around, freshPath, heldWithin, inItsTime, recordsOf, until } from './asking.ts';

test('the record of a run stays until the file has its answer, so that no call pays for it again (fan-out 5)', async () => {
  const path = freshPath();
  const { call, running, open } = await heldWithin(path);
  await until(async () => (await loadCheckpoint(path)) !== null);
  // From here on nothing can be written in its place.
  renameSync(path, `${path}.aside`);
  mkdirSync(join(path, 'x'), { recursive: true });
  open();
  const result = await inItsTime(call, running);
  expect(result).toMatchObject({ saveError: { code: 'STORE_UNAVAILABLE' }, responses: [{ text: 'of a' }] });
  await using store = sqliteStore({ path: recordsOf(path) });
  expect(await store.listInterrupted()).toMatchObject([{ meta: { agentId: 'a' } }]);
  await store.close();
  rmSync(path, { recursive: true });
  renameSync(`${path}.aside`, path);
  const { responses, saveError } = await call.start();
  expect(responses).toMatchObject([{ text: 'of a', steps: 2, inputTokens: 20, stopReason: 'answered' }]);
  expect([saveError, call.calls(), around(path)]).toEqual([undefined, [2], ['.pawl']]);
});
