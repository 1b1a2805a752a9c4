import { RootCommand } from '@bomb.sh/tab';

/** Writes the script that lets a shell complete commands and ids. */
export function complete(shell: string): void {
  new RootCommand().setup('muster', 'muster', shell);
}
