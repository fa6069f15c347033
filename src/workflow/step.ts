import { fromPromise, type NonReducibleUnknown, type PromiseActorLogic } from 'xstate';
import type { Agent } from '../agent/agent.ts';
import type { OkOutput } from '../run/result.ts';
import type { Answerers } from '../tool/approval.ts';
import type { Question } from '../tool/call-waits.ts';
import type { Tool, ToolContext } from '../tool/define-tool.ts';
import { isBrokenConnection, ReadyOutput } from '../tool/output.ts';
import { readSchema } from '../tool/schema.ts';
import { isTool } from '../tool/toolbox.ts';
import { toErrorData } from '../values/error-data.ts';
import { UnsupportedError } from '../values/errors.ts';
import { hiddenField } from '../values/hidden.ts';
import type { JsonValue } from '../values/json.ts';
import { checkKeys, type KnownKeys, kindOf } from '../values/known-options.ts';
import { isThenable } from '../values/thenable.ts';
import { agentOfWorkflow, type Workflow, type WorkflowInput, type WorkflowOutput } from './workflow.ts';

/** What an actor of a workflow calls. */
export type StepCall =
  | { readonly kind: 'tool'; readonly tool: Tool }
  | { readonly kind: 'agent'; readonly agent: Agent }
  /** A question or a signal: a tool that only waits, made for the name of its actor. */
  | { readonly kind: 'wait'; readonly tool: Tool };

/** The call behind an actor logic. A question gets its name from the machine. */
type MadeCall =
  | Exclude<StepCall, { kind: 'wait' }>
  | { readonly kind: 'wait'; readonly toolFor: (src: string) => Tool };

const made = hiddenField<MadeCall>();

/** The result of an agent or a workflow that a workflow called, without its messages. Any other end is an error of the actor, with its code. */
export type AgentOutput<Data = unknown> = Pick<
  OkOutput<Data>,
  'runId' | 'status' | 'output' | 'data' | 'usage' | 'spend' | 'finishReason'
>;

/** The input of an agent that a workflow calls. */
export interface AgentInput {
  readonly prompt: string;
}

/**
 * Makes a tool or an agent an actor of a workflow's machine. Its calls are recorded: a call begins when the transition that asks
 * for it is stored, and its effect says what a crash does with it.
 * @throws {TypeError} for anything else
 * @example setup({ actors: { lookUp: step(lookUpOrder), clerk: step(clerkAgent) } })
 */
export function step<Input, Output, Given>(tool: Tool<Input, Output, Given>): PromiseActorLogic<Awaited<Output>, Given>;
export function step<Data>(agent: Agent<Data>): PromiseActorLogic<AgentOutput<Data>, AgentInput>;
export function step<W extends Workflow>(
  workflow: W,
): PromiseActorLogic<
  AgentOutput<WorkflowOutput<W>>,
  // A machine that takes no input takes any.
  unknown extends WorkflowInput<W> ? NonReducibleUnknown : WorkflowInput<W>
>;
export function step(given: Tool | Agent | Workflow): unknown {
  if (isTool(given))
    return logicOf({ kind: 'tool', tool: withCodes(given) }, (input, signal) => runPlain(given, input, signal));
  if (typeof given === 'object' && given !== null && typeof given.id === 'string' && 'instructions' in given)
    return logicOf({ kind: 'agent', agent: given as Agent }, () =>
      needsExecutor(`agent ${given.id}`, 'executor.run(agent, input)'),
    );
  const workflow = agentOfWorkflow(given);
  if (workflow)
    return logicOf({ kind: 'agent', agent: workflow }, () =>
      needsExecutor(`workflow ${workflow.id}`, 'executor.run(workflow, { input })'),
    );
  throw new TypeError(
    `step needs a tool made with defineTool, an agent made with defineAgent or a workflow, not ${kindOf(given)}`,
  );
}

/** A value, or a function of the input of the invoke. */
export type FromInput<Input, T> = T | ((input: Input) => T);

/** Who answers a question of a workflow. */
export interface AskedPersons<Input> {
  /**
   * Says whether a person may answer, as `approval.approvers` of a tool does. Then an answer needs `by`.
   * @example approvers: ({ by }) => managers.has(by.id) || { refused: `${by.id} is no manager` }
   */
  readonly approvers?: Answerers<Input>;
  /** How many different persons must give the same answer, each by name; default 1. The last answer of a person counts. */
  readonly quorum?: FromInput<Input, number>;
}

/** A question of a workflow to a person. */
export interface AskOptions<Input, Option extends JsonValue> extends AskedPersons<Input> {
  readonly question: FromInput<Input, string>;
  /** The answers to choose from; absent = any JSON, or what the schema takes. */
  readonly options?: FromInput<Input, readonly Option[]>;
  readonly schema?: unknown;
  /** After this time the actor fails with WAIT_EXPIRED, ms; absent = never. */
  readonly expiresInMs?: FromInput<Input, number>;
}

/**
 * Makes a question to a person an actor of a workflow's machine: its output is the answer, which
 * `executor.control(runId).answer(waitId, value)` gives.
 * @example ask({ question: (input: { cents: number }) => `Refund ${input.cents}?`, options: ['yes', 'no'] })
 */
export function ask<Input = unknown, const Option extends JsonValue = JsonValue>(
  options: AskOptions<Input, Option>,
): PromiseActorLogic<Option, Input> {
  checkKeys(options, askKeys, { of: 'ask' });
  const { approvers } = options;
  if (approvers !== undefined && typeof approvers !== 'function')
    throw new TypeError(`ask: approvers must be a function, not ${kindOf(approvers)}`);
  const question = (input: Input): Question<unknown, Option> => {
    const { schema } = options;
    const [choices, expiresInMs] = [valueFor(options.options, input), valueFor(options.expiresInMs, input)];
    const quorum = valueFor(options.quorum, input);
    return {
      question: valueFor(options.question, input) as string,
      ...(choices ? { options: choices } : {}),
      ...(schema === undefined ? {} : { schema }),
      ...(expiresInMs === undefined ? {} : { expiresInMs }),
      ...(quorum === undefined ? {} : { quorum }),
    };
  };
  const toolFor = (src: string) => {
    const tool = waitTool(src, (input, context) => context.ask(question(input as Input)));
    return approvers ? Object.freeze({ ...tool, answerers: approvers as Answerers }) : tool;
  };
  return logicOf({ kind: 'wait', toolFor }, () => needsExecutor('a question'));
}

const askKeys: KnownKeys<AskOptions<unknown, JsonValue>> = {
  question: true,
  options: true,
  schema: true,
  expiresInMs: true,
  approvers: true,
  quorum: true,
};

/** How a workflow waits for a signal. */
export interface SignalWaitOptions<Input> {
  /** Which of the signals of this name; default ''. */
  readonly key?: FromInput<Input, string>;
  readonly schema?: unknown;
  /** After this time the actor fails with WAIT_EXPIRED, ms; absent = never. */
  readonly timeoutMs?: FromInput<Input, number>;
}

/**
 * Makes a wait for a signal an actor of a workflow's machine: its output is the value that `executor.signal(name, value, { id })` sends,
 * also before the workflow waits.
 * @example waitForSignal('paid', { key: (input: { order: string }) => input.order })
 */
export function waitForSignal<Input = unknown, Value = JsonValue>(
  name: string,
  options: SignalWaitOptions<Input> = {},
): PromiseActorLogic<Value, Input> {
  checkKeys(options, { key: true, schema: true, timeoutMs: true }, { of: 'waitForSignal' });
  const event = (input: Input) => {
    const { schema } = options;
    const [key, timeoutMs] = [valueFor(options.key, input), valueFor(options.timeoutMs, input)];
    return {
      ...(key === undefined ? {} : { key }),
      ...(schema === undefined ? {} : { schema }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    };
  };
  const toolFor = (src: string) => waitTool(src, (input, context) => context.waitFor(name, event(input as Input)));
  return logicOf({ kind: 'wait', toolFor }, () => needsExecutor(`the signal ${name}`));
}

/** Returns the call behind an actor of a machine. @throws {TypeError} for logic whose effect is not declared */
export function stepCallOf(of: string, src: string, logic: unknown): StepCall {
  const call = typeof logic === 'object' && logic !== null ? made.get(logic) : undefined;
  if (!call)
    throw new TypeError(
      `${of}: the actor ${src} was not made by step, ask or waitForSignal: what a crash does with it is unknown. ` +
        `Make its work a tool, and write setup({ actors: { ${src}: step(tool) } })`,
    );
  return call.kind === 'wait' ? { kind: 'wait', tool: call.toolFor(src) } : call;
}

function logicOf<Output, Input>(
  call: MadeCall,
  plain: (input: unknown, signal: AbortSignal) => unknown,
): PromiseActorLogic<Output, Input> {
  const logic = fromPromise(async ({ input, signal }: { input: unknown; signal: AbortSignal }) => plain(input, signal));
  made.put(logic, call);
  return logic as unknown as PromiseActorLogic<Output, Input>;
}

function valueFor<Input, T>(given: FromInput<Input, T> | undefined, input: Input): T | undefined {
  return typeof given === 'function' ? (given as (input: Input) => T)(input) : given;
}

/** Any JSON: what the functions of a question or a signal read is the machine's own. */
const anyInput = readSchema({}, 'the input of a wait');

function waitTool(src: string, wait: (input: unknown, context: ToolContext) => Promise<unknown>): Tool {
  return withCodes({
    name: src,
    description: '',
    input: anyInput,
    effect: 'read',
    isWait: true,
    execute: wait,
  } as Tool);
}

/**
 * A tool whose failures keep their code: a machine's `onError` gets it. A connection that broke after a `once` call is left as it is: the run
 * says what is known of such a call.
 */
function withCodes(tool: Tool): Tool {
  const failed = (error: unknown): ReadyOutput => {
    if (tool.effect === 'once' && isBrokenConnection(error)) throw error;
    const { name, code, message } = toErrorData(error, 'TOOL_FAILED');
    return new ReadyOutput({ type: 'error-json', value: { name, code, message } });
  };
  return Object.freeze({
    ...tool,
    execute(input: unknown, context: ToolContext) {
      try {
        const result = tool.execute(input, withoutImages(context));
        return isThenable(result) ? Promise.resolve(result).catch(failed) : result;
      } catch (error) {
        return failed(error);
      }
    },
  });
}

/** A workflow has no message that could hold an image. */
function withoutImages(context: ToolContext): ToolContext {
  const attachImages = () => {
    throw new UnsupportedError('attachImages is not possible in a workflow: return what its machine needs');
  };
  return Object.create(context, { attachImages: { value: attachImages, enumerable: true } });
}

/** Runs a tool in a plain actor of XState: without a record, and without waits. */
async function runPlain(tool: Tool, input: unknown, signal: AbortSignal): Promise<unknown> {
  const checked = await tool.input.validate(input);
  if (!checked.ok) throw new TypeError(`invalid input for tool "${tool.name}": ${checked.message}`);
  const wait = async () => needsExecutor(`a wait of tool "${tool.name}"`);
  const [runId, callId] = ['plain', crypto.randomUUID()];
  const invocation = { callerId: '', channelId: '', guildId: '', parentRunId: '', prompt: '', inputs: {} };
  const context = {
    ...{ runId, callId, idempotencyKey: callId, attempt: 1, signal, invocation },
    runState: { iteration: 0, usage: { inputTokens: 0, outputTokens: 0 }, messages: 0 },
    ...{ ask: wait, waitFor: wait, sleep: wait, sleepUntil: wait, attachImages: () => {}, progress: () => {} },
  };
  return tool.execute(checked.value, context as unknown as ToolContext);
}

/** Says what a plain actor of XState lacks, and what a test gives it. */
function needsExecutor(what: string, instead = 'the answer'): never {
  throw new UnsupportedError(
    `${what} needs a durable run: start the workflow with executor.start; or, in a plain createActor, give the machine an actor of your own: ` +
      `machine.provide({ actors: { <its name>: fromPromise(async ({ input }) => …) } }), which returns ${instead}`,
  );
}
