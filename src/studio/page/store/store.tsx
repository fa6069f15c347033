import { Empty } from '../parts/empty.tsx';

/** Store. */
export function Store() {
  return (
    <>
      <header class="head">
        <h1>Store</h1>
      </header>
      <Empty text="Nothing here yet" />
    </>
  );
}
