"""What every section of a report needs: the profile, its answer, and the page's collectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from peakline.findings.memory_answer import MemoryAnswer
from peakline.findings.time_answer import TimeAnswer
from peakline.memory.details import MemoryDetails
from peakline.memory.peak.explained import AllocatorPeak
from peakline.memory.signatures import History
from peakline.render.html.drawing import Drawings
from peakline.render.html.html import Markup
from peakline.render.html.tables import Tables
from peakline.render.html.values import named
from peakline.tables import Profile


@dataclass(frozen=True, eq=False)
class Context:
    """``labels`` are the names of the steps by id. ``is_moment``: the file has what there was at
    one moment, and no records of how it came about. ``sections`` are the ids of the sections that
    the page has, which its links lead to.
    """

    profile: Profile
    answer: MemoryAnswer
    time: TimeAnswer
    labels: Mapping[int, str]
    is_moment: bool
    tables: Tables
    drawings: Drawings
    sections: set[str] = field(default_factory=set)


@dataclass(frozen=True, eq=False)
class Part:
    """One allocator of the answer; ``number`` is its place in ``history.lifetimes.allocators``."""

    context: Context
    peak: AllocatorPeak
    details: MemoryDetails
    history: History
    number: int
    sections: frozenset[str]
    """The sections (`Kind.section`) that the findings about this allocator belong to."""
    alike: tuple[str, ...] = ()
    """Other allocators with the same figures, which have no section of their own."""

    @property
    def allocators(self) -> tuple[str, ...]:
        """This allocator and those that are shown with it."""
        return (self.peak.allocator, *self.alike)

    def figure(self, name: str, title: str, equivalent: Markup | None) -> Markup | None:
        """The figure ``name`` of `peakline.figures` for this allocator, as `Drawings.figure`."""
        context = self.context
        options = {"allocator": self.peak.allocator, "answer": context.answer}
        return context.drawings.figure(name, context.profile, title, equivalent, **options)

    @property
    def heading(self) -> str:
        """``Allocator 0``, ``Allocators 0, 1 and 2``."""
        names = [named(name) for name in self.allocators]
        if len(names) == 1:
            return f"Allocator {names[0]}"
        return f"Allocators {', '.join(names[:-1])} and {names[-1]}"
