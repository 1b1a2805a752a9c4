import type { ComponentChildren } from 'preact';
import { Dialog, useDialog } from './dialog.tsx';

interface ConfirmProps {
  /** The text of the button that opens the question, and of the one that confirms it. */
  label: string;
  /** What it acts on. Where many buttons have the same text, screen readers need it. */
  subject?: string;
  question: string;
  /** What the action does, for the user. */
  children?: ComponentChildren;
  is_disabled?: boolean;
  class?: string;
  onConfirm(): void;
}

/** A button that asks before it acts. */
export function Confirm({
  label,
  subject,
  question,
  children,
  is_disabled = false,
  onConfirm,
  ...others
}: ConfirmProps) {
  const dialog = useDialog();
  return (
    <>
      <button
        type="button"
        class={others.class ?? 'small'}
        {...(subject !== undefined && { 'aria-label': `${label} ${subject}` })}
        disabled={is_disabled}
        onClick={dialog.open}
      >
        {label}
      </button>
      <Dialog of={dialog} title={question}>
        <form method="dialog" class="stack" onSubmit={onConfirm}>
          {children}
          <div class="row">
            {/* The first one has the focus, unless there is a field: a second press of Enter does not confirm. */}
            <button type="button" onClick={dialog.close}>
              Cancel
            </button>
            <button type="submit" class="danger">
              {label}
            </button>
          </div>
        </form>
      </Dialog>
    </>
  );
}
