import { useState } from 'preact/hooks';
import { get, type Trouble } from './api.ts';
import { useLoaded } from './loaded.ts';

interface Page<T> {
  readonly items: readonly T[];
  readonly next?: string;
}

const POLL_MS = 3_000;

/** Pages of a list: the first is read again while it is the only one. */
export function usePages<T>(path: string) {
  const first = useLoaded<Page<T>>(path, () => POLL_MS);
  const [rest, setRest] = useState<{ readonly pages: readonly Page<T>[]; readonly trouble?: Trouble | undefined }>({
    pages: [],
  });
  const pages = first.value ? [first.value, ...rest.pages] : [];
  const next = pages.at(-1)?.next;
  const more = async () => {
    const { value, trouble } = await get<Page<T>>(`${path}${path.includes('?') ? '&' : '?'}after=${next}`);
    setRest({ pages: value ? [...rest.pages, value] : rest.pages, trouble });
  };
  const trouble = first.trouble ?? rest.trouble;
  return {
    items: pages.flatMap(({ items }) => items),
    isLoaded: pages.length > 0,
    next,
    more,
    trouble,
    again: first.again,
  };
}

/** The next page of a list, if there is one. */
export function More({ next, more }: { readonly next: string | undefined; more(): void }) {
  if (next === undefined) return null;
  return (
    <p class="pad">
      <button type="button" onClick={more}>
        Show more
      </button>
    </p>
  );
}
