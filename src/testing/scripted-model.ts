import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FunctionTool,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider';
import type { JsonValue } from '../values/json.ts';
import type { Message } from '../values/message.ts';

/** How a scripted model plays its script. */
export interface ScriptedModelOptions {
  /**
   * `true` = the prompt says which entry is played: the third one for a prompt with two messages of the assistant. So a run that
   * continues in another process gets the entry that comes next. Default `false`: the third call plays the third entry.
   */
  readonly resumes?: boolean;
}

/** One request that a scripted model got. */
export interface ScriptedRequest {
  /** The system prompt; '' if there was none. */
  readonly system: string;
  /** The prompt without the system prompt. */
  readonly messages: readonly Message[];
  readonly tools: readonly LanguageModelV4FunctionTool[];
  readonly signal: AbortSignal | undefined;
}

/**
 * A tool call of a script. The default `callId` is `call-1`, `call-2`, … , counted over the model's life; with `resumes`, from the
 * calls of the prompt on.
 */
export interface ScriptedToolCall {
  readonly name: string;
  readonly input: JsonValue;
  readonly callId?: string;
}

/** What a scripted model does in one call. Made by the functions below. */
export type ScriptedStep =
  | { readonly type: 'calls'; readonly calls: readonly ScriptedToolCall[] }
  | { readonly type: 'reply'; readonly text: string }
  | { readonly type: 'fail'; readonly error: unknown }
  | { readonly type: 'hang' }
  | { readonly type: 'stall'; readonly text: string };

/** A script's entry: a step, or a function that makes one from the request. */
export type ScriptedEntry = ScriptedStep | ((request: ScriptedRequest) => ScriptedStep | Promise<ScriptedStep>);

/** A model that plays a script, and records its requests. */
export interface ScriptedModel extends LanguageModelV4 {
  /** All requests so far, in order, also those that failed. */
  readonly calls: readonly ScriptedRequest[];
}

/** A script entry: the model calls one tool. */
export function callTool(name: string, input: JsonValue = {}, callId?: string): ScriptedStep {
  return callTools([callId === undefined ? { name, input } : { name, input, callId }]);
}

/** A script entry: the model calls several tools in one message. */
export function callTools(calls: readonly ScriptedToolCall[]): ScriptedStep {
  return { type: 'calls', calls };
}

/** A script entry: the model answers with a text. */
export function reply(text: string): ScriptedStep {
  return { type: 'reply', text };
}

/** A script entry: the call rejects with this value. */
export function fail(error: unknown): ScriptedStep {
  return { type: 'fail', error };
}

/** A script entry: the call does not settle until its signal is aborted, and then rejects with the signal's reason. */
export function hang(): ScriptedStep {
  return { type: 'hang' };
}

/** A script entry: the model streams this text, then nothing until its signal is aborted. */
export function stallAfter(text: string): ScriptedStep {
  return { type: 'stall', text };
}

/** What each answered call reports: 10 tokens in, 5 out. */
const usage: LanguageModelV4GenerateResult['usage'] = Object.freeze({
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
});

/**
 * A language model (spec v4) that plays one entry of its script at each call. Each answered call reports a usage of 10
 * input and 5 output tokens. A call after the last entry fails with an error that says so.
 *
 * @example
 * const model = scriptedModel([callTool('lookup', { id: '1' }), reply('done')]);
 * const executor = createExecutor({ models: { fast: model } });
 * // … model.calls[0].messages is the first prompt
 */
export function scriptedModel(
  script: readonly ScriptedEntry[],
  { resumes = false }: ScriptedModelOptions = {},
): ScriptedModel {
  const requests: ScriptedRequest[] = [];
  let calls = 0;
  const nextId = () => `call-${++calls}`;
  const play = async (options: LanguageModelV4CallOptions): Promise<ScriptedStep> => {
    const request = requestOf(options);
    const nth = requests.push(request);
    const said = resumes ? request.messages.filter((message) => message.role === 'assistant') : [];
    if (resumes) calls = said.reduce((count, { content }) => count + content.filter(isToolCall).length, 0);
    const position = resumes ? said.length + 1 : nth;
    const entry = script[position - 1];
    if (entry === undefined) throw exhausted(script.length, position);
    const step = typeof entry === 'function' ? await entry(request) : entry;
    if (step.type === 'fail') throw step.error;
    return step.type === 'hang' ? untilAborted(options.abortSignal) : step;
  };
  return {
    specificationVersion: 'v4',
    provider: 'scripted',
    modelId: 'scripted',
    supportedUrls: {},
    calls: requests,
    async doGenerate(options) {
      const step = await play(options);
      if (step.type === 'stall') await untilAborted(options.abortSignal);
      return { content: contentOf(step, nextId), finishReason: finishReasonOf(step), usage, warnings: [] };
    },
    async doStream(options) {
      const step = await play(options);
      return { stream: streamOf(step, contentOf(step, nextId), options.abortSignal) };
    },
  };
}

/** Marked as not retryable, in the AI SDK's way. */
function exhausted(length: number, position: number): Error {
  const text = `the script of this scriptedModel has ${length} ${length === 1 ? 'step' : 'steps'}, and this is call ${position}`;
  return Object.assign(new Error(`${text}: the run asked the model more often than the test expected`), {
    isRetryable: false,
  });
}

function isToolCall({ type }: { readonly type: string }): boolean {
  return type === 'tool-call';
}

function requestOf({ prompt, tools = [], abortSignal }: LanguageModelV4CallOptions): ScriptedRequest {
  const first = prompt[0];
  return {
    system: first?.role === 'system' ? first.content : '',
    messages: first?.role === 'system' ? prompt.slice(1) : [...prompt],
    tools: tools.filter((tool): tool is LanguageModelV4FunctionTool => tool.type === 'function'),
    signal: abortSignal,
  };
}

function untilAborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => onAbort(signal, reject));
}

function onAbort(signal: AbortSignal | undefined, react: (reason: unknown) => void): void {
  if (signal?.aborted) react(signal.reason);
  else signal?.addEventListener('abort', () => react(signal.reason), { once: true });
}

function contentOf(step: ScriptedStep, nextId: () => string): LanguageModelV4Content[] {
  if (step.type === 'reply' || step.type === 'stall') return [{ type: 'text', text: step.text }];
  if (step.type !== 'calls') return [];
  return step.calls.map(({ name, input, callId }) => ({
    type: 'tool-call' as const,
    toolCallId: callId ?? nextId(),
    toolName: name,
    input: JSON.stringify(input),
  }));
}

function finishReasonOf(step: ScriptedStep): LanguageModelV4GenerateResult['finishReason'] {
  const unified = step.type === 'calls' ? 'tool-calls' : 'stop';
  return { unified, raw: unified };
}

function streamOf(
  step: ScriptedStep,
  content: readonly LanguageModelV4Content[],
  signal: AbortSignal | undefined,
): ReadableStream<LanguageModelV4StreamPart> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue({ type: 'stream-start', warnings: [] });
      const isStalled = step.type === 'stall';
      for (const part of contentParts(content, isStalled)) controller.enqueue(part);
      if (isStalled) return onAbort(signal, (reason) => controller.error(reason));
      controller.enqueue({ type: 'finish', finishReason: finishReasonOf(step), usage });
      controller.close();
    },
  });
}

/** The stream parts of a complete content. `isOpen`: its texts are never closed, as if the model stopped in the middle. */
function contentParts(content: readonly LanguageModelV4Content[], isOpen: boolean): LanguageModelV4StreamPart[] {
  return content.flatMap((part, i): LanguageModelV4StreamPart[] => {
    if (part.type !== 'text') return part.type === 'tool-call' ? [part] : [];
    const id = `text-${i}`;
    const begun: LanguageModelV4StreamPart[] = [
      { type: 'text-start', id },
      { type: 'text-delta', id, delta: part.text },
    ];
    return isOpen ? begun : [...begun, { type: 'text-end', id }];
  });
}
