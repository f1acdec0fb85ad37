"""What bash, zsh and fish run to complete a word, and how the program's answer is written for them.

Click's own scripts lose the words of bash at ``=``, ``:`` and ``@``, and the values of
``--option=VALUE`` in zsh and fish. Here each shell hands over the line up to the cursor, as typed,
in ``COMP_LINE``; an answer is a line ``plain,VALUE`` for each value, or ``file,`` or ``dir,`` where
the shell lists paths itself.
"""

from __future__ import annotations

import os

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    split_arg_string,
)

_BASH = """\
%(complete_func)s() {
    local line="${COMP_LINE:0:COMP_POINT}" response kind value
    response=$(COMP_LINE="$line" COMP_WORD="$2" %(complete_var)s=bash_complete "$1")
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case $kind in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                # Within a quote that is open a value stands as it is.
                [[ ${COMP_WORDS[COMP_CWORD]} == [\\"\\']* ]] || printf -v value %%q "$value"
                COMPREPLY+=("$value") ;;
        esac
    done <<< "$response"
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""
_ZSH = """\
#compdef %(prog_name)s

%(complete_func)s() {
    local -a described plain response
    local kind value about
    (( ! $+commands[%(prog_name)s] )) && return 1
    response=("${(@f)$(COMP_LINE="${(j: :)words[1,CURRENT]}" %(complete_var)s=zsh_complete \
%(prog_name)s)}")
    [[ ${words[CURRENT]} == --*=* ]] && compset -P '*='
    for kind value about in ${response}; do
        case $kind in
            dir) _path_files -/ ;;
            file) _path_files -f ;;
            plain) [[ $about == _ ]] && plain+=("$value") || described+=("$value:$about") ;;
        esac
    done
    (( $#described )) && _describe -V unsorted described
    (( $#plain )) && compadd -V unsorted -a plain
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""
_FISH = """\
function %(complete_func)s
    set -lx COMP_LINE (commandline -cp | string collect)
    set -lx %(complete_var)s fish_complete
    set -l typed (commandline -ct)
    set -l option (string match -r -- '^--[^=]+=' $typed)
    set -l value (string replace -r -- '^--[^=]+=' '' $typed)
    for line in (%(prog_name)s)
        set -l parts (string split -m 1 , -- $line)
        switch $parts[1]
            case dir
                printf '%%s\\n' "$option"(complete -C "'' $value" | string match -r '.*/(?=\t|$)')
            case file
                printf '%%s\\n' "$option"(complete -C "'' $value")
            case plain
                printf '%%s\\n' "$option$parts[2]"
        end
    end
end

complete --no-files --command %(prog_name)s --arguments '(%(complete_func)s)'
"""


def _typed() -> tuple[list[str], str]:
    """The words of the line after the program's name, and the one that is being completed."""
    # A quote may be open, and a blank at the end begins a word: one more character says which.
    *words, last = split_arg_string(f"{os.environ.get('COMP_LINE', '')}.")
    return words[1:], last[:-1]


class _Typed(ShellComplete):
    """The words of the line up to the cursor, of which the last is being completed."""

    def get_completion_args(self) -> tuple[list[str], str]:
        words, last = _typed()
        if words and words[-1].startswith("--") and "=" not in words[-1]:
            # Of a line that ends in an option without its value Click reads nothing.
            return words[:-1], f"{words[-1]}={last}"
        return words, last


class _Bash(_Typed, BashComplete):
    """A value is what replaces the word that readline completes, which may be the last part of
    ours: ``COMP_WORD``.
    """

    source_template = _BASH

    def format_completion(self, item: CompletionItem) -> str:
        _, typed = _typed()
        option, equals, _ = typed.partition("=")
        value = str(item.value)
        if typed.startswith("--") and equals:
            value = f"{option}={value}"
        rest = os.environ.get("COMP_WORD", "")
        before = typed.removesuffix(rest) if typed.endswith(rest) else ""
        return f"{item.type},{value.removeprefix(before)}"


class _Zsh(_Typed, ZshComplete):
    source_template = _ZSH


class _Fish(_Typed, FishComplete):
    source_template = _FISH

    def format_completion(self, item: CompletionItem) -> str:
        about = f"\t{' '.join(item.help.split())}" if item.help else ""
        return f"{item.type},{item.value}{about}"


SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}
"""What completes in each shell, by its name."""
