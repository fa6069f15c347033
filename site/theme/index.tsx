// Two parts of the theme, as a keyboard needs them.
import { getCustomMDXComponent as original } from '@rspress/core/theme-original';
import type { ComponentProps } from 'react';
import './site.css';

export * from '@rspress/core/theme-original';

const { a: Anchor } = original();

export function getCustomMDXComponent() {
  return { ...original(), a: Link, table: Table };
}

/** The sign beside a heading is for the mouse: screen readers do not see it, so the keyboard passes it too. */
function Link(props: ComponentProps<'a'>) {
  return <Anchor {...props} {...(props['aria-hidden'] ? { tabIndex: -1 } : {})} />;
}

/** A table that is wider than the page scrolls alone, also by the arrow keys. */
function Table(props: ComponentProps<'table'>) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached
    <div className="rp-table-scroll-container rp-scrollbar" tabIndex={0}>
      <table {...props} />
    </div>
  );
}
