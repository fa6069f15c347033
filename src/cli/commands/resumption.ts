import type { InterruptedRun, RunCheckpoint } from '../../index.ts';
import type { ChildPlace } from '../../record/run-tree.ts';
import type { CommandContext } from '../command.ts';
import { type AgentModule, loadAgentModule, putsToWork } from '../open/agent-module.ts';
import type { AuditFile } from '../open/audit-file.ts';
import { KnownModules } from '../open/known-modules.ts';
import { loadRecord, quoted, type RunStore, statusOf, treeIn } from '../open/run-store.ts';
import { exitCodes, Failure, lineOf, oneLine } from '../ui/failure.ts';
import { type Obstacle, obstacleOf, unknownRun } from './obstacle.ts';
import { Session } from './session.ts';

/** How many runs are gone on with at once, when it is all of them. */
const SIDE_BY_SIDE = 16;

const LEFT = 'its parent continues it';

/** A run that nobody else goes on with. */
interface Waiting {
  readonly entry: InterruptedRun;
  /** Whoever wanted its answer is gone: it is ended, and needs no agent for that. */
  readonly isOrphan: boolean;
}

/** Whether one more start without progress would park it. */
function isSuspect({ entry, isOrphan }: Waiting): boolean {
  return !isOrphan && 'meta' in entry && (entry.attempts ?? 0) >= 2;
}

/** What runs are gone on with. */
interface Means {
  readonly store: RunStore;
  readonly audit: AuditFile | undefined;
  /** The agents that were named, by their ids; none = each run with the module that this user started it with. */
  readonly modules: ReadonlyMap<string, AgentModule>;
}

/** Goes on with interrupted runs. */
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
    // What is parked is no bad input: it needs a person.
    const exitCode = statusOf(entry) === 'parked' ? exitCodes.failed : exitCodes.badInput;
    if (obstacle) throw new Failure(`run ${oneLine(runId)} ${obstacle.reason}`, { exitCode });
    const place = await treeIn(this.#store, entries).placeOf(entry);
    if (place.kind === 'child') throw this.#leftTo(place, entry);
    return place.kind === 'orphan' ? this.session.dismiss(runId) : this.#resume(runId);
  }

  /** Every interrupted run, some side by side. What stands in the way of one does not keep the others waiting. */
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
    // One of these may be what killed the processes before: then it dies alone, and the others have got on.
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
    // Nobody exports an agent that only others put to work.
    if (isOrphan && [...this.#given.values()].some((module) => putsToWork(module, agentId))) return undefined;
    const reason = `is of agent ${quoted(agentId)}, which is in none of the modules that were named`;
    return { reason, needsSomebody: false };
  }

  #leftTo({ parent, root }: ChildPlace, entry: InterruptedRun): Failure {
    const run = `run ${oneLine(entry.runId)} was begun by run ${oneLine(parent)}`;
    const todo = `go on with the run at the top: pawl resume ${quoted(root)}${this.#store.option}`;
    return new Failure(`${run}, which goes on with it; ${todo}`);
  }

  async #resume(runId: string): Promise<number> {
    const record = await loadRecord(this.#store, runId);
    if (!record) return this.#ended(runId);
    return this.session.carry({ module: await this.#moduleOf(record), work: record, isResumed: true });
  }

  /** A run that has ended gives its result again. */
  async #ended(runId: string): Promise<number> {
    const outcome = await this.#store.outcome(runId);
    if (!outcome) throw unknownRun(runId, this.#store);
    return this.session.report({ ...outcome, messages: [] });
  }

  /** A record may come from anywhere: nothing in it says which code is run. */
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
