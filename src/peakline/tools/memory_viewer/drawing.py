"""The picture of the memory of temporaries: time to the right, place in memory upwards.

As blocks of the answer, as a graph for Graphviz (``neato``), and as a page. Sizes and the order of
the blocks are XProf's (``ConvertAllocationTimeline`` in
``hlo_proto_to_memory_visualization_utils.cc``); the page draws them itself and loads nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape

from peakline.tools.memory_viewer.colours import COLOURS
from peakline.tools.memory_viewer.view import SMALL_BYTES, View

_SIDE = 4096
"""Points of the picture, each way."""
_POINTS_PER_INCH = 72.0
_MARGIN_INCHES = 0.02
_LINE_HEIGHT, _LETTER_WIDTH = 1.2, 0.55
_FONT_SHARE, _SMALLEST_FONT, _LARGEST_FONT = 0.6, 8.0, 14.0
_ELLIPSIS = "..."
_ALLOCATION_COLOUR, _ALLOCATION_FILL = "#ffffff", "#ffffffff"
_HEAD = (
    "graph G {\n epsilon=0.5 \n inputscale=72 \n "
    'node [shape=box,style=filled,fontname="Arial",margin="0.02,0.02"];\n  '
)
_NOISE = (
    '"10000000" [tooltip="invisible_dummy_buffer_assignment", '
    'pos="0,0!", width="0!", height="0!", color=black];'
)
"""A node of nothing, which frees Graphviz from a bad arrangement."""


@dataclass(frozen=True, slots=True)
class Block:
    """A value while it is live, or (``row`` -1) all of an allocation; in bytes and events.

    ``note`` is what is to know of it, a fact a line.
    """

    row: int
    category: str
    offset: int
    bytes: int
    start: int
    end: int
    colour: str
    note: str
    label: str


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A block that is large enough to be seen, in points, with the text that fits into it."""

    block: Block
    x: float
    y: float
    width: float
    height: float
    font: float
    label: str
    fill: str


def blocks_of(view: View) -> Iterator[tuple[Block, Rectangle | None]]:
    """Every block, and how it is drawn: not where it is smaller than a point.

    Colours follow those of the list of what is live at the peak; what is not in it gets the next.
    """
    known, values = view.placement.allocations, view.placement.values
    height = sum(known.bytes[row] for row, _ in view.drawn)
    if not height or not view.steps:
        return
    scale = _SIDE / view.steps, _SIDE / height
    names = view.placement.instructions.name
    colour_of = _colours(view)
    spans = view.curve.blocks
    drawn = 0
    for allocation, base in view.drawn:
        rows, size = known.values(allocation), known.bytes[allocation]
        note = f"buffer_allocation_id:{known.number[allocation]}\nsize:{size}\n"
        category = known.category[allocation]
        whole = Block(
            -1, category, base, size, 0, view.steps, _ALLOCATION_COLOUR,
            f"{note}buffer_counts:{len(rows)}\n", "",
        )  # fmt: skip
        found = _rectangle(whole, scale, _ALLOCATION_FILL)
        drawn += found is not None
        yield whole, found
        for at in rows:
            row = values.own[at]
            if row not in spans:
                continue
            start, end = spans[row]
            instruction = values.instruction[row]
            name = names[instruction] if instruction >= 0 else ""
            colour = COLOURS[colour_of.get(row, drawn) % len(COLOURS)]
            note = (
                f"buffer_id:{values.number[row]}\nhlo_op:{name}\nshape:{view.shapes.text(row)}\n"
                f"size:{values.bytes[row]}\nunpadded_size:{view.shapes.bytes(row)}\n"
                f"offset:{values.offset[row]}\nspan:({start},{end})"
            )
            block = Block(
                row, known.category[values.allocation[row]], base + values.offset[row],
                values.bytes[row], start, end, colour, note, name,
            )  # fmt: skip
            found = _rectangle(block, scale, colour)
            drawn += found is not None
            yield block, found


def _colours(view: View) -> dict[int, int]:
    """The number of the colour of each value that is shown at the peak."""
    large = [row for row, size in view.shown if size >= SMALL_BYTES]
    return {row: number for number, row in enumerate(large)}


def _rectangle(block: Block, scale: tuple[float, float], fill: str) -> Rectangle | None:
    width, height = (block.end - block.start) * scale[0], block.bytes * scale[1]
    if width < 1 or height < 1:
        return None
    font = min(max(height * _FONT_SHARE, _SMALLEST_FONT), _LARGEST_FONT)
    x = (block.start + (block.end - block.start) / 2) * scale[0]
    y = (block.offset + block.bytes / 2) * scale[1]
    label = _fitting(block.label, width, height, font)
    return Rectangle(block, x, y, width, height, font, label, fill)


def _fitting(label: str, width: float, height: float, font: float) -> str:
    """As much of a label as fits, by bytes; nothing where only its beginning's dots would."""
    margin = 2 * _MARGIN_INCHES * _POINTS_PER_INCH
    letter = _LETTER_WIDTH * font
    if not label or height - margin < _LINE_HEIGHT * font or width - margin < letter:
        return ""
    most, data = int((width - margin) / letter), label.encode("utf-8", "replace")
    if len(data) <= most:
        return label
    if most <= len(_ELLIPSIS):
        return ""
    return data[: most - len(_ELLIPSIS)].decode("utf-8", "replace") + _ELLIPSIS


def as_dot(view: View, *, noise: bool = False, quote: Callable[[str], str] | None = None) -> str:
    """The picture for Graphviz; empty where there is nothing to draw. ``quote`` escapes a text."""
    quote = quote or dot_text
    lines = [
        f'"{number}" [tooltip="{quote(r.block.note)}", pos="{r.x:.2f},{r.y:.2f}!", '
        f'width="{r.width / _POINTS_PER_INCH:.4f}", height="{r.height / _POINTS_PER_INCH:.4f}", '
        f'fixedsize=true, color="{r.fill}", fontsize={r.font:.1f}, label="{quote(r.label)}"];'
        for number, r in enumerate(_rectangles(view))
    ]
    if not lines and not _has_room(view):
        return ""
    if noise:
        lines.append(_NOISE)
    return _HEAD + "\n".join(lines) + "\n}"


def _has_room(view: View) -> bool:
    sizes = view.placement.allocations.bytes
    return bool(view.steps and any(sizes[row] for row, _ in view.drawn))


def _rectangles(view: View) -> Iterator[Rectangle]:
    return (rectangle for _, rectangle in blocks_of(view) if rectangle is not None)


def dot_text(text: str) -> str:
    """A text inside the quotes of Graphviz's language."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def as_page(view: View, dot: str) -> str:
    """A page that draws the picture, and holds it as ``dot`` for Graphviz."""
    if not dot:
        return _PAGE.format(
            title=escape(view.placement.name),
            body="<p>No memory of temporaries over time: the program has no simulated heap in this "
            "memory space.</p>",
        )
    shapes = "".join(map(_svg, _rectangles(view)))
    body = (
        f'<svg viewBox="0 0 {_SIDE} {_SIDE}" preserveAspectRatio="none">{shapes}</svg>\n'
        f"<details><summary>Graphviz</summary><pre>{escape(dot)}</pre></details>"
    )
    return _PAGE.format(title=escape(view.placement.name), body=body)


def _svg(drawn: Rectangle) -> str:
    x, y = drawn.x - drawn.width / 2, _SIDE - drawn.y - drawn.height / 2
    label = (
        f'<text x="{drawn.x:.2f}" y="{_SIDE - drawn.y:.2f}" font-size="{drawn.font:.1f}">'
        f"{escape(drawn.label)}</text>"
    )
    return (
        f'<g><title>{escape(drawn.block.note)}</title><rect x="{x:.2f}" y="{y:.2f}" '
        f'width="{drawn.width:.2f}" height="{drawn.height:.2f}" fill="{drawn.fill}"/>'
        f"{label if drawn.label else ''}</g>\n"
    )


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}: memory of temporaries</title>
<style>
body {{ margin: 0.5rem; font-family: Arial, sans-serif; }}
svg {{ width: 100%; height: 90vh; }}
rect {{ stroke: #000; stroke-width: 1; vector-effect: non-scaling-stroke; }}
text {{ text-anchor: middle; dominant-baseline: central; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""
