// A balancer for requests of HTTP/2. Restate has one long connection to an address, so a balancer of connections sends all
// requests to one service. This one sends each request to the service with the fewest. nginx, Envoy and cloud balancers do the same.
import http2 from 'node:http2';
import type { AddressInfo } from 'node:net';

/** A service behind the balancer. */
interface Target {
  readonly port: number;
  session: http2.ClientHttp2Session | undefined;
  isUp: boolean;
  open: number;
}

export interface Balancer extends AsyncDisposable {
  readonly url: string;
  /** Bytes of all bodies that came from services. */
  readonly received: number;
}

const RETRY_MS = 50;
const { NGHTTP2_CANCEL } = http2.constants;

/** Starts a balancer on a free port of this machine, before services on these ports, which may come and end at any time. */
export async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const targets = ports.map((port): Target => ({ port, session: undefined, isUp: false, open: 0 }));
  const state = { isOver: false, received: 0 };
  const connect = (target: Target) => {
    if (state.isOver) return;
    const session = http2.connect(`http://127.0.0.1:${target.port}`);
    target.session = session;
    session.on('connect', () => {
      target.isUp = true;
    });
    session.on('error', () => {});
    session.on('close', () => {
      target.isUp = false;
      setTimeout(connect, RETRY_MS, target).unref();
    });
  };
  targets.forEach(connect);
  const server = http2.createServer();
  const sessions = new Set<http2.ServerHttp2Session>();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session)).on('error', () => {});
  });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    const [target] = targets.filter(({ isUp }) => isUp).sort((a, b) => a.open - b.open);
    if (!target?.session) {
      stream.respond({ ':status': 503 }, { endStream: true });
      return;
    }
    target.open += 1;
    pass(stream, target.session.request(headers), (bytes) => {
      state.received += bytes;
    }).finally(() => {
      target.open -= 1;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get received() {
      return state.received;
    },
    async [Symbol.asyncDispose]() {
      state.isOver = true;
      for (const { session } of targets) session?.destroy();
      for (const session of sessions) session.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Joins two streams, each of which may break. Resolves when both are closed. */
function pass(
  from: http2.ServerHttp2Stream,
  to: http2.ClientHttp2Stream,
  count: (bytes: number) => void,
): Promise<unknown> {
  to.on('error', () => {});
  to.on('response', ({ connection: _, ...headers }) => !from.closed && !from.headersSent && from.respond(headers));
  to.on('data', (chunk: Buffer) => count(chunk.length));
  from.pipe(to);
  to.pipe(from);
  const closed = (stream: http2.Http2Stream, other: http2.Http2Stream) =>
    new Promise<void>((resolve) => {
      stream.on('close', () => {
        // A service that was killed: Restate sends the request again.
        if (!other.closed && !other.writableEnded) other.close(NGHTTP2_CANCEL);
        else if (stream === (to as http2.Http2Stream) && !from.headersSent && !from.closed) from.close(NGHTTP2_CANCEL);
        resolve();
      });
    });
  return Promise.all([closed(from, to), closed(to, from)]);
}
