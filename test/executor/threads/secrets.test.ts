import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encrypt, memoryStore } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply } from 'pawl/testing';
import { afterAll, describe, expect, test } from 'vitest';
import { gate, toolOf } from '../../fixtures/host.ts';
import { textsIn, threadHost } from './thread-host.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-threads-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('what a thread stores', () => {
  test('is encrypted, ids and messages that wait included, and found again with a new key (web 9, 11)', async () => {
    const keys = { old: randomBytes(32).toString('base64'), now: randomBytes(32).toString('base64') };
    const path = join(folder, 'sealed.db');
    const working = gate<string>();
    const first = threadHost({
      store: sqliteStore({ path, codec: encrypt({ keys, current: 'old' }) }),
      tools: [toolOf('work', 'read', () => working.pass())],
      script: [callTool('work', {}), reply('hush')],
      thread: { callerId: 'caller-of-mine' },
    });
    const { runId } = await first.thread.send({ id: 'message-of-mine', text: 'first secret' });
    await working.reached;
    await first.thread.send({ id: 'waiting-message', text: 'second secret' });
    const bytes = readdirSync(folder)
      .map((file) => readFileSync(join(folder, file)).toString('latin1'))
      .join('');
    for (const text of ['secret', 'caller-of-mine', 'message-of-mine', 'waiting-message'])
      expect(bytes).not.toContain(text);
    await first.host.executor.shutdown({ drainMs: 50 });
    const store = sqliteStore({ path, codec: encrypt({ keys, current: 'now' }) });
    const next = threadHost({
      store,
      tools: [toolOf('work')],
      script: [reply('one'), reply('two')],
      thread: { callerId: 'caller-of-mine' },
    });
    expect(await next.thread.turn('message-of-mine')).toMatchObject({ runId, state: 'live' });
    expect((await next.host.executor.threads({ callerId: 'caller-of-mine' })).map(({ id }) => id)).toEqual(['t']);
    await next.host.executor.recover();
    await expect.poll(async () => (await next.thread.turn('waiting-message'))?.state).toBe('ended');
    expect(textsIn((await next.thread.messages()).map(({ message }) => message))).toEqual([
      ...['first secret', 'one', 'second secret', 'two'],
    ]);
  });

  test('is redacted like each record, also while a message waits (web 9)', async () => {
    const store = memoryStore();
    const { thread, ended, host } = threadHost({
      store,
      redact: (text: string) => text.replaceAll('4711', '****'),
    } as never);
    const { runId } = await thread.send({ id: 'm1', text: 'my pin is 4711' });
    await ended(runId);
    const record = await store.load(runId, { ended: true });
    // With the word before it: a time or an id may have the same digits.
    expect(JSON.stringify(record)).not.toContain('is 4711');
    expect(textsIn(host.model.calls[0]?.messages ?? [])).toEqual(['my pin is ****']);
    expect((await thread.send({ id: 'm1', text: 'my pin is 4711' })).state).toBe('known');
  });
});
