import type { ContractCase } from 'pawl/testing';

/** What a runtime made of the cases of a contract. */
export interface ContractReport {
  /** The runtime's name and version, like `Deno/2.9.5`. */
  readonly runtime: string;
  readonly passed: number;
  readonly skipped: number;
  /** The cases that failed, each with its error. */
  readonly failed: readonly string[];
}

/** Runs the cases one after another. */
export async function checked(cases: readonly ContractCase[]): Promise<ContractReport> {
  const failed: string[] = [];
  let skipped = 0;
  const skip = () => {
    skipped += 1;
  };
  for (const { title, run } of cases) {
    try {
      await run({ skip });
    } catch (error) {
      failed.push(`${title}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    }
  }
  return { runtime: navigator.userAgent, passed: cases.length - skipped - failed.length, skipped, failed };
}
