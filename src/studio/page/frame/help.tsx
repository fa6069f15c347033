import { Dialog } from '../parts/dialog.tsx';
import { Pairs } from '../parts/lists.tsx';
import { isHelpOpen } from './keys.ts';
import { useShared } from './use-shared.ts';

const keys = [
  ['j k ⏎', 'next, previous, open'],
  ['/ Esc', 'filter, back'],
  ['g r  g i  g f', 'runs, inbox, fan-outs'],
  ['a', 'to the answer that is wanted'],
  ['⌘⏎ Ctrl⏎', 'approve, after you have read'],
  ['s', 'steer'],
  ['c', 'show or hide the chart'],
  ['[ ]', 'step before, step after'],
  ['?', 'these keys'],
] as const;

/** The keys of Studio. */
export function Help() {
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
