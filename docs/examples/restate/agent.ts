// An agent that works through a list of orders, and a model that stands in for a real one: it answers from the transcript alone, so
// that each process continues where another one was killed. Each call leaves a line in a ledger, which the demo counts.
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LanguageModelV4, LanguageModelV4Prompt, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { type Agent, defineAgent, defineTool } from 'pawl';

/** A line of the ledger: a call of the model, or of a tool. */
export interface LedgerLine {
  readonly runId: string;
  /** The nonce of a model's answer, which its tool call carries into the record; and its step. */
  readonly model?: string;
  readonly step?: number;
  /** The id of a tool call that ran, and the tool's effect. */
  readonly tool?: string;
  readonly effect?: string;
}

export interface Desk {
  /** The file of the ledger. */
  readonly ledger: string;
  /** Model calls of a run. */
  readonly steps: number;
  /** How long each model call takes, ms. */
  readonly modelMs: number;
  /** Characters of each tool result, for transcripts of another size. */
  readonly padding?: number;
}

/** Makes the agent, and the model that it needs. */
export function orderDesk({ ledger, steps, modelMs, padding = 0 }: Desk): { agent: Agent; model: LanguageModelV4 } {
  const note = (line: LedgerLine) => appendFileSync(ledger, `${JSON.stringify(line)}\n`);
  const tools = (['read', 'once'] as const).map((effect) =>
    defineTool({
      name: effect === 'read' ? 'look_up' : 'pay',
      description: effect === 'read' ? 'Looks an order up' : 'Pays an order',
      input: {
        type: 'object',
        properties: { order: { type: 'number' }, nonce: { type: 'string' } },
        required: ['order'],
      },
      effect,
      execute: (_, { runId, callId }) => {
        note({ runId, tool: callId, effect });
        return `done${'.'.repeat(padding)}`;
      },
    }),
  );
  const agent = defineAgent({
    id: 'orders',
    instructions: 'Work through all orders.',
    tools,
    maxSteps: steps + 1,
  });
  const model: LanguageModelV4 = {
    ...{ specificationVersion: 'v4', provider: 'example', modelId: 'orders', supportedUrls: {} },
    doGenerate: () => Promise.reject(new Error('this model only streams')),
    doStream: async ({ prompt, abortSignal }) => {
      const nonce = crypto.randomUUID();
      note({ runId: runIdIn(prompt), model: nonce, step: orderIn(prompt) });
      await sleep(modelMs, undefined, abortSignal ? { signal: abortSignal } : {});
      return { stream: ReadableStream.from(answerTo(prompt, { steps, nonce })) };
    },
  };
  return { agent, model };
}

/** The prompt of a run of this example is its id. */
function runIdIn(prompt: LanguageModelV4Prompt): string {
  const [part] = prompt.flatMap((message) => (message.role === 'user' ? message.content : []));
  return part?.type === 'text' ? part.text : '';
}

const orderIn = (prompt: LanguageModelV4Prompt) => prompt.filter(({ role }) => role === 'assistant').length + 1;

function* answerTo(
  prompt: LanguageModelV4Prompt,
  { steps, nonce }: { steps: number; nonce: string },
): Generator<LanguageModelV4StreamPart> {
  const order = orderIn(prompt);
  yield { type: 'stream-start', warnings: [] };
  if (order < steps) {
    const toolName = order % 5 === 0 ? 'pay' : 'look_up';
    yield { type: 'tool-call', toolCallId: `call-${order}`, toolName, input: JSON.stringify({ order, nonce }) };
  } else {
    yield { type: 'text-start', id: 't' };
    yield { type: 'text-delta', id: 't', delta: `All orders are done. ${nonce}` };
    yield { type: 'text-end', id: 't' };
  }
  const isLast = order >= steps;
  yield {
    type: 'finish',
    finishReason: { unified: isLast ? 'stop' : 'tool-calls', raw: '' },
    usage: {
      inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 1, text: 1, reasoning: 0 },
    },
  };
}
