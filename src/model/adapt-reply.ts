import type {
  LanguageModelV2Content,
  LanguageModelV2FinishReason,
  LanguageModelV2StreamPart,
  LanguageModelV2Usage,
  LanguageModelV3Content,
  LanguageModelV3FinishReason,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from '@ai-sdk/provider';
import { readProperty } from '../values/error-data.ts';

type OlderPart = LanguageModelV3StreamPart | LanguageModelV2StreamPart;
type OlderContent = LanguageModelV3Content | LanguageModelV2Content;

/** A part of an older model's stream in the words of v4. What is no part at all is left to whoever reads the stream. */
export function newerPart(part: OlderPart): LanguageModelV4StreamPart {
  if (readProperty(part, 'type') !== 'finish') return newerContent(part as OlderContent) as LanguageModelV4StreamPart;
  const finish = part as Extract<OlderPart, { type: 'finish' }>;
  return {
    ...finish,
    finishReason: newerFinishReason(finish.finishReason),
    usage: newerUsage(finish.usage),
  } as LanguageModelV4StreamPart;
}

/** A file carries its data differently; all else that may stand in content reads the same. */
export function newerContent(part: OlderContent): LanguageModelV4Content {
  if (readProperty(part, 'type') !== 'file') return part as LanguageModelV4Content;
  const file = part as Extract<OlderContent, { type: 'file' }>;
  return { ...file, data: { type: 'data', data: file.data } };
}

/** v2 has one word for the reason; its `unknown` is v4's `other`. */
export function newerFinishReason(
  reason: LanguageModelV3FinishReason | LanguageModelV2FinishReason,
): LanguageModelV4FinishReason {
  if (typeof reason !== 'string') return reason;
  return { unified: reason === 'unknown' ? 'other' : reason, raw: reason };
}

/** v2 counts in plain numbers, and does not know what was written to a cache. */
export function newerUsage(usage: LanguageModelV3Usage | LanguageModelV2Usage): LanguageModelV4Usage {
  if (typeof readProperty(usage, 'inputTokens') === 'object') return usage as LanguageModelV3Usage;
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = (usage ?? {}) as LanguageModelV2Usage;
  return {
    inputTokens: { total: inputTokens, noCache: undefined, cacheRead: cachedInputTokens, cacheWrite: undefined },
    outputTokens: { total: outputTokens, text: undefined, reasoning: reasoningTokens },
  };
}
