import type { z } from 'zod';
import { type TestClock, testClock } from '../../src/testing/index.ts';
import { defineTool, type Tool, type ToolContext } from '../../src/tool/define-tool.ts';
import { runTool, type ToolCall, type ToolEnvironment } from '../../src/tool/run-tool.ts';
import type { ToolOutput } from '../../src/values/message.ts';
import { noUsage } from '../../src/values/usage.ts';

export function environmentOf(extra: Partial<ToolEnvironment> = {}): ToolEnvironment & { clock: TestClock } {
  const invocation = { callerId: 'ann', channelId: 'c', guildId: 'g', parentRunId: '', prompt: 'hi', inputs: { n: 1 } };
  const context = {
    runId: 'run',
    idempotencyKey: () => 'key',
    invocation,
    runState: () => ({ iteration: 3, usage: noUsage, messages: 7 }),
  };
  const signal = new AbortController().signal;
  return { context, signal, clock: testClock(), timeoutMs: 120_000, ...extra } as never;
}

export const callOf = (input: unknown = {}, extra: Partial<ToolCall> = {}): ToolCall =>
  ({ callId: 'c1', name: 'probe', input, attempt: 1, ...extra }) as ToolCall;

/** A tool that takes any object and does this. */
export const probe = (execute: (input: never, context: ToolContext) => unknown, extra: object = {}): Tool =>
  defineTool({
    name: 'probe',
    description: '',
    input: { type: 'object' },
    execute: execute as never,
    ...extra,
  }) as Tool;

export const withInput = (
  input: z.ZodType | object,
  execute: (input: unknown) => unknown = (value) => value as never,
): Tool => defineTool({ name: 'probe', description: '', input, execute }) as Tool;

export const outputOf = (tool: Tool | undefined, input: unknown = {}): Promise<ToolOutput> =>
  runToEnd(tool, callOf(input), environmentOf());

/** Runs a call that does not wait. */
export async function runToEnd(...call: Parameters<typeof runTool>): Promise<ToolOutput> {
  const end = await runTool(...call);
  if (end.type === 'wait') throw new Error(`the call waits: ${JSON.stringify(end.request)}`);
  return end;
}
