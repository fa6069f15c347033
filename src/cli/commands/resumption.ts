import type { InterruptedRun, RunCheckpoint } from '../../index.ts';
import type { RunTree, TreePlace } from '../../record/run-tree.ts';
import { type PersonNeed, type RunVerdict, verdictOfRun } from '../../record/verdict.ts';
import type { CommandContext } from '../command.ts';
import { type AgentModule, loadAgentModule, putsToWork } from '../open/agent-module.ts';
import { auditOption, controlExecutor } from '../open/control-executor.ts';
import { KnownModules } from '../open/known-modules.ts';
import type { RunStore } from '../open/open-store.ts';
import { allRuns, loadRecord, pidOf, treeInStore } from '../open/stored-runs.ts';
import { exitCodes, Failure, lineOf, oneLine } from '../ui/failure.ts';
import { lineFor, quoted } from '../ui/shell-words.ts';
import { aboutRun, canRetry, describeVerdict, unknownRunFailure } from './obstacle.ts';
import { CommandSession } from './session.ts';
import type { Forking } from './worked-on.ts';

/** How many runs are continued at once. */
const SIDE_BY_SIDE = 16;

/** What becomes of a run by its entry in the list: a verdict, or a start. */
interface Judged {
  readonly entry: InterruptedRun;
  readonly found: RunVerdict | PersonNeed;
  readonly place: TreePlace | undefined;
}

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
  /** The named agents, by their ids; empty = each run with the module with which this user started it. */
  readonly modules: ReadonlyMap<string, AgentModule>;
}

/** Continues interrupted runs for `pawl resume` and `pawl recover`, each with the agent module that it was started with. */
export class Resumption {
  readonly session: CommandSession;
  readonly #context: CommandContext;
  readonly #store: RunStore;
  readonly #given: ReadonlyMap<string, AgentModule>;
  readonly #known = new KnownModules();
  readonly #modules = new Map<string, Promise<AgentModule>>();

  constructor(context: CommandContext, { store, modules }: Means) {
    this.#context = context;
    this.#store = store;
    this.#given = modules;
    this.session = new CommandSession(context, store);
  }

  async one(runId: string): Promise<number> {
    const entries = await allRuns(this.#store);
    const entry = entries.find((each) => each.runId === runId);
    if (!entry) return this.#finish(runId);
    const judged = await this.#judge(entry, treeInStore(this.#store, entries));
    if (!('need' in judged.found)) throw this.#refusal(judged, judged.found);
    return judged.place?.kind === 'orphan' ? this.session.dismiss(runId) : this.#resume(runId, true);
  }

  /** Continues a run that ended badly, once its agent is found: without it nothing is written. One that has not ended is resumed. */
  async retry(runId: string): Promise<number> {
    const ended = await canRetry(this.#store, runId);
    const record = await this.#store.load(runId, ended ? { ended: true } : {});
    if (record) await this.#moduleOf(record);
    const { args } = this.#context;
    await controlExecutor(this.#store, auditOption(args)).control(runId).retry().catch(asFailure);
    return this.one(runId);
  }

  /** Starts a fork of a stored run, with the named agent module or that of the run. */
  async fork(fork: Forking): Promise<number> {
    const [given] = this.#given.values();
    const record = given ? undefined : await this.#store.load(fork.origin, { ended: true });
    if (!given && !record) throw unknownRunFailure(fork.origin, this.#store);
    const module = given ?? (await this.#moduleOf(record as RunCheckpoint));
    const options = { ...fork.options, ...(given ? { agent: given.agent } : {}) };
    return this.session.carry({ module, work: { ...fork, options }, isResumed: false, mayAsk: true });
  }

  /** Continues every interrupted run, some at once. A run that cannot be continued does not block the others. */
  async all(): Promise<number> {
    const entries = await this.#store.listInterrupted();
    if (entries.length === 0) this.#context.output.say(`nothing to resume in ${this.#store.path}`);
    const tree = treeInStore(this.#store, entries);
    const queue: Waiting[] = [];
    const codes = new Set<number>();
    for (const entry of entries) {
      const judged = await this.#judge(entry, tree);
      if ('need' in judged.found) queue.push({ entry, isOrphan: judged.place?.kind === 'orphan' });
      else codes.add(this.#leave(judged, judged.found));
    }
    await this.#each(
      queue.filter((run) => !isSuspect(run)),
      { atOnce: SIDE_BY_SIDE, codes },
    );
    // One of these may have killed the earlier processes. They run last, one at a time, so that the others are done before.
    await this.#each(queue.filter(isSuspect), { atOnce: 1, codes });
    const { isInterrupted, leftCode } = this.session;
    // After Ctrl-C, and after a SIGTERM that left a run.
    if (isInterrupted && (leftCode === exitCodes.interrupted || codes.has(leftCode))) return leftCode;
    // A run that failed weighs more than one that is not over.
    return [exitCodes.failed, exitCodes.waiting].find((code) => codes.has(code)) ?? exitCodes.ok;
  }

  /** By the facts that a list and the tree have. The start of a run knows the rest. */
  async #judge(entry: InterruptedRun, tree: RunTree): Promise<Judged> {
    const found = verdictOfRun({ entry, agent: this.#agentFor(entry, undefined) });
    if (!('need' in found) || found.need !== 'place') return { entry, found, place: undefined };
    const place = await tree.placeOf(found.run);
    return { entry, found: verdictOfRun({ entry, place, agent: this.#agentFor(entry, place) }), place };
  }

  /** Without named modules, the start of a run finds its agent. */
  #agentFor(entry: InterruptedRun, place: TreePlace | undefined): 'found' | 'missing' {
    if (!('meta' in entry) || this.#given.size === 0 || this.#given.has(entry.meta.agentId)) return 'found';
    const { agentId } = entry.meta;
    // Modules do not export agents that only other agents call.
    const isKnown = place?.kind === 'orphan' && [...this.#given.values()].some((module) => putsToWork(module, agentId));
    return isKnown ? 'found' : 'missing';
  }

  /** Reports a run that is not continued. @returns an exit code: a run that none of the named modules is for needs no person */
  #leave({ entry }: Judged, found: RunVerdict): number {
    this.session.progress.skipped(entry.runId, this.#describe(entry, found));
    if (found.verdict === 'parked') return exitCodes.waiting;
    return found.needsPerson && found.verdict !== 'skipped' ? exitCodes.failed : exitCodes.ok;
  }

  #describe(entry: InterruptedRun, found: RunVerdict): string {
    const words = describeVerdict(found, pidOf(entry));
    if (found.verdict === 'live') return `${words}; wait for it, or end that process first`;
    return found.verdict === 'skipped' ? `${words}: none of the named modules has it` : words;
  }

  #refusal({ entry, place }: Judged, found: RunVerdict): Failure {
    const words = this.#describe(entry, found);
    const root = place?.kind === 'child' ? place.root : undefined;
    const todo = root === undefined ? '' : `; continue the top run: ${lineFor('resume', [root], this.#store.option)}`;
    // A parked run is not bad input, and is not over.
    const exitCode = found.verdict === 'parked' ? exitCodes.waiting : exitCodes.badInput;
    return new Failure(aboutRun(entry.runId, words + todo), { exitCode });
  }

  /** Continues these runs, some at once. @param codes gets the exit code of each */
  async #each(runs: readonly Waiting[], { atOnce, codes }: { atOnce: number; codes: Set<number> }): Promise<void> {
    const queue = runs.values();
    const work = async () => {
      for (const run of queue) {
        if (this.session.isInterrupted) {
          codes.add(this.session.leftCode);
          return;
        }
        codes.add(await this.#tryResume(run));
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
  }

  async #tryResume({ entry, isOrphan }: Waiting): Promise<number> {
    try {
      if (!isOrphan) {
        const exitCode = await this.#resume(entry.runId, false);
        const ends: readonly number[] = [exitCodes.ok, exitCodes.waiting, this.session.leftCode];
        return ends.includes(exitCode) ? exitCode : exitCodes.failed;
      }
      await this.session.dismiss(entry.runId);
      return exitCodes.ok;
    } catch (error) {
      this.session.progress.skipped(entry.runId, lineOf(error));
      return exitCodes.failed;
    }
  }

  async #resume(runId: string, mayAsk: boolean): Promise<number> {
    const record = await loadRecord(this.#store, runId);
    if (!record) return this.#finish(runId);
    return this.session.carry({ module: await this.#moduleOf(record), work: record, isResumed: true, mayAsk });
  }

  /** Reports the result of an ended run again. */
  async #finish(runId: string): Promise<number> {
    const outcome = await this.#store.outcomes.find(runId);
    if (!outcome) throw unknownRunFailure(runId, this.#store);
    return this.session.report({ ...outcome, messages: [] });
  }

  /** A record may come from anywhere: nothing in it may choose the code to run. */
  async #moduleOf({ meta }: RunCheckpoint): Promise<AgentModule> {
    const given = this.#given.get(meta.agentId);
    if (given) return given;
    const again = lineFor('resume', [meta.runId], ` --agent <agent module>${this.#store.option}`);
    const path = this.#context.args.agent ?? this.#known.find({ store: this.#store.identity, runId: meta.runId });
    if (path === undefined) {
      const run = `run ${oneLine(meta.runId)} of agent ${quoted(meta.agentId)}`;
      const { command } = this.#context.args;
      const todo =
        command === 'fork' || command === 'retry'
          ? `name its agent with --agent <agent module>${command === 'retry' ? '; or press Retry in Studio, and a worker continues it' : ''}`
          : `start that program, whose executor.recover() continues the run, or name the agent: ${again}`;
      throw new Failure(`${run} was started by a program, or by \`pawl run\` of another user or machine: ${todo}`);
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

function asFailure(error: unknown): never {
  throw new Failure(`${lineOf(error)}; nothing was done`, { cause: error });
}
