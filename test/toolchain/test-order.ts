import { statSync } from 'node:fs';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** They take longest: begun last, one of them would run alone in the end. Those that mostly wait stand between those that compute. */
const longest: readonly string[] = [
  'test/examples/chat.process.test.ts',
  'test/docs/docs.process.test.ts',
  'test/cli/demo.process.test.ts',
  'test/crash/failpoints.process.test.ts',
  'test/studio/browser/inbox.process.test.ts',
  'test/no-panic/matrix.process.test.ts',
  'test/studio/browser/runs.process.test.ts',
  'test/testing/crash-test/crash-test.process.test.ts',
  'test/store/postgres/contract.process.test.ts',
  'test/studio/browser/reading.process.test.ts',
  'test/crash/postgres-fleet.process.test.ts',
  'test/store/postgres/unclear.process.test.ts',
  'test/cli/encrypted.process.test.ts',
  'test/store/postgres/faults.process.test.ts',
  'test/cli/waiting.process.test.ts',
  'test/model/providers/faults.process.test.ts',
  'test/executor/waits/resting-runs.process.test.ts',
  'test/executor/sub-agents-many.process.test.ts',
  'test/store/waking.process.test.ts',
  'test/no-panic/many-runs.process.test.ts',
  'test/restate/kills.process.test.ts',
  'test/store/deleted-is-gone.test.ts',
  'test/executor/journal/journal.test.ts',
  'test/property/simulation-found.test.ts',
  'test/property/simulation.test.ts',
  'test/examples/queues.test.ts',
  'test/executor/outage.test.ts',
  'test/testing/crash-test/answers.test.ts',
  'test/executor/finalize-actors.test.ts',
  'test/testing/crash-test/failures.test.ts',
  'test/store/sqlite/contract.test.ts',
  'test/store/sqlite/ended.test.ts',
  'test/store/sqlite/large-deletes.test.ts',
  'test/client/chat-transport.test.ts',
  'test/executor/steering-room.test.ts',
  'test/executor/waiting-family-crashes.test.ts',
  'test/executor/lifecycle/recover.test.ts',
  'test/executor/threads/changes.test.ts',
  'test/testing/arbitraries/arbitraries.test.ts',
  'test/executor/lifecycle/recover-waiting.test.ts',
];

/**
 * Tests with processes come first, the longest of them before the others; the short ones of one process fill the gaps. The order is
 * the same each time: it does not depend on what an earlier run has measured.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const ranked = files.map((file) => ({ file, rank: rankOf(file), size: statSync(file.moduleId).size }));
    const before = (a: string, b: string): number => (a < b ? -1 : 1);
    return ranked
      .sort((a, b) => a.rank - b.rank || b.size - a.size || before(a.file.moduleId, b.file.moduleId))
      .map(({ file }) => file);
  }
}

function rankOf({ moduleId, project }: TestSpecification): number {
  const ofProject = project.name === 'processes' ? 0 : longest.length + 1;
  const place = longest.findIndex((path) => moduleId.endsWith(path));
  return ofProject + (place >= 0 ? place : longest.length);
}
