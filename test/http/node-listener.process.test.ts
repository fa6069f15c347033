import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { httpHandler, localOnly, toNodeListener } from 'pawl/http';
import { callTool, hang, reply } from 'pawl/testing';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { settle, toolOf, until } from '../fixtures/host.ts';
import { type WebHostOptions, webHost } from './web-host.ts';

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function listening(handler: (request: Request) => Promise<Response>) {
  const server = createServer(toNodeListener(handler));
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { server, port, url: `http://127.0.0.1:${port}` };
}

async function served(options: WebHostOptions = {}) {
  const host = webHost(options);
  return { host, ...(await listening(host.handler)) };
}

const ada = { authorization: 'Bearer ada' };
const json = { ...ada, 'content-type': 'application/json' };

/** Sends bytes as they are, and reads all that comes back. */
async function raw(port: number, text: string, encoding: BufferEncoding = 'latin1'): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  // Not its end: Node takes that for a client that has left.
  socket.write(Buffer.from(text, encoding));
  let answer = '';
  try {
    for await (const chunk of socket.setEncoding('latin1')) answer += chunk;
  } catch {
    // A broken connection ends what was read.
  }
  return answer;
}
const statusIn = (answer: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? 0);

describe('toNodeListener', () => {
  test('serves a run from its start to its last event (web 40)', async () => {
    const gate = Promise.withResolvers<string>();
    const look = toolOf('look', 'read', () => gate.promise);
    const { url } = await served({ script: [callTool('look', {}), reply('done')], tools: [look] });
    const started = await fetch(`${url}/runs`, {
      method: 'POST',
      headers: json,
      body: '{"agent":"worker","prompt":"Go."}',
    });
    expect(started.status).toBe(202);
    const { runId } = (await started.json()) as { runId: string };
    const stream = await fetch(`${url}/runs/${runId}/events`, { headers: ada });
    gate.resolve('fine');
    const events = await stream.text();
    expect(events).toContain('"type":"run.ended"');
    expect(events.startsWith('retry: 1000\n\n')).toBe(true);
  });

  test('sends the head of a stream before its first event, and breaks the connection when the stream breaks (web 24, 40)', async () => {
    const { host, url } = await served({ script: [hang()] });
    await host.start({ runId: 'r', callerId: 'ada' });
    const response = await fetch(`${url}/runs/r/events`, { headers: ada });
    expect(response.status).toBe(200);
    const text = response.text();
    await host.executor.shutdown();
    await expect(text).rejects.toThrow();
  });

  test('a client that leaves ends its stream and frees its place (web 23, 40)', async () => {
    const { host, url } = await served({ script: [hang()], http: { maxStreams: 1 } });
    await host.start({ runId: 'r', callerId: 'ada' });
    for (let i = 0; i < 3; i++) {
      const client = new AbortController();
      let response: Response | undefined;
      await until(async () => {
        response = await fetch(`${url}/runs/r/events`, { headers: ada, signal: client.signal });
        if (response.status !== 200) await response.text();
        return response.status === 200;
      });
      client.abort();
    }
  });

  test('a client that reads nothing holds up the reading of the events, not the memory (web 36, 40)', async () => {
    const { host, port } = await served({ script: [hang()] });
    await host.start({ runId: 'r', callerId: 'ada' });
    let read = 0;
    const text = 'x'.repeat(64 * 1_024);
    Object.assign(host.executor, {
      async *events() {
        for (;;) yield { type: 'model.delta', cursor: String(++read), text };
      },
    });
    const socket = connect(port, '127.0.0.1');
    socket.pause();
    socket.write('GET /runs/r/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ada\r\n\r\n');
    await until(() => read > 1);
    let before = 0;
    // The buffers of the two sockets fill, and then no event is read.
    await until(async () => {
      before = read;
      await new Promise((resolve) => setTimeout(resolve, 200));
      return read === before;
    });
    expect(read).toBeLessThan(400);
    socket.destroy();
  });

  test('reads a body in pieces, refuses one that is too large before it has come, and one that does not come (web 22, 40)', async () => {
    const { port } = await served({ http: { maxBodyBytes: 1_000 } });
    const head = 'POST /runs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ada\r\ncontent-type: application/json\r\n';
    expect(statusIn(await raw(port, `${head}content-length: 5000000\r\n\r\n{`))).toBe(413);
    const chunk = `3e8\r\n${'x'.repeat(1_000)}\r\n`;
    expect(statusIn(await raw(port, `${head}transfer-encoding: chunked\r\n\r\n${chunk.repeat(50)}0\r\n\r\n`))).toBe(
      413,
    );
    const body = '{"agent":"worker","prompt":"Go."}';
    const pieces = [...body].map((piece) => `1\r\n${piece}\r\n`).join('');
    const whole = await raw(port, `${head}connection: close\r\ntransfer-encoding: chunked\r\n\r\n${pieces}0\r\n\r\n`);
    expect(statusIn(whole)).toBe(202);
    const hasty = await served({ http: { bodyMs: 300 } });
    const socket = connect(hasty.port, '127.0.0.1');
    socket.write(`${head}content-length: 100\r\n\r\n{`);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(statusIn(answer.toString('latin1'))).toBe(408);
    await once(socket.resume(), 'close');
  });

  test('takes the absolute form of a URL if it names the host of the request, and no other (web 21, 40)', async () => {
    const { port } = await served({ http: { hosts: ['app.test'] } });
    const get = (target: string, host: string) =>
      raw(port, `GET ${target} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ada\r\nconnection: close\r\n\r\n`);
    expect(statusIn(await get('http://app.test/runs', 'app.test'))).toBe(200);
    expect(statusIn(await get('http://app.test/runs', 'evil.test'))).toBe(400);
    expect(statusIn(await get('http://evil.test/runs', 'app.test'))).toBe(400);
    expect(statusIn(await get('ftp://app.test/runs', 'app.test'))).toBe(400);
    expect(statusIn(await get('//evil.test/runs', 'app.test'))).toBe(404);
    expect(statusIn(await get('/runs', 'evil.test'))).toBe(421);
  });

  test.for([
    ['a host with a user', 'GET /runs HTTP/1.1\r\nhost: pawl.test@evil.test\r\n', 400],
    ['a host with a path', 'GET /runs HTTP/1.1\r\nhost: pawl.test/x\r\n', 400],
    ['an empty host', 'GET /runs HTTP/1.1\r\nhost: \r\n', 400],
    ['TRACE', 'TRACE /runs HTTP/1.1\r\nhost: x\r\n', 400],
    ['OPTIONS *', 'OPTIONS * HTTP/1.1\r\nhost: x\r\n', 400],
    ['HEAD', 'HEAD /runs HTTP/1.1\r\nhost: x\r\n', 405],
    ['a path that is no UTF-8', 'GET /runs/%ff HTTP/1.1\r\nhost: x\r\n', 404],
    ['a header of bytes', 'GET /runs HTTP/1.1\r\nhost: x\r\nx-any: \xff\xfe\r\n', 200],
    ['a header that comes twice', 'GET /runs HTTP/1.1\r\nhost: x\r\norigin: http://x\r\norigin: http://x\r\n', 403],
    ['a path with a null byte', 'GET /runs/a%00b HTTP/1.1\r\nhost: x\r\n', 404],
  ] as const)('answers %s, and lives (web 22, 40)', async ([, head, status]) => {
    const { port } = await served();
    const answer = await raw(port, `${head}authorization: Bearer ada\r\nconnection: close\r\n\r\n`);
    expect(statusIn(answer)).toBe(status);
    const next = await raw(
      port,
      'GET /runs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ada\r\nconnection: close\r\n\r\n',
    );
    expect(statusIn(next)).toBe(200);
  });

  test('a client that leaves aborts its request, also before there is an answer (web 40)', async () => {
    const reasons: unknown[] = [];
    let isAsked = false;
    const { port } = await listening(async ({ signal }) => {
      isAsked = true;
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      reasons.push(signal.reason);
      return new Response('late');
    });
    const socket = connect(port, '127.0.0.1');
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    await until(() => isAsked);
    socket.destroy();
    await until(() => reasons.length === 1);
    expect(String(reasons[0])).toContain('the client has left');
  });

  test('a handler that rejects breaks the connection, and the server lives (web 40)', async () => {
    const { url } = await listening(() => Promise.reject(new Error('no')));
    await expect(fetch(url)).rejects.toThrow();
    await expect(fetch(url)).rejects.toThrow();
  });

  test('cuts a request that has its answer, and whose body does not end, after 10 s (edges 26)', async () => {
    const { port } = await listening(async () => new Response('no', { status: 401 }));
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const socket = connect(port, '127.0.0.1');
      let text = '';
      let isClosed = false;
      socket.on('data', (bytes) => {
        text += bytes.toString();
      });
      socket.on('close', () => {
        isClosed = true;
      });
      socket.on('error', () => {});
      socket.write('POST /runs HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nhalf');
      await until(() => text.includes('401') && vi.getTimerCount() > 0);
      await vi.advanceTimersByTimeAsync(9_000);
      expect(isClosed).toBe(false);
      await vi.advanceTimersByTimeAsync(1_000);
      await until(() => isClosed);
    } finally {
      vi.useRealTimers();
    }
  });

  test('passes each cookie of an answer on (web 40)', async () => {
    const { url } = await listening(async () => {
      const headers = new Headers([
        ['set-cookie', 'a=1'],
        ['set-cookie', 'b=2'],
      ]);
      return new Response('fine', { headers });
    });
    expect((await fetch(url)).headers.getSetCookie()).toEqual(['a=1', 'b=2']);
  });
});

describe('localOnly', () => {
  const local = async () => {
    const host = webHost({ http: { authorize: localOnly({ callerId: 'me' }) } });
    return { host, ...(await listening(host.handler)) };
  };
  const get = (port: number, head: string) => raw(port, `GET /runs HTTP/1.1\r\n${head}connection: close\r\n\r\n`);

  test('grants this machine under its own names, and refuses other names, proxies and pages of other sites (web 18)', async () => {
    const { port } = await local();
    for (const name of ['localhost', '127.0.0.1', '[::1]'])
      expect(statusIn(await get(port, `host: ${name}:${port}\r\n`))).toBe(200);
    for (const refused of [
      'host: evil.test\r\n',
      'host: localhost\r\nx-forwarded-for: 1.2.3.4\r\n',
      'host: localhost\r\nforwarded: for=1.2.3.4\r\n',
      'host: localhost\r\nsec-fetch-site: cross-site\r\n',
      'host: localhost\r\nsec-fetch-site: same-site\r\n',
      'host: localhost.evil.test\r\n',
    ])
      expect(statusIn(await get(port, refused))).toBe(401);
    expect(statusIn(await get(port, `host: localhost:${port}\r\nsec-fetch-site: same-origin\r\n`))).toBe(200);
  });

  test('refuses a request whose connection it does not know, unless it gets the address (web 18)', async () => {
    const request = () => new Request('http://localhost/runs');
    const { host } = await local();
    expect((await host.handler(request())).status).toBe(401);
    const agents = { worker: host.agent };
    const addressed = (address: string) =>
      httpHandler(host.executor, { agents, authorize: localOnly({ callerId: 'me', address: () => address }) });
    for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1', '127.8.8.8'])
      expect((await addressed(address)(request())).status).toBe(200);
    for (const address of ['10.0.0.1', '::ffff:10.0.0.1', '128.0.0.1', 'x127.0.0.1', ''])
      expect((await addressed(address)(request())).status).toBe(401);
    expect(() => localOnly({} as never)).toThrow('needs a callerId');
    await settle();
  });
});
