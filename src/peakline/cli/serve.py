"""``peakline serve``: the ProfileAnalysis service over gRPC and HTTP."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import click

from peakline.cli.options import Argument, executor_option, scheduler_option, workers_option
from peakline.cli.verb import Verb
from peakline.errors import UsageError
from peakline.service.foreground import leave, serve_until_stopped
from peakline.service.settings import Settings, parse_worker

_SHARED = {
    "executor": executor_option,
    "hosts_at_once": workers_option,
    "scheduler": scheduler_option,
}
"""Settings whose options ``peakline tool`` has as well."""


def _options(verb: Callable[..., None]) -> Callable[..., None]:
    """``verb`` with the options of every setting that has one."""
    for setting in reversed(fields(Settings)):
        if setting.name in _SHARED:
            verb = _SHARED[setting.name](verb)
        elif setting.metadata:
            flag, option = setting.metadata["flag"], setting.metadata["option"]
            # --workers is another option's name: see `_SHARED`.
            name = "worker" if setting.name == "workers" else setting.name
            verb = click.option(flag, name, **option)(verb)
    return verb


@click.command(
    cls=Verb,
    stays=True,
    examples=r"""
    # for this machine alone: the page is at localhost:8080
    peakline serve logs
    # with captures of a job, on other ports
    peakline serve logs --worker trainer=localhost:9012 \
      --http-port 8081 --grpc-port 50052
""",
)
@click.argument(
    "logdirs",
    cls=Argument,
    metavar="LOGDIR...",
    nargs=-1,
    required=True,
    help="The log directories, or their URLs (s3://, gs://), that callers may name.",
)
@_options
@click.pass_context
def serve(
    context: click.Context,
    /,
    logdirs: tuple[str, ...],
    worker: tuple[str, ...],
    workers: int | None,
    **given: Any,
) -> None:
    """Serve log directories to a team, over gRPC and HTTP.

    Sessions, analyses, captures and the page; until Ctrl-C.
    """
    # gRPC's own lines, which it decides about when it is loaded.
    debug = bool(context.obj)
    os.environ.setdefault("GRPC_VERBOSITY", "INFO" if debug else "NONE")
    names = [parse_worker(word) for word in worker]
    if len(dict(names)) < len(names):
        raise UsageError("--worker names one host twice")
    # What was not given is what `Settings` has by itself.
    given = {name: value for name, value in given.items() if value is not None}
    ended = serve_until_stopped(
        Settings(roots=logdirs, workers=dict(names), hosts_at_once=workers, debug=debug, **given),
        lambda server: (
            f"{server.announcement()}; Ctrl-C ends it",
            f"the page is at {server.url}/",
        ),
    )
    leave(ended=ended)
