import { Dialog } from '../parts/dialog.tsx';
import { Pairs } from '../parts/lists.tsx';
import { isHelpOpen } from './keys.ts';
import { store } from './live.ts';
import { useShared } from './use-shared.ts';

/** The keys of Studio. */
export function Help() {
  const { keys = [] } = useShared(store)?.words ?? {};
  if (!useShared(isHelpOpen)) return null;
  const close = () => isHelpOpen.set(false);
  return (
    <Dialog label="Keys" onClose={close}>
      <h1>Keys</h1>
      <Pairs of={keys.map(([key, what]) => [what, <kbd key={key}>{key}</kbd>])} />
      <p class="buttons">
        <button type="button" onClick={close}>
          Close
        </button>
      </p>
    </Dialog>
  );
}
