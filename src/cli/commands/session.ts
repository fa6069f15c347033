import { createActor, waitFor } from 'xstate';
import {
  type Agent,
  asSnapshot,
  createExecutor,
  type Executor,
  type Invocation,
  type Logger,
  type RunCheckpoint,
  type RunResult,
} from '../../index.ts';
import { hasCode, toErrorData } from '../../values/error-data.ts';
import type { CommandContext } from '../command.ts';
import type { AgentModule } from '../open/agent-module.ts';
import type { AuditFile } from '../open/audit-file.ts';
import { caretakerOf } from '../open/caretaker.ts';
import { KnownModules, type RunPlace } from '../open/known-modules.ts';
import { findWaiting, quoted, type RunStore } from '../open/run-store.ts';
import { exitCodeOf, exitCodes, lineOf, oneLine } from '../ui/failure.ts';
import { Interruption } from '../ui/interruption.ts';
import { type Progress, progressFor } from '../ui/progress.ts';
import { todoForParked } from './obstacle.ts';

/** One run to carry to its end. */
export interface Job {
  readonly module: AgentModule;
  /** What is asked, or the record of a run that is continued. */
  readonly work: (Invocation & { readonly runId: string }) | RunCheckpoint;
  readonly isResumed: boolean;
}

/** Runs agents for a command: executors, progress, Ctrl-C, and what is said at the end of a run. */
export class Session {
  readonly progress: Progress;
  readonly #context: CommandContext;
  readonly #store: RunStore;
  readonly #audit: AuditFile | undefined;
  readonly #interruption: Interruption;
  readonly #executors = new Map<Agent, Executor>();
  readonly #modules = new KnownModules();
  #caretaker: Executor | undefined;
  /** What a command that goes on needs besides the store: the key that only the module has. */
  #moduleOption = '';

  constructor(context: CommandContext, store: RunStore, audit: AuditFile | undefined) {
    this.#context = context;
    this.#store = store;
    this.#audit = audit;
    this.progress = progressFor(context.output, { json: context.args.json, store: store.path });
    this.#interruption = new Interruption(context.output);
  }

  get isInterrupted(): boolean {
    return this.#interruption.isRequested;
  }

  /** Carries a run to its end. @returns the exit code that goes with it */
  async carry({ module, work, isResumed }: Job): Promise<number> {
    if (module.codec) this.#moduleOption = ` --agent ${quoted(module.path)}`;
    const runId = 'meta' in work ? work.meta.runId : work.runId;
    const place = { store: this.#store.identity, runId };
    // Before the start: a process that dies just after it leaves a run that `pawl resume` finds the agent of.
    const isNew = !this.#isKnown(place);
    if (isNew) this.#remember(place, module);
    const executor = this.#executorFor(module);
    const run =
      'meta' in work
        ? await continuedRun(executor, module.agent, work)
        : await startedRun(executor, module.agent, work);
    const { hasBegun } = run;
    if (hasBegun && !isNew) this.#remember(place, module);
    if (hasBegun) this.progress.begun({ runId, agentId: module.agent.id, isResumed, executor });
    const result = await run.result;
    if ((isNew && !hasBegun) || (hasBegun && (await this.#isGone(result)))) this.#modules.forget(place);
    return this.report(result);
  }

  #isKnown(place: RunPlace): boolean {
    try {
      return this.#modules.find(place) !== undefined;
    } catch {
      return false;
    }
  }

  /** Where that fails the run starts all the same: `--agent` resumes it. */
  #remember(place: RunPlace, { path }: AgentModule): void {
    try {
      this.#modules.remember(place, path);
    } catch (error) {
      const todo = `resume it with --agent ${quoted(path)}`;
      this.#context.output.say(
        `pawl: warning: the agent module of run ${oneLine(place.runId)} is not kept: ${lineOf(error)}; ${todo}`,
      );
    }
  }

  /** Whether there is no record left to resume. */
  async #isGone({ runId, status }: RunResult): Promise<boolean> {
    return status !== 'interrupted' && (await this.#store.load(runId).catch(() => undefined)) === null;
  }

  /**
   * Ends a run whose answer nobody wants any more, in good order and without its agent. One that had ended already keeps its
   * own outcome.
   * @returns the exit code for somebody who wanted it to go on
   */
  async dismiss(runId: string): Promise<number> {
    const { args, output } = this.#context;
    this.#caretaker ??= caretakerOf(this.#store, this.#audit);
    const sent = await this.#caretaker.control(runId).cancel('the run that began it is over').catch(unlessMissing);
    const outcome = sent === 'sent' ? null : await this.#store.outcome(runId);
    if (!outcome) {
      this.progress.skipped(runId, sent === 'sent' ? 'another process ends it' : 'it ended in the meantime');
      return exitCodes.failed;
    }
    const result = { ...outcome, messages: [] };
    if (outcome.status !== 'cancelled') return this.report(result);
    this.progress.ended(result);
    const why = oneLine(outcome.error?.message ?? '');
    if (!args.json)
      output.say(`pawl: run ${oneLine(runId)} is ended as cancelled, without another call of a model: ${why}`);
    return exitCodes.failed;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#executors.values()].map((executor) => executor.shutdown()));
    this.#interruption.stop();
    await this.#audit?.close();
    await this.#store.close();
  }

  /** Runs of one module share an executor: its models and tools are its own. */
  #executorFor({ agent, models, tools, options }: AgentModule): Executor {
    const known = this.#executors.get(agent);
    if (known) return known;
    const executor = createExecutor({
      ...options,
      // A module that brings an audit of its own knows why.
      ports: { ...(this.#audit ? { audit: this.#audit } : {}), ...options.ports },
      models,
      tools,
      agents: [agent],
      checkpoints: this.#store,
      requireDurable: true,
      logger: this.#logger(),
      observers: [{ onEvent: (event, run) => this.progress.onEvent(event, run) }],
    });
    this.#executors.set(agent, this.#interruption.covers(executor));
    return executor;
  }

  #logger(): Logger {
    return {
      warn: (message, { error }) => {
        const why = error === undefined ? '' : `: ${toErrorData(error).message}`;
        this.#context.output.say(oneLine(`pawl: warning: ${message}${typeof error === 'string' ? `: ${error}` : why}`));
      },
    };
  }

  /** Says how a run ended. @returns the exit code that goes with it */
  async report(result: RunResult): Promise<number> {
    const { args, output } = this.#context;
    const { runId, status, error } = result;
    const exitCode = exitCodeOf(error);
    const isParked = error?.code === 'RUN_PARKED';
    const isRefused = isParked || (status === 'error' && exitCode === exitCodes.badInput);
    if (args.json || !isRefused) this.progress.ended(result);
    if (status === 'ok') {
      if (!args.json) output.printText(result.output);
      return exitCodes.ok;
    }
    if (status === 'interrupted' && this.isInterrupted) {
      const options = `${this.#store.option}${this.#moduleOption}`;
      output.say(`pawl: left run ${oneLine(runId)} as it is; go on with: pawl resume ${quoted(runId)}${options}`);
      return exitCodes.interrupted;
    }
    const failed = isRefused ? '' : `run ${oneLine(runId)} failed: `;
    const line = isParked ? await this.#parkedLine(result) : lineOf(error);
    const instead =
      args.command === 'run' && error?.code === 'CHECKPOINT_CORRUPT'
        ? ', or begin the work anew under another --run-id'
        : '';
    output.say(`pawl: ${failed}${line}${instead} (${error?.code ?? status})`);
    return exitCode;
  }

  /** Why a run is parked stands in its record: the error says it in words only. */
  async #parkedLine({ runId, error }: RunResult): Promise<string> {
    const entry = await findWaiting(this.#store, runId);
    const code = entry && 'code' in entry ? entry.code : undefined;
    return oneLine(`${error?.message}; ${todoForParked(code)}`);
  }
}

/** Somebody else was quicker. */
function unlessMissing(error: unknown): 'ended' {
  if (hasCode(error, 'CHECKPOINT_MISSING')) return 'ended';
  throw error;
}

/** A run that this process works on. */
interface WorkedOn {
  /** False when it was refused, or had ended before: then it never begins here. */
  readonly hasBegun: boolean;
  readonly result: Promise<RunResult>;
}

/** Starts a run, or meets the one of this request. */
async function startedRun(executor: Executor, agent: Agent, invocation: Invocation): Promise<WorkedOn> {
  const { actor, result } = await executor.start(agent, invocation);
  return { hasBegun: hasBegun(actor.getSnapshot().value), result };
}

function hasBegun(value: unknown): boolean {
  return value !== 'failing' && value !== 'settled';
}

/**
 * Continues a stored run by its record alone. Its request may stand there redacted, so that it cannot be repeated: a start
 * would compare it. A run that has ended since the record was read answers with its outcome, and is not begun again.
 */
async function continuedRun(executor: Executor, agent: Agent, record: RunCheckpoint): Promise<WorkedOn> {
  const { runId } = record.meta;
  const snapshot = { ...asSnapshot(record), messages: [], stored: true as const };
  const actor = createActor(executor.logic(agent), { id: `run:${runId}`, snapshot, input: undefined });
  actor.start();
  const { value } = await waitFor(actor, (state) => state.value !== 'resolving', { timeout: Number.POSITIVE_INFINITY });
  const known = executor.get(runId)?.result;
  return { hasBegun: hasBegun(value), result: known ?? settledResult(actor) };
}

async function settledResult(actor: ReturnType<typeof createActor<ReturnType<Executor['logic']>>>): Promise<RunResult> {
  const { context } = await waitFor(actor, (state) => state.context.output !== undefined, {
    timeout: Number.POSITIVE_INFINITY,
  });
  if (!context.output) throw new Error('a run that has ended has no result');
  return { ...context.output, messages: [] };
}
