"""``peakline tool``: exactly the bytes that a remote caller of the tool gets."""

from __future__ import annotations

from typing import Annotated

import typer

from peakline.cli.options import (
    PATH_HELP,
    Force,
    Host,
    MaxUnpacked,
    Output,
    SessionId,
    Strict,
    print_warnings,
)
from peakline.cli.output import deliver
from peakline.errors import UsageError

__all__ = ["tool"]


def tool(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", show_default=False, help="The tool; not with --list."),
    ] = None,
    path: Annotated[
        str | None, typer.Argument(metavar="PATH", show_default=False, help=PATH_HELP)
    ] = None,
    host: Host = None,
    session: SessionId = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", metavar="KEY=VALUE", help="A parameter of the tool."),
    ] = None,
    format: Annotated[  # noqa: A002  (the option is called --format)
        str | None,
        typer.Option("--format", metavar="FORMAT", help="json, proto, ... Default: the tool's."),
    ] = None,
    output: Output = None,
    *,
    list_tools: Annotated[
        bool, typer.Option("--list", help="List the tools that PATH supports, or all tools.")
    ] = False,
    force: Force = False,
    strict: Strict = False,
    max_unpacked: MaxUnpacked = None,
) -> None:
    """Print what a tool returns for PATH."""
    import peakline
    from peakline.tools import available_tools, find_tool, run_tool, tool_names

    if list_tools:
        if path is not None:
            raise UsageError("tool --list takes PATH alone")
        if name is None:
            every = "".join(f"{tool}  {find_tool(tool).doc}\n" for tool in tool_names())
            deliver(lambda stream: stream.write(every.encode()), output, force=force, source="")
            return
        with peakline.open(
            name, session=session, host=host, strict=strict, max_unpacked_bytes=max_unpacked
        ) as profile:
            text = "".join(f"{tool}\n" for tool in available_tools(profile))
            print_warnings(profile.warnings)
            source = profile.path
        deliver(lambda stream: stream.write(text.encode()), output, force=force, source=source)
        return
    if name is None or path is None:
        raise UsageError("tool takes NAME and PATH; tool --list PATH lists the names")
    parameters = _parameters(parameter or [])
    with peakline.open(
        path, session=session, host=host, strict=strict, max_unpacked_bytes=max_unpacked
    ) as profile:
        content = run_tool(profile, name, parameters, format).content
        print_warnings(profile.warnings)
        source = profile.path
    deliver(lambda stream: stream.write(content), output, force=force, source=source)


def _parameters(pairs: list[str]) -> dict[str, object]:
    parameters: dict[str, object] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise UsageError(f"-p {pair}: expected KEY=VALUE")
        if key in parameters:
            raise UsageError(f"-p {key} is given twice")
        parameters[key] = value
    return parameters
