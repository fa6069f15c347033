import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CheckpointStore } from 'pawl';
import { toNodeListener } from 'pawl/http';
import { studioHandler } from 'pawl/studio';
import type { StudioOptions } from '../../../src/studio/studio.ts';
import { type HostOptions, hostOf } from '../../fixtures/host.ts';

/** The one who looks. */
const ada = { id: 'ada', name: 'Ada' };

/** A Studio that is served in the process of the test. Its executor begins no run: others work on the store. */
export class Site {
  readonly executor;
  readonly #server: Server;
  /** The queries of the streams that are open. */
  readonly streams = new Set<URLSearchParams>();

  private constructor(store: CheckpointStore, options: HostOptions, studio: Partial<StudioOptions>) {
    const { executor, agent } = hostOf({ store, journal: true, ...options });
    this.executor = executor;
    const handler = studioHandler(executor, {
      authorize: () => ({ callerId: ada.id, all: true, by: ada }),
      agents: { [agent.id]: agent },
      write: true,
      ...studio,
    });
    const listener = toNodeListener(handler);
    this.#server = createServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
      if (pathname === '/watch') {
        this.streams.add(searchParams);
        response.on('close', () => this.streams.delete(searchParams));
      }
      listener(request, response);
    });
  }

  static async on(
    store: CheckpointStore,
    options: HostOptions = {},
    studio: Partial<StudioOptions> = {},
  ): Promise<Site> {
    const site = new Site(store, options, studio);
    site.#server.listen(0, '127.0.0.1');
    await new Promise((resolve) => site.#server.once('listening', resolve));
    return site;
  }

  /** The address of a view. */
  at(view: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${view}`;
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await this.executor.shutdown({ drainMs: 0 });
  }
}
