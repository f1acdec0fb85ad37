"""Completion in bash, zsh and fish: the script for a shell, and what it requests at every Tab.

Click knows verbs, options and choices. Here is what it cannot know: which values are paths, names
that are found by listing a folder, of this package or of a log directory, and the tables of a
query. Nothing is read of a profile, and no heavy library is imported: an answer must be there
before the next key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import click
from click.shell_completion import CompletionItem

from peakline.cli import COMPLETE
from peakline.cli.shells import SHELLS
from peakline.errors import PeaklineError
from peakline.export import target_names
from peakline.repository import Repository, Session, is_url
from peakline.tables.sql_views import view_names
from peakline.tools import find_tool, tool_names

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
    """The hosts of the session that is named, else of the newest."""
    wanted = given.get("session")
    found = [one for one in _found(given) if wanted in (None, one.name)]
    return [file.host for file in found[0].hosts()] if found else []


def _found(given: _Given) -> list[Session]:
    """The sessions of a directory of this machine, the newest first."""
    path = given.get("path")
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
    ("sql", "query"): _queries,
}
_NAMES_OF_ALL: dict[str, _Listed] = {"session": _sessions, "host": _hosts}
