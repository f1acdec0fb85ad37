"""``peakline capture``: profile running jobs, then summarise what they recorded."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from peakline import document
from peakline.cli.options import Argument, Reading, json_option
from peakline.cli.progress import drawn_progress
from peakline.cli.summary import summarise
from peakline.cli.verb import Verb
from peakline.errors import PeaklineError, UsageError
from peakline.extras import require
from peakline.render import terminal
from peakline.render.terminal.capture import show_progress
from peakline.render.terminal.output import print_json, say
from peakline.repository import Repository, check_name, host_file_name
from peakline.text import parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peakline.capture import CaptureRequest, CaptureResult, Progress, Target
    from peakline.repository import Session

_FAILED = 4
_BY_FLAG = {
    "duration_ms": "--duration",
    "delay_ms": "--delay",
    "session_id": "--session-id",
    "override_hostname": "--host-name",
    "override_hostnames": "--host-name",
}


@click.command(
    cls=Verb,
    stays=True,
    examples=r"""
    # two seconds of a job that runs a profiler server
    peakline capture localhost:9012 --logdir captured
    # ten seconds of two hosts at once, under names
    peakline capture localhost:9012 localhost:9013 \
      --logdir captured --duration 10s \
      --host-name worker-0 --host-name worker-1
""",
)
@click.argument(
    "hosts",
    cls=Argument,
    metavar="HOST:PORT...",
    nargs=-1,
    required=True,
    help="Where the jobs' profilers listen.",
)
@click.option("--logdir", metavar="DIR", required=True, help="The log directory to store it in.")
@click.option("--duration", metavar="TIME", default="2s", help="How long: 500ms, 2s, 1m.")
@click.option("--session-id", metavar="ID", help="The session's name. Default: the time.")
@click.option("--delay", metavar="TIME", default="0s", help="How long to wait before.")
@click.option("--attempts", metavar="N", default=3, help="Attempts for each host.")
@click.option(
    "--option",
    metavar="KEY=VALUE",
    multiple=True,
    help="A field of ProfileOptions, or an option of one device type. Repeatable.",
)
@click.option(
    "--host-name",
    metavar="NAME",
    multiple=True,
    help="The name to store a host under, one for each. Default: HOST_PORT.",
)
@click.option(
    "--timeout",
    metavar="TIME",
    help="The longest wait for a host, all attempts together. Default: 60s or twice the "
    "duration, and the delay.",
)
@click.option(
    "--no-summary", is_flag=True, help="Do not end with what peakline summary says of the session."
)
@json_option
def capture(
    hosts: tuple[str, ...],
    logdir: str,
    duration: str,
    session_id: str | None,
    delay: str,
    attempts: int,
    option: tuple[str, ...],
    host_name: tuple[str, ...],
    timeout: str | None,
    *,
    no_summary: bool,
    json: bool,
) -> None:
    """Profile running jobs, store the session and summarise it."""
    require("serve", "capture")
    # gRPC writes to standard error by itself when a connection ends; outcomes say it already.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from peakline.capture import CaptureRequest, default_session_id, profile_options
    from peakline.capture import capture as run_capture

    repository = Repository(logdir)
    repository.clean()
    request = CaptureRequest(
        targets=_targets(hosts, host_name),
        session_id=session_id if session_id is not None else default_session_id(repository),
        duration_ms=parse_duration(duration),
        options=profile_options(_options(option)),
        attempts=attempts,
        delay_ms=parse_duration(delay),
        timeout_ms=None if timeout is None else parse_duration(timeout),
    )
    with _saying_what_stays(repository, request), _progress(request) as progress:
        result = run_capture(request, repository, progress=progress)
    if json:
        print_json(document.capture_document(result, repository))
    else:
        terminal.print_capture(result, repository)
    if not json and not no_summary and any(outcome.is_saved for outcome in result.outcomes):
        _summarise(repository.session(result.session_id))
    sys.stdout.flush()
    if _complain(result):
        raise click.exceptions.Exit(_FAILED)


def _summarise(session: Session) -> None:
    """What `peakline summary` says of the session; one that cannot be read is a line."""
    print()
    try:
        with drawn_progress():
            summarise(session.path, Reading(None, None, strict=False, max_unpacked=None))
    except PeaklineError as error:
        # It is stored: what went wrong is the reading.
        say(str(error))


def _targets(words: Sequence[str], names: Sequence[str]) -> tuple[Target, ...]:
    """The hosts, which may also be given as one list with commas, as upstream's tools take it."""
    from peakline.capture import Target, parse_address

    addresses = [parse_address(part) for word in words for part in word.split(",")]
    if names and len(names) != len(addresses):
        raise UsageError(
            f"{len(names)} --host-name for {len(addresses)} hosts; give one for each, or none"
        )
    hosts = names or addresses
    for host in hosts:
        check_name("host", host_file_name(host))
    return tuple(map(Target, hosts, addresses))


def _options(words: Iterable[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not (key and equals):
            raise UsageError(f"--option {word!r}: write KEY=VALUE")
        if key in _BY_FLAG:
            raise UsageError(f"--option {key}: use {_BY_FLAG[key]}")
        if key in pairs:
            raise UsageError(f"--option {key} is given twice")
        pairs[key] = value
    return pairs


@contextmanager
def _progress(request: CaptureRequest) -> Iterator[Progress | None]:
    """A line for every host while it is captured, on a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    with show_progress(request) as progress:
        yield progress


@contextmanager
def _saying_what_stays(repository: Repository, request: CaptureRequest) -> Iterator[None]:
    """Say what stays of a capture that Ctrl-C ended."""
    try:
        yield
    except KeyboardInterrupt:
        try:
            session = repository.session(request.session_id)
            stored = ", ".join(file.host for file in session.hosts())
            text = f"interrupted; what was whole by then is in {session.path}: {stored}"
        except PeaklineError:
            text = "interrupted; nothing was stored"
        say(text)
        raise


def _complain(result: CaptureResult) -> bool:
    """Say on standard error what went wrong; whether the capture counts as failed."""
    for outcome in result.outcomes:
        if outcome.error and not (outcome.state == "empty" and result.empty_trace):
            text = "" if outcome.is_saved or outcome.state == "empty" else "failed: "
            say(f"{outcome.address}: {text}{outcome.error}")
    if result.empty_trace:
        say(
            "nothing was recorded, and nothing is stored: does the job do any work? "
            "a longer --duration may help"
        )
    return result.empty_trace or any(outcome.state == "failed" for outcome in result.outcomes)
