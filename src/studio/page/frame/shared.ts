// Values that several views show, and news that several views take.

/** Something that happens more than once. */
export interface SharedNews<T> {
  send(item: T): void;
  /** Runs a function for each item from now on. @returns ends that */
  follow(run: (item: T) => void): () => void;
}

/** A value that views share: each of them is drawn again once it is another. */
export interface Shared<T> {
  readonly value: T;
  set(next: T): void;
  follow: SharedNews<T>['follow'];
}

/** Makes a channel of news. */
export function news<T>(): SharedNews<T> {
  const followers = new Set<(item: T) => void>();
  return {
    send: (item) => {
      for (const run of [...followers]) run(item);
    },
    follow: (run) => {
      followers.add(run);
      return () => followers.delete(run);
    },
  };
}

/** Makes a value that views share. */
export function shared<T>(first: T): Shared<T> {
  const { send, follow } = news<T>();
  const own = {
    value: first,
    follow,
    set: (next: T) => {
      if (next === own.value) return;
      own.value = next;
      send(next);
    },
  };
  return own;
}
