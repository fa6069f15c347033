import type { InspectionEvent } from 'xstate';
import { checkKeys, type KnownKeys } from '../values/known-options.ts';
import { letGo } from '../values/thenable.ts';
import type { Escalator } from './escalator.ts';
import type { Critic } from './port.ts';
import { Watch } from './watch.ts';

/** Times in ms. */
export interface CriticOptions {
  /** What happens when a run is idle past its soft limit (the agent's `maxRuntimeMs`), or out of steps. */
  readonly escalator: Escalator;
  /** So long without a sign of life is an idle period; default 60 s. One alarm each. */
  readonly idleMs?: number;
  /** Working time, over all processes, after which the run is killed whatever the escalator granted; default 24 h. */
  readonly backstopMs?: number;
  /** An escalator that takes longer has decided nothing; default 20 s. Keep it below the executor's `portMs`. */
  readonly askTimeoutMs?: number;
  /** XState's inspection events of the machines at work; they begin when there is something to decide for the first time. */
  readonly inspect?: ((event: InspectionEvent) => void) | { readonly next?: (event: InspectionEvent) => void };
}

const optionKeys: KnownKeys<CriticOptions> = {
  escalator: true,
  idleMs: true,
  backstopMs: true,
  askTimeoutMs: true,
  inspect: true,
};

const DAY_MS = 24 * 60 * 60_000;

/**
 * A critic: runs may work past their `maxRuntimeMs` as long as they show signs of life, and what is to be done with those
 * that do not, or that use up their steps, is asked of the escalator. It may throw, hang or answer nonsense: that decides nothing.
 *
 * @throws {TypeError} when an option is not what it should be
 * @example
 * const critic = createCritic({ escalator: createEscalator({ killAfterAlarms: 2 }), idleMs: 30_000 });
 */
export function createCritic(options: CriticOptions): Critic {
  checkKeys(options ?? {}, optionKeys, { of: 'createCritic' });
  const { escalator, idleMs = 60_000, backstopMs = DAY_MS, askTimeoutMs = 20_000, inspect } = options ?? {};
  if (typeof escalator !== 'function')
    throw new TypeError('createCritic needs an escalator: a function (state) => decision');
  for (const [name, value] of Object.entries({ idleMs, backstopMs, askTimeoutMs })) {
    if (typeof value !== 'number' || !(value > 0) || !Number.isFinite(value))
      throw new TypeError(`${name} must be a number of ms above 0, not ${String(value)}`);
  }
  const config = { escalator, idleMs, backstopMs, askTimeoutMs, ...(inspect ? { inspect: harmless(inspect) } : {}) };
  return { monitor: ({ runId }, run) => new Watch(runId, run, config) };
}

/** An inspector has no say in what it looks at. */
function harmless(inspect: NonNullable<CriticOptions['inspect']>): (event: InspectionEvent) => void {
  return (event) => {
    try {
      letGo(typeof inspect === 'function' ? inspect(event) : inspect.next?.(event));
    } catch {
      // There is no logger here to tell.
    }
  };
}
