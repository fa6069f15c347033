import type { InterruptedRun } from '../record/interrupted.ts';
import type { Clock } from '../run/clock.ts';
import { withDeadline } from '../run/deadline.ts';
import type { RunCheckpointMeta } from '../run/request.ts';
import type { CheckpointStore, Cursor } from '../store/port.ts';
import type { Kernel } from './scope.ts';

/** A listed run whose record can be read. */
export type Listed = Extract<InterruptedRun, { meta: RunCheckpointMeta }>;

const PAGE = 500;

interface Listing {
  readonly ms: number;
  readonly clock: Clock;
  readonly what: string;
}

/** How long one page may take. */
export function listing({ config }: Kernel): Listing {
  return { ms: config.defaults.portMs, clock: config.clock, what: 'store.listInterrupted' };
}

/** The same in any order, each as likely (Fisher and Yates). */
function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const mixed = [...items];
  for (let i = mixed.length - 1; i > 0; i--) {
    const j = Math.min(i, Math.floor(random() * (i + 1)));
    [mixed[i], mixed[j]] = [mixed[j] as T, mixed[i] as T];
  }
  return mixed;
}

/** All listed runs. Recovered ones leave the list as they end, so that each page begins after the last one seen. */
export async function* listed(
  store: CheckpointStore,
  { signal, random, ...limit }: Listing & { signal?: AbortSignal | undefined; random?: () => number },
): AsyncGenerator<InterruptedRun> {
  let after: Cursor | undefined;
  // A run that is written while the list is read moves to its end, and would come again.
  const seen = new Set<string>();
  for (;;) {
    const asked = store.listInterrupted({
      limit: PAGE,
      ...(after ? { after } : {}),
      ...(signal ? { signal } : {}),
    });
    const page = await withDeadline(asked, limit);
    for (const entry of random ? shuffled(page, random) : page) {
      if (!seen.has(entry.runId)) yield entry;
      seen.add(entry.runId);
    }
    const last = page.findLast((entry): entry is Listed => 'updatedAt' in entry);
    if (page.length < PAGE || !last) return;
    after = { updatedAt: last.updatedAt, runId: last.runId };
  }
}
