import type { WaitPart } from '../../wire.ts';
import { useKeys } from '../frame/keys.ts';
import { store } from '../frame/live.ts';
import { useShared } from '../frame/use-shared.ts';
import type { InboxDecision } from './answers.ts';
import { personText } from './waits.ts';

/** As whom the answer is recorded. */
export function As() {
  const by = personText(useShared(store)?.by);
  return (
    <>
      <span class="grow only-l" />
      <span class="faint only-l">{by === '' ? 'without a name' : `as ${by}`}</span>
    </>
  );
}

/** The keys that answer. */
export function ModEnter() {
  return <kbd class="only-l">{/Mac|iP/.test(navigator.platform) ? '⌘⏎' : 'Ctrl ⏎'}</kbd>;
}

/** What the controls of a wait work with. */
export interface PartsProps {
  readonly canAnswer: boolean;
  readonly isOpen: boolean;
  give(decision: InboxDecision): Promise<void>;
  /** Loads a part of the wait that is long. */
  load(part: WaitPart): void;
  readonly box: { readonly current: HTMLElement | null };
}

/** Runs something at Mod+Enter while the card has the focus. */
export function useModEnter(box: PartsProps['box'], press: () => void): void {
  useKeys((key) => {
    if (key !== 'Mod+Enter' || !box.current?.contains(document.activeElement)) return false;
    press();
    return true;
  });
}
