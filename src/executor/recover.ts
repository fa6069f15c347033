import type { InterruptedRun } from '../record/interrupted.ts';
import type { ErrorData } from '../run/error-data.ts';
import type { RunCheckpointMeta } from '../run/request.ts';
import type { CheckpointStore, Cursor } from '../store/port.ts';
import { DEFAULT_MAX_ATTEMPTS } from './ownership.ts';
import type { Kernel } from './scope.ts';
import { launch } from './start.ts';

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

type Listed = Extract<InterruptedRun, { meta: RunCheckpointMeta }>;
type Report = { [Kind in keyof RecoveryReport]: RecoveryEntry[] };

const PAGE = 500;

/** Takes up what earlier processes left: a bounded loop over the store's list, page by page, without transcripts. */
export async function recover(kernel: Kernel, options: RecoverOptions): Promise<RecoveryReport> {
  const report: Report = { resumed: [], parked: [], skipped: [], failed: [] };
  const { store, warn } = kernel.config;
  if (!store) return report;
  const lane = new Lane(options.concurrency ?? 64);
  const taken: Promise<void>[] = [];
  for await (const entry of listed(store, options.signal)) {
    if (options.signal?.aborted || kernel.isShutDown) break;
    if (!setAside(kernel, entry, report)) {
      await lane.enter();
      taken.push(takeUp(kernel, entry as Listed, { options, report, lane }));
    }
  }
  await Promise.all(taken);
  if (report.failed.length > 0) warn('recover: some runs could not be taken up', { failed: report.failed.length });
  return report;
}

/** All listed runs. Recovered ones leave the list as they end, so that each page begins after the last one seen. */
export async function* listed(store: CheckpointStore, signal?: AbortSignal): AsyncGenerator<InterruptedRun> {
  let after: Cursor | undefined;
  for (;;) {
    const page = await store.listInterrupted({
      limit: PAGE,
      ...(after ? { after } : {}),
      ...(signal ? { signal } : {}),
    });
    yield* page;
    const last = page.findLast((entry): entry is Listed => 'updatedAt' in entry);
    if (page.length < PAGE || !last) return;
    after = { updatedAt: last.updatedAt, runId: last.runId };
  }
}

/** Runs that are not to be started, each with the reason. */
function setAside(kernel: Kernel, entry: InterruptedRun, report: Report): boolean {
  const { runId } = entry;
  const aside = (kind: 'parked' | 'skipped', reason: string) => report[kind].push({ runId, reason }) > 0;
  if (entry.status === 'quarantined') return aside('skipped', entry.reason);
  if (entry.status === 'parked') return aside('parked', entry.reason ?? 'parked');
  if (kernel.registry.live(runId)) return aside('skipped', 'live in this process');
  const agentId = entry.meta.agentId;
  return !kernel.config.agents.has(agentId) && aside('skipped', `AGENT_NOT_FOUND: no agent ${agentId} is registered`);
}

async function takeUp(
  kernel: Kernel,
  { runId, meta }: Listed,
  { options, report, lane }: { options: RecoverOptions; report: Report; lane: Lane },
): Promise<void> {
  const { prompt, callerId, channelId, guildId, parentRunId } = meta;
  const request = { runId, prompt, callerId, channelId, guildId, parentRunId, inputs: {}, images: [] };
  const agent = kernel.config.agents.get(meta.agentId);
  if (!agent) return lane.leave();
  const seed = { request, isNewId: false, maxAttempts: options.maxAttempts ?? DEFAULT_MAX_ATTEMPTS, mustExist: true };
  const run = await launch(kernel, agent, { seed, options: {} });
  void run.result.then(() => lane.leave());
  const resolution = kernel.scopes.get(run.actor)?.resolution;
  if (resolution === 'accepted') report.resumed.push({ runId });
  else if (resolution === 'answered') report.skipped.push({ runId, reason: 'it ended in the meantime' });
  else note(report, runId, (await run.result).error);
}

const leftAlone = ['RUN_OWNED_ELSEWHERE', 'CHECKPOINT_MISSING', 'UNKNOWN_TOOL', 'ERR_SHUTDOWN'];

function note(report: Report, runId: string, error: ErrorData | undefined): void {
  const { code = 'UNKNOWN', message = 'the run was refused' } = error ?? {};
  const kind = code === 'RUN_PARKED' ? 'parked' : leftAlone.includes(code) ? 'skipped' : 'failed';
  report[kind].push({ runId, reason: `${code}: ${message}` });
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
