import { useState } from 'preact/hooks';
import { addressOf } from '../frame/route.ts';

/** Ids, names of tools and code. */
export function Mono({ text, ...rest }: { readonly text: string; readonly class?: string }) {
  return (
    <span {...rest} class={`mono ${rest.class ?? ''}`}>
      {text}
    </span>
  );
}

/** Opens a run. */
export function RunLink({ runId }: { readonly runId: string }) {
  return (
    <a class="mono" href={addressOf('run', runId)}>
      {runId}
    </a>
  );
}

/** Copies the exact value, without the escapes that the page shows. */
export function Copy({ text, name = 'Copy' }: { readonly text: string; readonly name?: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text).catch(() => {});
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  };
  return (
    <button type="button" class="copy" onClick={copy}>
      {isDone ? 'Copied' : name}
    </button>
  );
}
