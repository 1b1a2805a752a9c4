import { type Signal, signal, useSignal } from '@preact/signals';
import type { ComponentChildren, RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { outcome } from '../data/actions.ts';
import { useUnmountSignal } from '../data/unmount-signal.ts';
import { Outcome } from './outcome.tsx';

interface Modal {
  box: RefObject<HTMLDialogElement | null>;
  is_open: Signal<boolean>;
  /** What the latest action had done when it was opened, which the dialog does not show. */
  before: Signal<typeof outcome.value>;
  /** Opens it, unless the user has left its page meanwhile. Returns whether it is open. */
  open(): boolean;
  close(): void;
}

/** Whether a dialog is over the page, so that nothing else on it can be used or seen well. */
export const is_covered = signal(false);

export function useDialog(): Modal {
  const box = useRef<HTMLDialogElement>(null);
  const is_open = useSignal(false);
  const before = useSignal(outcome.peek());
  const unmounted = useUnmountSignal();
  // A link in the dialog leads away without closing it.
  useEffect(
    () => () => {
      if (is_open.value) is_covered.value = false;
    },
    [],
  );
  return {
    box,
    is_open,
    before,
    open() {
      if (unmounted.aborted) return false;
      before.value = outcome.peek();
      is_open.value = true;
      is_covered.value = true;
      return true;
    },
    close: () => box.current?.close(),
  };
}

interface DialogProps {
  of: Modal;
  title: string;
  children: ComponentChildren;
  onClose?: () => void;
}

/** A dialog over the page. Its content exists while it is open. */
export function Dialog({ of: { box, is_open, before }, title, children, onClose }: DialogProps) {
  useLayoutEffect(() => {
    // Its content is there now, so the browser can focus the first field.
    if (is_open.value) box.current?.showModal();
  }, [is_open.value]);
  const close = () => {
    // The browser reports a close later, when the dialog may be open again.
    if (box.current?.open || !is_open.value) return;
    is_open.value = false;
    is_covered.value = false;
    onClose?.();
  };
  const cancel = (event: Event) => {
    event.preventDefault();
    box.current?.close();
    close();
  };
  // The key press that opened a question cannot answer it, also if the key is held.
  const ignoreHeldEnter = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && event.repeat) event.preventDefault();
  };
  return (
    <dialog ref={box} aria-label={title} onClose={close} onCancel={cancel} onKeyDown={ignoreHeldEnter}>
      {is_open.value && (
        <div class="stack">
          <h2>{title}</h2>
          {children}
          {outcome.value !== before.value && <Outcome />}
        </div>
      )}
    </dialog>
  );
}
