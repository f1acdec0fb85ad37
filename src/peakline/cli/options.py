"""What verbs share: arguments and options, opening what PATH names, every host of a session."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import click

from peakline.errors import PeaklineError, StrictError, UsageError
from peakline.render.terminal.output import print_json
from peakline.text import one_line, parse_size, time_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peakline.api import Profile
    from peakline.repository import Session
    from peakline.tables import ProfileWarning
    from peakline.timing.stragglers import HostSteps
    from peakline.timing.variation import Straggler

__all__ = [
    "PATH_HELP",
    "Argument",
    "StragglerHosts",
    "check_executor_options",
    "executor_option",
    "find_file",
    "find_hosts",
    "force_option",
    "host_option",
    "json_option",
    "max_unpacked_option",
    "open_profile",
    "output_option",
    "path_argument",
    "print_warnings",
    "scheduler_option",
    "session_option",
    "strict_option",
    "tell_hosts",
    "workers_option",
]


class Argument(click.Argument):
    """An argument with a help text, which Click's own has since 8.5."""

    def __init__(self, words: Sequence[str], *, help: str, **settings: Any) -> None:  # noqa: A002
        super().__init__(words, **settings)
        self.help = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:  # noqa: ARG002  (Click's)
        """Its row in the help."""
        return self.human_readable_name, self.help or ""


PATH_HELP = "A profile, graph or log file (- is standard input), a session or a log directory."
path_argument = click.argument("path", cls=Argument, help=PATH_HELP)
session_option = click.option(
    "--session", metavar="ID", help="The session of a log directory. Default: the newest."
)
host_option = click.option("--host", metavar="HOST", help="The host, where a session has several.")
json_option = click.option("--json", is_flag=True, help="Print one JSON document.")
strict_option = click.option(
    "--strict", is_flag=True, help="Fail (exit 3) when anything was lost or guessed."
)
max_unpacked_option = click.option(
    "--max-unpacked",
    metavar="SIZE",
    type=parse_size,
    help="What a gzip file may expand to. Default: 200 times its size, at least 1 GiB.",
)
output_option = click.option(
    "--output", "-o", metavar="FILE", help="Write to FILE, not standard output."
)
force_option = click.option("--force", is_flag=True, help="Replace FILE where it exists.")

_EXECUTORS = ("threads", "processes", "dask")  # `peakline.engine.EXECUTORS`, not imported for help


executor_option = click.option(
    "--executor",
    type=click.Choice(_EXECUTORS),
    default="threads",
    help="Where the hosts of a session are read when all are asked: threads, processes, or a"
    " Dask cluster (peakline[dask]).",
)
workers_option = click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(min=1),
    help="Hosts that are read at once. Default: one for each core; with --scheduler, for each"
    " thread of the cluster.",
)
scheduler_option = click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="The Dask cluster, tcp://HOST:PORT. Default: N processes on this machine.",
)


def check_executor_options(executor: str, scheduler: str | None) -> None:
    """Raise UsageError for options that do not fit; without a look at what they name."""
    if scheduler is not None and executor != "dask":
        raise UsageError("--scheduler is for --executor dask")


def print_warnings(warnings: Iterable[ProfileWarning], *, besides: str = "") -> None:
    """Say on standard error what was lost or guessed; the kind ``besides`` was said already."""
    for kind, count, detail in warnings:
        if kind != besides:
            print(f"peakline: warning: {kind} ({count}): {one_line(detail)}", file=sys.stderr)


def find_hosts(path: str, session: str | None, host: str | None) -> str | Session:
    """The file that ``path`` means, or the session where it means several hosts.

    As `peakline.repository.resolve_hosts`. That the newest of several sessions was taken is one
    line on standard error.
    """
    from peakline.repository import resolve_hosts

    def tell(newest: Session, count: int) -> None:
        text = f"{path}: session {newest.name}, the newest of {count}"
        print(f"peakline: {one_line(text)}", file=sys.stderr)

    return resolve_hosts(path, session, host, newest=tell)


def find_file(
    path: str, session: str | None, host: str | None, *, choose: str = "choose one with --host"
) -> str:
    """The one file that ``path`` means; of several hosts a UsageError names them and says how to
    ``choose``.
    """
    from peakline.repository import only_file

    return only_file(find_hosts(path, session, host), choose)


def open_profile(
    path: str,
    *,
    session: str | None = None,
    host: str | None = None,
    strict: bool,
    max_unpacked: int | None,
    choose: str = "choose one with --host",
) -> Profile:
    """`peakline.open`, with what `find_file` says of the path."""
    import peakline

    file = find_file(path, session, host, choose=choose)
    return peakline.open(file, strict=strict, max_unpacked_bytes=max_unpacked)


Document = dict[str, object]


def tell_hosts(
    path: str,
    session: str | None,
    host: str | None,
    tell: Callable[[Profile], Document | None],
    *,
    strict: bool,
    max_unpacked: int | None,
    json: bool,
    besides: frozenset[str] = frozenset(),
    at_the_end: StragglerHosts | None = None,
) -> None:
    """Call ``tell`` with the open profile of every host that ``path`` means, and print warnings.

    ``tell`` prints for a person, or with ``json`` returns the document: printed alone for one host,
    of several as a list under ``hosts``. Warnings of the kinds ``besides`` are not repeated. A host
    that cannot be read is one line on standard error, unless ``strict`` or none can: then it is
    raised. ``at_the_end`` looks at every profile too, and says in the end who the others wait for.
    """
    import peakline
    from peakline.repository import Session

    found = find_hosts(path, session, host)
    several = isinstance(found, Session)
    files: list[tuple[str | None, str]] = [(None, found)] if isinstance(found, str) else []
    if isinstance(found, Session):
        files = [(one.host, one.path) for one in found.hosts()]
    documents: list[Document] = []
    failures: list[PeaklineError] = []
    shown = 0
    for name, place in files:
        try:
            with peakline.open(place, strict=strict, max_unpacked_bytes=max_unpacked) as profile:
                if several and not json:
                    print(f"{chr(10) if shown else ''}host {one_line(str(name))}")
                document = tell(profile)
                if at_the_end is not None and several:
                    at_the_end.add(profile, str(name))
                if document is not None:
                    documents.append(document)
                print_warnings(w for w in profile.warnings if w.kind not in besides)
                shown += 1
        except PeaklineError as error:
            if not several or strict or isinstance(error, StrictError):
                raise
            failures.append(error)
            print(f"peakline: warning: left out: {one_line(str(error))}", file=sys.stderr)
    if failures and not shown:
        raise failures[0]
    straggler = at_the_end.found() if at_the_end is not None and several else None
    if json:
        _print_documents(documents, at_the_end, straggler, several=several)
    elif at_the_end is not None and several:
        print(f"\n{one_line(at_the_end.text(straggler))}")


def _print_documents(
    documents: list[Document],
    at_the_end: StragglerHosts | None,
    straggler: Straggler | None,
    *,
    several: bool,
) -> None:
    if not several:
        print_json(documents[0])
        return
    told: Document = {"hosts": documents}
    if at_the_end is not None:
        told["straggler"] = None if straggler is None else asdict(straggler)
    print_json(told)


@dataclass
class StragglerHosts:
    """Collects the steps and clocks of hosts, and tells which of them the others wait for."""

    parts: list[tuple[str, HostSteps]] = field(default_factory=list)

    def add(self, profile: Profile, host: str) -> None:
        """Take what an open profile has. Raises InputError when it cannot be read."""
        from peakline.timing.stragglers import host_steps_of

        steps = host_steps_of(profile)
        if steps is not None:
            self.parts.append((host, steps))

    def found(self) -> Straggler | None:
        """The host that the others wait for, if there is one."""
        from peakline.timing.stragglers import host_straggler

        return host_straggler(self.parts)

    def text(self, straggler: Straggler | None) -> str:
        """One line for a person."""
        if straggler is None:
            return (
                "no host keeps the others waiting"
                if len(self.parts) > 1
                else "fewer than two hosts tell of steps: who keeps the others waiting is not known"
            )
        how = (
            "it is in collectives for the shortest time"
            if straggler.evidence == "communication"
            else "its computation ends last"
        )
        return (
            f"straggler: the other hosts wait for {straggler.name}: {straggler.share:.0%} of the "
            f"step time ({time_text(straggler.behind_ps)} in the median step); {how} in "
            f"{straggler.often:.0%} of {straggler.steps:,} common steps"
        )
