import { RootCommand } from '@bomb.sh/tab';
import { terminal } from '../../terminal/terminal.ts';

/**
 * The script for bash. The library's one reads the typed words, and the suggestions, as commands. The function of the package
 * bash-completion joins words that bash splits at "=" and ":"; many machines do not have it. The last line of the suggestions
 * is ":0" if bash should complete names of files.
 */
const BASH = `# bash completion for muster
_muster() {
    local words=("\${COMP_WORDS[@]}") cword=$COMP_CWORD line value directive
    if declare -F _get_comp_words_by_ref >/dev/null; then
        _get_comp_words_by_ref -n "=:" words cword
    fi
    COMPREPLY=()
    while IFS= read -r line; do
        value=\${line%%$'\\t'*}
        if [[ $value == :* ]]; then
            directive=$value
        elif [[ $value == "\${words[cword]}"* ]]; then
            COMPREPLY+=("$value")
        fi
    done < <(muster complete -- "\${words[@]:1:cword}" 2>/dev/null)
    if [[ $directive == :0 ]]; then
        compopt -o default
    fi
}
complete -F _muster muster`;

/** Writes the script that lets a shell complete commands and ids. */
export function complete(shell: string): void {
  if (shell === 'bash') for (const line of BASH.split('\n')) terminal.line(line);
  else new RootCommand().setup('muster', 'muster', shell);
}
