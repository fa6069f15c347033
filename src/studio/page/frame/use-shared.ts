// Shared values and news in views.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Shared, SharedNews } from './shared.ts';

/** Reads a shared value, and draws the view again once it is another. */
export function useShared<T>(of: Shared<T>): T {
  const [, draw] = useState(() => of.value);
  useLayoutEffect(() => {
    const look = () => draw(() => of.value);
    // It may have changed after the view was drawn.
    look();
    return of.follow(look);
  }, [of]);
  return of.value;
}

/** Runs something for each item of news while the view is in the page. */
export function useNews<T>({ follow }: Pick<SharedNews<T>, 'follow'>, run: (item: T) => void): void {
  const newest = useNewest(run);
  useLayoutEffect(() => follow((item) => newest.current(item)), [follow]);
}

/** What the view was drawn with last, for a function that outlives a drawing. */
export function useNewest<T>(value: T): { readonly current: T } {
  const own = useRef(value);
  own.current = value;
  return own;
}
