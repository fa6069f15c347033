import type {
  LanguageModelV2,
  LanguageModelV2CallOptions,
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
} from '@ai-sdk/provider';
import { readProperty } from '../values/error-data.ts';
import { type OlderVersion, olderPrompt } from './adapt-prompt.ts';
import { newerContent, newerFinishReason, newerPart, newerUsage } from './adapt-reply.ts';

/** A model of a specification before the current one. */
export type OlderModel = LanguageModelV3 | LanguageModelV2;

type OlderOptions = LanguageModelV3CallOptions & LanguageModelV2CallOptions;

/** One adapter a model: whoever compares models, or keeps something by model, sees one. */
const adapters = new WeakMap<OlderModel, LanguageModelV4>();

/** A model of an older specification as one of v4. What the model itself does is not changed. */
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
      // Without a stream the result is wrong in any specification; whoever called will say so.
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

/** Not by `pipeThrough`, which only the runtime's own streams can be given to. */
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
