import { describe, expect, test } from 'vitest';
import { news, type Shared, type SharedNews, shared } from '../../../src/studio/page/frame/shared.ts';

// The types of Preact would bring those of a browser into all tests.
const { h, render } = await import('preact' as string);
const { useLayoutEffect } = await import('preact/hooks' as string);
const hooks: {
  useShared<T>(of: Shared<T>): T;
  useNews<T>(of: Pick<SharedNews<T>, 'follow'>, run: (item: T) => void): void;
} = await import('../../../src/studio/page/frame/use-shared.ts' as string);
const { useNews, useShared } = hooks;

/** Draws a view that draws nothing: it needs no page. */
function drawn(view: () => null): () => void {
  const parent = { nodeType: 1, childNodes: [], firstChild: null, namespaceURI: '' };
  render(h(view, null), parent);
  return () => render(null, parent);
}

/** Views are drawn again a little later. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('a shared value of the page', () => {
  test('its followers get each other value once, and none after their end', () => {
    const count = shared(1);
    const seen: number[] = [];
    const end = count.follow((next) => seen.push(next));
    for (const next of [1, 2, 2, 3]) count.set(next);
    end();
    count.set(4);
    expect(seen).toEqual([2, 3]);
    expect(count.value).toBe(4);
  });

  test('a follower that ends itself, or another one, keeps no third from the news', () => {
    const { send, follow } = news<string>();
    const seen: string[] = [];
    const ends = [
      follow(() => ends[0]?.()),
      follow(() => ends[1]?.()),
      follow((item) => {
        seen.push(item);
      }),
    ];
    send('a');
    send('b');
    expect(seen).toEqual(['a', 'b']);
  });

  test('a view that reads it is drawn again for each other value, once for several at a time, and not after it has left', async () => {
    const count = shared(1);
    const draws: number[] = [];
    const leave = drawn(() => {
      draws.push(useShared(count));
      return null;
    });
    count.set(1);
    await settled();
    count.set(2);
    count.set(3);
    await settled();
    leave();
    count.set(4);
    await settled();
    expect(draws).toEqual([1, 3]);
  });

  test('a view misses no change that comes after it was drawn and before it follows', async () => {
    const count = shared(1);
    const draws: number[] = [];
    drawn(() => {
      // This effect runs before the one that follows.
      useLayoutEffect(() => count.set(2), []);
      draws.push(useShared(count));
      return null;
    });
    await settled();
    expect(draws).toEqual([1, 2]);
  });

  test('news reach a view with what it was drawn with last, until it has left', async () => {
    const count = shared(1);
    const { send, follow } = news<string>();
    const seen: string[] = [];
    const leave = drawn(() => {
      const now = useShared(count);
      useNews({ follow }, (item) => seen.push(`${item} ${now}`));
      return null;
    });
    send('a');
    count.set(2);
    await settled();
    send('b');
    leave();
    send('c');
    expect(seen).toEqual(['a 1', 'b 2']);
  });
});
