import { Empty } from '../parts/empty.tsx';
import { Plain } from '../parts/text.tsx';

/** One run. */
export function Run({ runId, part }: { readonly runId: string; readonly part: string }) {
  return (
    <>
      <header class="head">
        <a class="crumb" href="#/runs">
          Runs
        </a>
        <span class="faint">/</span>
        <h1 class="mono">
          <Plain text={runId} />
        </h1>
      </header>
      <Empty text={part} />
    </>
  );
}
