"""Which tools have something to show for a session, reading as little as possible."""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cache

from peakline.deadline import check_deadline
from peakline.engine.answers import Flights
from peakline.engine.profile_cache import ProfileCache
from peakline.errors import BusyError, CancelledError, DeadlineError, PeaklineError, faults_of
from peakline.formats.common.format import format_by_name
from peakline.repository import HostFile, Session, is_url
from peakline.tables.program_tables import PROGRAM_TABLES
from peakline.toolbox.registry import Tool
from peakline.tools import find_tool, tool_names

_AGAIN_S = 60.0
_TOOLS_OF_GPUS = frozenset(("kernel_stats",))
_SETTLED_S = 2.0
"""A directory's time of change may stay the same that long while files come."""


@dataclass(frozen=True)
class _Seen:
    """What was found in one file; ``problem`` says why it cannot be read."""

    file: HostFile
    stamp: Hashable
    tools: frozenset[str]
    covered: frozenset[str]
    """The tools that were looked for."""
    problem: str = ""

    def is_current(self) -> bool:
        """Whether the same would be found again."""
        try:
            return not self.problem and self.file.stamp() == self.stamp
        except PeaklineError:
            return False


@dataclass(frozen=True)
class _Known:
    """What is known of one session, and what it was concluded from."""

    stamp: Hashable
    checked: float
    is_settled: bool
    """Whether the directory had rested when it was looked at."""
    files: dict[str, _Seen]
    tools: list[str]
    is_whole: bool = True
    """False: a deadline came before all was seen."""

    @property
    def problem(self) -> str:
        """Why a file cannot be read, of the first of those."""
        return next((seen.problem for seen in self.files.values() if seen.problem), "")


class ToolIndex:
    """Tools by session, remembered by the stamps of the directory and of the files looked at."""

    def __init__(self, cache: ProfileCache) -> None:
        self._cache = cache
        self._known: dict[str, _Known] = {}
        self._flights: Flights[str, _Known] = Flights()

    def tools(self, session: Session) -> list[str]:
        """The union over all hosts, sorted; a host that cannot be read has none."""
        return list(self._fresh(session).tools)

    def problem(self, session: Session) -> str:
        """Why a file of a session without tools cannot be read; empty where nothing is wrong."""
        known = self._fresh(session)
        return "" if known.tools else known.problem

    def known(self, session: Session) -> list[str]:
        """What `tools` found until now, without a look; maybe not all, maybe out of date."""
        known = self._known.get(session.path)
        return [] if known is None else list(known.tools)

    def _fresh(self, session: Session) -> _Known:
        known = self._known.get(session.path)
        if known is None or not self._is_fresh(known, session):
            known = self._flights.run(session.path, lambda: self._look(session))
        return known

    @staticmethod
    def _is_fresh(known: _Known, session: Session) -> bool:
        age = time.monotonic() - known.checked
        lasting = _AGAIN_S if known.is_settled else _SETTLED_S
        return known.is_whole and age < lasting and known.stamp == session.stamp()

    def _look(self, session: Session) -> _Known:
        known = self._known.get(session.path)
        if known is not None and self._is_fresh(known, session):
            return known
        # Taken first: what changes from now on is noticed the next time.
        stamp, checked = session.stamp(), time.monotonic()
        is_settled = _is_settled(session)
        rests = known is not None and known.stamp == stamp and known.is_settled and known.is_whole
        if known is not None and rests and all(seen.is_current() for seen in known.files.values()):
            # No file came or went; those that nobody looked at could add nothing.
            now = self._known[session.path] = replace(known, checked=checked)
            return now
        check_deadline()
        files = session.hosts()
        before = known.files if known is not None else {}
        seen: dict[str, _Seen] = {}
        result: frozenset[str] = frozenset()
        try:
            for file in files:
                wanted = _possible(file) - result
                if not wanted:
                    # Nothing that a file of this kind could add.
                    continue
                check_deadline()
                this = self._in_file(file, wanted, before.get(file.path))
                seen[file.path] = this
                result |= this.tools
        except (BusyError, CancelledError, DeadlineError):
            # Whoever asks next goes on from here.
            chosen = {file.path: before[file.path] for file in files if file.path in before} | seen
            tools = sorted(frozenset[str]().union(*(this.tools for this in chosen.values())))
            self._known[session.path] = _Known(
                stamp, checked, is_settled, chosen, tools, is_whole=False
            )
            raise
        now = _Known(stamp, checked, is_settled, seen, sorted(result))
        self._known[session.path] = now
        return now

    def _in_file(self, file: HostFile, wanted: frozenset[str], before: _Seen | None) -> _Seen:
        """Which of ``wanted`` one file has, or more where that was found out before."""
        try:
            with faults_of(file.path):
                return self._seen(file, wanted, before)
        except (BusyError, CancelledError, DeadlineError):
            raise
        except PeaklineError as error:
            return _Seen(file, None, frozenset(), wanted, str(error))

    def _seen(self, file: HostFile, wanted: frozenset[str], before: _Seen | None) -> _Seen:
        """The same; raises as `ProfileCache.lease`."""
        stamp = file.stamp()
        if before is not None and before.stamp == stamp and not before.problem:
            if wanted <= before.covered:
                return before
            wanted |= before.covered
        ruled_out = _ruled_out(file, wanted) & wanted
        if ruled_out == wanted:
            return _Seen(file, stamp, frozenset(), wanted)
        with self._cache.lease(file, keep=False) as profile:
            form = format_by_name(file.path)
            if form is not None and profile.format != form.name:
                # Whatever the name says.
                wanted, ruled_out = _all_tools(), frozenset()
            request = wanted - ruled_out
            names = frozenset(name for name in request if find_tool(name).supports(profile))
        return _Seen(file, stamp, names, wanted)


def _is_settled(session: Session) -> bool:
    # A remote one is known by its listing.
    return is_url(session.path) or time.time() - session.modified() > _SETTLED_S


def _possible(file: HostFile) -> frozenset[str]:
    """The tools that a file of that name can have."""
    form = format_by_name(file.path)
    return _all_tools() if form is None else _tools_of(form.glance_at().tables)


@cache
def _all_tools() -> frozenset[str]:
    return frozenset(tool_names())


@cache
def _tools_of(tables: frozenset[str]) -> frozenset[str]:
    return frozenset(name for name in tool_names() if find_tool(name).may_support(tables))


@cache
def _with_marks() -> tuple[Tool, ...]:
    return tuple(tool for tool in map(find_tool, tool_names()) if tool.marks)


def _ruled_out(file: HostFile, wanted: frozenset[str]) -> frozenset[str]:
    """The tools that a short look at the bytes shows the file not to have, without opening it; of
    those that name marks only ``wanted`` ones are looked for.
    """
    form = format_by_name(file.path)
    if form is None or not file.path.endswith(form.suffix):
        return frozenset()
    glance = form.glance_at()
    without = glance.missing_tables(file.path, file.opener)
    if file.programs:
        without -= PROGRAM_TABLES
    missing = _tools_of(glance.tables) - _tools_of(glance.tables - without)
    marked = [tool for tool in _with_marks() if tool.name in wanted]
    if marked:
        # All in one look: a session can have thousands of hosts.
        marks = {mark for tool in marked for mark in tool.marks}
        result = glance.names_in(file.path, marks, file.opener)
        missing |= {tool.name for tool in marked if result.isdisjoint(tool.marks)}
    return missing if glance.may_have_gpus(file.path, file.opener) else missing | _TOOLS_OF_GPUS
