"""Figures in a page: each with its words and a table that says the same.

The figures are those of `peakline.figures`, drawn as SVG: no script is needed to see one, and paper
shows what the window shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peakline.render.html.html import Child, Markup, join, tag
from peakline.render.html.svg.picture import NARROW, WIDE, legend, picture_of
from peakline.render.html.svg.texts import plain_text

if TYPE_CHECKING:
    from peakline.figures.look import Drawing
    from peakline.tables import Profile

MOST_BYTES = 500_000
"""All drawings together. With the tables a page stays under 1 MB."""


class Drawings:
    """The figures of one page."""

    def __init__(self) -> None:
        self._left = MOST_BYTES
        self.left_out = 0
        """Figures whose drawing would have made the page too large."""

    def figure(
        self, name: str, profile: Profile, title: str, equivalent: Markup | None, **options: Any
    ) -> Markup | None:
        """The figure ``name`` of `peakline.figures`.

        ``equivalent`` is the same as a table, folded below it. Where there is nothing to draw only
        the table is left.
        """
        # A report without figures takes none of what draws them.
        from peakline.figures import drawings

        drawn: Drawing | None = getattr(drawings, name)(profile, **options)
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
