import { setTimeout } from 'node:timers/promises';
import * as restate from '@restatedev/restate-sdk';
import * as pawl from '../index.ts';

/** The options of `restateRuns`. Times in ms. */
export interface RestateRunsOptions {
  /** The URL of Restate's ingress: `http://127.0.0.1:8080`. */
  readonly ingress: string;
  /** The name of the virtual object; default `pawl`. */
  readonly name?: string;
  /** As for `executor.drive`; defaults 60,000 and 30,000. */
  readonly budgetMs?: number;
  readonly graceMs?: number;
  /** How often `sweep` looks for due runs; default 60,000. */
  readonly dueMs?: number;
}

/** A request to begin a run: the id of its agent or workflow, and an invocation of it. Its run id is the key of the object. */
export type StartRequest = { readonly agentId: string } & (
  | Omit<pawl.Invocation, 'runId'>
  | Omit<pawl.WorkflowInvocation<unknown>, 'runId'>
);
/** A machine event for a run of a workflow. One of the same id counts once. */
export type MachineEventRequest = pawl.SendEventOptions & { readonly event: pawl.MachineEvent };
/** A person's answer to a wait of a run. */
export type WaitAnswer = pawl.Answer & { readonly waitId: string; readonly by?: pawl.Person };
/** Where a run is, without its texts: how it ended, the code of its error, its open waits. */
export type RunState = ReturnType<typeof stateOf>;

/** How `start` found the run, and the code of its error. */
export interface BegunRun {
  readonly runId: string;
  readonly accepted: pawl.Accepted;
  readonly code: string | undefined;
}

type Shared = restate.ObjectSharedContext;
type Exclusive = restate.ObjectContext;

/** The handlers of the virtual object, whose key is the run id. Only errors that no repetition changes are terminal. */
export type RunHandlers = {
  /** Begins the run, in the store only. A repetition finds the run by its id. */
  start(ctx: restate.ObjectSharedContext, request: StartRequest): Promise<BegunRun>;
  /** Ends the run for good, as `control.cancel`. */
  cancel(ctx: restate.ObjectSharedContext, request?: { readonly reason?: string }): Promise<'ended' | 'sent'>;
  /** Sends a message to the model, as `control.steer`; a crash of the service may repeat it. */
  steer(ctx: restate.ObjectSharedContext, request: { readonly text: string }): Promise<string>;
  /** Sends a machine event to a workflow, as `control.send`; without an id a crash of the service may repeat it. */
  send(ctx: restate.ObjectSharedContext, request: MachineEventRequest): Promise<'recorded' | 'sent'>;
  /** Answers a wait of the run. */
  answer(ctx: restate.ObjectSharedContext, answer: WaitAnswer): Promise<string>;
  /** Reads the store; null = there is no such run, or not any more. */
  status(ctx: restate.ObjectSharedContext): Promise<RunState | null>;
  /** One slice of the run; then it sends itself, at once or later. With a `timer` that is superseded it does nothing. */
  drive(ctx: restate.ObjectContext, request?: { readonly timer?: number | undefined }): Promise<void>;
  /** Keeps an awakeable. The slice that ends the run resolves it with the outcome, or with null if none is kept. */
  attach(ctx: restate.ObjectContext, request: { readonly awakeableId: string }): Promise<void>;
};

/** The runs of an executor as a virtual object of Restate. */
export interface RestateRuns {
  /** To be served: `createEndpointHandler({ services: [runs.object] })` of the SDK. */
  readonly object: restate.VirtualObjectDefinition<string, RunHandlers>;
  /** The `onDue` of the executor: sends `drive` for a run that became due. @throws {Error} if the ingress did not accept it */
  onDue(runId: string, at: number): Promise<void>;
  /** Each `dueMs` sends `drive` for all due runs, until the signal is aborted: a Restate without data fills itself again. */
  sweep(options: { readonly signal: AbortSignal }): Promise<void>;
}

type Host = Required<RestateRunsOptions> & { readonly executor: pawl.Executor };

/** The least time from one slice to the next if it recorded no step, as in a process that shuts down, ms. */
const IDLE_MS = 500;
/** Most awakeables of a run: the journal of each slice has them. */
const MAX_ATTACHED = 16;
/** The time limit of a call of the ingress, ms. */
const INGRESS_MS = 10_000;
/** How many due runs are sent at a time. */
const PAGE = 100;

/** Returns the terminal error for one that no repetition changes; undefined: Restate repeats the call. */
function terminalOf(error: unknown): restate.TerminalError | undefined {
  if (error instanceof TypeError) return new restate.TerminalError(error.message, { errorCode: 400 });
  if (!pawl.isPawlError(error) || pawl.retryOf(error) === 'later') return undefined;
  const errorCode = error.code === 'RUN_NOT_FOUND' || error.code === 'WAIT_GONE' ? 404 : 409;
  return new restate.TerminalError(`${error.code}: ${error.message}`, { errorCode });
}

function stateOf(run: pawl.FoundRun) {
  const { runId, status } = run;
  if (status === 'ended') return { runId, status, result: run.outcome.status, code: run.outcome.error?.code };
  const waits = 'waits' in run ? run.waits?.map(({ id, kind }) => ({ id, kind })) : undefined;
  return { runId, status, waits };
}

async function begin(host: Host, runId: string, { agentId, ...invocation }: StartRequest): Promise<BegunRun> {
  const { executor } = host;
  const agent = executor.agent(agentId);
  if (!agent) throw new restate.TerminalError(`AGENT_NOT_FOUND: there is no agent ${agentId}`, { errorCode: 404 });
  const asked = { ...invocation, runId } as pawl.Invocation;
  const { accepted, error } = await executor.start(agent, asked, { drive: 'later' });
  return { runId, accepted, code: error?.code };
}

async function answer(to: pawl.RunControl, { waitId, how, value, note, reason = note, ...given }: WaitAnswer) {
  if (how === 'approve') return to.approve(waitId, note === undefined ? given : { ...given, note });
  if (how === 'deny') return to.deny(waitId, reason === undefined ? given : { ...given, reason });
  if (how === 'answer' && value !== undefined) return to.answer(waitId, value, given);
  if (how === 'wake') return to.wake(waitId);
  throw new TypeError('answer: how must be approve, deny, answer (with a value) or wake');
}

async function post({ ingress }: Host, path: string, init?: { headers: Record<string, string>; body?: string }) {
  const signal = AbortSignal.timeout(INGRESS_MS);
  const sent = fetch(`${ingress.replace(/\/$/, '')}/${path}`, { method: 'POST', signal, ...init });
  const { status } = await sent.catch((cause: unknown) => {
    // fetch throws a TypeError, which would look like a wrong call.
    throw new Error('the ingress of Restate did not answer', { cause });
  });
  // An awakeable that is gone needs no outcome.
  const isRefused = status >= 400 && !(status < 500 && path.startsWith('restate/'));
  if (isRefused) throw new Error(`the ingress of Restate answered ${status}: is the service registered?`);
}

async function postDrive(host: Host, runId: string, { at, key }: { at: number; key?: string }): Promise<void> {
  const delayMs = Math.max(0, Math.ceil(at - Date.now()));
  const path = `${host.name}/${encodeURIComponent(runId)}/drive/send${delayMs > 0 ? `?delay=${delayMs}ms` : ''}`;
  return post(host, path, { headers: key ? { 'idempotency-key': key } : {} });
}

function sendDrive({ name }: Host, ctx: Shared, { timer, delay = 0 }: { timer?: number; delay?: number } = {}): void {
  ctx.objectSendClient<RestateRuns['object']>({ name }, ctx.key).drive({ timer }, restate.rpc.sendOpts({ delay }));
}

/** A slice as a step of Restate. `nextMs`: when the next one begins, from now; absent: a command, or a person, makes it begin. */
async function slice({ executor, budgetMs, graceMs }: Host, ctx: Exclusive) {
  const { attemptCompletedSignal: signal } = ctx.request();
  const work = async () => {
    const earliest = Date.now() + IDLE_MS;
    const { state, wakeAt, code, boundaries } = await executor.drive(ctx.key, { budgetMs, graceMs, signal });
    const pauseMs = Math.max(0, Math.max(wakeAt ?? 0, boundaries > 0 ? 0 : earliest) - Date.now());
    return { state, code, nextMs: state === 'waiting' && wakeAt === undefined ? undefined : pauseMs };
  };
  return ctx.run('slice', work).catch(async (error: unknown) => {
    if (!(error instanceof restate.CancelledError)) throw error;
    // This fails if the run has just ended. The next slice sees that.
    await ctx.run('cancel', () => executor.control(ctx.key).cancel('cancelled in Restate')).catch(() => {});
    return { state: 'more', nextMs: 0 };
  });
}

async function drive(host: Host, ctx: Exclusive, timer: number | undefined): Promise<void> {
  const turn = (await ctx.get<number>('timer')) ?? 0;
  if (timer !== undefined && timer !== turn) return;
  const { state, nextMs } = await slice(host, ctx);
  const attached = (await ctx.get<readonly string[]>('attached')) ?? [];
  if (state === 'ended') {
    for (const id of attached) await ctx.run('outcome', () => tell(host, ctx.key, id));
    return ctx.clearAll();
  }
  ctx.set('timer', turn + 1);
  // A run that is cancelled while it rests ends without a slice: awakeables need another look.
  const lookMs = attached.length > 0 ? Math.min(nextMs ?? host.dueMs, host.dueMs) : nextMs;
  if (lookMs !== undefined) sendDrive(host, ctx, { timer: turn + 1, delay: lookMs });
}

/** Resolves an awakeable. A command of Restate would leave the outcome in the journal of the slice. */
async function tell(host: Host, runId: string, awakeableId: string): Promise<void> {
  const run = await host.executor.find(runId);
  const body = JSON.stringify(run?.status === 'ended' ? run.outcome : null);
  await post(host, `restate/awakeables/${awakeableId}/resolve`, {
    headers: { 'content-type': 'application/json' },
    body,
  });
}

async function attach(host: Host, ctx: Exclusive, id: string): Promise<void> {
  const ids = new Set(await ctx.get<readonly string[]>('attached')).add(id);
  if (ids.size > MAX_ATTACHED || !/^[\w-]{1,64}$/.test(id)) throw new TypeError('attach: no awakeable, or too many');
  ctx.set('attached', [...ids]);
  sendDrive(host, ctx);
}

async function sweep(host: Host, signal: AbortSignal): Promise<void> {
  for (let after: pawl.DueRun | undefined; !signal.aborted; ) {
    const sending = sendDue(host, after).catch((error: unknown) => void console.warn('restate: sweep failed', error));
    after = await sending;
    if (!after) await setTimeout(host.dueMs, undefined, { signal }).catch(() => {});
  }
}

/** Sends `drive` for a page of due runs. @returns the last of them, if there may be another page */
async function sendDue(host: Host, after: pawl.DueRun | undefined): Promise<pawl.DueRun | undefined> {
  const { runs } = await host.executor.due({ limit: PAGE, ...(after ? { after } : {}) });
  // While one of these is on its way, Restate drops the next for the same run.
  const sent = await Promise.allSettled(runs.map(({ runId }) => postDrive(host, runId, { at: 0, key: 'due' })));
  const failed = sent.filter(({ status }) => status === 'rejected');
  if (failed[0]) console.warn(`restate: ${failed.length} due runs were not sent`, failed[0]);
  return runs.length === PAGE && failed.length < PAGE ? runs.at(-1) : undefined;
}

/**
 * Makes a virtual object of Restate that drives the runs of an executor: one invocation is one slice. Restate keeps ids, states
 * and times of runs; no prompt, message or result. The store must be one that all services share.
 * @throws {TypeError} for an ingress that is not a URL
 * @example
 * const executor: Executor = createExecutor({ models, agents, store, onDue: (runId, at) => runs.onDue(runId, at) });
 * const runs = restateRuns(executor, { ingress: 'http://127.0.0.1:8080' });
 * http2.createServer(createEndpointHandler({ services: [runs.object] })).listen(9080);
 */
export function restateRuns(executor: pawl.Executor, options: RestateRunsOptions): RestateRuns {
  const host: Host = { name: 'pawl', budgetMs: 60_000, graceMs: 30_000, dueMs: 60_000, ...options, executor };
  if (!URL.canParse(host.ingress)) throw new TypeError(`restateRuns: ingress must be a URL, not ${host.ingress}`);
  const { shared } = restate.handlers.object;
  const commanded = new Set<string>();
  /** A handler that gives the run a command in one step, and then sends `drive`, which sees what that changed. */
  const command = <I, O>(work: (runId: string, input: I) => Promise<O>) =>
    shared(async (ctx: Shared, input: I): Promise<O> => {
      const done = await ctx.run('command', () => {
        commanded.add(ctx.key);
        return work(ctx.key, input).finally(() => commanded.delete(ctx.key));
      });
      sendDrive(host, ctx);
      return done;
    });
  // The hint of a command would be a second `drive`.
  const onDue = async (runId: string, at: number) =>
    commanded.has(runId) ? undefined : postDrive(host, runId, { at });
  const object = restate.object<string, RunHandlers>({
    name: host.name,
    handlers: {
      start: command((runId, request: StartRequest) => begin(host, runId, request)),
      cancel: command((runId, request?: { reason?: string }) => executor.control(runId).cancel(request?.reason)),
      steer: command((runId, { text }: { text: string }) => executor.control(runId).steer(text)),
      send: command((runId, { event, ...how }: MachineEventRequest) => executor.control(runId).send(event, how)),
      answer: command((runId, given: WaitAnswer) => answer(executor.control(runId), given)),
      status: shared(({ key }: Shared) => executor.find(key).then((run) => run && stateOf(run))),
      drive: (ctx: Exclusive, request) => drive(host, ctx, request?.timer),
      attach: (ctx: Exclusive, request) => attach(host, ctx, request.awakeableId),
    },
    options: {
      journalRetention: 0,
      idempotencyRetention: 0,
      inactivityTimeout: host.budgetMs + host.graceMs + 60_000,
      abortTimeout: 60_000,
      retryPolicy: { initialInterval: 100, exponentiationFactor: 2, maxInterval: 10_000, maxAttempts: 1e9 },
      asTerminalError: terminalOf,
    },
  });
  return { object, onDue, sweep: ({ signal }) => sweep(host, signal) };
}
