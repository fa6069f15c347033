import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Executor } from 'pawl';
import { toNodeListener } from 'pawl/http';
import { studioHandler } from 'pawl/studio';
import { safeHeaders } from '../../../src/studio/assets.ts';
import { madePage } from '../../toolchain/build-studio.ts';

/** A request of the page for data, and what it was answered with so far. */
export interface Asked {
  readonly path: string;
  bytes: number;
  /** Events of a run in the stream. */
  events: number;
}

const types = { html: 'text/html', js: 'text/javascript', css: 'text/css' };

/** Serves Studio with the page as it would be built now, and notes what the page asks for. */
export async function pageSite(executor: Executor) {
  const files = await madePage();
  const studio = studioHandler(executor, { authorize: () => ({ callerId: 'ada', all: true }) });
  const asked: Asked[] = [];
  const handler = async (request: Request): Promise<Response> => {
    const { pathname, search } = new URL(request.url);
    const name = pathname.slice(1) || 'index.html';
    const type = types[name.split('.').at(-1) as keyof typeof types];
    if (name in files) return new Response(files[name], { headers: { ...safeHeaders, 'content-type': type } });
    const own: Asked = { path: `${pathname.slice(1)}${search}`, bytes: 0, events: 0 };
    asked.push(own);
    const { body, status, headers } = await studio(request);
    const counting = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        own.bytes += chunk.byteLength;
        // Only events have an id, and each chunk begins with a frame.
        own.events += Buffer.from(chunk).toString('latin1').split('\nid: ').length - (chunk[0] === 105 ? 0 : 1);
        controller.enqueue(chunk);
      },
    });
    return new Response(body?.pipeThrough(counting) ?? null, { status, headers });
  };
  const server = createServer(toNodeListener(handler)).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const close = async () => {
    server.close();
    server.closeAllConnections();
    await executor.shutdown();
  };
  return { asked, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close };
}
