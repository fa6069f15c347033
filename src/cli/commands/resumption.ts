import type { InterruptedRun, RunCheckpoint } from '../../index.ts';
import type { ChildPlace } from '../../record/run-tree.ts';
import type { CommandContext } from '../command.ts';
import { type AgentModule, loadAgentModule, putsToWork } from '../open/agent-module.ts';
import type { AuditFile } from '../open/audit-file.ts';
import { KnownModules } from '../open/known-modules.ts';
import type { RunStore } from '../open/open-store.ts';
import { loadRecord, statusOf, treeIn } from '../open/stored-runs.ts';
import { exitCodes, Failure, lineOf, oneLine } from '../ui/failure.ts';
import { quoted } from '../ui/shell-words.ts';
import { type Obstacle, obstacleOf, unknownRun } from './obstacle.ts';
import { Session } from './session.ts';

/** How many runs are continued at once. */
const SIDE_BY_SIDE = 16;

const LEFT = 'its parent continues it';

/** A run that no other process continues. */
interface Waiting {
  readonly entry: InterruptedRun;
  /** Its parent run is gone: the run is cancelled, which needs no agent. */
  readonly isOrphan: boolean;
}

/** Whether one more start without progress would park the run. */
function isSuspect({ entry, isOrphan }: Waiting): boolean {
  return !isOrphan && 'meta' in entry && (entry.attempts ?? 0) >= 2;
}

/** What is needed to continue runs. */
interface Means {
  readonly store: RunStore;
  readonly audit: AuditFile | undefined;
  /** The named agents, by their ids; empty = each run with the module with which this user started it. */
  readonly modules: ReadonlyMap<string, AgentModule>;
}

/** Continues interrupted runs for `pawl resume` and `pawl recover`, each with the agent module that it was started with. */
export class Resumption {
  readonly session: Session;
  readonly #context: CommandContext;
  readonly #store: RunStore;
  readonly #given: ReadonlyMap<string, AgentModule>;
  readonly #known = new KnownModules();
  readonly #modules = new Map<string, Promise<AgentModule>>();

  constructor(context: CommandContext, { store, audit, modules }: Means) {
    this.#context = context;
    this.#store = store;
    this.#given = modules;
    this.session = new Session(context, store, audit);
  }

  async one(runId: string): Promise<number> {
    const entries = await this.#store.listInterrupted();
    const entry = entries.find((each) => each.runId === runId);
    if (!entry) return this.#ended(runId);
    const obstacle = obstacleOf(entry);
    // A parked run is not bad input: it needs a person.
    const exitCode = statusOf(entry) === 'parked' ? exitCodes.failed : exitCodes.badInput;
    if (obstacle) throw new Failure(`run ${oneLine(runId)} ${obstacle.reason}`, { exitCode });
    const place = await treeIn(this.#store, entries).placeOf(entry);
    if (place.kind === 'child') throw this.#leftTo(place, entry);
    return place.kind === 'orphan' ? this.session.dismiss(runId) : this.#resume(runId);
  }

  /** Continues every interrupted run, some at once. A run that cannot be continued does not block the others. */
  async all(): Promise<number> {
    const entries = await this.#store.listInterrupted();
    if (entries.length === 0) this.#context.output.say(`nothing to resume in ${this.#store.path}`);
    const tree = treeIn(this.#store, entries);
    const queue: Waiting[] = [];
    for (const entry of entries) {
      const { kind } = await tree.placeOf(entry);
      if (kind === 'child') this.session.progress.skipped(entry.runId, LEFT);
      else queue.push({ entry, isOrphan: kind === 'orphan' });
    }
    const worst = await this.#each(
      queue.filter((run) => !isSuspect(run)),
      SIDE_BY_SIDE,
    );
    // One of these may have killed the earlier processes. They run last, one at a time, so that the others are done before.
    const last = await this.#each(queue.filter(isSuspect), 1);
    return this.session.isInterrupted ? exitCodes.interrupted : Math.max(worst, last);
  }

  async #each(runs: readonly Waiting[], atOnce: number): Promise<number> {
    const queue = runs.values();
    let worst: number = exitCodes.ok;
    const work = async () => {
      for (const run of queue) {
        if (this.session.isInterrupted) return;
        const exitCode = await this.#tryResume(run);
        worst = Math.max(worst, exitCode);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    return worst;
  }

  async #tryResume({ entry, isOrphan }: Waiting): Promise<number> {
    const obstacle = obstacleOf(entry) ?? this.#notNamed(entry, isOrphan);
    if (obstacle) {
      this.session.progress.skipped(entry.runId, obstacle.reason);
      return obstacle.needsSomebody ? exitCodes.failed : exitCodes.ok;
    }
    try {
      if (!isOrphan) return Math.min(await this.#resume(entry.runId), exitCodes.failed);
      await this.session.dismiss(entry.runId);
      return exitCodes.ok;
    } catch (error) {
      this.session.progress.skipped(entry.runId, lineOf(error));
      return exitCodes.failed;
    }
  }

  #notNamed(entry: InterruptedRun, isOrphan: boolean): Obstacle | undefined {
    if (!('meta' in entry) || this.#given.size === 0 || this.#given.has(entry.meta.agentId)) return undefined;
    const { agentId } = entry.meta;
    // Modules do not export agents that only other agents call.
    if (isOrphan && [...this.#given.values()].some((module) => putsToWork(module, agentId))) return undefined;
    const reason = `is of agent ${quoted(agentId)}, which none of the named modules has`;
    return { reason, needsSomebody: false };
  }

  #leftTo({ parent, root }: ChildPlace, entry: InterruptedRun): Failure {
    const run = `run ${oneLine(entry.runId)} was started by run ${oneLine(parent)}`;
    const todo = `continue the top run: pawl resume ${quoted(root)}${this.#store.option}`;
    return new Failure(`${run}, which continues it; ${todo}`);
  }

  async #resume(runId: string): Promise<number> {
    const record = await loadRecord(this.#store, runId);
    if (!record) return this.#ended(runId);
    return this.session.carry({ module: await this.#moduleOf(record), work: record, isResumed: true });
  }

  /** Reports the result of an ended run again. */
  async #ended(runId: string): Promise<number> {
    const outcome = await this.#store.outcome(runId);
    if (!outcome) throw unknownRun(runId, this.#store);
    return this.session.report({ ...outcome, messages: [] });
  }

  /** A record may come from anywhere: nothing in it may choose the code to run. */
  async #moduleOf({ meta }: RunCheckpoint): Promise<AgentModule> {
    const given = this.#given.get(meta.agentId);
    if (given) return given;
    const again = `pawl resume ${quoted(meta.runId)} --agent <agent module>${this.#store.option}`;
    const path = this.#context.args.agent ?? this.#known.find({ store: this.#store.identity, runId: meta.runId });
    if (path === undefined) {
      const run = `run ${oneLine(meta.runId)} of agent ${quoted(meta.agentId)}`;
      throw new Failure(`${run} was not started by this user on this machine; name its agent: ${again}`);
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
