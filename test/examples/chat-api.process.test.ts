import { createClient, type JournalEvent } from 'pawl/client';
import { afterEach, describe, expect, test } from 'vitest';
import { ChatServer } from './chat-server.ts';

const servers: ChatServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.kill();
});

async function started(wordMs: number): Promise<ChatServer> {
  const server = new ChatServer(undefined, { wordMs });
  servers.push(server);
  await server.start();
  return server;
}

/** The text of a message as a page shows it: pieces, what voids them, and what replaces them. */
class Shown {
  text = '';

  take(event: JournalEvent): void {
    if (event.type === 'model.delta') this.text = this.text.slice(0, event.offset) + event.text;
    if (event.type === 'step.reset') this.text = '';
    if (event.type === 'step.snapshot') this.text = JSON.stringify(event.content);
  }
}

describe('the server of the example chat', () => {
  test.each(['SIGTERM', 'SIGKILL'] as const)(
    'is ended by %s in the middle of an answer, and the next process continues it for the same reader (web 24, 33, 35)',
    async (signal) => {
      const server = await started(30);
      const client = createClient({ url: `${server.url}/api` });
      const { runId } = await client.thread('t').send({ text: 'Hello' });
      const shown = new Shown();
      let restarted: Promise<void> | undefined;
      const types: string[] = [];
      for await (const event of client.run(runId).events()) {
        types.push(event.type);
        shown.take(event);
        if (shown.text.includes('before one leaves'))
          restarted ??= (async () => {
            expect(await server.end(signal)).toBe(signal === 'SIGTERM' ? 75 : null);
            await server.start();
          })();
      }
      await restarted;
      expect(types.at(-1)).toBe('run.ended');
      const { items } = await client.thread('t').messages();
      const [said] = (items[1]?.message.content ?? []) as readonly { readonly text: string }[];
      expect(said?.text).toMatch(/^I write mails.* or wait for you\.$/);
      expect(shown.text).toContain(said?.text);
    },
  );

  test('answers this machine under its own names only, and no page of another site (web 18, 21)', async () => {
    const server = await started(1);
    const ask = async (headers: Record<string, string>, path = '/api/runs') =>
      (await fetch(`${server.url}${path}`, { headers })).status;
    expect(await ask({})).toBe(200);
    expect(await ask({ origin: 'https://evil.example' })).toBe(403);
    expect(await ask({ 'sec-fetch-site': 'cross-site' })).toBe(401);
    expect(await ask({ 'x-forwarded-for': '192.0.2.1' })).toBe(401);
    expect(await ask({}, '/server.ts')).toBe(404);
    expect(await ask({}, '/../agent.ts')).toBe(404);
    const form = { method: 'POST', headers: { 'content-type': 'text/plain' }, body: '{}' };
    expect((await fetch(`${server.url}/api/chat`, form)).status).toBe(415);
  });
});
