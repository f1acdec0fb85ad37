"""The Python face: `open` a path and ask the `Profile`, or a `Repository` its sessions."""

from __future__ import annotations

import os
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from peakline import check, compare, findings, memory, timing
from peakline import tables as _profile
from peakline.shown import Shown, headline_of, named, public_names
from peakline.tables.derived import DERIVED
from peakline.tables.rows import Frames

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from peakline.check.verdict import Checks
    from peakline.compare.comparison import Comparison
    from peakline.engine import Answer, Engine, Executor
    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.findings.ranking import Findings
    from peakline.findings.time_answer import TimeAnswer
    from peakline.memory.fit.model import Fits
    from peakline.repository import Session as _Session
    from peakline.tables.query import SqlParameters
    from peakline.timing.critical_path.path import StepPath
    from peakline.timing.launches.summary import LaunchSummary
    from peakline.timing.steps.facts import StepFacts
    from peakline.tools import ToolResult

__all__ = ["Profile", "Repository", "Session", "diff", "open"]


class Profile(_profile.Profile, Frames):
    """One host's profile, read lazily: `open` makes it, `close` or a ``with`` block ends it.

    Ask it for `memory`, `time`, `steps`, `fit`, `launches`, a `critical_path` or a `tool`, for the
    rows of one of its `tables` (`table`) or of a query (`sql`), or for either as a data frame
    (`to_pandas`, `to_polars`). Times are picoseconds from the profile's start, sizes bytes. What
    was lost, skipped or guessed is in `warnings`; with ``strict`` it raises StrictError. Every
    method raises InputError when the file cannot be read, and UsageError once it is closed.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # What answers said first, for the ``repr``, which reads nothing.
        self._headlines: dict[str, str] = {}

    def tool(
        self,
        name: str,
        /,
        *,
        format: str | None = None,  # noqa: A002 (the word of the command line)
        **parameters: object,
    ) -> ToolResult:
        """Run the named tool; ``format`` defaults to the tool's first.

        Raises NotFoundError for an unknown tool, UsageError for a bad parameter or format.

            >>> profile.tool("memory_profile", max_snapshots=10)
            <ToolResult json, ...>
        """
        from peakline.tools import run_tool

        return run_tool(self, name, parameters, format)

    def tools(self) -> list[str]:
        """Names of the tools that have something to show for this profile, sorted.

        >>> profile.tools()[:2]
        ['address_map', 'check']
        """
        from peakline.tools import available_tools

        return available_tools(self)

    def memory(self, *, allocator: str | None = None, step: str | None = None) -> MemoryAnswer:
        """What ``peakline memory`` says: failed allocations, peaks, findings, their analyses.

        ``allocator`` keeps one allocator; ``step``, an id or a name, asks for the largest use while
        that step ran. Raises NotFoundError for an unknown allocator or step.

            >>> profile.memory()
            <MemoryAnswer peak 31.6 MiB of bfc_cpu_allocator_for_gpu, 1 finding>
            >>> profile.memory().allocators[0].peak_bytes
            33165056
        """
        answer = replace(findings.answer_memory(self, allocator=allocator, step=step), profile=self)
        if allocator is None and step is None:
            self._headlines["memory"] = headline_of(answer)
        return answer

    def time(self) -> TimeAnswer:
        """What ``peakline steps`` says: the steps, what their time went to, and findings about it.

        Raises InputError when the profile cannot be read.

            >>> profile.time()
            <TimeAnswer 20 steps of 43.670 ms (median), 96% host compute>
        """
        answer = findings.answer_time(self)
        self._headlines["time"] = headline_of(answer)
        return answer

    def findings(self) -> Findings:
        """What is worth fixing in memory and time, as ``peakline summary`` ranks it; often nothing.

        Raises InputError when the profile cannot be read.

            >>> [finding.kind for finding in profile.findings()]
            ['leak']
        """
        return findings.Findings(findings.priorities(self.memory().findings, self.time().findings))

    def steps(self) -> StepFacts:
        """The table ``step_breakdown`` as arrays: a row for each step and device.

        ``part("idle_ps")`` is a column, ``populations`` what steps are called without their
        number. Empty without steps. Raises InputError when the profile cannot be read.

            >>> int(profile.steps().part("wall_ps").max())
            116175883000
        """
        return timing.step_facts_of(self)

    def critical_path(
        self, step: str | None = None, *, device: str | None = None
    ) -> StepPath | None:
        """The chain of work that made a step as long as it was; default: the median step.

        ``step`` is an id or a name. None where nothing ran at a time. Raises NotFoundError for an
        unknown step or device.

            >>> profile.critical_path("train 7")
            <StepPath step train 7, 43.438 ms in 225 pieces>
        """
        return timing.critical_path_of(
            self, step or timing.median_step(self, device), device=device
        )

    def launches(self) -> LaunchSummary:
        """How the launches of kernels and programs fared between host and device.

        >>> profile.launches()
        <LaunchSummary no launches>
        """
        return timing.launch_summary(self)

    def fit(
        self,
        *,
        limits: Sequence[int] = (),
        settings: Mapping[str, object] = MappingProxyType({}),
        batch: int | None = None,
        wanted_batch: int | None = None,
        allocator: str | None = None,
    ) -> Fits:
        """In how much memory the recorded program runs, as ``peakline fit``: a `Fit` for each
        allocator that can be replayed; ``failed`` are those that cannot.

        ``limits`` in bytes are tried, with ``settings`` of the allocator by name; ``batch`` is the
        recorded batch size and ``wanted_batch`` another (None: the largest that fits). Raises
        UsageError for an unknown setting, NotFoundError for an unknown allocator.

            >>> peakline.open("first.xplane.pb").fit()
            <Fits 1 Fit: bfc_cpu_allocator_for_gpu runs in 90.0 MiB (a bound)>
        """
        pairs = tuple((name, str(value)) for name, value in settings.items())
        question = memory.Question(tuple(limits), pairs, batch, wanted_batch)
        return memory.Fits(
            *memory.fits_of(self, question, allocator=memory.recorded_name(self, allocator))
        )

    def check(
        self,
        *,
        max_peak_bytes: int | None = None,
        max_growth_per_step_bytes: int | None = None,
        max_fragmentation: float | None = None,
        max_program_peak_bytes: int | None = None,
        max_limit_bytes: int | None = None,
        max_step_ps: int | None = None,
        max_p95_step_ps: int | None = None,
        max_input_wait: float | None = None,
        max_compile: float | None = None,
        max_idle: float | None = None,
        allocator: str | None = None,
    ) -> Checks:
        """Hold limits against every allocator and the steps, as ``peakline check``: a `Check` each.

        ``max_fragmentation`` is a share, 0 to 1. ``max_program_peak_bytes`` is held against the
        compiled program that needs most, ``max_limit_bytes`` against the memory in which the
        recorded program runs (`fit`). ``max_step_ps`` is of the median step, ``max_p95_step_ps`` of
        95% of them; of the steps' time ``max_input_wait``, ``max_compile`` and ``max_idle`` are the
        most that may be spent so, as shares. Raises NotFoundError for an unknown allocator.

            >>> profile.check(max_peak_bytes=10 << 20)
            <Checks 1 of 1 failed: peak of bfc_cpu_allocator_for_gpu: 31.6 MiB, at most 10.0 MiB>
        """
        limits = check.Limits(
            max_peak_bytes,
            max_growth_per_step_bytes,
            max_fragmentation,
            max_program_peak_bytes=max_program_peak_bytes,
            max_limit_bytes=max_limit_bytes,
            max_step_ps=max_step_ps,
            max_p95_step_ps=max_p95_step_ps,
            max_input_wait=max_input_wait,
            max_compile=max_compile,
            max_idle=max_idle,
        )
        state = compare.state_of(self.memory())
        if max_program_peak_bytes is not None:
            state = compare.with_programs(state, self)
        time = None
        if limits.has_time:
            time = check.time_state_of(self.time())
        checks = check.check_limits(state, limits, allocator=allocator, time=time)
        if max_limit_bytes is None:
            return check.Checks(checks)
        return check.Checks([*checks, *check.limit_checks(self, limits, allocator)])

    def _headline(self) -> str:
        said = [self._headlines[name] for name in ("time", "memory") if name in self._headlines]
        if self._closed or not said:
            return super()._headline()
        return f"{named(self.path)}: {'; '.join(said)}"

    def _repr_html_(self) -> str:
        """Memory and time in short: self-contained HTML without a script; never raises."""
        from peakline.render.notebook import html_of

        return html_of(self)

    def __dir__(self) -> list[str]:
        return [name for name in public_names(self) if name in PUBLIC or name.startswith("__")]


PUBLIC = frozenset(
    (
        "check close columns critical_path duration_ps findings fit format hlo_modules host "
        "is_derived launches memory nbytes path release sql start_ns steps table tables time "
        "to_pandas to_polars tool tools views warnings zero_ps"
    ).split()
)
"""What users of a `Profile` rely on; what else it inherits is for the analyses."""


def open(  # noqa: A001 (used as peakline.open, like gzip.open)
    path: str | os.PathLike[str],
    *,
    host: str | None = None,
    session: str | None = None,
    strict: bool = False,
    max_unpacked_bytes: int | None = None,
    programs: str | os.PathLike[str] | None = None,
) -> Profile:
    """Open one host's profile: a file, a session directory or a log directory.

    ``session`` (default: the newest) and ``host`` choose where ``path`` holds more than one.
    ``programs`` is where the compiled programs are: a directory of XLA dumps, a file of one program
    or another profile; they stand in place of those in ``path``. Without it a profile has those too
    that XProf wrote beside it (``*.hlo_proto.pb``), and one that has none gets those that XLA
    dumped into the same directory ``path``.
    With ``strict``, anything lost or guessed while reading raises StrictError. A gzip file may
    expand to ``max_unpacked_bytes`` (default: 200 times its size, at least 1 GiB). Raises
    NotFoundError when nothing is there, InputError when it cannot be read.

        >>> peakline.open("leak.xplane.pb")
        <Profile leak.xplane.pb: xplane, host leak, 34 tables>
    """
    from peakline.formats import open_reader
    from peakline.repository import dumped_in, programs_beside, resolve

    file = resolve(os.fspath(path), session=session, host=host)
    beside = programs_beside(file) if programs is None else ()
    reader = open_reader(file, max_unpacked_bytes=max_unpacked_bytes, beside=beside)
    try:
        if programs is None and file != os.fspath(path) and dumped_in(path):
            programs = None if reader.programs() else path
        if programs is not None:
            from peakline.formats.common.with_programs import with_programs

            place = dumped_in(programs) or resolve(os.fspath(programs))
            other = open_reader(place, max_unpacked_bytes=max_unpacked_bytes)
            reader = with_programs(reader, other)
    except BaseException:
        reader.close()
        raise
    return Profile(reader, strict=strict, derived=DERIVED)


def diff(before: Profile, after: Profile, *, allocator: str | None = None) -> Comparison:
    """What changed in memory and time between two profiles, as ``peakline diff``.

    ``allocator`` keeps one. Raises NotFoundError if neither has it.

        >>> peakline.diff(peakline.open("before.xplane.pb"), peakline.open("after.xplane.pb"))
        <Comparison peak of bfc_cpu_allocator_for_gpu +5.3 MiB, step +6.093 ms>
    """
    return compare.compare_profiles(
        compare.profile_state(before), compare.profile_state(after), allocator=allocator
    )


class Repository(Shown):
    """The sessions of a log directory, on the local file system or any that fsspec opens.

    ``logdir`` is the directory or its ``plugins/profile``; ``storage_options`` go to fsspec's
    driver. Safe to share between threads; decoded profiles and answers are shared by all sessions.

    ``executor`` says where the hosts of a session are read when a tool answers about all of them:
    ``threads`` of this process, ``processes``, or ``dask`` (`peakline[dask]`); or an
    `peakline.engine.Executor`. Up to ``workers`` hosts are read at once (default: one for each
    core). ``scheduler`` is the address of a Dask cluster; without one there is a cluster of
    ``workers`` processes on this machine, for which a script must be guarded by
    ``if __name__ == "__main__"``. `close`, or the end of a ``with`` block, ends what was started.
    Raises UsageError for an unknown executor.
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        *,
        executor: str | Executor = "threads",
        workers: int | None = None,
        scheduler: str | None = None,
        **storage_options: object,
    ) -> None:
        from peakline.engine import Engine
        from peakline.repository import Repository as Layout

        self._layout = Layout(logdir, **storage_options)
        self._engine = Engine(executor=executor, workers=workers, scheduler=scheduler)

    @property
    def logdir(self) -> str:
        """The directory as it was given."""
        return self._layout.logdir

    def sessions(self) -> list[Session]:
        """The sessions, newest first; raises NotFoundError or InputError.

        >>> peakline.Repository("logs").sessions()
        [<Session 2026_11_20_16_57_05 in logs/plugins/profile/2026_11_20_16_57_05>]
        """
        return [Session(result, self._engine) for result in self._layout.sessions()]

    def session(self, session_id: str) -> Session:
        """One session, a nested run's too (``train/ID``); raises NotFoundError that lists them.

        >>> peakline.Repository("logs").session("2026_11_20_16_57_05").hosts
        ['vm']
        """
        return Session(self._layout.session(session_id), self._engine)

    def close(self) -> None:
        """Give up what is cached of profiles, and end the processes that were started."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _headline(self) -> str:
        return self.logdir


class Session(Shown):
    """One profiling session: the profiles of its hosts."""

    def __init__(self, session: _Session, engine: Engine) -> None:
        self._session, self._engine = session, engine

    @property
    def session_id(self) -> str:
        """The name of its directory."""
        return self._session.session_id

    @property
    def name(self) -> str:
        """What `Repository.session` takes: the id, or ``train/ID`` of a nested run."""
        return self._session.name

    @property
    def path(self) -> str:
        """Its directory, a URL where it is remote."""
        return self._session.path

    @property
    def hosts(self) -> list[str]:
        """Names of the hosts, sorted."""
        return [file.host for file in self._session.hosts()]

    def open(self, host: str | None = None, *, strict: bool = False) -> Profile:
        """The profile of one host, by default the only one; close it after use.

        Raises NotFoundError for an unknown host, UsageError where there are several, InputError.

            >>> session.open()
            <Profile vm.xplane.pb.gz: xplane, host vm, 34 tables>
        """
        from peakline.engine import only_host
        from peakline.formats import open_reader

        file = only_host(self._session, host or "", "open")
        reader = open_reader(
            file.path, storage_options=file.storage_options, beside=file.program_paths
        )
        return Profile(reader, strict=strict, derived=DERIVED)

    def tools(self) -> list[str]:
        """Names of the tools that have something to show for one of the hosts.

        Raises InputError when none of them can be read.

            >>> session.tools()[:2]
            ['address_map', 'check']
        """
        return self._engine.tools(self._session)

    def tool(
        self,
        name: str,
        /,
        *,
        host: str | None = None,
        format: str | None = None,  # noqa: A002 (the word of the command line)
        **parameters: object,
    ) -> Answer:
        """Run the named tool for one host, or for all of them where the tool can.

        Raises NotFoundError for an unknown tool or host, UsageError for a bad parameter or format
        and where the tool shows one host and there are several.

            >>> session.tool("memory_profile")
            <Answer json, ...>
        """
        return self._engine.tool(
            self._session, name, host=host or "", parameters=parameters, format=format
        )

    def sql(
        self,
        query: str,
        parameters: SqlParameters = None,
        *,
        host: str | None = None,
        memory_limit_bytes: int | None = None,
    ) -> pa.Table:
        """The answer to one reading SQL statement over the tables of one host, as `Profile.sql`;
        where there are several and none is named, over those of all ranks.

        Then every table has the column ``rank``, the table ``ranks`` says which there are and why
        one could not be read, and a view is each rank's own. Only what the query needs is read, as
        the repository's ``executor`` says, and nothing of ranks that conditions such as
        ``rank = 3`` rule out. Raises as `Profile.sql`, NotFoundError for an unknown host,
        InputError when none can be read.

            >>> session.sql("select count(*) > 100 many from events").to_pylist()
            [{'many': True}]
        """
        return self._engine.sql(
            self._session, query, parameters, host=host or "", memory_limit_bytes=memory_limit_bytes
        )

    def _headline(self) -> str:
        return f"{self._session.name} in {self.path}"
