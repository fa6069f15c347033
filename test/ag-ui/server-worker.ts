// A server of AG-UI, to be killed at any moment: node -C pawl-source server-worker.ts '<job as JSON>'
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LanguageModelV4, LanguageModelV4Prompt, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { createExecutor, defineAgent, defineTool } from 'pawl';
import { agUiHandler } from 'pawl/ag-ui';
import { toNodeListener } from 'pawl/http';
import { sqliteStore } from 'pawl/stores/sqlite';

export interface ServerJob {
  readonly folder: string;
}

const { folder } = JSON.parse(process.argv[2] ?? '') as ServerJob;

/** Says the same in each process: after a person's message it thinks and calls a tool, after the result it says what it has. */
function* answerTo(prompt: LanguageModelV4Prompt): Generator<LanguageModelV4StreamPart> {
  const turns = prompt.filter(({ role }) => role === 'user').length;
  yield { type: 'stream-start', warnings: [] };
  if (prompt.at(-1)?.role === 'user') {
    yield { type: 'reasoning-start', id: 'r' };
    for (const delta of ['Let me ', 'think ', `about ${turns}.`]) yield { type: 'reasoning-delta', id: 'r', delta };
    yield { type: 'reasoning-end', id: 'r' };
    const input = JSON.stringify({ turn: turns });
    yield { type: 'tool-input-start', id: 'call', toolName: 'mail' };
    for (const delta of [input.slice(0, 4), input.slice(4)]) yield { type: 'tool-input-delta', id: 'call', delta };
    yield { type: 'tool-input-end', id: 'call' };
    yield { type: 'tool-call', toolCallId: 'call', toolName: 'mail', input };
  } else {
    yield { type: 'text-start', id: 't' };
    for (let i = 0; i < 12; i += 1) yield { type: 'text-delta', id: 't', delta: `word ${turns}.${i} ` };
    yield { type: 'text-end', id: 't' };
  }
  yield {
    type: 'finish',
    usage: {
      inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 1, text: 1, reasoning: 0 },
    },
    finishReason: { unified: 'stop', raw: 'stop' },
  };
}

const model: LanguageModelV4 = {
  ...{ specificationVersion: 'v4', provider: 'test', modelId: 'test', supportedUrls: {} },
  doGenerate: () => Promise.reject(new Error('it only streams')),
  doStream: async ({ prompt }) => ({
    stream: ReadableStream.from(
      (async function* () {
        for (const part of answerTo(prompt)) {
          await sleep(5);
          yield part;
        }
      })(),
    ),
  }),
};
const mail = defineTool({
  name: 'mail',
  description: 'Sends a mail.',
  input: { type: 'object', properties: { turn: { type: 'integer' } } },
  effect: 'once',
  needsApproval: true,
  execute: ({ turn }) => {
    appendFileSync(join(folder, 'sent.txt'), `${String(turn)}\n`);
    return `sent ${String(turn)}`;
  },
});
const agent = defineAgent({ id: 'desk', instructions: 'Write.', tools: [mail] });
const executor = createExecutor({
  models: { fast: model },
  agents: [agent],
  store: sqliteStore({ path: join(folder, 'runs.db') }),
  journal: { flushMs: 10 },
  defaults: { leaseMs: 400, dueMs: 40, waitLingerMs: 30, controlMs: 30, maxAttempts: 1_000 },
  logger: { warn: () => {} },
});
const handler = agUiHandler(executor, {
  agents: { desk: agent },
  authorize: () => ({ callerId: 'ada', by: { id: 'ada' } }),
  logger: { warn: () => {} },
});
const server = createServer(toNodeListener(handler)).listen(0, '127.0.0.1', () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
await executor.recover();
