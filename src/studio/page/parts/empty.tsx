import type { ComponentChildren } from 'preact';
import type { EmptyView } from '../../wire.ts';
import type { Trouble } from '../frame/api.ts';
import { store } from '../frame/live.ts';
import { useShared } from '../frame/use-shared.ts';

interface EmptyProps {
  readonly text: string;
  readonly children?: ComponentChildren;
  /** The call that fills the view. */
  readonly call?: string | undefined;
}

/** A view with nothing in it, and how it gets something: in the words of the server. */
export function Nothing({ of }: { readonly of: EmptyView }) {
  const words = useShared(store)?.words.empty[of];
  return (
    words && (
      <Empty text={words.text} call={words.call}>
        {words.more}
      </Empty>
    )
  );
}

/** A view that has only something to say. */
export function Empty({ text, children, call }: EmptyProps) {
  return (
    <div class="card">
      <header>
        <h1>{text}</h1>
        <div class="dim">{children}</div>
      </header>
      {call && (
        <section>
          <pre>{call}</pre>
        </section>
      )}
    </div>
  );
}

/** What failed, beside it, with its code and the next step. */
export function Failed({
  trouble,
  again,
}: {
  readonly trouble: Pick<Trouble, 'code' | 'message'>;
  readonly again?: (() => void) | undefined;
}) {
  return (
    <div class="trouble" role="alert">
      <code>{trouble.code}</code>
      <span class="grow">{trouble.message}</span>
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}
