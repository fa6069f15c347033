import { Empty } from '../parts/empty.tsx';

/** Threads. */
export function Threads({ id: _ }: { readonly id: string }) {
  return (
    <>
      <header class="head">
        <h1>Threads</h1>
      </header>
      <Empty text="Nothing here yet" />
    </>
  );
}
