import type { ToolAnswer } from '../../../machines/context.ts';
import type { ToolCallInput } from '../../../machines/tool-calls.ts';
import { idempotencyKeyOf, waitIdOf } from '../../run/identity.ts';
import { inputOf, type OpenCall, type ToolEffect, unknownOutcomeOf } from '../../run/open-step.ts';
import type { Wait } from '../../run/waits/wait.ts';
import type { ToolWait, WaitRequest } from '../../tool/call-waits.ts';
import { errorText } from '../../tool/output.ts';
import { runTool, type ToolEnvironment } from '../../tool/run-tool.ts';
import { systemClock } from '../../values/clock.ts';
import { type ErrorData, toErrorData } from '../../values/error-data.ts';
import { LeaseLostError } from '../../values/errors.ts';
import { yieldToEventLoop } from '../../values/event-loop.ts';
import type { ToolOutput } from '../../values/message.ts';
import { isWorkflow } from '../../workflow/program.ts';
import { callThrough, noLabels } from '../host/middleware.ts';
import type { ActiveRun } from '../run/active-run.ts';
import { tellUnknown, warnUnknown } from '../run/oversight.ts';
import { isStoredHere } from '../run/record/setup-fault.ts';

/** Makes one tool call, with lease check and middleware, and returns one result for the model, or a wait. Never rejects. */
export async function makeToolCall(given: ToolCallInput, run: ActiveRun): Promise<ToolAnswer> {
  const input = asAllowed(given);
  const { callId, name, effect, attempt, input: args } = input.call;
  const { services } = run;
  try {
    const toolbox = run.resources.loops[input.phase ?? 0]?.toolbox;
    // Calls that wait for nothing follow one another, thousands of them in a large message.
    const turn = services.config.clock === systemClock ? yieldToEventLoop() : undefined;
    if (turn) await turn;
    // A run that must leave begins nothing more, even if the request came while the call waited here.
    const isOver = () => run.signal.aborted || mustStop(run);
    if (turn && isOver()) return notBegun(callId);
    // Checked in the turn in which the call begins: the process may have slept during a wait for the store.
    if (mustAsk(run, effect) && !(await mayBegin(run, isOver))) return notBegun(callId);
    const { clock } = services.config;
    const begunAt = clock.monotonic();
    const step = input.iteration + 1;
    // Their fields are named: each step publishes both, and an object of several spreads costs more.
    const done = (output: ToolOutput, isLate?: true) => {
      const ms = clock.monotonic() - begunAt;
      const event = { type: 'tool.done', step, callId, name, effect, output, ms } as const;
      run.publish(isLate ? { ...event, isLate } : event);
    };
    run.publish({ type: 'tool.started', step, callId, name, effect, input: args, attempt });
    const environment = environmentOf(run, input, (output) => done(output, true));
    const call = () => runTool(toolbox?.tools.get(name), input.call, environment);
    const { tracing } = services.config;
    const traced =
      tracing && !tracing.isIdle() && ({ kind: 'tool', run: run.observed, step, callId, name, effect } as const);
    const result = await (traced ? tracing.enter(traced, call) : call());
    const output = result.type === 'wait' ? outputOf(result.request, run, input) : result;
    if ('callId' in output) return output;
    run.resources.callSignals?.delete(callId);
    const shown = isWorkflow(run.agent) ? output : withEdit(output, input.call);
    done(shown);
    return { callId, result: shown };
  } catch (error) {
    return { callId, result: { type: 'error-text', value: toErrorData(error).message } };
  }
}

/** What a call has in place of a result; the text for the model where no person decides about an unknown outcome. */
function outputOf(request: ToolWait['request'], run: ActiveRun, input: ToolCallInput): ToolAnswer | ToolOutput {
  const { callId, name, attempt } = input.call;
  if (request.kind === 'left-child') return { callId, result: waits, isLeft: true };
  if (request.kind !== 'unknown-outcome') return { callId, result: waits, wait: waitFrom(request, run, input) };
  const unknown = { step: input.iteration + 1, callId, name, attempt };
  run.publish({ type: 'call.unknown', ...unknown });
  // The parking has a log line and a notice of its own.
  if (parksUnknown(run)) return { callId, result: waits, parks: outcomeUnknown(name, request.why) };
  warnUnknown(run, unknown);
  return errorText(unknownOutcomeOf(request.why));
}

function parksUnknown(run: ActiveRun): boolean {
  return run.services.config.onUnknownOutcome === 'park' && run.isDurable && isStoredHere(run);
}

function outcomeUnknown(name: string, why: string): ErrorData {
  const message = `a call that must not be repeated was sent, and no answer came (${name}: ${why})`;
  return { name: 'RunParkedError', code: 'OUTCOME_UNKNOWN', message };
}

/** A call of a workflow ends also when the machine leaves the state that made it. */
function signalOf(run: ActiveRun, callId: string): AbortSignal {
  if (!isWorkflow(run.agent)) return run.signal;
  const controller = new AbortController();
  run.resources.callSignals ??= new Map();
  run.resources.callSignals.set(callId, controller);
  return AbortSignal.any([run.signal, controller.signal]);
}

/** Whether the run stops, or its slice is over. */
function mustStop({ actor }: ActiveRun): boolean {
  const { cause, yielding } = actor.getSnapshot().context;
  return cause !== undefined || yielding !== undefined;
}

/** The result of a call that waits, or whose child was left: nothing reads it. */
const waits = { type: 'error-text', value: 'waits' } as const;

/** The latest time that a date can hold, ms. */
const LAST_TIME_MS = 8.64e15;

/** The wait that a running call has asked for. */
function waitFrom(
  { waitMs, dueAt, ...request }: WaitRequest,
  run: ActiveRun,
  { call, iteration }: ToolCallInput,
): Wait {
  const createdAt = run.services.config.clock.now();
  const { callId, name, answers = [] } = call;
  const until = dueAt ?? (waitMs === undefined ? undefined : createdAt + Math.ceil(waitMs));
  return {
    id: waitIdOf([run.runId, callId, answers.length, createdAt]),
    createdAt,
    ...(until === undefined ? {} : { dueAt: Math.min(until, LAST_TIME_MS) }),
    ...{ step: iteration + 1, callId, tool: name },
    ...request,
  };
}

/** The input that a person changed runs in place of the model's own. */
function asAllowed(input: ToolCallInput): ToolCallInput {
  return input.call.allowed?.input === undefined
    ? input
    : { ...input, call: { ...input.call, input: inputOf(input.call) } };
}

/** The model reads that its input was changed: its own message still has the original. */
function withEdit(output: ToolOutput, { allowed }: OpenCall): ToolOutput {
  if (allowed?.input === undefined) return output;
  const note = `A person changed the input before it ran: ${JSON.stringify(allowed.input)}. Do not repeat the original.`;
  switch (output.type) {
    case 'text':
    case 'error-text':
      return { ...output, value: `${note}\n${output.value}` };
    case 'json':
    case 'error-json':
      return {
        ...output,
        type: output.type === 'json' ? 'text' : 'error-text',
        value: `${note}\n${JSON.stringify(output.value)}`,
      };
    case 'content':
      return { ...output, value: [{ type: 'text', text: note }, ...output.value] };
    default:
      return output;
  }
}

/** Whether another process may have the run by now. A call without effects may begin all the same. */
function mustAsk(run: ActiveRun, effect: ToolEffect): boolean {
  return effect !== 'read' && !run.services.leases.isFresh(run);
}

/** Asks the store until the claim was fresh when the answer came. */
async function mayBegin(run: ActiveRun, isOver: () => boolean): Promise<boolean> {
  const { leases } = run.services;
  do {
    if (!(await leases.confirm(run, isOver))) return false;
  } while (!leases.isFresh(run));
  return true;
}

/** Another owner has the run: no code reads this answer. */
function notBegun(callId: string): ToolAnswer {
  const result = {
    type: 'error-text',
    value: 'not begun: the run was left, or taken over by another process',
  } as const;
  return { callId, result, isUnbegun: true };
}

/** The host's middleware around one call; undefined without middleware. */
function aroundTool(run: ActiveRun, input: ToolCallInput): ToolEnvironment['around'] {
  const layers = run.services.config.layers.tool;
  if (!layers) return undefined;
  const { runId, agent, resources, progress } = run;
  const { callId, name, effect, attempt, input: args } = input.call;
  const key = idempotencyKeyOf(run.born, input.call);
  const tier = resources.loops[input.phase ?? 0]?.tier ?? '';
  const call = { runId, step: input.iteration + 1, agentId: agent.id, tier, key, labels: progress?.labels ?? noLabels };
  const info = { ...call, callId, name, input: args, effect, attempt };
  return (signal, next) =>
    callThrough(layers, Object.freeze({ ...info, signal }), async () => {
      // A middleware may have waited for longer than the lease, and the process may have slept meanwhile.
      if (mustAsk(run, effect) && !(await mayBegin(run, () => signal.aborted)))
        throw new LeaseLostError(
          `tool "${name}" was not called: run ${runId} was left, or taken over by another process`,
        );
      return next();
    });
}

/** The environment of a call. The tallies are live: they are read when the tool reads them. */
function environmentOf(run: ActiveRun, input: ToolCallInput, onLate: (output: ToolOutput) => void): ToolEnvironment {
  const { call, meta, inputs, transcript } = input;
  const { callId, name, attempt } = call;
  const { callerId, channelId, guildId, parentRunId, prompt } = meta;
  const { clock, defaults } = run.services.config;
  return {
    context: {
      runId: run.runId,
      idempotencyKey: () => idempotencyKeyOf(run.born, call),
      invocation: { callerId, channelId, guildId, parentRunId, prompt, inputs: inputs.value },
      runState: () => {
        const { iteration, usage, transcript: messages } = run.actor.getSnapshot().context.progress;
        return { iteration, usage, messages: messages.length };
      },
    },
    transcript: () => transcript.slice(),
    signal: signalOf(run, callId),
    clock,
    timeoutMs: defaults.toolTimeoutMs,
    around: aroundTool(run, input),
    onProgress: (progress) => run.publish({ type: 'tool.progress', callId, name, progress }),
    onLate,
    // Of a run that is left, its next process says so.
    onCut: () => run.endFacts.isEnding && tellUnknown(run, { step: input.iteration + 1, callId, name, attempt }),
  };
}
