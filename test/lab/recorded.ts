import { memoryStore } from 'pawl';
import { type RecordedRun, readRun } from 'pawl/lab';
import type { HostOptions } from '../fixtures/host.ts';
import { hostOf } from '../fixtures/host.ts';

export const retention = { records: '1h' };

/** A host that keeps records, and a run of it that has ended. */
export async function recordedRun(
  options: HostOptions,
  invocation: Parameters<ReturnType<typeof hostOf>['run']>[0] = {},
) {
  const host = hostOf({ store: memoryStore(), retention, ...options });
  const result = await host.run({ runId: 'r', ...invocation });
  const run: RecordedRun = await readRun(host.executor, 'r');
  return { host, result, run };
}

/** What a report says besides the run when nothing differs. */
export const allSame = { same: true, difference: null, missed: [], drift: [], unused: [] };
