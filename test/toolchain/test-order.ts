import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** They take longest: begun last, one of them would run alone in the end. Those that mostly wait stand between those that compute. */
const longest: readonly string[] = [
  'test/examples/chat.process.test.ts',
  'test/crash/failpoints.process.test.ts',
  'test/cli/demo.process.test.ts',
  'test/docs/docs.process.test.ts',
  'test/crash/postgres-fleet.process.test.ts',
  'test/no-panic/matrix.process.test.ts',
  'test/store/waking.process.test.ts',
  'test/testing/crash-test/crash-test.process.test.ts',
  'test/restate/kills.process.test.ts',
  'test/crash/survey.process.test.ts',
  'test/store/postgres/unclear.process.test.ts',
  'test/crash/pipeline.process.test.ts',
  'test/store/postgres/faults.process.test.ts',
  'test/fan-out/kill.process.test.ts',
];

/** Tests with processes come first, the longest of them before the others; the short ones of one process fill the gaps. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => rankOf(a) - rankOf(b));
  }
}

function rankOf({ moduleId, project }: TestSpecification): number {
  const place = longest.findIndex((path) => moduleId.endsWith(path));
  if (place >= 0) return place;
  return longest.length + (project.name === 'processes' ? 0 : 1);
}
