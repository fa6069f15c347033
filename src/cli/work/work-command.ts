import { setTimeout as sleep } from 'node:timers/promises';
import { createExecutor, type Executor, type WorkOptions } from '../../index.ts';
import { type Backoff, backoffMs } from '../../values/backoff.ts';
import type { CliCommand, CommandContext } from '../command.ts';
import { type AgentModule, closeModule, knownBy, limitsIn, loadAgentModule } from '../open/agent-module.ts';
import { auditOption } from '../open/control-executor.ts';
import { openWorkStore, type WorkStore } from '../open/open-store.ts';
import { countOf, lengthOf } from '../option-values.ts';
import { Interruption } from '../ui/ctrl-c.ts';
import { exitCodeOf, exitCodes, Failure, lineOf, oneLine } from '../ui/failure.ts';
import { duration } from '../ui/format.ts';
import { watchParent } from '../ui/parent-watch.ts';
import { PAWL } from '../ui/shell-words.ts';
import { loggerOf } from '../ui/warnings.ts';
import { type Address, addressOfServer, serveHealth } from './health-server.ts';
import { WorkProgress } from './work-progress.ts';

const USUAL_PLACES = 16;
const USUAL_DRAIN = '25s';
const USUAL_WAIT = '5m';
/** Pauses between tries to open a store, ms. */
const tries: Backoff = { firstMs: 500, maxMs: 5_000, jitter: 'around' };

/** What the options of `pawl work` say. */
interface Wishes {
  readonly concurrency: number;
  readonly drainMs: number;
  /** Where probes are answered; undefined = nowhere. */
  readonly health: Address | undefined;
  /** How long a store that does not answer is waited for, ms. */
  readonly waitMs: number;
  readonly limits: WorkOptions;
  readonly executor: { readonly fairBy?: string; readonly deployment?: number };
}

/** Runs `pawl work`: takes due runs of one agent, beside other processes, until it is stopped. */
export const workCommand: CliCommand = async (context) => {
  const { args, output } = context;
  const [file] = args.words;
  if (file === undefined) throw new Failure(`\`pawl work\` needs an agent module: ${PAWL} work <agent module>`);
  const wishes = wishesOf(context);
  const module = await loadAgentModule(file);
  const progress = new WorkProgress(output, args.json);
  const interruption = new Interruption(output);
  const stop = new AbortController();
  interruption.aborts(stop);
  const watching = watchParent(output);
  await using health = await serveHealth(wishes.health, output);
  const store = await openInTime(module, { context, waitMs: wishes.waitMs, signal: stop.signal });
  if (!store) return exitCodes.ok;
  const executor = executorFor(module, { context, store, wishes, progress });
  health.of(executor);
  const worker = executor.work({ ...wishes.limits, ...(store.listen ? { listen: store.listen } : {}) });
  progress.began({ agentId: module.agent.id, store: store.path, concurrency: wishes.concurrency });
  await awaitAbort(stop.signal);
  progress.draining(worker.stats().live, wishes.drainMs);
  await executor.shutdown({ drainMs: wishes.drainMs });
  const { live, taken } = worker.stats();
  progress.over(taken, live);
  await closeModule(module, output);
  watching[Symbol.dispose]();
  interruption.stop();
  await store.close();
  return live === 0 ? exitCodes.ok : exitCodes.failed;
};

/** Reads the options of the command. @throws {Failure} that names the one that is wrong */
function wishesOf({ args }: CommandContext): Wishes {
  const { fairBy, perKey, deployment, budget } = args;
  if (fairBy === '') throw new Failure('--fair-by is empty; name a label of the runs, for example tenant');
  if (perKey !== undefined && fairBy === undefined)
    throw new Failure('--per-key needs the label that has the key: add --fair-by <label>');
  const concurrency = args.concurrency === undefined ? USUAL_PLACES : countOf('concurrency', args.concurrency, 'runs');
  return {
    concurrency,
    drainMs: Math.max(1, lengthOf('drain', args.drain ?? USUAL_DRAIN)),
    health: args.health === undefined ? undefined : addressOfServer(args.health),
    waitMs: lengthOf('wait-for-store', args.waitForStore ?? USUAL_WAIT),
    limits: {
      concurrency,
      ...(perKey === undefined ? {} : { perKey: countOf('per-key', perKey, 'runs') }),
      ...(budget === undefined ? {} : { budgetMs: lengthOf('budget', budget) }),
    },
    executor: {
      ...(fairBy === undefined ? {} : { fairBy }),
      ...(deployment === undefined ? {} : { deployment: deploymentOf(deployment) }),
    },
  };
}

function deploymentOf(option: string): number {
  const number = /^\d{1,15}$/.test(option) ? Number(option) : Number.NaN;
  if (Number.isSafeInteger(number)) return number;
  throw new Failure(
    `--deployment ${JSON.stringify(oneLine(option))} is not a whole number; give each release a higher one`,
  );
}

interface Surroundings {
  readonly context: CommandContext;
  readonly store: WorkStore;
  readonly wishes: Wishes;
  readonly progress: WorkProgress;
}

function executorFor(module: AgentModule, { context, store, wishes, progress }: Surroundings): Executor {
  const { models, tools, options, schedules } = module;
  return createExecutor({
    ...options,
    ...wishes.executor,
    ...auditOption(context.args),
    models,
    tools,
    ...knownBy(module),
    ...(schedules ? { schedules } : {}),
    ...limitsIn(module, store),
    store,
    observers: [progress],
    logger: loggerOf(context.output),
  });
}

/**
 * Opens the store, and waits for one that does not answer: a database may start after its workers.
 * @returns undefined if a signal came meanwhile
 * @throws {Failure} at once for one that no waiting helps, and with 69 when the time is over
 */
async function openInTime(
  { codec }: AgentModule,
  { context: { args, output }, waitMs, signal }: { context: CommandContext; waitMs: number; signal: AbortSignal },
): Promise<WorkStore | undefined> {
  const latest = performance.now() + waitMs;
  for (let tried = 1; !signal.aborted; tried++) {
    try {
      return await openWorkStore(args.store, { codec, listens: args.listen });
    } catch (error) {
      if (exitCodeOf(error) !== exitCodes.unavailable || performance.now() >= latest) throw error;
      if (tried === 1) output.say(`pawl: ${lineOf(error)}; it is waited for, ${duration(waitMs)} at most`);
    }
    await Promise.race([sleep(backoffMs(tried, tries, Math.random)), awaitAbort(signal)]);
  }
  return undefined;
}

function awaitAbort(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
