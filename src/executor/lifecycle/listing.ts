import type { InterruptedRun } from '../../record/interrupted.ts';
import type { RunCheckpointMeta } from '../../run/request.ts';
import type { CheckpointStore, Cursor } from '../../store/port.ts';

/** A listed run whose record can be read. */
export type Listed = Extract<InterruptedRun, { meta: RunCheckpointMeta }>;

const PAGE = 500;

/** The same in any order, each as likely (Fisher and Yates). */
function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const mixed = [...items];
  for (let i = mixed.length - 1; i > 0; i--) {
    const j = Math.min(i, Math.floor(random() * (i + 1)));
    [mixed[i], mixed[j]] = [mixed[j] as T, mixed[i] as T];
  }
  return mixed;
}

interface Reading {
  readonly signal?: AbortSignal | undefined;
  readonly random?: () => number;
  /** Where to begin; absent = at the beginning. */
  readonly after?: Cursor | undefined;
}

/** Iterates over all listed runs of a store. */
export async function* listed(store: CheckpointStore, reading: Reading): AsyncGenerator<InterruptedRun> {
  for await (const page of pages(store, reading)) yield* page;
}

/**
 * Iterates over the listed runs of a store by pages. Recovered runs leave the list as they end, so that each page begins
 * after the last one seen.
 */
export async function* pages(
  store: CheckpointStore,
  { signal, random, after: from }: Reading,
): AsyncGenerator<readonly InterruptedRun[]> {
  let after = from;
  // A run that is written while the list is read moves to its end, and would come again.
  const seen = new Set<string>();
  for (;;) {
    const page = await store.listInterrupted({
      limit: PAGE,
      ...(after ? { after } : {}),
      ...(signal ? { signal } : {}),
    });
    const news = page.filter(({ runId }) => !seen.has(runId) && seen.add(runId));
    yield random ? shuffled(news, random) : news;
    const last = page.findLast((entry): entry is Listed => 'updatedAt' in entry);
    // Whatever stood in the list at its beginning comes before what was written since. So a page without news is the end
    // of it; and a host's own list that knows no pages gives the same one for ever.
    if (page.length < PAGE || !last || news.length === 0) return;
    after = { updatedAt: last.updatedAt, runId: last.runId };
  }
}
