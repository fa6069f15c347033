import type { ComponentChild } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

interface RowsProps<T> {
  readonly items: readonly T[];
  /** The height of each, px: those that are out of sight are not drawn. */
  heightOf(item: T): number;
  keyOf(item: T): string;
  draw(item: T, index: number): ComponentChild;
  readonly label: string;
  readonly class?: string;
  /** The item that must be in sight; a change scrolls to it. */
  readonly shown?: number | undefined;
  /** Drawn above the first one, and stays there. */
  readonly head?: ComponentChild;
  /** The end is in sight. */
  onEnd?(): void;
  /** What lies behind the end: while it is in sight, each change of this calls `onEnd` again. */
  readonly beyond?: string | undefined;
  /** The pointer came over the rows, or left. */
  onPointed?(isOver: boolean): void;
}

/** Rows drawn above and below what is in sight, px. */
const MARGIN = 200;

/** A long list: only what is in sight is in the page. */
export function Rows<T>({ items, heightOf, keyOf, draw, label, shown, head, onEnd, onPointed, ...rest }: RowsProps<T>) {
  const box = useRef<HTMLElement>(null);
  const [view, setView] = useState({ top: 0, height: 900 });
  const tops: number[] = [];
  let total = 0;
  for (const item of items) {
    tops.push(total);
    total += heightOf(item);
  }
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = () => setView({ top: element.scrollTop, height: element.clientHeight });
    look();
    element.addEventListener('scroll', look, { passive: true });
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => {
      element.removeEventListener('scroll', look);
      observer.disconnect();
    };
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    const item = shown === undefined ? undefined : items[shown];
    if (!element || item === undefined || shown === undefined) return;
    const top = tops[shown] ?? 0;
    const bottom = top + heightOf(item) + (head ? 28 : 0);
    if (top < element.scrollTop) element.scrollTop = top;
    else if (bottom > element.scrollTop + element.clientHeight) element.scrollTop = bottom - element.clientHeight;
  }, [shown]);
  const from = first(tops, view.top - MARGIN);
  const to = first(tops, view.top + view.height + MARGIN);
  useLayoutEffect(() => {
    if (to >= items.length) onEnd?.();
  }, [to >= items.length, items.length, rest.beyond]);
  return (
    <section
      class={`scroll ${rest.class ?? ''}`}
      ref={box}
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by the keyboard
      tabIndex={0}
      onPointerEnter={() => onPointed?.(true)}
      onPointerLeave={() => onPointed?.(false)}
    >
      {head}
      <div style={{ height: `${total}px`, position: 'relative' }}>
        <div style={{ position: 'absolute', top: `${tops[from] ?? 0}px`, left: 0, right: 0 }}>
          {items.slice(from, to).map((item, at) => (
            <div key={keyOf(item)} style={{ height: `${heightOf(item)}px` }}>
              {draw(item, from + at)}
            </div>
          ))}
        </div>
      </div>
    </section>
  );
}

/** The position of the last item that begins at or above a height. */
function first(tops: readonly number[], height: number): number {
  let [low, high] = [0, tops.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((tops[middle] ?? 0) <= height) low = middle + 1;
    else high = middle;
  }
  return height > (tops.at(-1) ?? 0) ? tops.length : Math.max(0, low - 1);
}
