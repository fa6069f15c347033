import { callRows } from './calls.ts';
import { coldRows } from './cold.ts';
import { fleetRows } from './fleet.ts';
import { historyRows } from './history.ts';
import { labRows } from './lab.ts';
import { limitRows } from './limits.ts';
import { listRows } from './lists.ts';
import { manyRunsRows } from './many-runs.ts';
import { memoryRows } from './memory.ts';
import { otherStoreRows } from './other-stores.ts';
import type { Part } from './report.ts';
import { restateRows } from './restate.ts';
import { scheduleRows } from './schedules.ts';
import { startRows } from './start.ts';
import { stepRows } from './steps.ts';
import { streamRows } from './streams.ts';
import { studioRows } from './studio.ts';
import { tracingRows } from './tracing.ts';
import { webRows } from './web.ts';
import { workflowRows } from './workflows.ts';

/** A part of the bench, which can be measured alone. */
export interface BenchPart {
  /** As `--part` has it. */
  readonly name: string;
  readonly title: string;
  /** Whether a quick run of the whole bench measures it. */
  readonly isCore: boolean;
  measure(isQuick: boolean): Promise<Part>;
}

/** In the order in which they are measured. */
export const parts: readonly BenchPart[] = [
  { name: 'steps', title: 'Durable steps of one run', isCore: true, measure: stepRows },
  { name: 'cold', title: 'A process that has just begun', isCore: true, measure: coldRows },
  { name: 'calls', title: 'Many calls in one message', isCore: true, measure: callRows },
  { name: 'lists', title: 'Lists of models', isCore: false, measure: listRows },
  { name: 'limits', title: 'Limits', isCore: false, measure: limitRows },
  { name: 'text', title: 'Streamed text', isCore: true, measure: streamRows },
  { name: 'stores', title: 'PostgreSQL', isCore: false, measure: otherStoreRows },
  { name: 'many', title: 'Many runs at once', isCore: true, measure: manyRunsRows },
  { name: 'workflows', title: 'Workflows', isCore: true, measure: workflowRows },
  { name: 'lab', title: 'Retry, fork, replay', isCore: false, measure: labRows },
  { name: 'schedules', title: 'Schedules', isCore: false, measure: scheduleRows },
  { name: 'memory', title: 'Memory', isCore: true, measure: memoryRows },
  { name: 'history', title: 'Runs that ended', isCore: false, measure: historyRows },
  { name: 'tracing', title: 'Traces', isCore: false, measure: tracingRows },
  { name: 'start', title: 'New processes', isCore: true, measure: startRows },
  { name: 'journal', title: 'Journals and readers', isCore: false, measure: webRows },
  { name: 'restate', title: 'Restate', isCore: false, measure: restateRows },
  { name: 'studio', title: 'Studio', isCore: false, measure: studioRows },
  { name: 'fleet', title: 'Slices and fleets', isCore: false, measure: fleetRows },
];
