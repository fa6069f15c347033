import type { LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { callModel } from '../../src/model/call.ts';
import type { Message } from '../../src/values/message.ts';
import { requestOf, streamOf } from './fake-model.ts';
import { modelFor } from './model-for.ts';

export type Version = 'v3' | 'v2';
export const finishes = {
  v3: {
    type: 'finish',
    finishReason: { unified: 'tool-calls', raw: 'tool_use' },
    usage: {
      inputTokens: { total: 7, noCache: 4, cacheRead: 2, cacheWrite: 1 },
      outputTokens: { total: 3, text: 1, reasoning: 2 },
    },
  },
  v2: {
    type: 'finish',
    finishReason: 'tool-calls',
    usage: { inputTokens: 7, outputTokens: 3, totalTokens: 10, reasoningTokens: 2, cachedInputTokens: 2 },
  },
};

/** A model of an older specification that streams these parts, and what it was sent. */
export function older(version: Version, parts: readonly unknown[] = [finishes[version]]) {
  const sent: LanguageModelV4CallOptions[] = [];
  const model = {
    specificationVersion: version,
    provider: 'older',
    modelId: 'older-1',
    supportedUrls: { '*/*': [/./] },
    parts,
    async doStream(options: LanguageModelV4CallOptions) {
      sent.push(options);
      return { stream: streamOf(this.parts) };
    },
  };
  return { sent, model, adapter: modelFor({ fast: model } as never, 'fast') };
}

/** What a model of this specification was sent for these messages. */
export async function sentTo(version: Version, messages: readonly Message[], extra: object = {}) {
  const { adapter, sent } = older(version);
  await callModel(adapter, requestOf({ messages, ...extra }));
  return sent[0] as LanguageModelV4CallOptions;
}
