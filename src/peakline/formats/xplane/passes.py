"""Passes over the planes of an XSpace, which group their nodes into steps on the way."""

from __future__ import annotations

from functools import cached_property
from itertools import islice

from peakline.formats.common.files import SourceFile
from peakline.formats.common.reader import warn_of_cut, warn_of_damage
from peakline.formats.xplane.events import PlaneEvents, lines_table
from peakline.formats.xplane.forest import GroupedPlane, RepeatedIds
from peakline.formats.xplane.grouping import Grouping, group, needs_grouping
from peakline.formats.xplane.line_parts import LineFacts
from peakline.formats.xplane.line_reader import LineReader
from peakline.formats.xplane.lines import PlanePass
from peakline.formats.xplane.memory import MemoryRecords
from peakline.formats.xplane.names import EVENT_KINDS
from peakline.formats.xplane.outline import MOST_LINES, MOST_PLANES, Outline, PlaneOutline
from peakline.formats.xplane.times import Far, FarTimes, clock_zero_ns
from peakline.formats.xplane.tpu import TpuPlane, read_tpu_plane
from peakline.kernels.xplane_numbers import EventKind
from peakline.tables.columns import Columns
from peakline.tables.reader import Warnings
from peakline.wire import Damage

OUTLINE = -1
"""Stands for the file's outline where planes are numbers."""
_MAKES_GROUPS = frozenset(("_r", "_pt", "_p"))
_TAKES_GROUPS = frozenset(("_ct", "_c", "correlation_id", "group_id"))


class Passes:
    """Reads planes of one file, and holds what any pass over it finds out."""

    __retained__ = "file outline memory line_facts damage far"

    def __init__(self, file: SourceFile, outline: Outline) -> None:
        self.file, self.outline = file, outline
        self.memory: MemoryRecords | None = None
        """The records of memory, once a pass has read them."""
        self.reads_together = False
        """Whether events and records of memory will both be read."""
        self.line_facts: dict[int, list[LineFacts]] = {}
        """What is known of a plane's lines since somebody has read them whole."""
        self.damage: dict[int, Damage] = {OUTLINE: outline.damage}
        """Damage by plane, as whoever read it first found it."""
        self.far = FarTimes()
        self.repeated_ids = 0
        """How many ids several steps produce."""
        self._repeats = False
        """Whether ids repeat, so that grouping takes the times of all nodes."""
        self._warned = 0
        """How many of the planes' damages are reported."""
        self._reported: set[str] = set()
        self._nameless: set[str] = set()

    @cached_property
    def zero_ps(self) -> int:
        """The profile's start: the earliest line timestamp of all planes, in ps (but see
        `clock_zero_ns`).
        """
        times, sizes = list[int](), list[int]()
        for plane in self.outline.with_lines:
            times += [line.timestamp_ns for line in LineReader(self.file, plane.lines).read_facts()]
            sizes += plane.lines.length.tolist()
        return clock_zero_ns(times, sizes) * 1000

    def lines(self) -> Columns:
        """The table ``lines``."""
        facts: list[list[LineFacts]] = [[] for _ in self.outline.planes]
        for plane in self.outline.with_lines:
            facts[plane.index] = self.line_facts.get(plane.index) or LineReader(
                self.file, plane.lines
            ).read_facts(whole=True)
        return self.placed(*lines_table(facts, self.zero_ps))

    def noting(self, columns: Columns, damage: dict[int, Damage]) -> Columns:
        """``columns``, and the damage that was met on the way is noted."""
        for plane, harm in damage.items():
            self.damage.setdefault(plane, harm)
        return columns

    def placed(self, columns: Columns, far: Far) -> Columns:
        """``columns``, and what of them was out of reach is noted."""
        self.far.note(far)
        return columns

    def group(
        self,
        *,
        everything: bool,
        prune: bool,
        events: list[PlaneEvents] | None = None,
        links: bool = False,
    ) -> Grouping:
        """Read the planes and group their nodes, by time where ids repeat: of those planes that can
        matter for host events, or of ``everything``; with the ``links`` of groups.

        ``events`` gets the events of every plane; the memory records are then left, unless they
        are expected too: who reads one seldom reads the other.
        """
        grouping: Grouping | None = None
        if not self._repeats:
            try:
                grouping = self._group_once(
                    everything=everything, prune=prune, events=events, links=links
                )
            except RepeatedIds:
                self._repeats = True
                if events is not None:
                    events.clear()
        if grouping is None:
            grouping = self._group_once(
                everything=True, prune=False, timed=True, events=events, links=links
            )
        self.repeated_ids = grouping.repeated or self.repeated_ids
        return grouping

    def _group_once(
        self,
        *,
        everything: bool,
        prune: bool,
        timed: bool = False,
        events: list[PlaneEvents] | None = None,
        links: bool = False,
    ) -> Grouping:
        """`group`, with the times of the nodes where ``timed``."""
        with_memory = self.memory is None and (events is None or self.reads_together)
        rewrite, assign = needs_grouping(self.outline.planes)
        planes, first = [], 0
        memory: tuple[PlanePass, int] | None = None
        for plane in self.outline.planes:
            is_host = plane is self.outline.host_plane
            takes_part = is_host or _takes_part(plane, everything=everything)
            if not takes_part and (events is None or not len(plane.lines)):
                continue
            tpu: TpuPlane | None = None
            if plane.is_tpu and takes_part:
                tpu = read_tpu_plane(self.file, plane, rewrite=rewrite)
                planes.append(GroupedPlane.of_tpu(plane, first, tpu))
                self.damage.setdefault(plane.index, tpu.damage)
                chosen, stats = tpu.selected, tpu.stats
            else:
                result = PlanePass(
                    self.file, plane, want_memory=is_host and with_memory,
                    rewrite=rewrite, prune=prune, own_ends=timed, timed=timed,
                    keep=events is not None,
                )  # fmt: skip
                self.damage.setdefault(plane.index, result.damage)
                chosen, stats = result.selected_lines(), result.selected_stats()
                self.line_facts[plane.index] = result.line_facts
                if takes_part:
                    planes.append(GroupedPlane.of_pass(plane, first, result))
                if is_host and with_memory:
                    memory = result, first
            if events is not None:
                nodes = slice(first, first + planes[-1].nodes) if takes_part else None
                events.append(PlaneEvents(plane, chosen, stats, nodes, tpu))
            first += planes[-1].nodes if takes_part else 0
        grouping = group(self.file, planes, first, rewritten=rewrite, assign=assign, links=links)
        if memory is not None:
            result, at = memory
            self.memory = MemoryRecords(result, slice(at, at + result.nodes), grouping)
        return grouping

    def memory_alone(self) -> MemoryRecords | None:
        """The records of memory without their steps, which takes no grouping; None without any
        host.
        """
        plane = self.outline.host_plane
        if plane is None:
            return None
        rewrite, _ = needs_grouping(self.outline.planes)
        result = PlanePass(self.file, plane, want_memory=True, rewrite=rewrite, prune=True)
        self.damage.setdefault(plane.index, result.damage)
        self.line_facts[plane.index] = result.line_facts
        return MemoryRecords(result)

    def warn(self, warnings: Warnings) -> None:
        """Count what passes have met, and what the profiler itself reported, each once."""
        size = self.file.size
        fresh = list(islice(self.damage.items(), self._warned, None))
        self._warned += len(fresh)
        for _, damage in fresh:
            if not damage:
                continue
            places = damage.places
            if damage.missing_bytes:
                places -= 1
                self._reported.add("truncated")
                warn_of_cut(warnings, damage.missing_bytes, size)
            if "truncated" in self._reported and damage.first_offset + damage.skipped_bytes == size:
                # The event that the end of the file cuts in two.
                continue
            warn_of_damage(warnings, damage, places)
        for plane in self.outline.planes if "truncated" in self._reported else ():
            if len(plane.lines) and not plane.event_names and plane.name not in self._nameless:
                self._nameless.add(plane.name)
                warnings.add(
                    "names_lost",
                    f"{plane.name}: the names of its events stood behind the cut, so none is known",
                )
        self.far.report(warnings)
        if self.repeated_ids and "repeated" not in self._reported:
            self._reported.add("repeated")
            warnings.add(
                "repeated_ids",
                "ids that several steps produce (a merged or repeated file): work belongs to the "
                "event with its id that began last before it, and to no step where that is open",
                self.repeated_ids,
            )
        if "profiler" not in self._reported:
            self._reported.add("profiler")
            for kind, most, many in (
                ("planes", MOST_PLANES, self.outline.planes_left_out),
                ("lines", MOST_LINES, self.outline.lines_left_out),
            ):
                text = f"{kind} beyond the first {most}, which are not read"
                warnings.add(f"{kind}_left_out", text, many)
            for kind, texts in (
                ("profiler_error", self.outline.errors),
                ("profiler_warning", self.outline.notes),
            ):
                for text in texts:
                    warnings.add(kind, " ".join(text.split()))


def _takes_part(plane: PlaneOutline, *, everything: bool) -> bool:
    """Whether the plane's events can open a group, or (with ``everything``) get one."""
    if not len(plane.lines):
        return False
    kinds = {EVENT_KINDS.get(name, EventKind.OTHER) for name in plane.event_name_set}
    if plane.stat_name_set & _MAKES_GROUPS or kinds - {EventKind.OTHER}:
        return True
    return everything and bool(plane.is_tpu or plane.stat_name_set & _TAKES_GROUPS)
