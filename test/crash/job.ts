import type { Lie } from '../fixtures/naive-store.ts';
import type { Runtime } from '../runtimes/runtimes.ts';
import type { Failpoint } from './failpoints.ts';

/** What a worker is told. It does the same in every process: begin the run, or go on with it. */
export interface Job {
  readonly folder: string;
  readonly runId: string;
  readonly agent: 'twelve-tools' | 'survey' | 'pipeline';
  /** Where it kills itself. */
  readonly failpoint?: Failpoint | undefined;
  readonly leaseMs?: number | undefined;
  /** In the first process, from the write on that brings the end of that phase (from 1), the store refuses so many writes. */
  readonly late?: { readonly phase: number; readonly writes: number } | undefined;
  /** What its processes run in; default Node. */
  readonly runtime?: Runtime | undefined;
  /** Run on a store that lies in these ways. */
  readonly lies?: readonly Lie[] | undefined;
}

/** What a host of many runs is told: at its first boot it starts them, at every later one it recovers what is left. */
export interface FleetJob {
  readonly folder: string;
  readonly healthy: number;
  /** Whether one more run aborts the process. */
  readonly isPoisoned: boolean;
}
