// Signals in views: a view is drawn again once a signal that it read while it was drawn is another.
import { type Component, type Options, options, type VNode } from 'preact';
import { type EffectCallback, useEffect, useRef } from 'preact/hooks';
import {
  Computed,
  effect,
  type Reader,
  type ReadonlySignal,
  readAlone,
  readerFor,
  type Signal,
  signal,
} from './signals.ts';

/** A signal of a view. */
export function useSignal<T>(first: T): Signal<T> {
  const own = useRef<Signal<T>>(undefined);
  own.current ??= signal(first);
  return own.current;
}

/** A function that stays the same, and runs the newest one. */
function useNewest<T>(run: () => T): () => T {
  const newest = useRef(run);
  newest.current = run;
  return useRef(() => newest.current()).current;
}

/** A value of others, in a view. */
export function useComputed<T>(compute: () => T): ReadonlySignal<T> {
  const newest = useNewest(compute);
  const own = useRef<Computed<T>>(undefined);
  own.current ??= new Computed(newest);
  useEffect(() => () => own.current?.end(), []);
  return own.current as ReadonlySignal<T>;
}

/** An effect that ends with its view. */
export function useSignalEffect(run: EffectCallback): void {
  const newest = useNewest(run);
  useEffect(() => effect(newest), []);
}

interface Drawn extends VNode {
  /** The component of a vnode, as Preact keeps it. */
  readonly __c?: Component | null;
}

const readers = new WeakMap<Component, Reader>();

function readerOf(component: Component): Reader {
  const own = readers.get(component) ?? readerFor(() => component.setState({}));
  readers.set(component, own);
  return own;
}

// A view follows what it reads while it is drawn. Preact calls `__r` before, and `diffed` after it.
const hooks: Options & { __r?(node: Drawn): void } = options;
const { __r: before, diffed, unmount } = hooks;
hooks.__r = (node) => {
  before?.(node);
  if (node.__c) readerOf(node.__c).begin();
};
hooks.diffed = (node) => {
  readAlone();
  diffed?.(node);
};
hooks.unmount = (node: Drawn) => {
  if (node.__c) readers.get(node.__c)?.end();
  unmount?.(node);
};
