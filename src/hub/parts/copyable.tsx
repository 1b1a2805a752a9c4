import { useSignal } from '@preact/signals';
import { run } from '../data/actions.ts';

const COPIED_FOR_MS = 1_500;

/** A text to use elsewhere, such as a command or a link, with a button that copies it. */
export function Copyable({ text }: { text: string }) {
  const is_copied = useSignal(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    is_copied.value = true;
    setTimeout(() => {
      is_copied.value = false;
    }, COPIED_FOR_MS);
  };
  return (
    <div class="command">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
      <code tabIndex={0}>{text}</code>
      {/* Only a page of https, or of this machine, may write to the clipboard. */}
      {isSecureContext && (
        <button type="button" class="small" onClick={() => void run(undefined, copy)}>
          {is_copied.value ? 'Copied' : 'Copy'}
        </button>
      )}
    </div>
  );
}
