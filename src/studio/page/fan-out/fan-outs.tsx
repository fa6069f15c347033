import { Empty } from '../parts/empty.tsx';

/** Fan-outs. */
export function FanOuts({ id: _ }: { readonly id: string }) {
  return (
    <>
      <header class="head">
        <h1>Fan-outs</h1>
      </header>
      <Empty text="Nothing here yet" />
    </>
  );
}
