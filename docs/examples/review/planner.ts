import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider';
import { conversationOf } from './conversation.ts';
import { nextStep } from './plans.ts';

/**
 * A program in the shape of a language model, so that the example needs no key and gives the same report each time. It is
 * not a language model: it follows the plans of `plans.ts`, and understands nothing of what it reads.
 */
export const planner: LanguageModelV4 = {
  specificationVersion: 'v4',
  provider: 'pawl-example',
  modelId: 'planner',
  supportedUrls: {},
  doGenerate: async (options) => ({ ...turn(options), warnings: [] }),
  doStream: async (options) => ({ stream: ReadableStream.from(partsOf(turn(options))) }),
};

function turn({ prompt }: LanguageModelV4CallOptions) {
  const step = nextStep(conversationOf(prompt));
  const count = prompt.filter(({ role }) => role === 'assistant').length + 1;
  const content: LanguageModelV4Content[] =
    'answer' in step
      ? [{ type: 'text', text: step.answer }]
      : step.calls.map(({ tool, input }, i) => ({
          type: 'tool-call',
          toolCallId: `call-${count}-${i + 1}`,
          toolName: tool,
          input: JSON.stringify(input),
        }));
  const reason = 'answer' in step ? ('stop' as const) : ('tool-calls' as const);
  return { content, finishReason: { unified: reason, raw: reason }, usage: usageOf(prompt, content) };
}

/** Four characters a token: an estimate that gives the budget something to count. */
function usageOf(prompt: unknown, content: unknown) {
  const [read, written] = [prompt, content].map((value) => Math.ceil(JSON.stringify(value).length / 4));
  return {
    inputTokens: { total: read, noCache: read, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: written, text: written, reasoning: 0 },
  };
}

function* partsOf({ content, ...end }: ReturnType<typeof turn>): Generator<LanguageModelV4StreamPart> {
  yield { type: 'stream-start', warnings: [] };
  for (const part of content) {
    if (part.type === 'tool-call') yield part;
    if (part.type !== 'text') continue;
    yield { type: 'text-start', id: 'answer' };
    yield { type: 'text-delta', id: 'answer', delta: part.text };
    yield { type: 'text-end', id: 'answer' };
  }
  yield { type: 'finish', ...end };
}
