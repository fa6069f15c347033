import { phaseDefinitionsOf } from '../../../agent/agent.ts';
import { isDue, isTaking } from '../../../store/capabilities.ts';
import type { DueRun, DueStore, TakenRun, TakenRuns } from '../../../store/port.ts';
import { hasTrait } from '../../../values/error-data.ts';
import { NotDurableError, UnsupportedError } from '../../../values/errors.ts';
import type { ExecutorServices } from '../../run/active-run.ts';
import { claimOptionsOf } from '../../run/record/stored-run.ts';
import { TakenClaim } from '../../services/due/taken-claim.ts';
import { SKILL } from '../../services/palette-entries.ts';

/** A wish for due runs. */
interface DueWish {
  /** At most this many. */
  readonly limit: number;
  /** Only these, of any agent, from a store with `takeDue`. Absent: all that this executor can continue. */
  readonly runIds?: readonly string[];
  /** No runs with these fair keys. */
  readonly fullKeys?: readonly string[];
}

/** Due runs that this process has claimed. */
export interface TakenDue {
  readonly claims: readonly TakenClaim[];
  /** In how many ms the next run is due: 0 = others are due now. Absent: none is. */
  readonly nextMs?: number;
}

/** How many runs a page of the due list has, for stores without `takeDue`. */
const PAGE = 100;

/** Returns the store from which due runs are taken. @throws {NOT_DURABLE} @throws {UNSUPPORTED} */
export function dueStoreOf({ config: { store } }: ExecutorServices, caller: string): DueStore {
  if (!store) throw new NotDurableError(`${caller} needs a store (createExecutor({ store }))`);
  if (isDue(store)) return store;
  throw new UnsupportedError(
    `${caller} needs a store in which runs rest (with leave and listDue); this one has neither`,
  );
}

/**
 * Claims due runs for this executor: of its own agents, unless a palette may find others. A store without `takeDue` is asked for
 * its list, and each run is claimed by itself.
 * @throws the store's error: then nothing was taken, or the claims of a lost answer run out
 */
export async function takeDue(services: ExecutorServices, store: DueStore, wish: DueWish): Promise<TakenDue> {
  const { clock } = services.config;
  const askedAt = clock.monotonic();
  const taken = isTaking(store) ? store.takeDue(takingOf(services, wish)) : takeListed(services, store, wish);
  const { now, claims, nextAt } = await services.outlive(taken);
  return {
    claims: claims.map((claim) => new TakenClaim(services, claim, { now, askedAt })),
    ...(nextAt === undefined ? {} : { nextMs: Math.max(0, nextAt - now) }),
  };
}

function takingOf(services: ExecutorServices, { limit, runIds, fullKeys = [] }: DueWish) {
  const { owner, config } = services;
  const { deployment, defaults } = config;
  const which = runIds ? { runIds } : { agentIds: agentIdsOf(services), definitions: definitionsOf(services) };
  return { owner, ttlMs: defaults.leaseMs, limit, fullKeys, version: deployment, ...which };
}

/** The agents whose runs this executor can continue, and does not leave alone just now; undefined: a palette may find any. */
function agentIdsOf({ config, seenAgents, paused }: ExecutorServices): readonly string[] | undefined {
  if (config.palette) return undefined;
  const skillIds = [...config.skills.keys()].map((name) => `${SKILL}${name}`);
  const agentIds = [...new Set([...config.agents.keys(), ...seenAgents.keys(), ...skillIds])];
  return paused.isAny ? agentIds.filter((agentId) => paused.mayTake(agentId)) : agentIds;
}

/** The definitions by which this executor takes runs that were parked for them. Agents that a palette may find have none. */
function definitionsOf({ config, seenAgents, stuck, paused }: ExecutorServices): readonly string[] {
  const agents = [...new Set([...config.agents.values(), ...seenAgents.values()])].filter(({ id }) =>
    paused.mayTake(id),
  );
  return agents.flatMap(phaseDefinitionsOf).filter((definition) => stuck.isTried(definition));
}

/** The order is that of the list: without `takeDue` no key has its turn. */
async function takeListed(services: ExecutorServices, store: DueStore, wish: DueWish): Promise<TakenRuns> {
  const claims: TakenRun[] = [];
  const seen = new Set<string>();
  for (let after: DueRun | undefined; ; ) {
    const { now, runs, nextAt } = await store.listDue({ limit: PAGE, ...(after ? { after } : {}) });
    // A host's own store may return the same page each time.
    const news = runs.filter(({ runId }) => !seen.has(runId) && seen.add(runId));
    for (const run of news.filter((each) => isWished(services, each, wish))) {
      if (claims.length >= wish.limit) return { now, claims, nextAt: now };
      const claim = await claimOne(services, store, { run, isFirst: claims.length === 0 });
      if (claim === 'failed') return { now, claims };
      if (claim) claims.push(claim);
    }
    after = runs.at(-1);
    if (runs.length < PAGE || news.length === 0) return { now, claims, ...(nextAt === undefined ? {} : { nextAt }) };
  }
}

function isWished(services: ExecutorServices, run: DueRun, { fullKeys = [] }: DueWish): boolean {
  const { registry, stuck, storedWork } = services;
  if (registry.live(run.runId) || storedWork.has(run.runId) || !stuck.isReady(run)) return false;
  const agentIds = agentIdsOf(services);
  if (!services.paused.mayTake(run.meta.agentId)) return false;
  return (!agentIds || agentIds.includes(run.meta.agentId)) && !fullKeys.includes(run.fairKey ?? '');
}

/** A failure must not lose the claims that are made already. @returns undefined if this run cannot be claimed */
async function claimOne(
  services: ExecutorServices,
  store: DueStore,
  { run, isFirst }: { readonly run: DueRun; readonly isFirst: boolean },
): Promise<TakenRun | undefined | 'failed'> {
  const { owner, config, stuck } = services;
  try {
    const claim = await store.claim(run.runId, owner, config.defaults.leaseMs, claimOptionsOf(services));
    return claim ? { ...claim, run } : undefined;
  } catch (error) {
    if (!hasTrait(error, 'isStoreAway')) return void stuck.note(run, 'stuck');
    if (isFirst) throw error;
    return 'failed';
  }
}
