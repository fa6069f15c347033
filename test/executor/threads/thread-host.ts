import { type Message, memoryStore, type RunResult, type ThreadOptions } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { reply } from 'pawl/testing';
import { onTestFinished } from 'vitest';
import { type HostOptions, hostOf, until } from '../../fixtures/host.ts';

/** The texts of messages, without system prompts. */
export function textsIn(messages: readonly Message[]): string[] {
  return messages.flatMap(({ role, content }) => {
    if (role === 'system' || typeof content === 'string') return [];
    return content.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  });
}

/** Stores of this process alone, for a test that needs no file. */
export const stores = {
  memory: memoryStore,
  SQLite: () => {
    const store = sqliteStore({ path: ':memory:' });
    onTestFinished(() => store.close());
    return store;
  },
};

/** The messages of each request so far. */
export const requestsOf =
  ({ model }: ReturnType<typeof hostOf>) =>
  () =>
    model.calls.map(({ messages }) => messages);

/** A host with a thread of one caller. */
export function threadHost({ thread: options = {}, ...rest }: HostOptions & { thread?: Partial<ThreadOptions> } = {}) {
  const ends = new Map<string, RunResult | object>();
  const host = hostOf({
    script: Array.from({ length: 20 }, () => reply('done')),
    onOutcome: (outcome) => void ends.set(outcome.runId, outcome),
    ...rest,
  });
  const thread = host.executor.thread('t', { agent: host.agent, callerId: 'ada', ...options });
  return {
    host,
    thread,
    /** The outcome of a run of this host, once its turn is over in the thread. */
    ended: async (runId: string) => {
      await until(
        async () => ends.has(runId) && (await thread.turn({ runId }))?.state === 'ended',
        `the end of ${runId}`,
      );
      return ends.get(runId) as RunResult;
    },
  };
}
