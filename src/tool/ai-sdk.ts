import type { ToolEffect } from '../run/open-step.ts';
import { readProperty } from '../values/error-data.ts';
import { UnsupportedError } from '../values/errors.ts';
import { nextTurn } from '../values/event-loop.ts';
import { isObject } from '../values/json.ts';
import { type KnownKeys, readOptions } from '../values/known-options.ts';
import type { Message } from '../values/message.ts';
import { checkTraits, defineTool, type Tool, type ToolContext, type ToolDefinition } from './define-tool.ts';
import { isMcpError, mcpErrorOutput, ReadyOutput } from './output.ts';
import { transcriptKey } from './run-tool.ts';

/** A tool of the AI SDK (`tool({…})`), which has no name of its own. */
export interface AiSdkTool {
  readonly description?: unknown;
  readonly inputSchema?: unknown;
  /** The older name of `inputSchema`. */
  readonly parameters?: unknown;
  readonly execute?: unknown;
  readonly toModelOutput?: unknown;
  readonly needsApproval?: unknown;
  /** As in `defineTool`: whether the output of `toModelOutput` may hold files by URL. `{ ...tool({…}), allowUrls: true }` */
  readonly allowUrls?: unknown;
}

/** An AI SDK tool with the options that the AI SDK does not have. */
export interface AiSdkToolEntry {
  readonly tool: AiSdkTool;
  /** What repeating a call would do, as in `defineTool`; default `once`. */
  readonly effect?: ToolEffect;
  /** Milliseconds; absent = the executor's `toolTimeoutMs`. */
  readonly timeoutMs?: number;
  readonly concurrency?: number;
  readonly allowUrls?: boolean;
}

const entryKeys: KnownKeys<AiSdkToolEntry> = {
  tool: true,
  effect: true,
  timeoutMs: true,
  concurrency: true,
  allowUrls: true,
};

type Traits = Omit<AiSdkToolEntry, 'tool'>;

type Execute = (input: unknown, options: object) => unknown;
type ToModelOutput = (options: { toolCallId: string; input: unknown; output: unknown }) => unknown;

const noInput = { type: 'object', properties: {}, additionalProperties: false };

/** Adapting reads a schema; a tool is adapted once for each name and each entry. */
const adapted = new WeakMap<object, Map<string, Tool>>();

/**
 * Returns whether a value in a record of tools is an entry for a tool of the AI SDK. No tool of the AI SDK has a field
 * `tool`.
 */
export function isAiSdkEntry(value: object): value is AiSdkToolEntry {
  return 'tool' in value;
}

/**
 * Reads an entry of a record of AI SDK tools, each of its fields once.
 * @throws {TypeError} for an unknown key, effect or limit
 */
export function readAiSdkEntry(name: string, given: AiSdkToolEntry): AiSdkToolEntry {
  const entry = readOptions(given, entryKeys, { of: `tool "${name}"` });
  if (!isObject(entry.tool)) throw new TypeError(`tools.${name}.tool is not a tool`);
  checkTraits(name, entry);
  return entry;
}

/** Makes a tool of an entry of a record of AI SDK tools. @throws as `fromAiSdkTool` */
export function fromAiSdkEntry(name: string, { tool, ...traits }: AiSdkToolEntry): Tool {
  return fromAiSdkTool(name, tool, traits);
}

/**
 * Adapts an AI SDK tool. Its effect is `once` unless its entry says otherwise: the tool does not say what a repetition would
 * do.
 * @throws {UNSUPPORTED} for tools without `execute` (the provider's or the client's)
 */
export function fromAiSdkTool(name: string, tool: AiSdkTool, traits: Traits = {}): Tool {
  const byName = adapted.get(tool) ?? new Map<string, Tool>();
  adapted.set(tool, byName);
  const key = JSON.stringify([name, Object.entries(traits).sort()]);
  const known = byName.get(key) ?? adapt(name, tool, traits);
  byName.set(key, known);
  return known;
}

function adapt(name: string, tool: AiSdkTool, traits: Traits): Tool {
  if (typeof tool.execute !== 'function') {
    throw new UnsupportedError(
      `tool "${name}" has no execute; tools that the provider or the client runs are not supported`,
    );
  }
  return defineTool({
    name,
    description: typeof tool.description === 'string' ? tool.description : '',
    input: tool.inputSchema ?? tool.parameters ?? noInput,
    ...(tool.allowUrls === undefined ? {} : { allowUrls: tool.allowUrls as boolean }),
    ...approvalOf(tool),
    ...traits,
    execute: (input, context) => execute(tool, input, context),
  });
}

/** The AI SDK's own rule: a flag, or a function of the input and of the call. Only `false` starts a call without a person. */
function approvalOf(tool: AiSdkTool): Pick<ToolDefinition<unknown, unknown>, 'needsApproval'> {
  const { needsApproval } = tool;
  if (needsApproval === undefined || needsApproval === false) return {};
  if (typeof needsApproval !== 'function') return { needsApproval: true };
  return {
    needsApproval: async (input, context) => {
      const options = { toolCallId: context.callId, messages: messagesOf(context), experimental_context: undefined };
      const asks: unknown = await needsApproval.call(tool, input, options);
      return asks !== false;
    },
  };
}

/** The messages before the call, as the AI SDK gives them to a tool. */
function messagesOf(context: object): readonly Message[] {
  return (context as { readonly [transcriptKey]?: () => readonly Message[] })[transcriptKey]?.() ?? [];
}

function execute(tool: AiSdkTool, input: unknown, context: ToolContext): unknown {
  const { toolCallId, options } = optionsOf(context);
  const result = (tool.execute as Execute).call(tool, input, options);
  const isStream = typeof readProperty(result, Symbol.asyncIterator as never) === 'function';
  if (typeof tool.toModelOutput !== 'function' && !isStream) return result;
  return finish(tool, { toolCallId, input, result }, context);
}

function optionsOf(context: ToolContext): { toolCallId: string; options: object } {
  const toolCallId = context.callId;
  const options = {
    toolCallId,
    get messages() {
      return messagesOf(context);
    },
    get abortSignal() {
      return context.signal;
    },
  };
  return { toolCallId, options };
}

interface Executed {
  readonly toolCallId: string;
  readonly input: unknown;
  readonly result: unknown;
}

async function finish(
  tool: AiSdkTool,
  { toolCallId, input, result }: Executed,
  context: ToolContext,
): Promise<unknown> {
  const isStream = typeof readProperty(result, Symbol.asyncIterator as never) === 'function';
  const output = isStream ? await lastOf(result as AsyncIterable<unknown>, context) : await result;
  if (typeof tool.toModelOutput !== 'function') return output;
  // The adapters of MCP clients drop the mark of a failed call.
  if (isMcpError(output)) return new ReadyOutput(mcpErrorOutput(output));
  return new ReadyOutput(await (tool.toModelOutput as ToModelOutput).call(tool, { toolCallId, input, output }));
}

/** A tool that yields without ever waiting would block the timer of its own time limit. */
const VALUES_PER_TURN = 64;

/** The values before the last one are progress. After the call has ended, no more values are read. */
async function lastOf(values: AsyncIterable<unknown>, context: ToolContext): Promise<unknown> {
  const { signal } = context;
  let last: unknown;
  let count = 0;
  for await (const value of values) {
    if (count > 0) context.progress(last);
    count += 1;
    last = value;
    if (count % VALUES_PER_TURN === 0) await nextTurn();
    if (signal.aborted) break;
  }
  return last;
}
