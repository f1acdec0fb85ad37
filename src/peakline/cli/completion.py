"""Completion in bash, zsh and fish: the script for a shell, and what it requests at every Tab."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    split_arg_string,
)

from peakline.cli import COMPLETE
from peakline.errors import PeaklineError
from peakline.export import target_names
from peakline.repository import HostFile, Repository, Session, is_url, resolve_hosts
from peakline.tables.sql_views import view_names
from peakline.tools import find_tool, tool_names

_BASH = r"""%(complete_func)s() {
    local line="${COMP_LINE:0:COMP_POINT}" response kind value
    response=$(COMP_LINE="$line" COMP_WORD="$2" %(complete_var)s=bash_complete "$1")
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case $kind in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                # A quote that is open protects from nothing: a name may hold $(a command).
                case ${COMP_WORDS[COMP_CWORD]} in
                    \"*)
                        value=${value//\\/\\\\} value=${value//\"/\\\"} value=${value//\$/\\\$}
                        value=${value//\`/\\\`} value=${value//!/\"\\!\"} ;;
                    \'*) value=${value//\'/\'\\\'\'} ;;
                    *) printf -v value %%q "$value" ;;
                esac
                # readline closes no quote behind one.
                case ${COMP_WORDS[COMP_CWORD]}$value in
                    \"*\") value+=\" ;;
                    \'*\') value+=\' ;;
                esac
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


_PROGRAM = "peakline"
_FILES = frozenset({"PATH", "PATH...", "FILE", "OUT"})
_FOLDERS = frozenset({"DIR", "LOGDIR", "LOGDIR..."})
"""What the help calls a value that is the path of a file or of a directory."""

_Given = Mapping[str, object]
"""What the words before give to the verb's parameters."""
_Listed = Callable[[_Given, str], list[str]]
"""The names that may begin with a text, for what is given."""
_Complete = Callable[[click.Context, str], list[CompletionItem]]


def script_of(app: click.Group, shell: str) -> str:
    """What ``shell`` (bash, zsh or fish) must run, once, to complete the words of ``app``."""
    return SHELLS[shell](app, {}, _PROGRAM, COMPLETE).source()


def complete(app: click.Group, instruction: str) -> int:
    """Answer the script, whose ``instruction`` is in the environment. Returns the exit code.

    The words are in the environment as well, and the answer goes to standard output.
    """
    find_verb = app.get_command

    def find(context: click.Context, name: str) -> click.Command | None:
        verb = find_verb(context, name)
        for parameter in [] if verb is None else verb.params:
            completed = _values_of(name, parameter)
            if completed is not None:
                vars(parameter)["shell_complete"] = completed
        return verb

    def begin(context: click.Context, incomplete: str) -> list[CompletionItem]:
        verbs = [
            CompletionItem(name, help=verb.short_help)
            for name, verb in app.commands.items()
            if name.startswith(incomplete)
        ]
        options = click.Command.shell_complete(app, context, incomplete)
        # A path in place of a verb is a profile to summarize.
        return [*verbs, *options] or _paths("file")(context, incomplete)

    vars(app).update(get_command=find, shell_complete=begin)
    shell = instruction.partition("_")[0]
    if shell not in SHELLS:
        return 1
    print(SHELLS[shell](app, {}, _PROGRAM, COMPLETE).complete())
    return 0


def _values_of(verb: str, parameter: click.Parameter) -> _Complete | None:
    """What completes the values of ``parameter``; None: what Click has by itself."""
    name = parameter.name or ""
    listed = _NAMES.get((verb, name)) or _NAMES_OF_ALL.get(name)
    # A server's --host is an address.
    if (verb, name) == ("sql", "paths"):
        return lambda context, word: (_names(_queries) if " " in word else _paths("file"))(
            context, word
        )
    if listed is not None and (verb != "serve" or name != "host"):
        return _names(listed)
    shown = parameter.make_metavar(click.Context(click.Command(verb))).strip("[]")
    if shown in _FILES or parameter.name in {"path", "before", "after"}:
        return _paths("file")
    return _paths("dir") if shown in _FOLDERS else None


def _paths(kind: str) -> _Complete:
    """The shell lists them itself: ``kind`` is file (directories too) or dir."""
    return lambda _, incomplete: [CompletionItem(incomplete, type=kind)]


def _names(listed: _Listed) -> _Complete:
    return lambda context, incomplete: [
        CompletionItem(name)
        for name in listed(context.params, incomplete)
        if name.startswith(incomplete)
    ]


def _tools(_: _Given, __: str) -> list[str]:
    return sorted(tool_names())


def _formats(given: _Given, _: str) -> list[str]:
    """Those of the tool; of no tool none."""
    tool = str(given.get("name"))
    return [*find_tool(tool).formats] if tool in tool_names() else []


def _targets(_: _Given, __: str) -> list[str]:
    return target_names()


def _queries(_: _Given, query: str) -> list[str]:
    """The query with the name of a table or view where one stands."""
    before = query.rpartition(" ")[0]
    word = before.rpartition(" ")[2].casefold()
    if word == "show":
        return [f"{before} tables"]
    if word not in {"from", "join", "describe"}:
        return []
    from peakline.tables.tables import TABLES

    return [f"{before} {name}" for name in sorted({*TABLES, *view_names()})]


def _sessions(given: _Given, _: str) -> list[str]:
    return [session.name for session in _found(given)]


def _hosts(given: _Given, _: str) -> list[str]:
    """The hosts of the session that is named, else of the newest, or of the job that lies there."""
    return [file.host for file in _files(given)]


def _ranks(given: _Given, _: str) -> list[str]:
    """The ranks of the job, by the names of its files."""
    return [str(file.rank) for file in _files(given) if file.rank is not None]


def _files(given: _Given) -> list[HostFile]:
    path, wanted = _path(given), given.get("session")
    if not isinstance(path, str) or is_url(path):
        return []
    try:
        result = resolve_hosts(path, wanted if isinstance(wanted, str) else None)
        return [] if isinstance(result, str) else result.hosts()
    except PeaklineError:
        return []


def _path(given: _Given) -> object:
    """PATH, the first of several; of a query that is to come the last word."""
    paths = given.get("paths") or given.get("path") or given.get("query")
    return paths[0] if isinstance(paths, tuple) else paths


def _found(given: _Given) -> list[Session]:
    """The sessions of a directory of this machine, the newest first."""
    path = _path(given)
    if not isinstance(path, str) or is_url(path):
        return []
    try:
        return Repository(path).sessions()
    except PeaklineError:
        return []


_NAMES: dict[tuple[str, str], _Listed] = {
    ("tool", "name"): _tools,
    ("tool", "format"): _formats,
    ("export", "to"): _targets,
}
_NAMES_OF_ALL: dict[str, _Listed] = {"session": _sessions, "host": _hosts, "rank": _ranks}
