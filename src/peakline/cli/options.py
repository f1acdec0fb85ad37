"""What verbs share: arguments and options, opening what PATH names, every host of a session."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, Self, cast

import click

import peakline
from peakline import repository
from peakline.errors import PeaklineError, StrictError, UsageError, fault_of
from peakline.render.terminal.layout import Text, show
from peakline.render.terminal.output import print_json, print_left_out, print_warnings, say
from peakline.text import parse_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peakline.api import Profile
    from peakline.repository import Session
    from peakline.repository.readable import Readable
    from peakline.tables import ProfileWarning


class Argument(click.Argument):
    """An argument with a help text, which Click's own has since 8.5."""

    def __init__(self, words: Sequence[str], *, help: str, **settings: Any) -> None:  # noqa: A002
        super().__init__(words, **settings)
        self.help = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:  # noqa: ARG002  (Click's)
        """Its row in the help."""
        return self.human_readable_name, self.help or ""


PATH_HELP = "A profile, graph or log file (- is standard input), a session or a log directory."
PATHS_HELP = f"{PATH_HELP[:-1]}; the files of a job's ranks."
path_argument = click.argument("path", cls=Argument, help=PATH_HELP)


class Paths(str):
    """Several PATHs as one: called as the folder that all of them are in, which holds the job whose
    ranks they are.

    >>> Paths(["traces/rank0.json", "traces/rank1.json"])
    'traces'
    """

    __slots__ = ("each",)
    each: tuple[str, ...]

    def __new__(cls, each: Sequence[str]) -> Self:
        """The paths ``each``, of which there is one at least."""
        paths = super().__new__(cls, repository.folder_of_all(each))
        paths.each = tuple(each)
        return paths


def each_path(path: str) -> tuple[str, ...]:
    """The PATHs that were given for one."""
    return path.each if isinstance(path, Paths) else (path,)


def one_path(paths: Sequence[str]) -> str | None:
    """What an argument of several PATHs means: the only one, or `Paths`; None without any."""
    return (paths[0] if len(paths) == 1 else Paths(paths)) if paths else None


def paths_of(_: click.Context, _parameter: click.Parameter, paths: tuple[str, ...]) -> str | None:
    """The callback of an argument of several PATHs, which makes them `one_path`."""
    return one_path(paths)


paths_argument = click.argument(
    "path",
    metavar="PATH...",
    nargs=-1,
    required=True,
    callback=paths_of,
    cls=Argument,
    help=PATHS_HELP,
)
session_option = click.option(
    "--session", metavar="ID", help="The session of a log directory. Default: the newest."
)
host_option = click.option("--host", metavar="HOST", help="The host, where a session has several.")
rank_option = click.option(
    "--rank",
    metavar="R",
    type=click.IntRange(min=0),
    help="The rank of a job, by what its file says, else by its name.",
)
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
programs_option = click.option(
    "--programs",
    metavar="PATH",
    help="Where the compiled programs are: a directory of XLA dumps, an HLO file, a profile.",
)
output_option = click.option(
    "--output", "-o", metavar="FILE", help="Write to FILE, not standard output."
)
safe_csv_option = click.option(
    "--safe-csv",
    is_flag=True,
    help="In CSV, put ' before texts that a spreadsheet would take for a formula.",
)


def check_safe_csv(form: str, *, safe_csv: bool) -> None:
    """UsageError where ``--safe-csv`` is given for another format than CSV."""
    if safe_csv and form != "csv":
        raise UsageError(f"--safe-csv is for CSV, and the answer is {form}: --format csv")


force_option = click.option("--force", is_flag=True, help="Replace FILE where it exists.")

EXECUTORS = ("threads", "processes", "dask")  # `peakline.engine.EXECUTORS`, not imported for help


executor_option = click.option(
    "--executor",
    type=click.Choice(EXECUTORS),
    default="threads",
    help="Where the hosts of a session are read when all are needed: threads, processes, or a"
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


@dataclass(frozen=True)
class Reading:
    """How a verb reads what a PATH names: what the options of `reading_options` say."""

    session: str | None
    host: str | None
    strict: bool
    max_unpacked: int | None
    programs: str | None = None
    rank: int | None = None

    def find(self, path: str) -> str | Session:
        """The file that ``path`` means, or the session where it means several hosts.

        As `peakline.repository.resolve_hosts`, of `Paths` as `resolve_several`. That the newest of
        several sessions was taken, that logs beside dumps were not read, and what else lies beside
        the profiles of a job's ranks, is one line on standard error.
        """

        def note(newest: Session, count: int) -> None:
            where = newest.path if isinstance(path, Paths) else path
            say(f"{where}: session {newest.name}, the newest of {count}")

        def note_only(file: Readable) -> None:
            say(f"{path}: no session here; its only readable file is taken: {file}")

        if isinstance(path, Paths):
            result = repository.resolve_several(
                path.each, self.session, self.host, rank=self.rank, newest=note
            )
        else:
            result = repository.resolve_hosts(
                path, self.session, self.host, rank=self.rank, newest=note, only=note_only
            )
        for other in result.others if isinstance(result, repository.RankFiles) else ():
            say(f"{path}: not in the job: {other}")
        if result == path and repository.dumped_in(path) and (logs := repository.logs_in(path)):
            more = f" (and {len(logs) - 1} more)" if len(logs) > 1 else ""
            say(
                f"{path}: only the dumped programs are read; a log beside them{more} with its "
                f"buffers: peakline memory {shlex.quote(logs[0])} --programs {shlex.quote(path)}"
            )
        return result

    def file(self, path: str, *, choose: str = "choose one with --host") -> str:
        """The one file that ``path`` means; of several hosts a UsageError names them and says how
        to ``choose``.
        """
        return repository.only_file(self.find(path), choose)

    def open(self, path: str, *, choose: str = "choose one with --host") -> Profile:
        """`peakline.open`, with what `file` says of the path."""
        return self.open_file(self.file(path, choose=choose), path)

    def open_file(self, file: str, path: str) -> Profile:
        """`peakline.open` for the ``file`` that ``path`` means. Where that is a directory in which
        programs were dumped, a profile that has none gets those, which is one line.
        """
        profile = self._open(file, self.programs)
        if self.programs is not None or path == file:
            return profile
        if repository.dumped_in(path) is None or profile.programs():
            return profile
        profile.close()
        say(f"{path}: the profile has no compiled programs; it is read with those dumped there")
        return self._open(file, path)

    def _open(self, file: str, programs: str | None) -> Profile:
        if self.programs == "-":
            raise UsageError("--programs cannot come from standard input; name a file")
        return peakline.open(
            file, strict=self.strict, max_unpacked_bytes=self.max_unpacked, programs=programs
        )


_Verb = Callable[..., None]


def reading_options(*others: Callable[[_Verb], _Verb]) -> Callable[[_Verb], _Verb]:
    """--session, --host, --rank, ``others``, --strict and --max-unpacked, in the order of the help.
    Of the others, --programs is a part of the `Reading`.

    The verb gets what they say as ``reading``, a `Reading`, and of ``others`` what Click gives.
    """

    def decorated(verb: _Verb) -> _Verb:
        @wraps(verb)
        def read(**given: Any) -> None:
            names = [field.name for field in fields(Reading) if field.name in given]
            said = {name: given.pop(name) for name in names}
            verb(reading=Reading(**said), **given)

        result: Any = read
        before: list[Any] = [session_option, host_option, rank_option, *others, strict_option]
        for option in (max_unpacked_option, *reversed(before)):
            result = option(result)
        return cast("_Verb", result)

    return decorated


Document = dict[str, object]


def answer_hosts(
    path: str,
    reading: Reading,
    document_of: Callable[[Profile], Document | None],
    *,
    json: bool,
    besides: frozenset[str] = frozenset(),
    result: str | Session | None = None,
) -> None:
    """Answer about every host that ``path`` means (what `Reading.find` says, or has said:
    ``result``), and print the warnings.

    ``document_of`` gets the open profile and prints for a person, or with ``json`` returns the
    document: printed alone for one host, of several as a list under ``hosts``. Warnings of the
    kinds ``besides`` are not repeated. A host that cannot be read is one line on standard error,
    unless ``strict`` or none can: then it is raised.
    """
    result = reading.find(path) if result is None else result
    if isinstance(result, str):
        with reading.open_file(result, path) as profile:
            one = document_of(profile)
            concerning = [w for w in profile.warnings if w.kind not in besides]
        if one is not None:
            print_json(one)
        print_warnings(concerning)
        return
    documents: list[Document] = []
    warnings: list[ProfileWarning] = []
    failures: list[PeaklineError] = []
    shown = 0
    for file in result.hosts():
        try:
            with reading.open_file(file.path, path) as profile:
                if not json:
                    show([*([""] if shown else []), Text(f"host {file.host}", "bold")])
                one = document_of(profile)
                if one is not None:
                    documents.append(one)
                warnings += [w for w in profile.warnings if w.kind not in besides]
                shown += 1
        except PeaklineError as error:
            if reading.strict or isinstance(error, StrictError):
                raise
            failures.append(error)
        except OSError:  # what is shown cannot be written
            raise
        except Exception as error:  # noqa: BLE001 (the other hosts are shown all the same)
            failures.append(fault_of(file.path, error))
            if reading.strict:
                raise failures[-1] from None
    if failures and not shown:
        raise failures[0]
    if json:
        print_json({"hosts": documents})
    print_warnings(warnings)
    print_left_out(failures)
