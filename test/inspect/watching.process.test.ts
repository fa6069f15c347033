import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { createBrowserReceiver, createWebSocketInspector, createWebSocketReceiver } from '@statelyai/inspect';
import { describe, expect, onTestFinished, test } from 'vitest';
import { passOnErrors } from '../fixtures/processes.ts';
import { packageFlags } from '../toolchain/programs.ts';
import { startClient } from './client.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const section =
  /^## In the Stately inspector$[\s\S]*?(?=^## )/m.exec(readFileSync(`${root}/docs/events.md`, 'utf8'))?.[0] ?? '';
const block = (language: string) =>
  new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(section)?.[1] ?? '';

/** Runs a block of the page in a process of its own, which ends with the test. */
function started(language: 'ts' | 'js', env: Readonly<Record<string, string>>) {
  const kind = language === 'ts' ? 'module-typescript' : 'module';
  const args = [...packageFlags, `--input-type=${kind}`, '--eval', block(language)];
  const child = passOnErrors(
    spawn(process.execPath, args, { cwd: root, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] }),
  );
  onTestFinished(async () => {
    if (child.kill('SIGKILL')) await once(child, 'close');
  });
  return child;
}

/** The page's relay, once it listens. */
async function startedRelay() {
  const [said] = await once(started('js', { PORT: '0' }).stdout, 'data');
  const page = /http:\S+:\d+/.exec(String(said))?.[0] ?? '';
  const url = /ws:\S+:\d+/.exec(String(said))?.[0] ?? '';
  const client = createWebSocketInspector({ url });
  onTestFinished(() => client.stop());
  /** The client is connected when what it says comes through; until then it keeps it. */
  const say = (word: string) => client.event('host', word);
  return { page, url, say };
}

type Listener = (event: object) => void;

/** The relay's page in a browser: as much of one as its script needs, and the package's receiver in the place of the viewer. */
function opened(html: string, location: { host: string }) {
  const listeners: { page: Listener[]; viewer: Listener[] } = { page: [], viewer: [] };
  const tell = (whom: Listener[], event: object) => {
    for (const listener of whom) listener(event);
  };
  const contentWindow = { postMessage: (data: unknown) => tell(listeners.viewer, { data }) };
  const sockets: WebSocket[] = [];
  const script = /<script>([\s\S]*)<\/script>/.exec(html)?.[1] ?? '';
  class Socket extends WebSocket {
    constructor(url: string) {
      super(url);
      sockets.push(this);
    }
  }
  onTestFinished(() => {
    for (const socket of sockets) socket.close();
  });
  const addEventListener = (_: string, listener: Listener) => listeners.page.push(listener);
  const document = { querySelector: () => ({ contentWindow }) };
  new Function('document', 'addEventListener', 'location', 'WebSocket', script)(
    document,
    addEventListener,
    location,
    Socket,
  );
  const parent = { postMessage: (data: unknown) => tell(listeners.page, { data, source: contentWindow }) };
  const viewer = { top: parent, parent, addEventListener: (_: string, each: Listener) => listeners.viewer.push(each) };
  const receiver = createBrowserReceiver({ window: Object.assign(viewer, { self: viewer }) as never });
  return { receiver, sockets };
}

describe('the page about the Stately inspector', () => {
  test('has a host whose run is seen, without what it hides', async () => {
    const client = await startClient();
    const over = client.next(
      (frame) => frame.type === '@xstate.snapshot' && frame.event.type === 'xstate.done.actor.settle',
    );
    started('ts', { INSPECT_URL: client.url });
    await over;
    expect(client.actors).toEqual(['run:ticket-7', 'resolve', 'model.1', 'settle']);
    expect(client.frames.join()).not.toContain('printer');
    expect(client.frames.join()).toContain('Pull the plug');
  });

  test('has a relay that gives receivers what clients send', async () => {
    const { url, say } = await startedRelay();
    const got = Promise.withResolvers<unknown>();
    createWebSocketReceiver({ server: url }).subscribe((frame) => got.resolve(frame));
    const timer = setInterval(say, 10, 'hello');
    onTestFinished(() => clearInterval(timer));
    expect(await got.promise).toMatchObject({ type: '@xstate.event', sessionId: 'host', event: { type: 'hello' } });
  });

  test('has a relay that listens on loopback, and refuses a page of another origin', async () => {
    const { page, url } = await startedRelay();
    expect([page, url].map((address) => new URL(address).hostname)).toEqual(['127.0.0.1', '127.0.0.1']);
    const { port } = new URL(url);
    const upgrade = { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
    const ask = (origin: string) =>
      statusOf(Number(port), { ...upgrade, 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==', origin });
    expect(await ask('https://elsewhere.example')).toBe(401);
    expect(await ask(`http://localhost:${port}`)).toBe(401);
    expect(await ask(page)).toBe(101);
  });

  test('has a page that hands the viewer in it the frames, from when the viewer asked for them', async () => {
    const { page, say } = await startedRelay();
    const html = await (await fetch(page)).text();
    const { receiver, sockets } = opened(html, new URL(page));
    expect(sockets).toHaveLength(1);
    const got = Promise.withResolvers<unknown>();
    receiver.subscribe((frame) => got.resolve(frame));
    const timer = setInterval(say, 10, 'hello');
    onTestFinished(() => clearInterval(timer));
    expect(await got.promise).toMatchObject({ type: '@xstate.event', event: { type: 'hello' } });
  });
});

/** How a server answers to somebody who wants a WebSocket. */
async function statusOf(port: number, headers: Readonly<Record<string, string>>): Promise<number | undefined> {
  const asked = request({ host: '127.0.0.1', port, headers }).end();
  const [answer] = await Promise.race([once(asked, 'response'), once(asked, 'upgrade')]);
  answer.destroy();
  asked.destroy();
  return answer.statusCode;
}
