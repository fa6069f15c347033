import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createMistral } from '@ai-sdk/mistral';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { createGateway } from 'ai';
import type { Model } from 'pawl';

/*
 * Six provider packages, and what their servers stream: a thought with a signature and a call, or a text. Each answer has the ids of
 * its own provider.
 */

/** What a server says. */
export type Said = 'calls' | 'answers';

interface Dialect {
  model(baseURL: string): Model;
  /** The events of an answer, as the server streams them. */
  events(said: Said): readonly object[];
  /** The id of the call that it makes, and which ids of calls it takes. */
  readonly callId: string;
  readonly takes: RegExp;
}

export const THOUGHT = 'a secret thought';
/** Every mark that only its own provider may read begins so. */
export const MARK = 'MARK-';
const input = '{"q":1}';
const key = { apiKey: 'k' };

const anthropic: Dialect = {
  model: (baseURL) => createAnthropic({ baseURL, ...key })('claude-sonnet-4-5'),
  callId: 'toolu_01',
  takes: /^[a-zA-Z0-9_-]+$/,
  events: (said) => {
    const blocks =
      said === 'answers'
        ? [
            [
              { type: 'text', text: '' },
              { type: 'text_delta', text: 'done' },
            ],
          ]
        : [
            [
              { type: 'thinking', thinking: '', signature: '' },
              { type: 'thinking_delta', thinking: THOUGHT },
              { type: 'signature_delta', signature: `${MARK}anthropic` },
            ],
            [
              { type: 'tool_use', id: 'toolu_01', name: 'look', input: {} },
              { type: 'input_json_delta', partial_json: input },
            ],
          ];
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, usage };
    return [
      { type: 'message_start', message },
      ...blocks.flatMap(([content_block, ...deltas], index) => [
        { type: 'content_block_start', index, content_block },
        ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
        { type: 'content_block_stop', index },
      ]),
      { type: 'message_delta', delta: { stop_reason: said === 'calls' ? 'tool_use' : 'end_turn' }, usage },
      { type: 'message_stop' },
    ];
  },
};

const openai: Dialect = {
  model: (baseURL) => createOpenAI({ baseURL, ...key })('gpt-5'),
  callId: 'call_01',
  takes: /^.{1,64}$/,
  events: (said) => {
    const thought = { type: 'reasoning', id: `${MARK}rs`, summary: [] };
    const call = { type: 'function_call', id: `${MARK}fc`, call_id: 'call_01', name: 'look' };
    const text = { type: 'message', id: `${MARK}msg`, role: 'assistant', content: [] };
    const at = { item_id: `${MARK}rs`, summary_index: 0, output_index: 0 };
    const items =
      said === 'answers'
        ? [
            { type: 'response.output_item.added', output_index: 0, item: text },
            { type: 'response.output_text.delta', item_id: text.id, output_index: 0, content_index: 0, delta: 'done' },
            { type: 'response.output_item.done', output_index: 0, item: text },
          ]
        : [
            { type: 'response.output_item.added', output_index: 0, item: thought },
            { type: 'response.reasoning_summary_part.added', ...at },
            { type: 'response.reasoning_summary_text.delta', ...at, delta: THOUGHT },
            { type: 'response.output_item.done', output_index: 0, item: { ...thought, encrypted_content: `${MARK}e` } },
            { type: 'response.output_item.added', output_index: 1, item: { ...call, arguments: '' } },
            { type: 'response.function_call_arguments.delta', item_id: call.id, output_index: 1, delta: input },
            {
              type: 'response.output_item.done',
              output_index: 1,
              item: { ...call, arguments: input, status: 'completed' },
            },
          ];
    const response = { id: `${MARK}resp`, created_at: 1, model: 'gpt-5' };
    const usage = { input_tokens: 1, output_tokens: 1 };
    return [
      { type: 'response.created', response },
      ...items,
      { type: 'response.completed', response: { ...response, usage } },
    ];
  },
};

const google: Dialect = {
  model: (baseURL) => createGoogleGenerativeAI({ baseURL, ...key })('gemini-3-pro'),
  callId: '',
  takes: /^.{1,64}$/,
  events: (said) => {
    const calls = [
      { text: THOUGHT, thought: true },
      { functionCall: { name: 'look', args: { q: 1 } }, thoughtSignature: `${MARK}google` },
    ];
    const content = { role: 'model', parts: said === 'calls' ? calls : [{ text: 'done' }] };
    const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
    return [{ candidates: [{ content, finishReason: 'STOP' }], usageMetadata }];
  },
};

const mistral: Dialect = {
  model: (baseURL) => createMistral({ baseURL, ...key })('magistral-medium-latest'),
  callId: 'abcDEF123',
  takes: /^[a-zA-Z0-9]{9}$/,
  events: (said) => {
    const thinking = [{ type: 'thinking', thinking: [{ type: 'text', text: THOUGHT }] }];
    const call = { id: 'abcDEF123', type: 'function', function: { name: 'look', arguments: input } };
    const chunk = (delta: object, finish_reason: string | null, rest: object = {}) => ({
      ...{
        id: 'm',
        created: 1,
        model: 'm',
        choices: [{ index: 0, delta: { role: 'assistant', ...delta }, finish_reason }],
      },
      ...rest,
    });
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    if (said === 'answers') return [chunk({ content: 'done' }, null), chunk({ content: '' }, 'stop', { usage })];
    return [chunk({ content: thinking }, null), chunk({ content: '', tool_calls: [call] }, 'tool_calls', { usage })];
  },
};

const compatible: Dialect = {
  model: (baseURL) => createOpenAICompatible({ baseURL, ...key, name: 'local', includeUsage: true })('llama'),
  callId: 'functions.look:0',
  takes: /^.{1,64}$/,
  events: (said) => {
    const call = { index: 0, id: 'functions.look:0', type: 'function', function: { name: 'look', arguments: input } };
    const delta = said === 'calls' ? { reasoning_content: THOUGHT, tool_calls: [call] } : { content: 'done' };
    const chunk = (given: object, finish_reason: string | null) => ({
      ...{ id: 'm', choices: [{ index: 0, delta: given, finish_reason }] },
    });
    return [chunk({ role: 'assistant', ...delta }, null), chunk({}, said === 'calls' ? 'tool_calls' : 'stop')];
  },
};

const gateway: Dialect = {
  model: (baseURL) => createGateway({ baseURL, ...key })('anthropic/claude-sonnet-4.5') as Model,
  callId: 'toolu_gateway',
  takes: /^[a-zA-Z0-9_-]+$/,
  events: (said) => {
    const unified = said === 'calls' ? 'tool-calls' : 'stop';
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    const signed = { anthropic: { signature: `${MARK}gateway` } };
    const parts =
      said === 'answers'
        ? [
            { type: 'text-start', id: 't' },
            { type: 'text-delta', id: 't', delta: 'done' },
            { type: 'text-end', id: 't' },
          ]
        : [
            { type: 'reasoning-start', id: 'r' },
            { type: 'reasoning-delta', id: 'r', delta: THOUGHT },
            { type: 'reasoning-end', id: 'r', providerMetadata: signed },
            { type: 'tool-call', toolCallId: 'toolu_gateway', toolName: 'look', input },
          ];
    return [...parts, { type: 'finish', finishReason: { unified, raw: unified }, usage }];
  },
};

export const dialects = { anthropic, openai, google, mistral, compatible, gateway };
export type DialectName = keyof typeof dialects;
export const dialectNames = Object.keys(dialects) as readonly DialectName[];

/** The text of a stream of events. */
export function streamed(events: readonly object[]): string {
  const written = events.map((event) => {
    const { type } = event as { readonly type?: string };
    return `${type?.includes('_') || type?.includes('.') ? `event: ${type}\n` : ''}data: ${JSON.stringify(event)}\n\n`;
  });
  return written.join('');
}
