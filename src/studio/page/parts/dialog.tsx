import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

interface DialogProps {
  readonly label: string;
  onClose(): void;
  readonly children: ComponentChildren;
}

/** A window above the page; Escape closes it. */
export function Dialog({ label, onClose, children }: DialogProps) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    box.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={box} aria-label={label} onClose={onClose}>
      {children}
    </dialog>
  );
}

interface ConfirmProps {
  readonly title: string;
  readonly children: ComponentChildren;
  /** The word of the button that does it. */
  readonly yes: string;
  onYes(): void;
  onClose(): void;
}

/** Asks once more before something that cannot be taken back. */
export function Confirm({ title, children, yes, onYes, onClose }: ConfirmProps) {
  return (
    <Dialog label={title} onClose={onClose}>
      <h1>{title}</h1>
      {children}
      <p class="buttons">
        <button
          type="button"
          class="danger"
          onClick={() => {
            onYes();
            onClose();
          }}
        >
          {yes}
        </button>
        <button type="button" onClick={onClose}>
          Not now
        </button>
      </p>
    </Dialog>
  );
}
