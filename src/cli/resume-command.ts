import type { InterruptedRun, RunCheckpoint } from '../index.ts';
import { type AgentModule, loadAgentModule } from './agent-module.ts';
import { type AuditFile, auditForRuns } from './audit-file.ts';
import type { Command, CommandContext } from './command.ts';
import { exitCodes, Failure, lineOf, oneLine } from './failure.ts';
import { obstacleOf, unknownRun } from './obstacle.ts';
import { findWaiting, loadRecord, openExistingStore, quoted, type RunStore } from './run-store.ts';
import { Session } from './session.ts';

/** How many runs `pawl resume` without an id has going at once. */
const SIDE_BY_SIDE = 16;

/** `pawl resume`: goes on with one run, or with all that are interrupted. */
export const resumeCommand: Command = async (context) => {
  const [runId] = context.args.words;
  const store = await openExistingStore(context.args.store);
  const resumption = new Resumption(context, store, await auditForRuns(context));
  const exitCode = runId === undefined ? await resumption.all() : await resumption.one(runId);
  await resumption.session.close();
  return exitCode;
};

const LEFT = 'its parent goes on with it';

/** Whether an agent began this run by a call that its own run, which waits as well, will make again. */
function isLeftToParent(entry: InterruptedRun, waiting: ReadonlySet<string>): boolean {
  const parent = 'meta' in entry ? entry.meta.parentRunId : '';
  return waiting.has(parent) && (entry.runId.startsWith(`${parent}~`) || entry.runId.startsWith('~'));
}

class Resumption {
  readonly session: Session;
  readonly #context: CommandContext;
  readonly #store: RunStore;
  readonly #modules = new Map<string, Promise<AgentModule>>();

  constructor(context: CommandContext, store: RunStore, audit: AuditFile | undefined) {
    this.#context = context;
    this.#store = store;
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
    const queue = entries.filter((entry) => !isLeftToParent(entry, ids)).values();
    let worst: number = exitCodes.ok;
    const work = async () => {
      for (const entry of queue) {
        if (this.session.isInterrupted) return;
        const exitCode = await this.#tryResume(entry);
        worst = Math.max(worst, exitCode);
      }
    };
    await Promise.all(Array.from({ length: SIDE_BY_SIDE }, work));
    return this.session.isInterrupted ? exitCodes.interrupted : worst;
  }

  async #tryResume(entry: InterruptedRun): Promise<number> {
    const obstacle = obstacleOf(entry);
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
