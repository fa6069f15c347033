import type { ComponentChildren } from 'preact';

/** A name and its value; false or undefined where there is none. */
export type Pair = readonly [name: string, value: ComponentChildren] | false | undefined | '' | 0;

/** Names and values in two columns. */
export function Pairs({ of }: { readonly of: readonly Pair[] }) {
  return (
    <dl class="kv">
      {of.map((pair) => pair && [<dt key={`${pair[0]} name`}>{pair[0]}</dt>, <dd key={pair[0]}>{pair[1]}</dd>])}
    </dl>
  );
}

/** The line of facts at the top of a view. */
export function Facts({ of }: { readonly of: readonly Pair[] }) {
  return (
    <dl class="facts" tabIndex={0} aria-label="Facts">
      {of.map(
        (pair) =>
          pair && (
            <div key={pair[0]}>
              <dt>{pair[0]}</dt>
              <dd>{pair[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** How much of a limit is used, 0 to 1. */
export function Meter({ part }: { readonly part: number }) {
  const percent = Math.round(Math.min(1, part) * 100);
  return (
    <span class="meter" role="img" aria-label={`${percent} %`}>
      <i style={{ width: `${percent}%` }} />
    </span>
  );
}
