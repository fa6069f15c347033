import { readProperty } from '../values/error-data.ts';
import { StoreUnavailableError, UnsupportedError } from '../values/errors.ts';
import { isObject } from '../values/json.ts';
import type { StoreGroups } from './port.ts';
import type { WholeStore } from './store-of.ts';

/** What each method of a store does. A method of the port without a line does not compile: every store would lose it. */
const storeMethods = {
  save: 'writes',
  append: 'writes',
  delete: 'writes',
  load: 'reads',
  listInterrupted: 'reads',
  claim: 'writes',
  renew: 'writes',
  release: 'writes',
  changeMark: 'reads',
} satisfies { readonly [Method in Exclude<keyof WholeStore, keyof StoreGroups>]-?: 'reads' | 'writes' };

/** The same of the methods of each group. */
export const groupMethods = {
  waits: { expect: 'writes', signal: 'writes' },
  commands: { send: 'writes', inbox: 'reads', acknowledge: 'writes' },
  outcomes: { keep: 'writes', find: 'reads', forget: 'writes' },
  deliveries: { take: 'writes', mark: 'writes' },
  history: { end: 'writes', list: 'reads', erase: 'writes', forget: 'writes', totals: 'reads' },
  due: {
    leave: 'writes',
    list: 'reads',
    take: 'writes',
    heldUntil: 'reads',
    deploymentOf: 'reads',
    countResting: 'reads',
    countRuns: 'reads',
  },
  threads: {
    admit: 'writes',
    read: 'reads',
    history: 'reads',
    turnOf: 'reads',
    queuedRun: 'reads',
    turns: 'reads',
    list: 'reads',
    rewind: 'writes',
    fork: 'writes',
    delete: 'writes',
  },
  journal: { publish: 'writes', read: 'reads', loadPart: 'reads' },
  schedules: { list: 'reads', note: 'writes' },
  limits: { takeTurns: 'writes' },
} satisfies {
  readonly [Group in keyof StoreGroups]: { readonly [Method in keyof StoreGroups[Group]]-?: 'reads' | 'writes' };
};

/** A method of a store. */
export type StoreMethod = (...args: readonly unknown[]) => unknown;

/** The name of a method that a store may have: `save`, or `limits.takeTurns`. */
export type MethodName =
  | keyof typeof storeMethods
  | {
      [Group in keyof StoreGroups]: `${Group}.${keyof StoreGroups[Group] & string}`;
    }[keyof StoreGroups];

/** Returns a method of a store, or of a group of it; undefined: it has none of this name. */
export function methodOf(store: object, name: MethodName): StoreMethod | undefined {
  const [at = '', method] = name.split('.');
  const target = method === undefined ? store : readProperty(store, at);
  const call = readProperty(target, method ?? at);
  return typeof call === 'function' ? (...args) => call.apply(target, args) : undefined;
}

/** Makes what replaces a method. @param call calls it, as a method of its store or group */
export type WrapMethod = (name: MethodName, call: StoreMethod, does: 'reads' | 'writes') => StoreMethod;

/**
 * Wraps each method of a store, group by group. The result has the methods that the store has, and no others.
 * @example const timed = wrapStore(store, (name, call) => (...args) => measure(name, () => call(...args)))
 */
export function wrapStore<Store extends object>(store: Store, wrap: WrapMethod): Store {
  const groups = Object.entries(groupMethods).flatMap(([name, methods]) => {
    const group = readProperty(store, name);
    return isObject(group)
      ? [[name, wrapAll(group, methods, (method, ...rest) => wrap(`${name}.${method}` as MethodName, ...rest))]]
      : [];
  });
  return { ...wrapAll(store, storeMethods, wrap), ...Object.fromEntries(groups) } as Store;
}

function wrapAll(
  target: object,
  methods: { readonly [method: string]: 'reads' | 'writes' },
  wrap: (method: never, call: StoreMethod, does: 'reads' | 'writes') => StoreMethod,
): object {
  const own = Object.entries(methods).filter(([method]) => typeof readProperty(target, method) === 'function');
  const calls = target as { readonly [method: string]: StoreMethod };
  return Object.fromEntries(
    own.map(([method, does]) => [method, wrap(method as never, (...args) => calls[method]?.(...args), does)]),
  );
}

/**
 * Returns a store of which each method that writes is refused with UNSUPPORTED. Only methods that the store has are replaced.
 * @param place where it is, for the message
 */
export function withoutWrites<Store extends object>(store: Store, place: string): Store {
  const refuse = async (): Promise<never> => {
    throw readOnlyError(place);
  };
  return { ...store, ...wrapStore(store, (_, call, does) => (does === 'writes' ? refuse : call)) };
}

/** Returns the error of a write to a store that is open for reading. */
function readOnlyError(place: string): UnsupportedError {
  return new UnsupportedError(`${place} is open for reading only; open it without the option readOnly to write`);
}

/** Returns the error of a store that an older version made: the first process that writes to it updates its layout. */
export function olderLayout(place: string, found: number, current: number): StoreUnavailableError {
  return new StoreUnavailableError(
    `${place} has layout ${found}, and this Pawl reads layout ${current}: the first process that writes to it updates it; a reader does not`,
  );
}
