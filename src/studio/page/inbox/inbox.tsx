import { Empty } from '../parts/empty.tsx';

/** All that waits for a person. @param props.picked the wait that is open, by its id */
export function Inbox({ picked }: { readonly picked: string }) {
  return (
    <>
      <header class="head">
        <h1>Inbox</h1>
      </header>
      <Empty text={picked || 'Nothing waits for you'} />
    </>
  );
}
