import type { Invocation, RunCheckpoint } from '../index.ts';
import { isObject } from '../values/json.ts';
import type { ResponseSnapshot } from './snapshot.ts';

/** What attempts of a model have taken that failed, or whose record is lost: they gave nothing, and are paid for all the same. */
export interface Spent {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
  readonly costUsd: number;
  readonly latencyMs: number;
}

/** Under this name it stands in the inputs of the run that is the next attempt, and so in its record. */
const NAME = 'fan-out.spent';

/** The inputs of a run that begins anew. @param before what the file has of the model, in all attempts so far */
export function inputsAfter(before: ResponseSnapshot | undefined): Pick<Invocation, 'inputs'> {
  if (!before) return {};
  const { inputTokens, outputTokens, reasoningTokens = 0, costUsd, latencyMs } = before;
  return { inputs: { [NAME]: { inputTokens, outputTokens, reasoningTokens, costUsd, latencyMs } } };
}

/** The inputs of a run that goes on. */
export function inputsOf({ inputs }: RunCheckpoint): Pick<Invocation, 'inputs'> {
  return inputs ? { inputs } : {};
}

/** @param inputs of a run, also of one that goes on */
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
