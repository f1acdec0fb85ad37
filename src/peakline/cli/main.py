"""The entry point: verbs in, one exit code out."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from peakline.errors import PeaklineError
from peakline.text import one_line

__all__ = ["app", "main", "verbs"]

_DEBUG = "--debug"
_BROKEN_PIPE = 141  # what a shell reports for a program that SIGPIPE ended
_INTERRUPTED = 130
_OUR_FAULT = 70
_UNWRITTEN = 3
_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO))

_VERBS = (
    "summary",
    "memory",
    "steps",
    "ops",
    "diff",
    "check",
    "report",
    "export",
    "trace",
    "tool",
    "sql",
    "graph",
    "sessions",
    "capture",
    "serve",
    "view",
    "demo",
)
"""Each is a function in a module of its name, which is imported where the verb is used."""

_SETTINGS: Mapping[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": None,  # plain help: Rich would be imported at every start
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


def verbs() -> dict[str, Callable[..., object]]:
    """The function of every verb, in the order of the help."""
    return {name: _function(name) for name in _VERBS}


def _function(verb: str) -> Callable[..., object]:
    found: Callable[..., object] = vars(import_module(f"peakline.cli.{verb}"))[verb]
    return found


class _Verbs(TyperGroup):
    """The verbs as commands, each made when it is asked for."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # Names are all that is needed of the others, to suggest one.
        self.commands = {name: TyperCommand(name) for name in _VERBS}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002  (as Typer calls it)
        if cmd_name not in self.commands:
            return None
        verb = typer.Typer(**_SETTINGS)
        verb.command()(_function(cmd_name))
        return get_command(verb)


app = typer.Typer(name="peakline", cls=_Verbs, **_SETTINGS)


@app.callback(invoke_without_command=True)
def peakline_command(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[  # noqa: ARG001  (main takes it out wherever it stands; here for the help)
        bool, typer.Option(_DEBUG, help="Show a traceback for an error; with any verb.")
    ] = False,
) -> None:
    """What the memory and the time of a machine-learning job go to, from its profiles.

    Exit codes: 0 done, 1 a check failed or a query was refused, 2 usage, 3 the input cannot be
    read or the output not written, 4 a remote host failed, 70 our own fault.
    """
    if version:
        import peakline

        print(f"peakline {peakline.__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with ``arguments`` (default: those of the process).

    Returns the exit code. An error is one line on standard error; ``--debug`` adds the
    traceback.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = words[: words.index("--")] if "--" in words else words
    debug = _DEBUG in options
    if debug:
        words.remove(_DEBUG)
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's encoding lacks must not end the program.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(words, debug=debug)
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon_output()
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:  # noqa: BLE001  (whatever happens, one line and an exit code)
        if debug:
            import traceback

            traceback.print_exc()
        message, code = _verdict(error)
        print(f"peakline: {one_line(message)}", file=sys.stderr)
        if isinstance(error, OSError):
            _abandon_output()
        return code
    return code


def _open_streams() -> None:
    """A process may be started without its standard streams; then what is written goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # Open as long as the process is.
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115


def _run(words: list[str], *, debug: bool) -> int:
    """Parse and run. Typer's own entry point would answer a broken pipe with a failed check."""
    command = get_command(app)
    try:
        with command.make_context("peakline", words, obj=debug) as context:
            command.invoke(context)
    except typer.Exit as finished:
        return finished.exit_code
    return 0


def _verdict(error: Exception) -> tuple[str, int]:
    """The message and the exit code for ``error``."""
    if isinstance(error, PeaklineError):
        return str(error), error.exit_code
    complaint = getattr(error, "format_message", None)
    if complaint is not None:
        # A usage error of the argument parser, whose class depends on Typer's version.
        context = getattr(error, "ctx", None)
        verb = context.command_path if context is not None else "peakline"
        message = " ".join(complaint().split()).rstrip(".")
        return f"{message}; see {verb} --help", 2
    if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
        return f"standard output cannot be written: {error.strerror}", _UNWRITTEN
    if isinstance(error, MemoryError):
        return "out of memory", _OUR_FAULT
    return f"unexpected {type(error).__name__}: {error} (--debug shows where)", _OUR_FAULT


def _abandon_output() -> None:
    """Nobody reads standard output any more: what is left in its buffer goes nowhere."""
    with contextlib.suppress(io.UnsupportedOperation), Path(os.devnull).open("wb") as sink:
        os.dup2(sink.fileno(), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
