import { sqliteStore } from 'pawl/stores/sqlite';
import { hang, scriptedModel } from 'pawl/testing';
import { expect, test } from 'vitest';
import { bytesOf } from '../codec/encrypted-stores.ts';
import { codecOf } from '../codec/keys.ts';
import { freshPath, sql } from '../store/sqlite/files.ts';
import { agent, hostOf, MINUTE_MS } from './scene.ts';

const SECRET = 'sk-live-0123456789';

test('what start throws is redacted in the list and in the log (schedules 1)', async () => {
  const start = () => Promise.reject(new Error(`the feed refused ${SECRET}`));
  const { clock, executor, warned } = hostOf([{ every: '1m', start }], {
    redact: (text) => text.replaceAll(SECRET, '[key]'),
  });
  await executor.recover();
  await clock.advance(MINUTE_MS);
  const [listed] = await executor.schedules();
  expect(listed?.failed.error).toContain('the feed refused');
  expect(JSON.stringify([listed, warned])).not.toContain(SECRET);
  await executor.shutdown();
});

test('a schedule in an encrypted store has its id in the clear, and no text besides (schedules 5, recovery 11)', async () => {
  const path = freshPath();
  const { clock } = hostOf(undefined);
  await using store = sqliteStore({ path, codec: codecOf(), clock });
  const { executor } = hostOf([{ every: '1m' }], { clock, store });
  await executor.recover();
  await clock.advance(0);
  await executor.schedules.pause('nightly', { by: { id: SECRET } });
  await executor.shutdown();
  expect(bytesOf(path)).toContain('nightly');
  expect(bytesOf(path)).not.toContain(SECRET);
  await using plain = sqliteStore({ path, clock });
  await expect(plain.schedules.list()).rejects.toMatchObject({ code: 'KEY_MISMATCH' });
  await using again = sqliteStore({ path, codec: codecOf(), clock });
  expect(await again.schedules.list()).toMatchObject([{ id: 'nightly', paused: { by: { id: SECRET } } }]);
});

test('a schedule whose stored bytes are damaged is listed without its times (schedules 5)', async () => {
  const path = freshPath();
  const { clock } = hostOf(undefined);
  await using store = sqliteStore({ path, clock });
  const { executor } = hostOf([{ every: '1m' }], { clock, store });
  await executor.recover();
  await clock.advance(0);
  sql(path, "UPDATE schedules SET content = replace(content, '1m', '9m')");
  expect(await store.schedules.list()).toMatchObject([{ id: 'nightly', revision: 1, isEnabled: false, since: 0 }]);
  await executor.shutdown();
});

test('the first record of a tick is redacted, and has the labels of its invocation (schedules 2)', async () => {
  const start = () => ({ agent, invocation: { prompt: `Use ${SECRET}.`, labels: { team: 'blue', schedule: 'mine' } } });
  const { clock, executor, store } = hostOf([{ every: '1m', start }], {
    models: { fast: scriptedModel([hang()]) },
    redact: (text) => text.replaceAll(SECRET, '[key]'),
  });
  await executor.recover();
  await clock.advance(MINUTE_MS);
  const record = await store.load('nightly@2026-11-28T06:59:00.000Z');
  expect(record).toMatchObject({ labels: { team: 'blue', schedule: 'nightly' }, meta: { prompt: 'Use [key].' } });
  expect(JSON.stringify(record)).not.toContain(SECRET);
  await executor.shutdown();
});

test('labels of an invocation that are none cost the tick, and are not left out (schedules 1)', async () => {
  const labels = new Map([['team', 'blue']]) as never;
  const start = () => ({ agent, invocation: { prompt: 'Go.', labels } });
  const { clock, executor } = hostOf([{ every: '1m', start }]);
  await executor.recover();
  await clock.advance(MINUTE_MS);
  expect(await executor.schedules()).toMatchObject([
    { failed: { count: 1, error: expect.stringContaining('labels') } },
  ]);
  await executor.shutdown();
});
