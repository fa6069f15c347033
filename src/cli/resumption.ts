import type { InterruptedRun, RunCheckpoint } from '../index.ts';
import { type AgentModule, loadAgentModule } from './agent-module.ts';
import type { AuditFile } from './audit-file.ts';
import type { CommandContext } from './command.ts';
import { exitCodes, Failure, lineOf, oneLine } from './failure.ts';
import { type Obstacle, obstacleOf, unknownRun } from './obstacle.ts';
import { findWaiting, loadRecord, quoted, type RunStore } from './run-store.ts';
import { Session } from './session.ts';

/** How many runs are gone on with at once, when it is all of them. */
const SIDE_BY_SIDE = 16;

const LEFT = 'its parent goes on with it';

/** Whether an agent began this run by a call that its own run, which waits as well, will make again. */
function isLeftToParent(entry: InterruptedRun, waiting: ReadonlySet<string>): boolean {
  const parent = 'meta' in entry ? entry.meta.parentRunId : '';
  return waiting.has(parent) && (entry.runId.startsWith(`${parent}~`) || entry.runId.startsWith('~'));
}

/** Whether one more start without progress would park it. */
function isSuspect(entry: InterruptedRun): boolean {
  return 'meta' in entry && (entry.attempts ?? 0) >= 2;
}

/** What runs are gone on with. */
interface Means {
  readonly store: RunStore;
  readonly audit: AuditFile | undefined;
  /** The agents that were named, by their ids; none = each run has its module in its record. */
  readonly modules: ReadonlyMap<string, AgentModule>;
}

/** Goes on with interrupted runs. */
export class Resumption {
  readonly session: Session;
  readonly #context: CommandContext;
  readonly #store: RunStore;
  readonly #given: ReadonlyMap<string, AgentModule>;
  readonly #modules = new Map<string, Promise<AgentModule>>();

  constructor(context: CommandContext, { store, audit, modules }: Means) {
    this.#context = context;
    this.#store = store;
    this.#given = modules;
    this.session = new Session(context, store, audit);
  }

  async one(runId: string): Promise<number> {
    const entry = await findWaiting(this.#store, runId);
    if (!entry) return this.#ended(runId);
    const obstacle = obstacleOf(entry);
    if (obstacle) throw new Failure(`run ${oneLine(runId)} ${obstacle.reason}`);
    return this.#resume(runId);
  }

  /** Every interrupted run, some side by side. What stands in the way of one does not keep the others waiting. */
  async all(): Promise<number> {
    const entries = await this.#store.listInterrupted();
    if (entries.length === 0) this.#context.output.say(`nothing to resume in ${this.#store.path}`);
    const ids = new Set(entries.map(({ runId }) => runId));
    for (const entry of entries) if (isLeftToParent(entry, ids)) this.session.progress.skipped(entry.runId, LEFT);
    const queue = entries.filter((entry) => !isLeftToParent(entry, ids));
    const worst = await this.#each(
      queue.filter((entry) => !isSuspect(entry)),
      SIDE_BY_SIDE,
    );
    // One of these may be what killed the processes before: then it dies alone, and the others have got on.
    const last = await this.#each(queue.filter(isSuspect), 1);
    return this.session.isInterrupted ? exitCodes.interrupted : Math.max(worst, last);
  }

  async #each(entries: readonly InterruptedRun[], atOnce: number): Promise<number> {
    const queue = entries.values();
    let worst: number = exitCodes.ok;
    const work = async () => {
      for (const entry of queue) {
        if (this.session.isInterrupted) return;
        const exitCode = await this.#tryResume(entry);
        worst = Math.max(worst, exitCode);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    return worst;
  }

  async #tryResume(entry: InterruptedRun): Promise<number> {
    const obstacle = obstacleOf(entry) ?? this.#notNamed(entry);
    if (obstacle) {
      this.session.progress.skipped(entry.runId, obstacle.reason);
      return obstacle.needsSomebody ? exitCodes.failed : exitCodes.ok;
    }
    try {
      return Math.min(await this.#resume(entry.runId), exitCodes.failed);
    } catch (error) {
      this.session.progress.skipped(entry.runId, lineOf(error));
      return exitCodes.failed;
    }
  }

  #notNamed(entry: InterruptedRun): Obstacle | undefined {
    if (!('meta' in entry) || this.#given.size === 0 || this.#given.has(entry.meta.agentId)) return undefined;
    const reason = `is of agent ${quoted(entry.meta.agentId)}, which is in none of the modules that were named`;
    return { reason, needsSomebody: false };
  }

  async #resume(runId: string): Promise<number> {
    const record = await loadRecord(this.#store, runId);
    if (!record) return this.#ended(runId);
    const { prompt, callerId, channelId, guildId, parentRunId } = record.meta;
    const invocation = { runId, prompt, callerId, channelId, guildId, parentRunId };
    return this.session.carry({ module: await this.#moduleOf(record), invocation, isResumed: true });
  }

  /** A run that has ended gives its result again. */
  async #ended(runId: string): Promise<number> {
    const outcome = await this.#store.outcome(runId);
    if (!outcome) throw unknownRun(runId, this.#store);
    return this.session.report({ ...outcome, messages: [] });
  }

  async #moduleOf({ meta, inputs }: RunCheckpoint): Promise<AgentModule> {
    const given = this.#given.get(meta.agentId);
    if (given) return given;
    const path = this.#context.args.agent ?? inputs?.['pawl.module'];
    const again = `pawl resume ${quoted(meta.runId)} --agent <agent module>`;
    if (typeof path !== 'string') {
      throw new Failure(`run ${oneLine(meta.runId)} was not begun by \`pawl run\`; name its agent: ${again}`);
    }
    const loading = this.#modules.get(path) ?? loadAgentModule(path);
    this.#modules.set(path, loading);
    const module = await loading.catch((error) => {
      throw new Failure(`${lineOf(error)}; the record is kept (if the module was moved: ${again})`, { cause: error });
    });
    if (module.agent.id === meta.agentId) return module;
    throw new Failure(
      `run ${oneLine(meta.runId)} is of agent ${quoted(meta.agentId)}, but ${path} defines ${quoted(module.agent.id)}; the record is kept (${again})`,
    );
  }
}
