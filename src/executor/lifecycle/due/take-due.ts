import { phaseDefinitionsOf } from '../../../agent/agent.ts';
import type { DueStore } from '../../../store/due-port.ts';
import { NotDurableError, UnsupportedError } from '../../../values/errors.ts';
import type { ExecutorServices } from '../../run/active-run.ts';
import { TakenClaim } from '../../services/due/taken-claim.ts';
import { SKILL } from '../../services/palette-entries.ts';

/** A wish for due runs. */
interface DueWish {
  /** At most this many. */
  readonly limit: number;
  /** Only these, of any agent. Absent: all that this executor can continue. */
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

/** Returns the due runs of the store. @throws {NOT_DURABLE} @throws {UNSUPPORTED} */
export function dueStoreOf({ config: { store } }: ExecutorServices, caller: string): DueStore {
  if (!store) throw new NotDurableError(`${caller} needs a store (createExecutor({ store }))`);
  if (store.due) return store.due;
  throw new UnsupportedError(`${caller} needs a store in which runs rest; this one has no group due`);
}

/**
 * Claims due runs for this executor: of its own agents, unless a palette may find others.
 * @throws the store's error: then nothing was taken, or the claims of a lost answer run out
 */
export async function takeDue(services: ExecutorServices, due: DueStore, wish: DueWish): Promise<TakenDue> {
  const { clock } = services.config;
  const askedAt = clock.monotonic();
  const { now, claims, nextAt } = await services.outlive(due.take(takingOf(services, wish)));
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
