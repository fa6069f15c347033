import { checkRunId } from '../../run/identity.ts';
import type { Clock } from '../../values/clock.ts';
import type { DueRun, DueStore, TakeDueOptions, TakenRun, TakenRuns } from '../due-port.ts';
import type { Encryption } from '../encoding/encryption.ts';
import { keysOf } from '../encoding/filed.ts';
import type { Decide } from '../rules/decision.ts';
import type { IsDead } from '../rules/lease.ts';
import { heldFor, readDeployment, takeRun } from '../rules/ownership.ts';
import type { DueDriver, ListedHead, StoreDriver, TakeDue, TakenHead } from '../store-driver.ts';

/** Most runs that one call takes. */
const MAX_TAKEN = 1_000;

interface Parts {
  readonly driver: StoreDriver;
  readonly encryption: Encryption;
  readonly clock: Clock;
  readonly isDead: IsDead | undefined;
  /** Reads the entry of a due run; undefined: its record cannot be read, or says that it is never due. */
  readonly dueRun: (head: ListedHead, definitions?: readonly string[]) => DueRun | undefined;
  /** Called at each look for due runs. */
  onTake(): void;
}

/** Returns the methods of a store that take due runs. */
export function takingMethods(due: DueDriver, parts: Parts): Pick<DueStore, 'take' | 'heldUntil' | 'deploymentOf'> {
  const { driver, clock, isDead, onTake } = parts;
  const ask = (runId: string, decide: Decide<number | null>) =>
    driver.write({ kind: 'claim', runId: checkRunId(runId), decide, size: 0, hasClaim: false });
  let after: string | undefined;
  return {
    take: async (options) => {
      onTake();
      const runs = new Map<string, DueRun>();
      const { now, taken, nextAt } = await due.take(wishOf(options, parts, { after, runs }));
      // A run without a key has '' as its key.
      if (taken.length > 0) after = taken.at(-1)?.head.fair ?? '';
      const claims = taken.flatMap((each) => takenRun(each, runs));
      return { now, claims, ...(nextAt === undefined ? {} : { nextAt }) } satisfies TakenRuns;
    },
    heldUntil: async (runId) => {
      const ms = await ask(runId, heldFor({ isDead }));
      return ms === null ? null : Math.ceil(clock.now() + ms);
    },
    deploymentOf: (runId) => ask(runId, readDeployment),
  };
}

/** Makes what a driver gets of a wish. @throws {TypeError} for a limit or a deployment that is no number */
function wishOf(
  { owner, ttlMs, limit, runIds, agentIds, definitions, fullKeys = [], version, now: at }: TakeDueOptions,
  { encryption, isDead, dueRun }: Parts,
  { after, runs }: { readonly after: string | undefined; readonly runs: Map<string, DueRun> },
): TakeDue {
  if (!(limit >= 0)) throw new TypeError(`limit must be a number of runs, not ${String(limit)}`);
  if (runIds && runIds.length > MAX_TAKEN)
    throw new TypeError(`runIds must have at most ${MAX_TAKEN} ids, not ${runIds.length}`);
  const deployment = checkDeployment('version', version);
  const named = runIds && new Set(runIds);
  return {
    owner,
    ttlMs,
    now: at,
    limit: Math.min(Math.floor(limit), MAX_TAKEN),
    runIds: named,
    agents: agentIds?.flatMap((id) => keysOf(id, 'agent', encryption) ?? []),
    definitions: definitions?.flatMap((each) => keysOf(each, 'definition', encryption) ?? []),
    fullKeys,
    deployment,
    after,
    isTakeable: (head) => {
      const run = dueRun(head, definitions);
      // Ids may share the text under which they are found.
      if (!run || (named && !named.has(head.runId)) || (agentIds && !agentIds.includes(run.meta.agentId))) return false;
      runs.set(head.runId, run);
      return true;
    },
    decide: (runId, now, isParked = false) =>
      takeRun({ runId, owner, ttlMs, deployment, isNamed: named !== undefined, isParked }, { isDead, now }),
  };
}

/** Checks the number of a deployment. @throws {TypeError} */
export function checkDeployment(name: string, deployment: number | undefined): number | undefined {
  if (deployment === undefined || (Number.isSafeInteger(deployment) && deployment >= 0)) return deployment;
  throw new TypeError(`${name} must be a whole number from 0 on, or absent, not ${String(deployment)}`);
}

function takenRun({ claim, head: { runId } }: TakenHead, runs: ReadonlyMap<string, DueRun>): TakenRun[] {
  const run = runs.get(runId);
  return run ? [{ ...claim, run: { ...run, attempts: claim.attempts - 1 } }] : [];
}
