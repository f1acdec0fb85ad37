"""What would lower the peak, ranked, with the buffers that say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.render.html.context import Part
from peakline.render.html.html import Child, Markup, clip, code, join, tag
from peakline.render.html.tables import Column, Table
from peakline.render.html.words import form, percent, size, size_words, time_text

if TYPE_CHECKING:
    from peakline.memory.savings import Saving

__all__ = ["ways"]

_MOST = 6
_KINDS = {
    "temporary": "Smaller temporary",
    "program": "A compiled program's own",
    "recompute": "Recompute",
    "offload": "Offload or shard",
    "older_copy": "Drop older copies",
    "smaller_batch": "Smaller batch",
}
_OF_POOL = "fragmentation"


def ways(part: Part) -> Markup | None:
    """The savings, most bytes first; nothing where there is none.

    Fragmentation costs memory of the pool, not of the peak: it is told apart from the others.
    """
    savings = tuple(one for one in part.details.savings if one.kind != _OF_POOL)
    pool = tuple(one for one in part.details.savings if one.kind == _OF_POOL)
    told = [_of_peak(part, savings) if savings else None, *(_of_pool(part, one) for one in pool)]
    return join(told) if savings or pool else None


def _of_peak(part: Part, savings: tuple[Saving, ...]) -> Markup:
    shown = savings[:_MOST]
    peak = part.peak.peak_bytes
    cells = [_cells(place, saving, peak) for place, saving in enumerate(shown, 1)]
    columns = (
        Column("No."),
        Column("Saves", is_number=True),
        Column("Of the peak", is_number=True),
        Column("Peak then", is_number=True),
        Column("How"),
        Column("Of what"),
    )
    more = f", the {_MOST} largest of {len(savings)}" if len(savings) > _MOST else ""
    overlap = "; they overlap, so they do not add up" if len(shown) > 1 else ""
    caption = f"Ways to lower the peak{more}{overlap}"
    write = part.context.tables.write
    told: list[Child] = [write(Table(caption, columns, cells)), _advice(shown)]
    told.append(_behind(part, shown, "The buffers at the peak behind these savings"))
    return join(told)


def _of_pool(part: Part, saving: Saving) -> Markup:
    """What less fragmentation would save: the pool shrinks, the peak stays."""
    words = (
        f"Less fragmentation would let the allocator's pool be up to {size_words(saving.bytes)} "
        f"smaller, which is needed only because what was free lay in pieces; the peak of memory "
        f"in use stays as it is. {saving.suggestion}"
    )
    caption = "The buffers between the free pieces"
    return join([tag("p", words), _behind(part, (saving,), caption) if saving.rows else None])


def _cells(place: int, saving: Saving, peak: int) -> list[Child]:
    title = clip(saving.title)
    cost = None
    if saving.cost_ps is not None:
        cost = tag("span", f" (making it again takes {time_text(saving.cost_ps)})")
    share = percent(saving.bytes / peak) if peak else ""
    kind = _KINDS.get(saving.kind, saving.kind)
    then = size(saving.peak_after)
    return [place, size(saving.bytes), share, then, kind, join([code(title), cost])]


def _advice(savings: tuple[Saving, ...]) -> Markup:
    """What each kind takes, once."""
    told = {saving.kind: saving.suggestion for saving in savings}
    return tag(
        "dl",
        *(
            tag("div", tag("dt", _KINDS.get(kind, kind)), tag("dd", advice))
            for kind, advice in told.items()
        ),
        class_="advice-list",
    )


def _behind(part: Part, savings: tuple[Saving, ...], caption: str) -> Markup:
    columns: tuple[Column, ...] = (
        Column("For no."),
        Column("Op"),
        Column("Type and shape"),
        Column("Bytes", is_number=True),
        Column("Buffers", is_number=True),
    )
    cells: list[list[Child]] = []
    for place, saving in enumerate(savings, 1):
        for row in saving.rows:
            bytes_, buffers = row["bytes"], row["count"]
            if not isinstance(bytes_, int) or not isinstance(buffers, int):
                continue
            op = code(str(row["op"]) or "(no op)")
            cells.append(
                [
                    place,
                    op,
                    form(str(row["data_type"]), str(row["shape"])),
                    size(bytes_),
                    f"{buffers:,}",
                ]
            )
    if len(savings) == 1:
        columns, cells = columns[1:], [row[1:] for row in cells]
    table = part.context.tables.write(Table(caption, columns, cells, int(len(savings) > 1)))
    return tag("details", tag("summary", caption), table, open=True)
