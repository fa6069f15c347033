import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider';
import { nextStep } from './plan.ts';

/**
 * A program in the shape of a language model, so that the example needs no key and gives the same report each time. It is
 * not a language model: it follows one plan (`plan.ts`) and understands nothing of what it reads. Like a real model it
 * keeps no state, and takes everything from the transcript that it is sent.
 */
export const planner: LanguageModelV4 = {
  specificationVersion: 'v4',
  provider: 'pawl-example',
  modelId: 'planner',
  supportedUrls: {},
  doGenerate: async (options) => turn(options),
  doStream: async (options) => {
    const { content, finishReason, usage } = turn(options);
    return { stream: ReadableStream.from(partsOf(content, { finishReason, usage })) };
  },
};

type Turn = Pick<LanguageModelV4GenerateResult, 'content' | 'finishReason' | 'usage' | 'warnings'>;

function turn({ prompt }: LanguageModelV4CallOptions): Turn {
  const step = nextStep(prompt);
  const said = prompt.filter(({ role }) => role === 'assistant').length;
  const content: Turn['content'] =
    'answer' in step
      ? [{ type: 'text', text: step.answer }]
      : step.calls.map(({ tool, input }, i) => ({
          type: 'tool-call',
          toolCallId: `call-${said + 1}-${i + 1}`,
          toolName: tool,
          input: JSON.stringify(input),
        }));
  const reason = 'answer' in step ? 'stop' : 'tool-calls';
  return { content, finishReason: { unified: reason, raw: reason }, usage: usageOf(prompt, content), warnings: [] };
}

/** Four characters a token, of what is new in the prompt and of what is said: an estimate that gives figures to look at. */
function usageOf(prompt: LanguageModelV4CallOptions['prompt'], content: Turn['content']): Turn['usage'] {
  const fresh = prompt.slice(prompt.findLastIndex(({ role }) => role === 'assistant') + 1);
  const [read, written] = [fresh, content].map((value) => Math.ceil(JSON.stringify(value).length / 4));
  return {
    inputTokens: { total: read, noCache: read, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: written, text: written, reasoning: 0 },
  };
}

function* partsOf(
  content: Turn['content'],
  end: Pick<Turn, 'finishReason' | 'usage'>,
): Generator<LanguageModelV4StreamPart> {
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
