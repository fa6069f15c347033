import type { Attributes } from '@opentelemetry/api';
import { isObject } from '../values/json.ts';
import { letGo } from '../values/thenable.ts';

// Names of semantic-conventions-genai v0.1.0, and Pawl's own. The constants of @opentelemetry/semantic-conventions are older ones.

/** What a span of one of these operations is called, before its subject. */
export const operations = { agent: 'invoke_agent', model: 'chat', tool: 'execute_tool' } as const;

/** Attributes of the conventions. */
export const genAi = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  requestStream: 'gen_ai.request.stream',
  finishReasons: 'gen_ai.response.finish_reasons',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_write.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  agentName: 'gen_ai.agent.name',
  toolName: 'gen_ai.tool.name',
  toolCallId: 'gen_ai.tool.call.id',
  toolType: 'gen_ai.tool.type',
  errorType: 'error.type',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  toolArguments: 'gen_ai.tool.call.arguments',
  toolResult: 'gen_ai.tool.call.result',
} as const;

/** Attributes of Pawl's own, stable from the first release. */
export const own = {
  agentId: 'pawl.agent.id',
  runId: 'pawl.run.id',
  rootId: 'pawl.root_id',
  origin: 'pawl.origin',
  attempt: 'pawl.attempt',
  attemptLost: 'pawl.attempt.lost',
  status: 'pawl.status',
  step: 'pawl.step',
  toolEffect: 'pawl.tool.effect',
  toolAttempt: 'pawl.tool.attempt',
  toolState: 'pawl.tool.state',
  toolLost: 'pawl.tool.lost',
  spendUsd: 'pawl.spend.usd',
  eventsDropped: 'pawl.events.dropped',
  link: 'pawl.link',
  cut: 'pawl.cut',
  code: 'pawl.code',
  purpose: 'pawl.purpose',
} as const;

/** Longest name of a model, a tool or an agent in a span, in UTF-16 units. */
const MAX_NAME_CHARS = 256;

/** Returns a name from outside as a span may have it: without control characters, and cut. */
export function nameOfSpan(text: string): string {
  const cut = text.length > MAX_NAME_CHARS ? text.slice(0, MAX_NAME_CHARS) : text;
  const formed = cut.toWellFormed();
  // Most names are clean, and a thousand runs share them.
  if (!hasControl(formed)) return formed;
  return Array.from(formed, (char) => (hasControl(char) ? ' ' : char)).join('');
}

function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 32 || (code >= 127 && code < 160)) return true;
  }
  return false;
}

/** Most attributes of a host in one span. */
const MAX_HOST_ATTRIBUTES = 32;
/** Names that a host cannot give: what they say is Pawl's. */
const taken = ['pawl.', 'gen_ai.', 'error.'];

/** Returns what a host gave as attributes, as a span may have them: texts, numbers and booleans, bounded as names are. */
export function hostAttributes(given: unknown): Attributes {
  letGo(given);
  if (!isObject(given)) return {};
  const attributes: Attributes = {};
  for (const [name, value] of Object.entries(given).slice(0, MAX_HOST_ATTRIBUTES)) {
    if (name === '' || taken.some((prefix) => name.startsWith(prefix))) continue;
    if (typeof value === 'string') attributes[nameOfSpan(name)] = nameOfSpan(value);
    else if (typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value)))
      attributes[nameOfSpan(name)] = value;
  }
  return attributes;
}

/** Returns the attribute of a content, cut at so many UTF-16 units. @param value what the host's `redact` has left of it */
export function contentOf(name: string, value: unknown, maxChars: number): { [name: string]: string | boolean } {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  if (text.length <= maxChars) return { [name]: text };
  return { [name]: text.slice(0, maxChars).toWellFormed(), [own.cut]: true };
}
