import type { AgentDefinition, Executor, ExecutorOptions, Invocation, Run, RunOptions, Tool } from 'pawl';
import type { ScriptedEntry } from 'pawl/testing';
import type { Failure } from './failures.ts';

/** One run in which one thing misbehaves. */
export interface Scene {
  readonly options?: Partial<ExecutorOptions>;
  readonly script?: readonly ScriptedEntry[];
  readonly tools?: readonly Tool[] | AgentDefinition['tools'];
  /** What its agent has besides tools. */
  readonly agent?: Partial<AgentDefinition>;
  readonly invocation?: Partial<Invocation>;
  readonly runOptions?: RunOptions;
  /** Done when the run was accepted. */
  readonly during?: (run: Run, executor: Executor) => void;
  /** Done when the run has ended; it must settle. */
  readonly after?: (executor: Executor) => Promise<unknown>;
}

/** How a run may end: `ok`, or an error code. */
export type Ending = string | readonly string[];

/** A thing that a host hands over. */
export interface Port {
  readonly name: string;
  readonly scene: (act: () => never, failure: Failure) => Scene;
  /** How the run ends when it misbehaves; the first row that names the failure counts, `else` is for the others. */
  readonly ends: { readonly [Each in Failure]?: Ending } & { readonly else: Ending };
  /** What runs in a host's machine cannot be given; default: both. */
  readonly isStartOnly?: true;
  /** A property has no promise to give: only these failures apply. */
  readonly failures?: readonly Failure[];
}

export const throwing: readonly Failure[] = [
  'throws an Error',
  'throws null',
  'throws what cannot be read',
  'throws what has a throwing toJSON',
];

export function endsAs(port: Port, failure: Failure): readonly string[] {
  const ending = port.ends[failure] ?? port.ends.else;
  return typeof ending === 'string' ? [ending] : ending;
}
