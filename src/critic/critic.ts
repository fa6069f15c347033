import type { InspectionEvent } from 'xstate';
import { checkKeys, type KnownKeys } from '../values/known-options.ts';
import { letGo } from '../values/thenable.ts';
import type { Escalator } from './escalator.ts';
import type { Critic } from './port.ts';
import { Watch } from './watch.ts';

/** Times in ms. */
export interface CriticOptions {
  /**
   * Decides when a run is idle past its soft limit (the agent's `maxRuntimeMs`), or has used up its steps.
   * @example escalator: createEscalator()
   */
  readonly escalator: Escalator;
  /**
   * This long without activity is one idle period. Each period raises one alarm.
   * @default 60_000
   */
  readonly idleMs?: number;
  /**
   * The working time, over all processes, after which the run is killed even if the escalator grants more.
   * @default 86_400_000
   */
  readonly backstopMs?: number;
  /**
   * The time limit of the escalator. A late answer decides nothing. Keep it below the executor's `portMs`.
   * @default 20_000
   */
  readonly askTimeoutMs?: number;
  /**
   * Receives XState's inspection events of the critic's machines, from the first decision on.
   * @default none
   * @example inspect: (event) => console.log(event.type)
   */
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
 * A critic: runs may work past their `maxRuntimeMs` as long as they are active. The critic asks the escalator about runs
 * that are idle, or have used up their steps. An escalator that throws, hangs or returns an invalid answer decides nothing.
 *
 * @throws {TypeError} if an option is invalid
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

/** Ignores errors of the inspector: it must not change what it inspects. */
function harmless(inspect: NonNullable<CriticOptions['inspect']>): (event: InspectionEvent) => void {
  return (event) => {
    try {
      letGo(typeof inspect === 'function' ? inspect(event) : inspect.next?.(event));
    } catch {
      // There is no logger here.
    }
  };
}
