import type { CriticContext } from '../../machines/critic.ts';
import { isObject, type JsonObject } from '../values/json.ts';

/** The numbers that survive a crash. */
const counts = ['extendedToMs', 'raisedSteps', 'alarms', 'alarmsInStep', 'nudges', 'failures', 'nudgedAtStep'] as const;
type Saved = Pick<CriticContext, (typeof counts)[number] | 'verdict'>;

const nothing: Saved = { extendedToMs: 0, raisedSteps: 0, alarms: 0, alarmsInStep: 0, nudges: 0, failures: 0 };

/** What a later process must know. A critic that has done nothing leaves an empty object. */
export function savedState(context: CriticContext): JsonObject {
  const { verdict } = context;
  const known = counts.filter((key) => context[key] !== undefined && context[key] !== nothing[key]);
  return {
    ...Object.fromEntries(known.map((key) => [key, context[key] as number])),
    ...(verdict === undefined ? {} : { verdict }),
  };
}

/** What an earlier process left. What is not such a state, or not all of it, counts as a fresh start. */
export function restoredState(saved: unknown): Saved {
  if (!isObject(saved)) return nothing;
  const found = counts.filter((key) => Object.hasOwn(saved, key));
  if (!found.every((key) => isCount(saved[key]))) return nothing;
  const { verdict } = saved;
  return {
    ...nothing,
    ...Object.fromEntries(found.map((key) => [key, saved[key]])),
    ...(typeof verdict === 'string' && verdict !== '' ? { verdict } : {}),
  };
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value);
}
