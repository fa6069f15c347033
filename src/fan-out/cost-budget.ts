import { priceOfCalls } from '../budget/prices.ts';
import type { Budget, Reservation, Usage } from '../index.ts';
import { readProperty } from '../values/error-data.ts';
import type { FanOutOptions } from './options.ts';

/** The cost of one model call. */
export interface Paid {
  readonly usage: Usage;
  /** US dollars; 0 if the model has no price. */
  readonly usd: number;
}

/** A reservation of a fan-out, and that of the host's budget for the same call. */
interface FanOutReservation extends Reservation {
  readonly held?: Reservation | undefined;
}

/**
 * Makes the budget of the runs of a fan-out: the host's budget is asked about each call, for the caller of the fan-out, and the
 * cost of each call is reported. The run's record has the sum, also after a crash. The caller id of each run is the id of its model.
 * @param paid gets the cost by `prices`, else by the host's budget
 * @param keyOf makes the key of a call from that of its run
 * @throws {TypeError} if a price is invalid
 */
export function costsBy(
  { prices, ports, callerId = '' }: Pick<FanOutOptions, 'prices' | 'ports' | 'callerId'>,
  paid: (modelId: string, call: Paid) => void,
  keyOf = (key: string) => key,
): Budget {
  const priceOf = prices && priceOfCalls(prices);
  const budget = ports?.budget;
  return {
    check: async () => budget?.check(callerId),
    reserve: async (modelId, { key, ...call }) => {
      const modelTier = call.modelTier || modelId;
      const held = await budget?.reserve(callerId, { ...call, modelTier, key: keyOf(key) });
      return { key, callerId: modelId, modelTier, model: call.model, held };
    },
    commit: async (reservation, use) => {
      const { callerId: modelId, modelTier, model, held } = reservation as FanOutReservation;
      const { usage, seconds } = use;
      let usd = priceOf?.({ model, modelTier, usage }) ?? 0;
      try {
        const spend = held && (await budget?.commit(held, use));
        if (!priceOf) usd = amountOf(readProperty(spend, 'usd'));
      } finally {
        // The call was made, also if the budget cannot count it.
        paid(modelId, { usage, usd });
      }
      return { tokens: usage.inputTokens + usage.outputTokens, usd, seconds };
    },
    refund: async (reservation) => {
      const { held } = reservation as FanOutReservation;
      if (held) await budget?.refund(held);
    },
    restore: async (_, run) => budget?.restore?.(callerId, run),
  };
}

/** A host's budget may return any value. */
function amountOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : 0;
}
