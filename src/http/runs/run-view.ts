import type { FoundRun, ListedWait, OpenWait, RunOutput } from '../../index.ts';
import { type PublicError, publicError } from '../problem.ts';
import type { RunCall } from '../route.ts';
import { publicWait, type RunLine, runLine } from './run-line.ts';
import { Below, maxStepsOf, withoutOwner } from './run-list.ts';

/** How a run ended, as clients see it. */
export interface RunEndView {
  readonly status: RunOutput['status'];
  /** The answer; of a run that did not succeed, its last text. */
  readonly output: string;
  /** The answer as the agent's `output` schema returned it. */
  readonly data?: unknown;
  readonly error?: PublicError;
  /** The run ended before the request that started it again. */
  readonly kept?: true;
  /** Of a kept answer, wall clock, ms. */
  readonly endedAt?: number;
}

/** One run: the answer of `GET /runs/:runId`. */
export interface RunView extends RunLine {
  /** The run that a host started. */
  readonly rootRunId: string;
  readonly parentRunId?: string;
  /** The open waits of this run. */
  readonly waits: readonly OpenWait[];
  /** Absent while it has not ended. */
  readonly result?: RunEndView;
}

/** Describes the run of a request. */
export async function runViewOf({ run, served, grant }: RunCall): Promise<RunView> {
  const { executor } = served;
  // Who works on it takes another look, which other routes do not need.
  const isStored = run.line.status !== 'live' && run.line.status !== 'ended';
  const line = isStored ? ((await executor.find(run.runId, { owner: true })) ?? run.line) : run.line;
  const maxSteps = maxStepsOf(served, line.meta?.agentId ?? '');
  const shown = runLine(line, {
    all: grant.all === true,
    maxSteps,
    ...(await new Below(served).look(line)),
  });
  return {
    ...(grant.all ? shown : withoutOwner(shown)),
    rootRunId: run.rootRunId,
    ...(line.parent ? { parentRunId: line.parent.runId } : {}),
    waits: waitsOf(line).map(publicWait),
    ...(line.status === 'ended' ? { result: endOfView(line.outcome) } : {}),
  };
}

function waitsOf(line: FoundRun): readonly OpenWait[] {
  return ('waits' in line ? line.waits : undefined) ?? [];
}

/** Returns how a run ended, as clients see it. */
export function endOfView({ status, output, data, error, kept, endedAt }: RunOutput): RunEndView {
  return {
    status,
    output,
    ...(data === undefined ? {} : { data }),
    ...(error ? { error: publicError(error) } : {}),
    ...(kept ? { kept } : {}),
    ...(endedAt === undefined ? {} : { endedAt }),
  };
}

/** The most stored answers to a wait that a list has: each of many voters has one. */
const SHOWN_ANSWERS = 8;

/** Returns a listed wait as clients see it. Of stored answers a list says how, who and when; their values may be long. */
export function waitView({ answers, ...wait }: ListedWait): ListedWait {
  const shown = answers?.slice(0, SHOWN_ANSWERS).map(({ how, by, at }) => ({
    how,
    ...(by ? { by } : {}),
    ...(at === undefined ? {} : { at }),
  }));
  return publicWait({ ...wait, ...(shown ? { answers: shown } : {}) } as ListedWait);
}
