import { useState } from 'preact/hooks';

const PREFIX = 'pawl-studio-draft';

function keyOf(of: string, name: string): string {
  return `${PREFIX} ${of} ${name}`;
}

/** A text that a person types: it stays over a reload of the tab. @param of the wait or the run that it is for */
export function useKept(of: string, name: string, first = ''): readonly [string, (text: string) => void] {
  const key = keyOf(of, name);
  const [text, setText] = useState(() => sessionStorage.getItem(key) ?? first);
  const keep = (next: string) => {
    setText(next);
    try {
      sessionStorage.setItem(key, next);
    } catch {
      // The tab has no room for it: the text is on the page still.
    }
  };
  return [text, keep];
}

/** Forgets the texts for a wait or a run, once they are sent. */
export function dropKept(of: string): void {
  const own = Object.keys(sessionStorage).filter((key) => key.startsWith(keyOf(of, '')));
  for (const key of own) sessionStorage.removeItem(key);
}
