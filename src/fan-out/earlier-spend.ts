import type { Invocation, RunCheckpoint } from '../index.ts';
import { isObject } from '../values/json.ts';
import type { ResponseSnapshot } from './snapshot.ts';

/** The usage of a model's attempts that failed, or whose record is lost. It is paid for, so it counts. */
interface Spent {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
  readonly costUsd: number;
  readonly latencyMs: number;
}

/** The name of the input that has it: the inputs of the next attempt, and so its record, carry it. */
const NAME = 'fan-out.spent';

/**
 * Returns the run inputs that carry what a model's earlier attempts have spent, for a run that starts again.
 * @param before the model's turn in the file, with all attempts so far
 */
export function inputsAfter(before: ResponseSnapshot | undefined): Pick<Invocation, 'inputs'> {
  if (!before) return {};
  const { inputTokens, outputTokens, reasoningTokens = 0, costUsd, latencyMs } = before;
  return { inputs: { [NAME]: { inputTokens, outputTokens, reasoningTokens, costUsd, latencyMs } } };
}

/** Returns the run inputs of a continued run, with what earlier attempts have spent. */
export function inputsOf({ inputs }: RunCheckpoint): Pick<Invocation, 'inputs'> {
  return inputs ? { inputs } : {};
}

/**
 * Reads from a run's inputs what a model of a fan-out had spent in earlier processes.
 * @param inputs of a run, new or continued
 */
export function spentBefore(inputs: RunCheckpoint['inputs']): Spent {
  const spent = inputs?.[NAME];
  const figure = (name: keyof Spent) => (isObject(spent) && typeof spent[name] === 'number' ? spent[name] : 0);
  return {
    inputTokens: figure('inputTokens'),
    outputTokens: figure('outputTokens'),
    reasoningTokens: figure('reasoningTokens'),
    costUsd: figure('costUsd'),
    latencyMs: figure('latencyMs'),
  };
}
