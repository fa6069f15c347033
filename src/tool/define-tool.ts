import type { ToolEffect } from '../run/open-step.ts';
import type { ImageInput } from '../run/request.ts';
import type { JsonObject, JsonValue } from '../values/json.ts';
import { checkKeys, isWholeBound, type KnownKeys } from '../values/known-options.ts';
import { isDefinableName } from '../values/tool-name.ts';
import type { Usage } from '../values/usage.ts';
import { type Answerers, type Approval, checkApproval, type NeedsApproval } from './approval.ts';
import type { CallWaits } from './call-waits.ts';
import { type GivenOf, readSchema, type ToolInput, type ValueOf } from './schema.ts';

/** The run that calls the tool: its caller and its purpose. */
export interface ToolInvocation {
  readonly callerId: string;
  readonly channelId: string;
  readonly guildId: string;
  readonly parentRunId: string;
  readonly prompt: string;
  /** The host's values for the tools of this run; plain JSON. */
  readonly inputs: { readonly [name: string]: JsonValue };
}

/** The progress of the run. */
export interface RunTallies {
  /** Completed model turns, over the whole life of the run. */
  readonly iteration: number;
  readonly usage: Usage;
  /** How many messages the transcript has. */
  readonly messages: number;
}

/** The context of a tool call, with the waits that it may ask for. */
export interface ToolContext extends CallWaits {
  /** The run that makes the call. */
  readonly runId: string;
  /** Names the call in its run. */
  readonly callId: string;
  /** Equal at each attempt of this call, in every process. An `idempotent` tool passes it to its receiver. */
  readonly idempotencyKey: string;
  /** 1 at the first start of the call; higher after a crash. */
  readonly attempt: number;
  /** Aborted when the run stops, the tool's time is up or the call begins to wait, with the reason. */
  readonly signal: AbortSignal;
  /** Who asked for the run, its prompt, and the inputs for its tools. */
  readonly invocation: ToolInvocation;
  /** How far the run is: its steps, tokens and messages. */
  readonly runState: RunTallies;
  /**
   * Adds images to the result of this call: the model sees them in its next turn, once. They are recorded with the call. An
   * error result has no images.
   */
  attachImages(images: readonly ImageInput[]): void;
  /** Reports progress of the call as an event of the run; it is not recorded. A value that is not JSON is dropped. */
  progress(value: unknown): void;
}

/** A tool as runs use it. Make one with `defineTool`. */
export interface Tool<Input = unknown, Output = unknown, Given = Input> {
  readonly name: string;
  readonly description: string;
  readonly input: ToolInput;
  readonly effect: ToolEffect;
  /** Time limit of one call, ms; absent = the executor's `toolTimeoutMs`. */
  readonly timeoutMs?: number;
  /** Most calls of this tool that one message may run at the same time. */
  readonly concurrency?: number;
  /** Whether its results may hold files by URL; absent = no. */
  readonly allowUrls?: boolean;
  /** Each of its calls is a run. */
  readonly isRun?: boolean;
  /** It only waits for something from outside, as a question of a workflow does: no rule judges it. */
  readonly isWait?: boolean;
  /** Whether a person must approve its calls; absent = never, unless the executor's `approvals` say so. */
  readonly needsApproval?: NeedsApproval;
  /** How persons decide about its calls. */
  readonly approval?: Approval;
  /** Says who may answer its questions; absent = every person. The `ask` of a workflow sets it. */
  readonly answerers?: Answerers;
  execute(input: Input, context: ToolContext): Output;
  /** Never set: the type of what its schema takes, which `step` asks for. */
  readonly '~given'?: Given;
}

/** The argument of a tool's `execute`, derived from the input schema. A plain JSON Schema has no types: any JSON object. */
export type InputOf<Schema> = ValueOf<Schema, JsonObject>;

/** The argument of `defineTool`. */
export interface ToolDefinition<Schema, Output> {
  /**
   * 1 to 64 of the characters A-Z, a-z, 0-9, `_` and `-`.
   * @example name: 'send_mail'
   */
  readonly name: string;
  /**
   * For the model: what the tool does and when to use it.
   * @example description: 'Sends a mail to a customer.'
   */
  readonly description: string;
  /**
   * A Standard Schema with a JSON Schema (zod 4, valibot, arktype), an AI SDK schema, or a plain JSON Schema.
   * @example input: z.object({ to: z.string(), text: z.string() })
   */
  readonly input: Schema;
  /**
   * Decide what a repeated call does: it is asked after a crash in the middle of the call. `read`: nothing, so the call is made again.
   * `idempotent`: nothing, if the receiver gets the `idempotencyKey`; it is made again with the same key. `once`: it would do it twice;
   * the call is never made again, costs one more durable write, and its model or a person reads that its outcome is unknown.
   * @default 'once'
   * @example effect: 'read'
   */
  readonly effect?: ToolEffect;
  /**
   * Longest time of one execution; waits do not count. The outcome of a `once` call that takes longer is unknown.
   * @default the executor's `defaults.toolTimeoutMs`
   * @example timeoutMs: 30_000
   */
  readonly timeoutMs?: number;
  /**
   * Most calls of this tool that one message may run at the same time.
   * @default the agent's `toolConcurrency`
   * @example concurrency: 2
   */
  readonly concurrency?: number;
  /**
   * Whether the parts of its results, and its images, may be files by URL, which the model's provider fetches. Without it
   * such a result is an error for the model. Set it only if the URLs are your own, never for those of an untrusted API or of
   * the model.
   * @default false
   */
  readonly allowUrls?: boolean;
  /**
   * Whether a person must approve a call before it starts: always, or by its input. The run then waits, without a process. A
   * function that throws or does not answer means that a person must approve.
   * @default false
   * @example needsApproval: ({ to }) => !to.endsWith('@shop.example')
   */
  readonly needsApproval?: NeedsApproval<InputOf<Schema>>;
  /**
   * How persons decide: the question, the time, who may, how many, and whether they may change the input.
   * @default any person, within 7 days
   * @example approval: { prompt: ({ to }) => `Write to ${to}?`, expiresInMs: 86_400_000 }
   */
  readonly approval?: Approval<InputOf<Schema>>;
  /**
   * Does the work. Returns a string, a JSON value or `toolContent([...])` (text and file parts), or a promise of one. A thrown
   * error becomes an error result that the model reads; it does not end the run. `context.ask`, `waitFor`, `sleep` and
   * `sleepUntil` let the call wait: then `execute` runs again from its beginning when the wait is over.
   * @example execute: async ({ to, text }, { idempotencyKey }) => mailer.send({ to, text, key: idempotencyKey })
   */
  execute(input: InputOf<Schema>, context: ToolContext): Output;
}

const toolKeys: KnownKeys<ToolDefinition<unknown, unknown>> = {
  name: true,
  description: true,
  input: true,
  effect: true,
  timeoutMs: true,
  concurrency: true,
  allowUrls: true,
  needsApproval: true,
  approval: true,
  execute: true,
};

/** The words of other libraries. */
const [schema, work, approval] = [
  'the schema of its input is input',
  'the function that does the work is execute',
  'needsApproval makes a person decide',
];
const foreignWords = {
  ...{ parameters: schema, inputSchema: schema, schema },
  ...{ run: work, handler: work, func: work, call: work },
  ...{ requireApproval: approval, requiresApproval: approval },
};

/**
 * Defines a tool. Decide about its `effect` first: what a repeated call does. The default, `once`, is never made again after a crash in its
 * middle; a tool that only looks is `read`, and is.
 * @throws {TypeError} for a bad name, effect or limit, an unknown key, or a schema without a JSON Schema
 * @example
 * const lookup = defineTool({
 *   name: 'lookup',
 *   description: 'Looks up one customer by id.',
 *   input: z.object({ id: z.string() }),
 *   effect: 'read',
 *   execute: async ({ id }, { signal }) => (await fetch(`https://example.com/customers/${id}`, { signal })).json(),
 * });
 */
export function defineTool<const Schema, Output>(
  definition: ToolDefinition<Schema, Output>,
): Tool<InputOf<Schema>, Output, GivenOf<Schema, JsonObject>> {
  const { name, description, effect = 'once', timeoutMs, concurrency, allowUrls = false } = definition;
  const { needsApproval = false, approval } = definition;
  checkName(name);
  checkKeys(definition, toolKeys, { of: `tool "${name}"`, foreign: foreignWords });
  if (typeof description !== 'string') throw new TypeError(`tool "${name}": description must be a string`);
  if (typeof definition.execute !== 'function') throw new TypeError(`tool "${name}": execute must be a function`);
  checkTraits(name, { effect, timeoutMs, concurrency, allowUrls });
  checkApproval(name, definition.needsApproval, definition.approval);
  return Object.freeze({
    name,
    description,
    input: readSchema(definition.input, name),
    effect,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(allowUrls ? { allowUrls } : {}),
    ...(needsApproval === false ? {} : { needsApproval: needsApproval as NeedsApproval }),
    ...(approval ? { approval: Object.freeze({ ...approval }) as Approval } : {}),
    execute: (input: InputOf<Schema>, context: ToolContext) => definition.execute(input, context),
  });
}

/** Checks the name of a tool. @throws {TypeError} for a name that no tool may have */
export function checkName(name: unknown): void {
  if (isDefinableName(name)) return;
  const got = typeof name === 'string' ? JSON.stringify(name) : `a value of type ${typeof name}`;
  throw new TypeError(`a tool's name is 1 to 64 of the characters A-Z a-z 0-9 _ -, not ${got}`);
}

/** Checks a tool's effect and limits. @throws {TypeError} */
export function checkTraits(name: string, traits: { readonly [Key in keyof Tool]?: unknown }): void {
  const { effect = 'once', allowUrls = false, timeoutMs, concurrency } = traits;
  if (!['read', 'idempotent', 'once'].includes(effect as string)) {
    throw new TypeError(`tool "${name}": effect must be 'read', 'idempotent' or 'once', not ${JSON.stringify(effect)}`);
  }
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs > 0))
    throw new TypeError(`tool "${name}": timeoutMs must be a number above 0, not ${String(timeoutMs)}`);
  if (concurrency !== undefined && !isWholeBound(concurrency))
    throw new TypeError(`tool "${name}": concurrency must be a whole number above 0, not ${String(concurrency)}`);
  if (typeof allowUrls !== 'boolean') throw new TypeError(`tool "${name}": allowUrls must be true or false`);
}
