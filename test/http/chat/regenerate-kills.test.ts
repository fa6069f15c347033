import { memoryStore } from 'pawl';
import { httpHandler } from 'pawl/http';
import { sqliteStore } from 'pawl/stores/sqlite';
import { describe, onTestFinished, test } from 'vitest';
import { killsOfRetry } from '../../executor/threads/kill-sweeps.ts';
import type { threadHost } from '../../executor/threads/thread-host.ts';
import { byToken, requestTo } from '../web-host.ts';
import { said } from './chat-host.ts';

const stores = {
  memory: memoryStore,
  SQLite: () => {
    const store = sqliteStore({ path: ':memory:' });
    onTestFinished(() => store.close());
    return store;
  },
};

/** Posts as a page of `useChat` that has the messages up to this one. */
const post =
  (messageId: 'm0' | 'm1', how: object) =>
  async ({ host: { executor, agent } }: ReturnType<typeof threadHost>) => {
    const handler = httpHandler(executor, {
      agents: { worker: agent },
      authorize: byToken,
      logger: { warn: () => {} },
    });
    const response = await handler(
      requestTo('/chat', { body: { id: 't', messages: [said(messageId, messageId)], ...how } }),
    );
    await response.body?.cancel();
  };

describe.each(Object.entries(stores))('POST /chat of a process that is killed at any write, in %s', (_, store) => {
  test('keeps the message of `regenerate-message`, with the earlier answer or the next one (edges 10)', async () => {
    await killsOfRetry(store, { messageId: 'm1', again: post('m1', { trigger: 'regenerate-message' }) });
  });

  test('keeps a message that is edited before later ones (edges 10)', async () => {
    await killsOfRetry(store, { messageId: 'm0', again: post('m0', { messageId: 'm0' }) });
  });
});
