import { readProperty } from '../run/error-data.ts';
import { UnsupportedError } from '../run/errors.ts';
import type { Message } from '../run/message.ts';
import { defineTool, refuseApproval, type Tool, type ToolContext } from './define.ts';
import { ReadyOutput } from './output.ts';
import { transcriptKey } from './run.ts';

/** A tool of the AI SDK (`tool({…})`), which carries no name of its own. */
export interface AiSdkTool {
  readonly description?: unknown;
  readonly inputSchema?: unknown;
  /** The older name of `inputSchema`. */
  readonly parameters?: unknown;
  readonly execute?: unknown;
  readonly toModelOutput?: unknown;
  readonly needsApproval?: unknown;
  /** As in `defineTool`: whether what `toModelOutput` gives may hold files by URL. `{ ...tool({…}), allowUrls: true }` */
  readonly allowUrls?: unknown;
}

type Execute = (input: unknown, options: object) => unknown;
type ToModelOutput = (options: { toolCallId: string; input: unknown; output: unknown }) => unknown;

const noInput = { type: 'object', properties: {}, additionalProperties: false };

/** Adapting reads a schema; a tool is adapted once for each name it is given. */
const adapted = new WeakMap<object, Map<string, Tool>>();

/**
 * An AI SDK tool as one of ours. Its effect is `once`, since it says nothing about what repeating it would do.
 * @throws {UnsupportedError} for tools without `execute` (the provider's or the client's), and those to be approved
 */
export function fromAiSdkTool(name: string, tool: AiSdkTool): Tool {
  const byName = adapted.get(tool) ?? new Map<string, Tool>();
  adapted.set(tool, byName);
  const known = byName.get(name) ?? adapt(name, tool);
  byName.set(name, known);
  return known;
}

function adapt(name: string, tool: AiSdkTool): Tool {
  if (typeof tool.execute !== 'function') {
    throw new UnsupportedError(
      `tool "${name}" has no execute; tools that the provider or the client runs are not supported`,
    );
  }
  refuseApproval(name, tool.needsApproval);
  return defineTool({
    name,
    description: typeof tool.description === 'string' ? tool.description : '',
    input: tool.inputSchema ?? tool.parameters ?? noInput,
    ...(tool.allowUrls === undefined ? {} : { allowUrls: tool.allowUrls as boolean }),
    execute: (input, context) => execute(tool, input, context),
  });
}

function execute(tool: AiSdkTool, input: unknown, context: ToolContext): unknown {
  const { toolCallId, options } = optionsOf(context);
  const result = (tool.execute as Execute).call(tool, input, options);
  const isStream = typeof readProperty(result, Symbol.asyncIterator as never) === 'function';
  if (typeof tool.toModelOutput !== 'function' && !isStream) return result;
  return finish(tool, { toolCallId, input, result }, context);
}

function optionsOf(context: ToolContext): { toolCallId: string; options: object } {
  const transcript = (context as { [transcriptKey]?: () => readonly Message[] })[transcriptKey];
  const toolCallId = context.callId;
  const options = {
    toolCallId,
    get messages() {
      return transcript?.() ?? [];
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
  return new ReadyOutput(await (tool.toModelOutput as ToModelOutput).call(tool, { toolCallId, input, output }));
}

/** A tool that yields without ever waiting would keep its own time limit from being noticed. */
const VALUES_PER_TURN = 64;

/** What a tool yields before its last value is progress. Nobody draws from it any more once the call has ended. */
async function lastOf(values: AsyncIterable<unknown>, context: ToolContext): Promise<unknown> {
  const { signal } = context;
  let last: unknown;
  let count = 0;
  for await (const value of values) {
    if (count > 0) context.progress(last);
    count += 1;
    last = value;
    if (count % VALUES_PER_TURN === 0) await new Promise<void>((resolve) => setImmediate(resolve));
    if (signal.aborted) break;
  }
  return last;
}
