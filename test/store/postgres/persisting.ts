import { expect } from 'vitest';
import type { Claim } from '../../../src/store/port.ts';
import type { PostgresStore } from '../../../src/store/postgres/index.ts';
import { nextStep, sampleRecord, userMessage } from '../../../src/testing/store-contract/records.ts';

/** Writes `steps` steps to each of some runs, all at once; each call is tried until it is stored. Counts the refusals. */
export async function persist(store: PostgresStore, { runs, steps }: { runs: number; steps: number }): Promise<number> {
  let refusals = 0;
  const stored = async <T>(call: () => Promise<T>): Promise<T> => {
    for (let tries = 0; ; tries++) {
      try {
        return await call();
      } catch (error) {
        refusals += 1;
        if ((error as { code?: unknown }).code !== 'STORE_UNAVAILABLE' || tries > 50) throw error;
      }
    }
  };
  const one = async (runId: string) => {
    const claim = (await stored(() => store.claim(runId, 'one', 600_000))) as Claim;
    let record = sampleRecord(runId, { attempts: claim.attempts });
    await stored(() => store.save(record, { claim }));
    for (let step = 0; step < steps; step++) {
      const next = nextStep(record, [userMessage(`${runId} ${step} ${'x'.repeat((step % 7) * 900)}`)]);
      await stored(() => store.append(next.delta, { claim }));
      record = next.record;
      if (step % 5 === 0) await stored(() => store.renew(claim, 600_000));
      if (step % 8 === 0) expect(await stored(() => store.load(runId))).toEqual(record);
    }
    expect(await stored(() => store.load(runId))).toEqual(record);
    // Neither a claim nor a renewal was counted twice.
    expect(claim).toMatchObject({ epoch: 1, attempts: 1 });
  };
  await Promise.all(Array.from({ length: runs }, (_, i) => one(`run-${i}`)));
  return refusals;
}
