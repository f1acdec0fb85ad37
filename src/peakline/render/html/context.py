"""What every section of a report needs: the profile, its answer, and what draws its figures.

The figures are those of `peakline.figures`, drawn as SVG: no script is needed to see one, and paper
shows what the window shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peakline.findings.memory_answer import MemoryAnswer
from peakline.findings.time_answer import TimeAnswer
from peakline.memory.details import MemoryDetails
from peakline.memory.peak.explained import AllocatorPeak
from peakline.memory.signatures import History
from peakline.render.html.html import Child, Markup, join, tag
from peakline.render.html.svg.paint import plain_text
from peakline.render.html.svg.picture import NARROW, WIDE, legend, picture_of
from peakline.render.html.tables import Tables, named
from peakline.tables import Profile

if TYPE_CHECKING:
    from peakline.figures.look import Drawing
    from peakline.jobs.answer import JobAnswer


MOST_BYTES = 500_000
"""All drawings together. With the tables a page stays under 1 MB."""


class Drawings:
    """The figures of one page."""

    def __init__(self) -> None:
        self._left = MOST_BYTES
        self.left_out = 0
        """Figures whose drawing would have made the page too large."""

    def figure(
        self,
        name: str,
        source: Profile | JobAnswer,
        title: str,
        equivalent: Markup | None,
        **options: Any,
    ) -> Markup | None:
        """The figure ``name`` of `peakline.figures`, of a profile or a job.

        ``equivalent`` is the same as a table, folded below it. Where there is nothing to draw only
        the table is left.
        """
        # A report without figures takes none of what draws them.
        from peakline.figures import drawings

        drawn: Drawing | None = getattr(drawings, name)(source, **options)
        if drawn is None:
            return equivalent
        label = f"{title}. {drawn.description}"
        pictures = join(picture_of(drawn, label, width) for width in (WIDE, NARROW))
        size = len(pictures.encode())
        if size > self._left:
            self.left_out += 1
            return equivalent
        self._left -= size
        folded: Child = None
        if equivalent is not None:
            folded = tag("details", tag("summary", f"{title}: as a table"), equivalent)
        caption = tag("figcaption", tag("strong", title), tag("br"), plain_text(drawn.subtitle))
        return tag("figure", caption, pictures, legend(drawn), folded)


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
