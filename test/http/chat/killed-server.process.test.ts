import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from 'ai';
import { afterEach, describe, expect, test } from 'vitest';
import { randomFrom, seed, torture } from '../../crash/random.ts';
import { passOnErrors } from '../../fixtures/processes.ts';
import { packageFlags } from '../../toolchain/programs.ts';
import { openCard, textOf, told } from './told-messages.ts';
import { type ChatOfPage, openPage, pawlTransport } from './use-chat.ts';

const KILLS = torture === 1 ? 2 : 200;

type Transport = 'its stock transport' | 'chatTransport()';
const worker = fileURLToPath(new URL('chat-worker.ts', import.meta.url));

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.kill();
});

/** A server over many processes, each on another port. */
class Server {
  readonly folder = mkdtempSync(join(tmpdir(), 'pawl-killed-chat-'));
  #process: ChildProcess | undefined;
  port = '';

  async start(): Promise<void> {
    const child = passOnErrors(
      spawn(process.execPath, [...packageFlags, worker, this.folder], { stdio: ['ignore', 'pipe', 'pipe'] }),
    );
    this.#process = child;
    const [port] = await once(child.stdout, 'data');
    this.port = String(port).trim();
  }

  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child?.kill('SIGKILL')) await once(child, 'exit');
  }
}

/** A conversation with a person who asks, approves, and asks again until the answer is there. */
async function conversation(
  transport: Transport,
  killsAfter: readonly number[],
): Promise<{ messages: unknown; mails: number; kills: number }> {
  const server = new Server();
  servers.push(server);
  await server.start();
  let ids = 0;
  const url = 'http://pawl.test';
  const fetchThere: typeof fetch = (address, init) =>
    fetch(String(address).replace('pawl.test', `127.0.0.1:${server.port}`), init);
  await using page = await openPage({
    ...{ url, id: 'chat', generateId: () => `id-${++ids}` },
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    ...(transport === 'chatTransport()' ? { transport: pawlTransport(url, fetchThere) } : { fetch: fetchThere }),
  });
  let kills = 0;
  let isOver = false;
  const killing = (async () => {
    for (const ms of killsAfter) {
      await new Promise((resolve) => setTimeout(resolve, ms));
      if (isOver) return;
      await server.kill();
      kills += 1;
      await server.start();
    }
  })();
  while (!isDone(page.chat)) {
    await act(page.chat);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  isOver = true;
  await killing;
  const mails = new Set(readFileSync(join(server.folder, 'mails.log'), 'utf8').trim().split('\n')).size;
  return { messages: told(page.chat.messages), mails, kills };
}

const isDone = ({ status, messages }: ChatOfPage) => status === 'ready' && textOf(messages.at(-1)).endsWith('word 39');

async function act(chat: ChatOfPage): Promise<void> {
  const last: UIMessage | undefined = chat.messages.at(-1);
  const card = openCard(chat);
  // A person does not see whether the page is connected.
  if (chat.status === 'streaming' && card)
    return await chat.addToolApprovalResponse({ id: card.approval.id, approved: true });
  if (chat.status === 'submitted' || chat.status === 'streaming') return;
  if (!last) await chat.sendMessage({ text: 'Mail Bo.' });
  else if (chat.status === 'ready' && last.role === 'user') await chat.sendMessage();
  else if (chat.status === 'ready' && card)
    await chat.addToolApprovalResponse({ id: card.approval.id, approved: true });
  else await chat.resumeStream();
}

const transports: readonly Transport[] = ['its stock transport', 'chatTransport()'];
describe.each(transports)('useChat with %s', (transport) => {
  test(`has the messages of an undisturbed page after ${KILLS} kills of its server, which comes back on another port (seed ${seed}) (web 35, 37)`, {
    timeout: 120_000 * torture,
  }, async () => {
    const uncut = await conversation(transport, []);
    expect(uncut.mails).toBe(1);
    const random = randomFrom(seed);
    for (let done = 0; done < KILLS; ) {
      const after = Array.from({ length: 2 }, () => Math.floor(random() * 120));
      const { kills, ...was } = await conversation(transport, after);
      expect({ ...was, kills: 0 }, `kills after ${after} ms`).toEqual(uncut);
      done += Math.max(1, kills);
    }
  });
});
