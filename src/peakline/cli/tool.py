"""``peakline tool``: exactly the bytes that a remote caller of the tool gets."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

import peakline
from peakline.cli.options import (
    PATHS_HELP,
    Argument,
    Reading,
    check_safe_csv,
    executor_option,
    force_option,
    host_option,
    max_unpacked_option,
    output_option,
    paths_of,
    rank_option,
    safe_csv_option,
    scheduler_option,
    session_option,
    strict_option,
    workers_option,
)
from peakline.cli.progress import of_hosts
from peakline.cli.verb import Verb
from peakline.errors import StrictError, UsageError
from peakline.render.terminal.layout import show
from peakline.render.terminal.output import deliver, print_left_out, print_warnings
from peakline.render.terminal.table import Labelled
from peakline.repository import Session, only_file
from peakline.safe_text import safe_csv as made_safe
from peakline.toolbox.answer_rows import ToolAnswer
from peakline.toolbox.parameters import check_choice
from peakline.toolbox.registry import ToolResult
from peakline.tools import available_tools, find_tool, run_tool, tool_names

if TYPE_CHECKING:
    from peakline.tables import ProfileWarning


@click.command(
    cls=Verb,
    examples=r"""
    # the tools that this profile has something for
    peakline tool --list logs
    # XProf's answer of that name
    peakline tool memory_profile run.xplane.pb
    # a tool's parameter, another format, a file
    peakline tool op_stats run.xplane.pb -p view=op
    peakline tool trace_viewer logs -o trace_viewer.json
""",
)
@click.argument("name", cls=Argument, required=False, help="The tool; not with --list.")
@click.argument(
    "path", metavar="[PATH]...", nargs=-1, callback=paths_of, cls=Argument, help=PATHS_HELP
)
@host_option
@rank_option
@session_option
@click.option(
    "--parameter", "-p", metavar="KEY=VALUE", multiple=True, help="A parameter of the tool."
)
@click.option("--format", metavar="FORMAT", help="json, proto, ... Default: the tool's.")
@output_option
@executor_option
@workers_option
@scheduler_option
@click.option(
    "--list", "list_tools", is_flag=True, help="List the tools that PATH supports, or all tools."
)
@safe_csv_option
@force_option
@strict_option
@max_unpacked_option
def tool(
    name: str | None,
    path: str | None,
    host: str | None,
    rank: int | None,
    session: str | None,
    parameter: tuple[str, ...],
    format: str | None,  # noqa: A002  (the option is called --format)
    output: str | None,
    executor: str,
    workers: int | None,
    scheduler: str | None,
    *,
    list_tools: bool,
    safe_csv: bool,
    force: bool,
    strict: bool,
    max_unpacked: int | None,
) -> None:
    """Print a tool's answer, as callers over HTTP and gRPC get it.

    Of a session of several hosts it is about all of them.
    """
    reading = Reading(session, host, strict, max_unpacked, rank=rank)
    if scheduler is not None and executor != "dask":
        raise UsageError("--scheduler is for --executor dask")
    if list_tools:
        check_safe_csv("a list", safe_csv=safe_csv)
        if path is not None:
            raise UsageError("tool --list takes PATH alone")
        _list(name, reading, output, force=force)
        return
    if name is None or path is None:
        raise UsageError("tool takes NAME and PATH; tool --list PATH lists the names")
    # A name that no profile decides about: usage, as all others of that kind.
    check_choice(name, tool_names(), "no tool")
    check_safe_csv(format or find_tool(name).formats[0], safe_csv=safe_csv)
    parameters = _parameters(parameter)
    result = reading.find(path)
    if isinstance(result, Session) and find_tool(name).combine is not None:
        joined = answer_of_hosts(
            result, name, parameters, format, reading,
            executor=executor, workers=workers, scheduler=scheduler,
        )  # fmt: skip
        sources = [file.path for file in result.hosts()]
        _deliver(_safe(joined) if safe_csv else joined, output, force=force, sources=sources)
        print_warnings(joined.warnings)
        print_left_out(joined.notes)
        return
    file = only_file(result, "choose one with --host")
    with reading.open_file(file, path) as profile:
        answer = run_tool(profile, name, parameters, format)
        warnings, source = profile.warnings, profile.path
    _deliver(_safe(answer) if safe_csv else answer, output, force=force, sources=[source])
    print_warnings(warnings)


def _list(path: str | None, reading: Reading, output: str | None, *, force: bool) -> None:
    """The names of the tools that ``path`` supports, one of its hosts at least; of all tools."""
    from peakline.engine import Engine

    warnings: list[ProfileWarning] = []
    if path is None:
        rows = [(tool, find_tool(tool).doc) for tool in tool_names()]
        if output is None and sys.stdout.isatty():
            show([Labelled(rows)])
            return
        lines, sources = ["  ".join(row) for row in rows], []
    elif isinstance(result := reading.find(path), Session):
        lines = Engine(max_unpacked_bytes=reading.max_unpacked).tools(result)
        sources = [file.path for file in result.hosts()]
    else:
        with reading.open_file(result, path) as profile:
            lines = available_tools(profile)
            warnings, sources = profile.warnings, [profile.path]
    text = "".join(f"{line}\n" for line in lines)
    _deliver(ToolResult(text.encode(), "text"), output, force=force, sources=sources)
    print_warnings(warnings)


def _safe(answer: ToolAnswer) -> ToolAnswer:
    return ToolResult(made_safe(answer.content), answer.format)


def _deliver(answer: ToolAnswer, output: str | None, *, force: bool, sources: list[str]) -> None:
    """Write the answer, unless into one of the files that it was read from."""
    deliver(
        lambda stream: stream.write(answer.content),
        output,
        force=force,
        source=sources,
        is_text=answer.is_text,
    )


def _parameters(pairs: Iterable[str]) -> dict[str, object]:
    parameters: dict[str, object] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise UsageError(f"-p {pair}: expected KEY=VALUE")
        if key in parameters:
            raise UsageError(f"-p {key} is given twice")
        parameters[key] = value
    return parameters


def answer_of_hosts(
    session: Session,
    name: str,
    parameters: Mapping[str, object],
    format: str | None,  # noqa: A002 (the word of the command line)
    reading: Reading,
    **executor: Any,
) -> peakline.Answer:
    """One answer of all hosts of ``session``; its notes name those that failed.

    Profiles are closed as soon as their host has answered. With --strict such a host, and any
    warning, is a StrictError. ``executor`` is as `Engine` takes it.
    """
    from peakline.engine import Engine

    with (
        Engine(
            cache_bytes=0, answers_bytes=0, max_unpacked_bytes=reading.max_unpacked, **executor
        ) as engine,
        of_hosts() as progress,
    ):
        answer = engine.tool(session, name, parameters=parameters, format=format, progress=progress)
    if reading.strict and (answer.notes or answer.warnings):
        problems = [*answer.notes, *(f"{w.kind} ({w.count}): {w.detail}" for w in answer.warnings)]
        raise StrictError(f"{session.path}: {'; '.join(problems)}")
    return answer
