"""Figures in a page: each with its words and a table that says the same, drawn where scripts run.

The figures are those of `peakline.figures`. Their data stand in the page as JSON, once, in a block
that nothing executes; a small script hands them to Plotly. Where no script runs, the words, the
table and, for memory over time, a plain drawing are what there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peakline.render.html.html import Child, Markup, data_script, tag

if TYPE_CHECKING:
    from peakline.render.html.context import Part

MOST_BYTES = 900_000
"""All figures' data together. With Plotly and the tables a page stays under 6 MB."""


_TITLE, _LEAST_TOP = 48, 36
"""Pixels that a figure's own title takes, and what must stay above the drawing."""


class Drawings:
    """The figures of one page."""

    def __init__(self) -> None:
        self._left = MOST_BYTES
        self._data: list[Markup] = []
        self.left_out = 0
        """Figures whose data would have made the page too large."""

    @property
    def data(self) -> tuple[Markup, ...]:
        """The blocks of data, one per figure."""
        return tuple(self._data)

    def figure(
        self,
        name: str,
        part: Part,
        title: str,
        words: str,
        equivalent: Markup | None,
        *,
        still: Markup | None = None,
    ) -> Markup | None:
        """The figure ``name`` of `peakline.figures` for one allocator.

        ``words`` say what it shows, ``equivalent`` is the same as a table, ``still`` a drawing
        that needs no script. Where there is nothing to draw only the table is left.
        """
        from peakline import figures

        drawn = getattr(figures, name)(
            part.context.profile, allocator=part.peak.allocator, answer=part.context.answer
        )
        document, height, told = ("", 0, "") if drawn is None else _document(drawn)
        if len(document) > self._left:
            self.left_out += 1
            document = ""
        if not document:
            return equivalent if still is None else _figure(title, still, None, equivalent)
        self._left -= len(document)
        key = f"figure-{len(self._data) + 1}"
        self._data.append(data_script(f"{key}-data", document))
        plot = tag(
            "div",
            class_="plot",
            id=key,
            role="img",
            aria_label=f"{title}. {told or words}",
            data_height=height,
        )
        return _figure(title, still, plot, equivalent)


def _figure(
    title: str, still: Markup | None, plot: Markup | None, equivalent: Markup | None
) -> Markup:
    folded: Child = None
    if equivalent is not None:
        folded = tag("details", tag("summary", f"{title}: as a table"), equivalent, open=True)
    return tag("figure", tag("figcaption", title), still, plot, folded)


def _document(drawn: Any) -> tuple[str, int, str]:
    """The figure as JSON, its height in pixels, and what it says to who cannot see it.

    The title and the words are left out of the JSON: the page has them.
    """
    from plotly.io import to_json

    layout = drawn.layout
    top = layout.margin.t or _TITLE
    spare = min(_TITLE, max(top - _LEAST_TOP, 0))
    height = int(layout.height or 450) - spare
    told = str((layout.meta or {}).get("description", ""))
    drawn.update_layout(title=None, meta=None, margin={"t": top - spare}, height=None)
    drawn.update_layout(autosize=True)
    return to_json(drawn, engine="json"), height, told
