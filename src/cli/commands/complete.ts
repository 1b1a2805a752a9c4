import { RootCommand } from '@bomb.sh/tab';

/** The library's script for bash calls this function of the package bash-completion, which many machines do not have. */
const BASH_WORDS = `
if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref() {
        words=("\${COMP_WORDS[@]}")
        cword=$COMP_CWORD
        cur=\${words[cword]}
        prev=\${words[cword - 1]}
    }
fi`;

/** Writes the script that lets a shell complete commands and ids. */
export function complete(shell: string): void {
  new RootCommand().setup('muster', 'muster', shell);
  if (shell === 'bash') console.log(BASH_WORDS);
}
