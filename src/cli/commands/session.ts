import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Agent,
  createExecutor,
  type Executor,
  type ListedWait,
  type RunCheckpoint,
  type RunEvent,
  type RunResult,
} from '../../index.ts';
import { hasCode } from '../../values/error-data.ts';
import type { CommandContext } from '../command.ts';
import { type AgentModule, closeModule, knownBy, limitsIn } from '../open/agent-module.ts';
import { auditOption, controlExecutor } from '../open/control-executor.ts';
import { KnownModules, type RunPlace } from '../open/known-modules.ts';
import type { RunStore } from '../open/open-store.ts';
import { findWaiting } from '../open/stored-runs.ts';
import { Interruption } from '../ui/ctrl-c.ts';
import { commandsFor } from '../ui/describe-wait.ts';
import { exitCodeOf, exitCodes, lineOf, oneLine, pageOfFailure } from '../ui/failure.ts';
import { type CommandProgress, type CommandRun, progressFor } from '../ui/progress.ts';
import { lineFor, PAWL, quoted } from '../ui/shell-words.ts';
import { loggerOf } from '../ui/warnings.ts';
import { unknownCalls } from './describe-run.ts';
import { canRetry, todoForParked } from './obstacle.ts';
import { type AskedPerson, askPerson, hasPerson, WaitEnds } from './waits/ask-person.ts';
import { allWaits } from './waits/waiting-command.ts';
import { type AskedWork, type Forking, refusedIn, type WorkedOn, workOn } from './worked-on.ts';

/** One run to complete. */
interface Job {
  readonly module: AgentModule;
  /** The request, the record of a continued run, or what is forked. */
  readonly work: (AskedWork & { readonly runId: string }) | RunCheckpoint | Forking;
  readonly isResumed: boolean;
  /** Whether a person at the terminal is asked when the run waits for one. Not if several runs continue at once. */
  readonly mayAsk: boolean;
}

/** How often a run that waits is looked at, until it has read its commands, ms. */
const POLL_MS = 50;

/** A run waits this long for the person at the terminal before it rests in the store; without a person it rests soon, ms. */
const LINGER_MS = { withPerson: 86_400_000, without: 50 };

/** Runs agents for a command: makes executors, shows progress, handles Ctrl-C, and reports how each run ended. */
export class CommandSession {
  readonly progress: CommandProgress;
  readonly #context: CommandContext;
  readonly #store: RunStore;
  readonly #interruption: Interruption;
  readonly #executors = new Map<Agent, Executor>();
  readonly #modules = new KnownModules();
  readonly #waits = new WaitingRuns();
  /** The tools of calls whose outcome is unknown, by the runs that have not begun here yet. */
  readonly #unknown = new Map<string, readonly string[]>();
  /** Of the waits that the terminal asks about. */
  #ends: WaitEnds | undefined;
  #caretaker: Executor | undefined;
  /** The modules that runs were worked on with. */
  readonly #used = new Set<AgentModule>();
  /** What a command that continues the run needs besides the store: the module that has the key. */
  #moduleOption = '';

  constructor(context: CommandContext, store: RunStore) {
    this.#context = context;
    this.#store = store;
    this.progress = progressFor(context.output, { json: context.args.json, store: store.path });
    this.#interruption = new Interruption(context.output);
  }

  get isInterrupted(): boolean {
    return this.#interruption.isRequested;
  }

  /** The exit code of a command that a signal cut, where a run was left. */
  get leftCode(): number {
    return this.#interruption.exitCode;
  }

  /** Completes a run. @returns its exit code */
  async carry({ module, work, isResumed, mayAsk }: Job): Promise<number> {
    if (module.codec) this.#moduleOption = ` --agent ${quoted(module.path)}`;
    const runId = 'meta' in work ? work.meta.runId : work.runId;
    const place = { store: this.#store.identity, runId };
    // Before the start: if the process dies right after it, `pawl resume` still finds the run's agent.
    const isNew = !this.#isKnown(place);
    if (isNew) this.#remember(place, module);
    const asks = mayAsk && !this.#context.args.json && hasPerson();
    const executor = this.#executorFor(module, asks);
    const run = await workOn(executor, module, work).catch((error: unknown) => {
      if (isNew) this.#modules.forget(place);
      throw error;
    });
    const { hasBegun } = run;
    if (hasBegun && !isNew) this.#remember(place, module);
    if (hasBegun) this.#sayBegun({ runId, agentId: module.agent.id, isResumed, executor });
    const result = hasBegun ? await this.#endOf(run, { runId, executor, asks }) : await run.result;
    if (!result || result.status === 'waiting') return this.#reportWaiting(executor, runId);
    if ((isNew && !hasBegun) || (hasBegun && (await this.#isGone(result)))) this.#modules.forget(place);
    return this.report(result);
  }

  #sayBegun(run: CommandRun): void {
    this.progress.begun(run);
    const tools = this.#unknown.get(run.runId);
    if (tools) this.progress.unknown({ runId: run.runId, tools });
  }

  /** Says which calls may have had their effect: those of this command's own runs after the line with which they begin. */
  #sayResumed(executor: Executor, event: Extract<RunEvent, { type: 'run.resumed' }>, isChild: boolean): void {
    const { runId } = event;
    const tools = unknownCalls(executor, event);
    if (tools.length === 0) return;
    if (isChild) this.progress.unknown({ runId, tools });
    else this.#unknown.set(runId, tools);
  }

  /** Waits for the end of a run, and asks the person for what it waits for. @returns undefined if it waits, and is left */
  async #endOf(run: WorkedOn, { runId, executor, asks }: Asking): Promise<RunResult | undefined> {
    for (;;) {
      const next = this.#waits.next();
      const asked = asks && this.#waits.hasAny ? await this.#ask(executor, runId) : 'none';
      if (asked === 'answered') continue;
      if (this.isInterrupted) return run.result;
      const mustLeave = this.#waits.has(runId) && (asks || run.isHosted);
      if (mustLeave && (await this.#isIdle(executor, runId))) {
        run.leave();
        return undefined;
      }
      const ended = await Promise.race([run.result, mustLeave ? sleep(POLL_MS, undefined) : next]);
      if (ended) return ended;
    }
  }

  /** Whether a run that waits has no command to read: an answer may have come before it was resumed. */
  async #isIdle(executor: Executor, runId: string): Promise<boolean> {
    const unread = await executor
      .control(runId)
      .unread()
      .catch(() => 0);
    return unread === 0 && this.#waits.has(runId);
  }

  async #ask(executor: Executor, runId: string): Promise<AskedPerson> {
    this.progress.hold(true);
    this.#ends = new WaitEnds();
    try {
      const asked = { executor, runId, option: this.#store.option, ends: this.#ends };
      return await askPerson(this.#context.output, asked);
    } finally {
      this.#ends = undefined;
      this.progress.hold(false);
    }
  }

  /** Reports a run that waits, with the commands that answer and continue. @returns the exit code */
  async #reportWaiting(executor: Executor, runId: string): Promise<number> {
    const waits: ListedWait[] = [];
    for await (const wait of allWaits(executor, runId)) waits.push(wait);
    const options = `${this.#store.option}${this.#moduleOption}`;
    const answers = waits.flatMap((wait) => commandsFor(wait, this.#store.option));
    const page = `${PAWL} studio --write --open${this.#store.option}`;
    this.progress.waiting({ runId, waits, answers, page, resume: lineFor('resume', [runId], options) });
    return exitCodes.waiting;
  }

  #isKnown(place: RunPlace): boolean {
    try {
      return this.#modules.find(place) !== undefined;
    } catch {
      return false;
    }
  }

  /** If this fails, the run starts nevertheless: `--agent` resumes it. */
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

  /** Whether the store no longer has a record from which the run could continue, or be forked. */
  async #isGone({ runId, status }: RunResult): Promise<boolean> {
    if (status === 'interrupted') return false;
    return (await this.#store.load(runId, { ended: true }).catch(() => undefined)) === null;
  }

  /**
   * Cancels a run whose parent is gone, without its agent. A run that has already ended keeps its outcome.
   * @returns the exit code for a user who wanted to resume it
   */
  async dismiss(runId: string): Promise<number> {
    const { args, output } = this.#context;
    this.#caretaker ??= controlExecutor(this.#store, auditOption(args));
    const sent = await this.#caretaker.control(runId).cancel('its parent run has ended').catch(unlessMissing);
    const outcome = sent === 'sent' ? null : await this.#store.outcomes.find(runId);
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
    for (const module of this.#used) await closeModule(module, this.#context.output);
    this.#interruption.stop();
    await this.#store.close();
  }

  /** Runs of one module share an executor: its models and tools differ from those of other modules. */
  #executorFor(module: AgentModule, asks: boolean): Executor {
    const { agent, models, tools, options } = module;
    const known = this.#executors.get(agent);
    if (known) return known;
    this.#used.add(module);
    const executor = createExecutor({
      // Studio follows the run by its events; they go with its record.
      journal: true,
      ...options,
      retention: { events: 0, records: '7d', ...options.retention },
      ...auditOption(this.#context.args),
      models,
      tools,
      ...knownBy(module),
      ...limitsIn(module, this.#store),
      store: this.#store,
      requireDurable: true,
      defaults: { waitLingerMs: asks ? LINGER_MS.withPerson : LINGER_MS.without },
      // The command says itself that its run is parked, and what to do. None of its runs has a caller.
      logger: loggerOf(this.#context.output, 'run.parked', 'call.unknown', 'budget.shared'),
      observers: [
        {
          onEvent: (event, run) => {
            this.#waits.onEvent(event);
            this.#ends?.onEvent(event);
            if (event.type === 'run.resumed') this.#sayResumed(executor, event, run.origin === 'child');
            this.progress.onEvent(event, run);
          },
        },
      ],
    });
    this.#executors.set(agent, this.#interruption.covers(executor));
    return executor;
  }

  /** Reports how a run ended. @returns its exit code */
  async report(result: RunResult): Promise<number> {
    const { args, output } = this.#context;
    const { runId, status, error } = result;
    const exitCode = exitCodeOf(error);
    const isParked = error?.code === 'RUN_PARKED';
    const isRefused = isParked || (status === 'error' && exitCode === exitCodes.badInput);
    if (args.json || !isRefused) this.progress.ended(result);
    const refused = args.json || args.effects !== 'refuse' ? undefined : refusedIn(result);
    if (refused) output.say(`pawl: ${refused}`);
    if (status === 'ok') {
      if (!args.json) output.printText(textOf(result));
      return exitCodes.ok;
    }
    const options = `${this.#store.option}${this.#moduleOption}`;
    if (status === 'interrupted' && this.isInterrupted) {
      output.say(`pawl: left run ${oneLine(runId)} as it is; continue with: ${lineFor('resume', [runId], options)}`);
      return this.leftCode;
    }
    // The run is not over: a supervisor starts the command again.
    if (isParked || status === 'interrupted') {
      await this.#reportLeft(result, options);
      return exitCodes.waiting;
    }
    const failed = isRefused ? '' : `run ${oneLine(runId)} failed: `;
    const instead =
      args.command === 'run' && error?.code === 'CHECKPOINT_CORRUPT'
        ? ', or start the work again under another --run-id'
        : '';
    output.say(`pawl: ${failed}${lineOf(error)}${instead} (${error?.code ?? status})`);
    output.see(pageOfFailure(error));
    if (!isRefused && (await canRetry(this.#store, runId)))
      output.say(`pawl: once the cause is mended, continue it with: ${lineFor('retry', [runId], options)}`);
    return exitCode;
  }

  /** Reports a run that has not ended: it is parked, or was given back. Why it is parked is in its record: the error has only a text. */
  async #reportLeft({ runId, error, status }: RunResult, options: string): Promise<void> {
    const { output } = this.#context;
    const entry = await findWaiting(this.#store, runId);
    const code = entry && 'code' in entry ? entry.code : undefined;
    const isParked = error?.code === 'RUN_PARKED' || entry?.status === 'parked';
    // These messages name the run, and say what became of it.
    const head = isParked || error?.code === 'SETUP' ? '' : `run ${oneLine(runId)} is left: `;
    const line = isParked ? oneLine(`${error?.message}; ${todoForParked(code)}`) : lineOf(error);
    output.say(`pawl: ${head}${line} (${error?.code ?? status})`);
    output.see(pageOfFailure(error));
    if (!isParked)
      output.say(`pawl: once the cause is mended, continue it with: ${lineFor('resume', [runId], options)}`);
  }
}

/** A workflow has data, and no text. */
function textOf({ output, data }: RunResult): string {
  return output === '' && data !== undefined ? JSON.stringify(data, undefined, 2) : output;
}

/** Another process was faster. */
function unlessMissing(error: unknown): 'ended' {
  if (hasCode(error, 'RUN_NOT_FOUND')) return 'ended';
  throw error;
}

interface Asking {
  readonly runId: string;
  readonly executor: Executor;
  readonly asks: boolean;
}

/** Which runs of this process wait, by their events. */
class WaitingRuns {
  readonly #runs = new Set<string>();
  #changed = Promise.withResolvers<undefined>();

  get hasAny(): boolean {
    return this.#runs.size > 0;
  }

  has(runId: string): boolean {
    return this.#runs.has(runId);
  }

  /** Resolves when the next run begins to wait. */
  next(): Promise<undefined> {
    return this.#changed.promise;
  }

  onEvent({ type, runId }: RunEvent): void {
    if (['run.woken', 'run.parked', 'run.ended'].includes(type)) this.#runs.delete(runId);
    if (type !== 'run.waiting') return;
    this.#runs.add(runId);
    this.#changed.resolve(undefined);
    this.#changed = Promise.withResolvers();
  }
}
