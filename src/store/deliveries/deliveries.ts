import { parseOutcome } from '../../record/parse.ts';
import { checkRunId } from '../../run/identity.ts';
import type { RunOutcome } from '../../run/result.ts';
import { isObject, jsonText } from '../../values/json.ts';
import { parseStored } from '../encoding/encode.ts';
import type { Encryption } from '../encoding/encryption.ts';
import { keysOf } from '../encoding/filed.ts';
import type { Decide, EndToDeliver } from '../rules/decision.ts';
import type { DeliveryStore, Undelivered, UndeliveredEnd } from './port.ts';

/*
 * Ends that no process has delivered to its host. The mark is written in the commit that keeps the end, so that an end is either
 * marked, or was delivered before. A process that takes a mark moves its time: until then no other process takes it.
 */

/** Which marks a driver takes. */
export interface TakeDeliveries {
  /** Only marks with one of these texts in `agent`, in this order; the empty text is among them. */
  readonly agents: readonly string[];
  readonly limit: number;
  /** Each mark is due again after `deliveryPauseMs` of its tries. */
  readonly leaseMs: number;
}

/** A mark that a driver took. */
export interface TakenDelivery {
  readonly runId: string;
  readonly id: string;
  /** As `change.deliver` had it. */
  readonly text: string;
  /** The text of the run's kept outcome; null: none is kept. */
  readonly outcome: string | null;
}

/** The marks of a driver. */
export interface DeliveryDriver {
  /** Takes marks whose time has come, in one commit: the longest due first. One past its `untilMs` counts as removed. */
  take(take: TakeDeliveries): Promise<readonly TakenDelivery[]>;
}

/** Longest time between two deliveries of one end, ms. */
export const LONGEST_PAUSE_MS = 600_000;

/** Returns after how many ms an end is due again that was taken so many times before. */
export function deliveryPauseMs(tries: number, leaseMs: number): number {
  return Math.max(leaseMs, Math.min(LONGEST_PAUSE_MS, leaseMs * 2 ** Math.min(tries, 20)));
}

/** Returns the mark of an end, as it is stored; undefined for one that is delivered. */
export function deliveryOf(
  outcome: RunOutcome,
  undelivered: Undelivered | undefined,
  encryption: Encryption,
): EndToDeliver | undefined {
  if (!undelivered) return undefined;
  const { agentId, untilMs } = undelivered;
  const text = jsonText({ agentId, outcome: withoutContents(outcome) }, 'outcome');
  return {
    id: outcome.outcomeId,
    agent: keysOf(agentId, 'agent', encryption)?.[0] ?? '',
    text: encryption.seal(text, outcome.runId, 'undelivered'),
    untilMs,
  };
}

/** What is delivered of an end whose contents are gone: how it ended, and what it used. */
function withoutContents(outcome: RunOutcome): RunOutcome {
  const { outcomeId, runId, status, usage, spend, iterations, durable, saveErrors, error } = outcome;
  const facts = { outcomeId, runId, usage, ...(spend ? { spend } : {}), iterations, durable, saveErrors };
  const empty = { output: '', phases: [], undelivered: [], isCut: true } as const;
  if (status === 'ok') return { ...facts, ...empty, status };
  const { name, code } = error;
  return {
    ...facts,
    ...empty,
    status,
    error: { name, code, message: 'the contents of this end are not kept any more' },
  };
}

/** What the marks need of a driver. */
interface MarkingDriver {
  write(write: {
    readonly kind: 'deliver';
    readonly runId: string;
    readonly decide: Decide<void>;
    readonly size: number;
    readonly hasClaim: boolean;
  }): Promise<void>;
}

/** Makes the deliveries of a store. */
export function deliveryGroup(
  deliveries: DeliveryDriver,
  { driver, encryption }: { readonly driver: MarkingDriver; readonly encryption: Encryption },
): DeliveryStore {
  return {
    take: async ({ agentIds, limit, leaseMs }) => {
      const keys = agentIds.flatMap((agentId) => keysOf(agentId, 'agent', encryption) ?? []);
      const agents = [...new Set([...keys, ''])];
      const taken = await deliveries.take({ agents, limit, leaseMs });
      return taken.flatMap((mark) => decoded(mark, encryption)).filter(({ agentId }) => agentIds.includes(agentId));
    },
    mark: async (runId, outcomeId) => {
      const decide = () => ({ value: undefined, change: { delivered: outcomeId } });
      await driver.write({ kind: 'deliver', runId: checkRunId(runId), decide, size: 0, hasClaim: false });
    },
  };
}

/** A mark that cannot be read must not hold up the others: its time ends it. */
function decoded({ runId, id, text, outcome }: TakenDelivery, encryption: Encryption): UndeliveredEnd[] {
  try {
    const mark = parseStored(encryption.open(text, runId, 'undelivered'), 'mark');
    if (!isObject(mark) || typeof mark.agentId !== 'string') return [];
    const kept = outcome === null ? undefined : keptOf(outcome, runId, encryption);
    return [{ runId, agentId: mark.agentId, outcome: kept?.outcomeId === id ? kept : parseOutcome(mark.outcome) }];
  } catch {
    return [];
  }
}

function keptOf(text: string, runId: string, encryption: Encryption): RunOutcome | undefined {
  try {
    return parseOutcome(parseStored(encryption.open(text, runId, 'outcome'), 'outcome'));
  } catch {
    return undefined;
  }
}
