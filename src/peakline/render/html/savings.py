"""What would lower the peak, with the buffers behind it."""

from __future__ import annotations

from collections.abc import Iterable

from peakline.memory.savings.answer import Saving
from peakline.render.document import memory as said
from peakline.render.document.model import capital
from peakline.render.html.context import Part
from peakline.render.html.html import Child, Markup, join, tag
from peakline.text import size_text


def savings(part: Part) -> Markup | None:
    """The savings, most bytes first; nothing where there is none.

    Fragmentation costs memory of the pool, not of the peak: it stands apart from the others.
    """
    found = part.details.savings
    worth = said.worth_saving(found, part.peak)
    shown: list[Child] = []
    if worth:
        # What each kind takes, once.
        advice = {said.HOW[one.kind]: one.suggestion for one in worth}.items()
        items = (tag("div", tag("dt", capital(how)), tag("dd", what)) for how, what in advice)
        shown += [
            part.context.tables.write(said.savings_table(worth), head=3),
            tag("dl", *items, class_="advice-list"),
            _behind(part, worth, "the buffers at the peak behind these savings"),
        ]
    for one in found:
        if one.kind == "fragmentation":
            words = (
                f"Less fragmentation would let the allocator's pool be up to "
                f"{size_text(one.bytes)} smaller, which is needed only because what was free lay "
                f"in pieces; the peak of memory in use stays as it is. {one.suggestion}"
            )
            shown.append(tag("p", words))
            if one.rows:
                shown.append(_behind(part, (one,), "the buffers between the free pieces"))
    return join(shown) if shown else None


def _behind(part: Part, found: Iterable[Saving], title: str) -> Markup:
    table = part.context.tables.write(said.behind_table(found, title))
    return tag("details", tag("summary", capital(title)), table, open=True)
