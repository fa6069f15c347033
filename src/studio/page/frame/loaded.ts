import { useEffect, useRef, useState } from 'preact/hooks';
import { get, type Trouble } from './api.ts';
import { connection } from './live.ts';
import { useShared } from './use-shared.ts';

/** What a view has read from the server. */
interface Loaded<T> {
  /** The newest value; it stays while a later reading fails. */
  readonly value: T | undefined;
  readonly trouble: Trouble | undefined;
  again(): void;
}

interface Found<T> {
  readonly path: string;
  readonly value?: T | undefined;
  readonly trouble?: Trouble | undefined;
}

/**
 * Reads from the server, and again when the connection comes back.
 * @param everyMs how often it reads again while the tab is visible; absent: never by itself
 */
export function useLoaded<T>(path: string, everyMs?: (value: T | undefined) => number | undefined): Loaded<T> {
  const [found, setFound] = useState<Found<T>>({ path });
  const turn = useRef(0);
  const isLive = useShared(connection).state === 'live';
  const read = async () => {
    turn.current += 1;
    const own = turn.current;
    const { value, trouble } = await get<T>(path);
    if (own !== turn.current) return;
    setFound((before) => ({ path, value: value ?? (before.path === path ? before.value : undefined), trouble }));
  };
  useEffect(() => {
    void read();
    return () => {
      turn.current += 1;
    };
  }, [path, isLive]);
  const own = found.path === path ? found : { path };
  const pause = everyMs?.(own.value);
  useEffect(() => {
    if (pause === undefined) return;
    const timer = setInterval(() => {
      if (!document.hidden) void read();
    }, pause);
    return () => clearInterval(timer);
  }, [path, pause]);
  return { value: own.value, trouble: own.trouble, again: () => void read() };
}
