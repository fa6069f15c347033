import type { Agent } from '../agent/agent.ts';
import type { InterruptedRun } from '../record/interrupted.ts';
import { type ErrorData, toErrorData } from '../run/error-data.ts';
import { CancelledError } from '../run/errors.ts';
import { type Listed, listed, listing } from './listing.ts';
import { DEFAULT_MAX_ATTEMPTS } from './ownership.ts';
import type { Kernel, RunScope } from './scope.ts';
import { launch } from './start.ts';
import { isChild, paletteAgent } from './sub-agents.ts';

export interface RecoverOptions {
  /** How many recovered runs may be live at once; default 64. */
  readonly concurrency?: number;
  /** Starts in a row without progress before a run is parked; default 3. */
  readonly maxAttempts?: number;
  /** Stops taking up further runs. */
  readonly signal?: AbortSignal;
}

export interface RecoveryEntry {
  readonly runId: string;
  /** An error code, and what it means for this run. */
  readonly reason?: string;
}

/** What became of each interrupted run that the store listed. */
export interface RecoveryReport {
  readonly resumed: readonly RecoveryEntry[];
  readonly parked: readonly RecoveryEntry[];
  /** Left alone: live here or elsewhere, agent not found, unreadable. */
  readonly skipped: readonly RecoveryEntry[];
  readonly failed: readonly RecoveryEntry[];
}

interface Work {
  readonly kernel: Kernel;
  readonly report: Report;
  readonly maxAttempts: number;
  readonly lane: Lane;
}

type Report = { [Kind in keyof RecoveryReport]: RecoveryEntry[] };

/** Takes up what earlier processes left: a bounded loop over the store's list, page by page, without transcripts. */
export async function recover(kernel: Kernel, options: RecoverOptions): Promise<RecoveryReport> {
  const report: Report = { resumed: [], parked: [], skipped: [], failed: [] };
  const { store, warn } = kernel.config;
  if (!store) return report;
  const { concurrency = 64, maxAttempts = DEFAULT_MAX_ATTEMPTS, signal } = options;
  const work: Work = { kernel, report, maxAttempts, lane: new Lane(concurrency) };
  const isOver = () => signal?.aborted || kernel.isShutDown;
  const taken: Promise<void>[] = [];
  // Without the run itself: ten thousand that have ended would be kept by what waits for all.
  const begun = async (run: Listed) => void (await takeUp(run, work));
  const suspects: Listed[] = [];
  const children: Listed[] = [];
  const known = new Set<string>();
  // Hosts that boot together read the same list: in an order of its own each meets the others less often.
  const { random } = kernel.config;
  for await (const entry of listed(store, { ...listing(kernel), signal, random })) {
    if (isOver()) break;
    known.add(entry.runId);
    const run = candidate(entry, work);
    if (!run) continue;
    if (isChild(run)) {
      children.push(run);
    } else if ((run.attempts ?? 0) >= maxAttempts - 1) {
      suspects.push(run);
    } else {
      await work.lane.enter();
      taken.push(begun(run));
    }
  }
  const childById = new Map(children.map((child) => [child.runId, child]));
  for (const child of children) {
    if (isOver()) break;
    const root = rootOf(child, childById);
    if (known.has(root) || kernel.registry.live(root)) {
      report.skipped.push({ runId: child.runId, reason: 'its parent goes on with it' });
    } else {
      await work.lane.enter();
      taken.push(begun(child));
    }
  }
  await takeUpSuspects(suspects, work, isOver);
  await Promise.all(taken);
  if (report.failed.length > 0) warn('recover: some runs could not be taken up', { failed: report.failed.length });
  return report;
}

/** The run at the top of a tree; '' when damaged records name each other as parents, because nobody is at the top then. */
function rootOf(child: Listed, childById: ReadonlyMap<string, Listed>): string {
  const seen = new Set<string>();
  let root = child.meta.parentRunId;
  for (let above = childById.get(root); above; above = childById.get(root)) {
    if (seen.has(root)) return '';
    seen.add(root);
    root = above.meta.parentRunId;
  }
  return root;
}

/**
 * Runs that are one start away from being parked. Perhaps it is this one that kills the process, perhaps it only died
 * with another: each starts when the one before has recorded something, so that the one that kills dies alone.
 */
async function takeUpSuspects(
  suspects: readonly Listed[],
  work: Work,
  isOver: () => boolean | undefined,
): Promise<void> {
  for (const run of suspects) {
    if (isOver()) return;
    await work.lane.enter();
    const scope = await takeUp(run, work);
    await scope?.progressed.promise;
  }
}

/** A run that is to be started; others are reported, each with the reason. */
function candidate(entry: InterruptedRun, { kernel, report }: Work): Listed | undefined {
  const { runId } = entry;
  const aside = (kind: 'parked' | 'skipped', reason: string) => void report[kind].push({ runId, reason });
  if (entry.status === 'quarantined') aside('skipped', entry.reason);
  else if (entry.status === 'parked' && entry.code !== 'DEFINITION_CHANGED') aside('parked', entry.reason ?? 'parked');
  else if (kernel.registry.live(runId)) aside('skipped', 'live in this process');
  else if (!agentFor(kernel, entry.meta.agentId)) {
    aside('skipped', `AGENT_NOT_FOUND: no agent ${entry.meta.agentId} is registered`);
  } else return entry;
  return undefined;
}

/** Never rejects: one run that cannot even be made must not keep the others from being taken up. */
async function takeUp(run: Listed, work: Work): Promise<RunScope | undefined> {
  try {
    return await begin(run, work);
  } catch (error) {
    work.lane.leave();
    note(work.report, run.runId, toErrorData(error));
    return undefined;
  }
}

async function begin(
  { runId, meta }: Listed,
  { kernel, report, maxAttempts, lane }: Work,
): Promise<RunScope | undefined> {
  const { prompt, callerId, channelId, guildId, parentRunId } = meta;
  const request = { runId, prompt, callerId, channelId, guildId, parentRunId, inputs: {}, images: [] };
  const agent = agentFor(kernel, meta.agentId) as Agent;
  const seed = { request, isNewId: false, maxAttempts, mustExist: true };
  // Whoever wanted its answer is gone: it is ended in good order, without another call of a model.
  const gone = new CancelledError('the run that began it is over');
  const options = isChild({ runId, meta }) ? { signal: AbortSignal.abort(gone) } : {};
  const run = await launch(kernel, agent, { seed, options });
  void run.result.then(() => lane.leave());
  const scope = kernel.scopes.get(run.actor);
  if (scope?.resolution === 'accepted') report.resumed.push({ runId });
  else if (scope?.resolution === 'answered') report.skipped.push({ runId, reason: 'it ended in the meantime' });
  else note(report, runId, (await run.result).error);
  return scope;
}

const leftAlone = ['RUN_OWNED_ELSEWHERE', 'CHECKPOINT_MISSING', 'UNKNOWN_TOOL', 'ERR_SHUTDOWN'];

function note(report: Report, runId: string, error: ErrorData | undefined): void {
  const { code = 'UNKNOWN', message = 'the run was refused' } = error ?? {};
  const kind = code === 'RUN_PARKED' ? 'parked' : leftAlone.includes(code) ? 'skipped' : 'failed';
  report[kind].push({ runId, reason: `${code}: ${message}` });
}

/** A registered agent, or one that only the palette knows. */
function agentFor(kernel: Kernel, agentId: string): Agent | undefined {
  return kernel.config.agents.get(agentId) ?? paletteAgent(kernel, agentId);
}

/** A lane for so many at once. */
class Lane {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(size: number) {
    this.#free = size;
  }

  async enter(): Promise<void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free += 1;
  }
}
