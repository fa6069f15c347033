import type {
  LanguageModelV2,
  LanguageModelV2CallOptions,
  LanguageModelV2Content,
  LanguageModelV2FinishReason,
  LanguageModelV2StreamPart,
  LanguageModelV2Usage,
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3Content,
  LanguageModelV3FinishReason,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
  LanguageModelV4Usage,
} from '@ai-sdk/provider';
import { readProperty } from '../values/error-data.ts';
import { type OlderVersion, olderPrompt } from './adapt-prompt.ts';

/** A model of a specification before the current one. */
export type OlderModel = LanguageModelV3 | LanguageModelV2;

type OlderOptions = LanguageModelV3CallOptions & LanguageModelV2CallOptions;

/** One adapter for each model: code that compares models, or keeps data by model, sees the same object each time. */
const adapters = new WeakMap<OlderModel, LanguageModelV4>();

/** Adapts a model of the AI SDK's older specifications v2 and v3 to v4. The behaviour of the model stays. */
export function adapted(model: OlderModel): LanguageModelV4 {
  const known = adapters.get(model);
  if (known !== undefined) return known;
  const adapter = adapterOf(model);
  adapters.set(model, adapter);
  return adapter;
}

function adapterOf(model: OlderModel): LanguageModelV4 {
  const version = model.specificationVersion;
  return {
    specificationVersion: 'v4',
    get provider() {
      return model.provider;
    },
    get modelId() {
      return model.modelId;
    },
    get supportedUrls() {
      return model.supportedUrls;
    },
    async doGenerate(options) {
      const result = await model.doGenerate(olderOptions(options, version));
      return {
        ...result,
        content: result.content.map(newerContent),
        finishReason: newerFinishReason(result.finishReason),
        usage: newerUsage(result.usage),
      } as LanguageModelV4GenerateResult;
    },
    async doStream(options) {
      const result: unknown = await model.doStream(olderOptions(options, version));
      const stream = readProperty(result, 'stream');
      // Without a stream the result is wrong in any specification; the caller reports it.
      if (typeof readProperty(stream, 'getReader') !== 'function') return result as LanguageModelV4StreamResult;
      return { ...(result as LanguageModelV4StreamResult), stream: newerStream(stream as ReadableStream) };
    },
  };
}

function olderOptions(options: LanguageModelV4CallOptions, version: OlderVersion): OlderOptions {
  const { reasoning: _, prompt, tools, ...rest } = options;
  const older = { ...rest, prompt: olderPrompt(prompt, version) };
  return (tools === undefined ? older : { ...older, tools: tools.map((tool) => olderTool(tool, version)) }) as never;
}

function olderTool(tool: NonNullable<LanguageModelV4CallOptions['tools']>[number], version: OlderVersion): unknown {
  if (version === 'v3') return tool;
  if (tool.type === 'provider') return { ...tool, type: 'provider-defined' };
  const { inputExamples: _examples, strict: _strict, ...rest } = tool;
  return rest;
}

/** Does not use `pipeThrough`, which accepts only the runtime's own streams. */
function newerStream(older: ReadableStream): ReadableStream<LanguageModelV4StreamPart> {
  const reader = older.getReader();
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(newerPart(value));
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

type OlderPart = LanguageModelV3StreamPart | LanguageModelV2StreamPart;
type OlderContent = LanguageModelV3Content | LanguageModelV2Content;

/**
 * Converts a part of an older model's stream to v4. A value that is not a part is passed on; the reader of the stream refuses
 * it.
 */
function newerPart(part: OlderPart): LanguageModelV4StreamPart {
  if (readProperty(part, 'type') !== 'finish') return newerContent(part as OlderContent) as LanguageModelV4StreamPart;
  const finish = part as Extract<OlderPart, { type: 'finish' }>;
  return {
    ...finish,
    finishReason: newerFinishReason(finish.finishReason),
    usage: newerUsage(finish.usage),
  } as LanguageModelV4StreamPart;
}

/** Only files carry their data differently; all other content reads the same. */
function newerContent(part: OlderContent): LanguageModelV4Content {
  if (readProperty(part, 'type') !== 'file') return part as LanguageModelV4Content;
  const file = part as Extract<OlderContent, { type: 'file' }>;
  return { ...file, data: { type: 'data', data: file.data } };
}

/** v2 has one word for the reason; its `unknown` is v4's `other`. */
function newerFinishReason(
  reason: LanguageModelV3FinishReason | LanguageModelV2FinishReason,
): LanguageModelV4FinishReason {
  if (typeof reason !== 'string') return reason;
  return { unified: reason === 'unknown' ? 'other' : reason, raw: reason };
}

/** v2 counts in plain numbers, and does not count cache writes. */
function newerUsage(usage: LanguageModelV3Usage | LanguageModelV2Usage): LanguageModelV4Usage {
  if (typeof readProperty(usage, 'inputTokens') === 'object') return usage as LanguageModelV3Usage;
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = (usage ?? {}) as LanguageModelV2Usage;
  return {
    inputTokens: { total: inputTokens, noCache: undefined, cacheRead: cachedInputTokens, cacheWrite: undefined },
    outputTokens: { total: outputTokens, text: undefined, reasoning: reasoningTokens },
  };
}
