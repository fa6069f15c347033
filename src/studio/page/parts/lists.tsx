import type { ComponentChildren } from 'preact';

type Pair = readonly [name: string, value: ComponentChildren];

/** Names and values in two columns. */
export function Pairs({ of }: { readonly of: readonly Pair[] }) {
  return (
    <dl class="kv">{of.map(([name, value]) => [<dt key={`${name} name`}>{name}</dt>, <dd key={name}>{value}</dd>])}</dl>
  );
}

/** The line of facts at the top of a view. */
export function Facts({ of }: { readonly of: readonly Pair[] }) {
  return (
    <dl class="facts" tabIndex={0} aria-label="Facts">
      {of.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
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
