import { memoryStore } from 'pawl';
import { studioHandler } from 'pawl/studio';
import { afterEach } from 'vitest';
import type { StudioOptions } from '../../src/studio/studio.ts';
import { type HostOptions, hostOf } from '../fixtures/host.ts';
import { byToken, read, requestTo, type Sent } from '../http/web-host.ts';

const left: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const leave of left.splice(0)) await leave();
});

export type StudioHostOptions = HostOptions & { readonly studio?: Partial<StudioOptions> };

/** The one who sees the runs of all. */
export const root = 'root:ada';

/** A host with a memory store, and a Studio on it. Requests come from `root:ada`, unless they say otherwise. */
export function studioHost({ studio = {}, ...options }: StudioHostOptions = {}) {
  const host = hostOf({ store: memoryStore(), journal: { flushMs: 5 }, ...options });
  left.push(() => host.executor.shutdown());
  const warned: string[] = [];
  const handler = studioHandler(host.executor, {
    authorize: byToken,
    agents: { worker: host.agent },
    logger: { warn: (message, fields) => warned.push(`${message} ${JSON.stringify(fields)}`) },
    ...studio,
  });
  return {
    ...host,
    handler,
    httpWarned: warned,
    open: (path: string, sent: Sent = {}) => handler(requestTo(path, { as: root, ...sent })),
    ask: async (path: string, sent: Sent = {}) => read(await handler(requestTo(path, { as: root, ...sent }))),
  };
}
