import { shared } from '../frame/shared.ts';
import { useShared } from '../frame/use-shared.ts';

const said = shared('');
let timer: ReturnType<typeof setTimeout> | undefined;

/** Says something once, to eyes and to a screen reader. */
export function say(text: string): void {
  said.set(text);
  clearTimeout(timer);
  timer = setTimeout(() => said.set(''), 2_600);
}

/** Where it is said. */
export function SaidAloud() {
  return (
    <div id="say" role="status" aria-live="polite">
      {useShared(said)}
    </div>
  );
}
