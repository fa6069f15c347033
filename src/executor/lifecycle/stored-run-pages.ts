import type { InterruptedRun, ReadableRun } from '../../record/interrupted.ts';
import type { CheckpointStore, Cursor } from '../../store/port.ts';

const PAGE = 500;

/** The same items in a random order, each order equally likely (Fisher and Yates). */
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
  /** The start of the list; absent = its beginning. */
  readonly after?: Cursor | undefined;
}

/** Iterates over all runs in a store's list, one by one. */
export async function* listed(store: CheckpointStore, reading: Reading): AsyncGenerator<InterruptedRun> {
  for await (const page of pages(store, reading)) yield* page;
}

/**
 * Iterates over the runs in a store's list by pages, without repeating one. Recovered runs leave the list as they end, so
 * that each page begins after the last one seen.
 */
export async function* pages(
  store: CheckpointStore,
  { signal, random, after: from }: Reading,
): AsyncGenerator<readonly InterruptedRun[]> {
  let after = from;
  // A run that is written during the list moves to its end, and would appear again.
  const seen = new Set<string>();
  for (;;) {
    const page = await store.listInterrupted({
      limit: PAGE,
      ...(after ? { after } : {}),
      ...(signal ? { signal } : {}),
    });
    const news = page.filter(({ runId }) => !seen.has(runId) && seen.add(runId));
    yield random ? shuffled(news, random) : news;
    const last = page.findLast((entry): entry is ReadableRun => 'updatedAt' in entry);
    // Entries from before the list began come before later ones. So a page without new entries is its end; and a host's own
    // list without pages would return the same page forever.
    if (page.length < PAGE || !last || news.length === 0) return;
    after = { updatedAt: last.updatedAt, runId: last.runId };
  }
}
