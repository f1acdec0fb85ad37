"""Completion in bash, zsh and fish: the script for a shell, and what it requests at every Tab.

Click writes both and knows verbs, options and choices. Here is what it cannot know: which values
are paths, and names that are found by listing a folder of this package. Nothing is read of a
profile, and no heavy library is imported: an answer must be there before the next key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMPLETE = "_PEAKLINE_COMPLETE"
"""The variable of the environment in which a shell's script says that it completes words."""

_PROGRAM = "peakline"
_FILES = frozenset({"PATH", "PATH...", "FILE", "OUT"})
_FOLDERS = frozenset({"DIR", "LOGDIR", "LOGDIR..."})
"""What the help calls a value that is the path of a file or of a directory."""

_Complete = Callable[[click.Context, str], "list[CompletionItem]"]


def script_of(app: click.Group, shell: str) -> str:
    """What ``shell`` (bash, zsh or fish) must run, once, to complete the words of ``app``."""
    from click.shell_completion import get_completion_class

    known = get_completion_class(shell)
    if known is None:
        raise click.UsageError(f"no completion for {shell}")
    return known(app, {}, _PROGRAM, COMPLETE).source().strip() + "\n"


def complete(app: click.Group, instruction: str) -> int:
    """Answer the script, whose ``instruction`` is in the environment. Returns the exit code.

    The words are in the environment as well, and the answer goes to standard output.
    """
    from click.shell_completion import shell_complete

    find_verb, complete_verb = app.get_command, app.shell_complete

    def find(context: click.Context, name: str) -> click.Command | None:
        verb = find_verb(context, name)
        for parameter in [] if verb is None else verb.params:
            completed = _values_of(name, parameter)
            if completed is not None:
                vars(parameter)["shell_complete"] = completed
        return verb

    def begin(context: click.Context, incomplete: str) -> list[CompletionItem]:
        # A path in place of a verb is a profile to summarize.
        return complete_verb(context, incomplete) or _paths("file")(context, incomplete)

    vars(app).update(get_command=find, shell_complete=begin)
    return shell_complete(app, {}, _PROGRAM, COMPLETE, instruction)


def _values_of(verb: str, parameter: click.Parameter) -> _Complete | None:
    """What completes the values of ``parameter``; None: what Click has by itself."""
    if (verb, parameter.name) in _NAMES:
        return _names(_NAMES[verb, parameter.name or ""])
    shown = parameter.make_metavar(click.Context(click.Command(verb))).strip("[]")
    if shown in _FILES or parameter.name in {"path", "before", "after"}:
        return _paths("file")
    return _paths("dir") if shown in _FOLDERS else None


def _paths(kind: str) -> _Complete:
    """The shell lists them itself: ``kind`` is file (directories too) or dir."""
    from click.shell_completion import CompletionItem

    return lambda _, incomplete: [CompletionItem(incomplete, type=kind)]


def _names(listed: Callable[[], list[str]]) -> _Complete:
    from click.shell_completion import CompletionItem

    return lambda _, incomplete: [
        CompletionItem(name) for name in listed() if name.startswith(incomplete)
    ]


def _tools() -> list[str]:
    from peakline.tools import tool_names

    return sorted(tool_names())


def _targets() -> list[str]:
    from peakline.export.registry import target_names

    return target_names()


_NAMES: dict[tuple[str, str | None], Callable[[], list[str]]] = {
    ("tool", "name"): _tools,
    ("export", "to"): _targets,
}
