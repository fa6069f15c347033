import type { JsonValue, Message, ToolOutput } from '../index.ts';
import type { OpenStep } from '../kit.ts';
import { isObject } from '../values/json.ts';
import { toolCallsOf, toolResultsOf } from '../values/message.ts';
import type { EditQueue } from './write-queue.ts';

/** The calls of a stored run, for example a `RunCheckpoint`. */
export interface RecordedCalls {
  readonly messages: readonly Message[];
  readonly openStep?: OpenStep;
}

/** A call with a result. */
interface Answered {
  readonly name: string;
  readonly input: unknown;
  readonly output: ToolOutput;
}

/**
 * Repeats recorded calls of the file tools on a write queue, so that a resumed run has its proposed changes again. Failed
 * calls changed nothing.
 */
export function replayInto(queue: EditQueue, { messages, openStep }: RecordedCalls): void {
  for (const step of finishedSteps(messages)) replayStep(queue, step);
  if (openStep) replayStep(queue, answeredOf(openStep));
}

/** The calls of one step run in parallel, and after a crash in any order: so the changes are numbered. */
function replayStep(queue: EditQueue, step: readonly Answered[]): void {
  const calls = step.map(({ name, input, output }) => ({ name, input, result: resultOf(output) }));
  for (const { name, input, result } of calls.sort((a, b) => changeOf(a.result) - changeOf(b.result))) {
    if (result) replayCall(queue, { name, input, result });
  }
}

type Result = { readonly path: string } & { readonly [key: string]: unknown };

function replayCall(queue: EditQueue, { name, input, result }: { name: string; input: unknown; result: Result }): void {
  const { path, version, base } = result;
  const change = changeOf(result);
  if (name === 'read_file' && isVersion(version)) queue.saw(path, version);
  if (!isVersion(base)) return;
  if (name === 'delete_file') queue.restore(path, null, { base, change });
  if (name !== 'write_file' || !isObject(input) || typeof input.content !== 'string') return;
  queue.restore(path, input.content, { base, change });
}

function changeOf(result: Result | undefined): number {
  return typeof result?.change === 'number' ? result.change : 0;
}

function isVersion(value: unknown): value is string | null {
  return value === null || typeof value === 'string';
}

/** The file tools return JSON; the output of a failed call has another type. */
function resultOf(output: ToolOutput): Result | undefined {
  if (output.type !== 'json') return undefined;
  const value: unknown = output.value;
  return isObject(value) && typeof value.path === 'string' ? (value as Result) : undefined;
}

/** The calls of each message, with their results. */
function* finishedSteps(messages: readonly Message[]): Generator<Answered[]> {
  let inputs = new Map<string, JsonValue>();
  for (const message of messages) {
    if (message.role === 'assistant') {
      inputs = new Map(toolCallsOf(message).map((call) => [call.toolCallId, call.input as JsonValue]));
    }
    const results = toolResultsOf(message).filter(({ toolCallId }) => inputs.has(toolCallId));
    yield results.map(({ toolCallId, toolName, output }) => ({
      name: toolName,
      input: inputs.get(toolCallId),
      output,
    }));
  }
}

function answeredOf({ calls }: OpenStep): Answered[] {
  return calls.flatMap(({ name, input, state, result }) =>
    state === 'done' && result ? [{ name, input, output: result }] : [],
  );
}
