import { signal } from '../frame/signals.ts';

const said = signal('');
let timer: ReturnType<typeof setTimeout> | undefined;

/** Says something once, to eyes and to a screen reader. */
export function say(text: string): void {
  said.value = text;
  clearTimeout(timer);
  timer = setTimeout(() => {
    said.value = '';
  }, 2_600);
}

/** Where it is said. */
export function Said() {
  return (
    <div id="say" role="status" aria-live="polite">
      {said.value}
    </div>
  );
}
