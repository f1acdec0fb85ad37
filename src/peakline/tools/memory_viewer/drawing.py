"""The picture of the memory of temporaries: time to the right, place in memory upwards.

As blocks of the answer, as a graph for Graphviz (``neato``), and as a page. Sizes and the order of
the blocks are XProf's (``ConvertAllocationTimeline`` in
``hlo_proto_to_memory_visualization_utils.cc``); the page draws them itself and loads nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape

import numpy as np

from peakline.arrays import BoolArray, Float64Array, Int64Array
from peakline.tools.memory_viewer.view import SMALL_BYTES, View, spans_by_row

COLOURS = tuple(
    f"#{colour}"
    for colour in """
    e91e63 2196f3 81c784 4dd0e1 3f51b5 e53935 ff9100 b39ddb 90a4ae 26c6da ad1457 03a9f4 2196f3
    c2185b 795548 f9a825 00bfa5 880e4f d500f9 ce93d8 ec407a 4caf50 ff8f00 ffca28 ab47bc 00e5ff
    ff9800 40c4ff 1e88e5 9fa8da bf360c 00b8d4 f57f17 64b5f6 e040fb ffab91 4caf50 01579b 66bb6a
    ef9a9a 558b2f fb8c00 ff4081 00e676 388e3c 424242 6d4c41 c62828 616161 00897b 448aff 0d47a1
    607d8b 673ab7 00c853 2e7d32 ffa726 5e35b1 ba68c8 8d6e63 00bcd4 ff6f00 f4511e ff1744 9e9e9e
    d81b60 4a148c 26a69a 689f38 7b1fa2 b0bec5 304ffe f48fb1 ffd600 ffb74d 8bc34a 303f9f 5d4037
    80cbc4 ffcc80 00acc1 3e2723 ff5252 ff7043 e91e63 ea80fc e65100 d84315 212121 ff5722 1976d2
    2962ff bdbdbd 3949ab 69f0ae d50000 ffd740 c0ca33 ff6e40 00b0ff 2979ff e64a19 7c4dff 607d8b
    009688 ffb300 c51162 ffc400 29b6f6 3d5afe 76ff03 cddc39 b388ff 5c6bc0 9e9d24 7cb342 ef5350
    fdd835 ef6c00 4fc3f7 6200ea 004d40 ff8a65 ffab00 80deea 0097a7 7e57c2 ff6d00 1565c0 455a64
    ffc107 4527a0 ff5722 f44336 f57c00 827717 a5d6a7 82b1ff 9c27b0 ff80ab e1bee7 78909c 311b92
    00695c 4e342e 3f51b5 651fff 9e9e9e 81d4fa f8bbd0 b71c1c 0091ea 673ab7 a1887f 4db6ac ffa000
    6a1b9a 43a047 bcaaa4 546e7a aeea00 e57373 ffccbc 006064 fbc02d ffeb3b 8bc34a 039be5 8e24aa
    80d8ff 009688 9ccc65 512da8 ffc107 757575 0277bd ff3d00 33691e 03a9f4 00838f ff8a80 283593
    f50057 1a237e 90caf9 9c27b0 aa00ff aed581 afb42b 9575cd d32f2f 64dd17 f44336 795548 cddc39
    ff9e80 7986cb dd2c00 0288d1 ff9800 263238 00796b 42a5f5 8c9eff 1b5e20 ffab40 536dfe 00bcd4
    f06292
    """.split()
)


_SIDE = 4096
"""Points of the picture, each way."""
_POINTS_PER_INCH = 72.0
_MARGIN_INCHES = 0.02
_LINE_HEIGHT, _LETTER_WIDTH = 1.2, 0.55
_FONT_SHARE, _SMALLEST_FONT, _LARGEST_FONT = 0.6, 8.0, 14.0
_ELLIPSIS = "..."
ALLOCATION_COLOUR, _ALLOCATION_FILL = "#ffffff", "#ffffffff"
_HEAD = (
    "graph G {\n epsilon=0.5 \n inputscale=72 \n "
    'node [shape=box,style=filled,fontname="Arial",margin="0.02,0.02"];\n  '
)
_NOISE = (
    '"10000000" [tooltip="invisible_dummy_buffer_assignment", '
    'pos="0,0!", width="0!", height="0!", color=black];'
)
"""A node of nothing, which frees Graphviz from a bad arrangement."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """Values while they are live, and (``row`` -1) allocations in whole; in bytes and events.

    ``allocation`` is that of the picture, ``category`` a place in `CATEGORIES`, ``colour`` one in
    `COLOURS`, -1 for that of allocations. ``is_drawn`` says which are not smaller than a point.
    """

    row: Int64Array
    allocation: Int64Array
    category: Int64Array
    offset: Float64Array
    bytes: Int64Array
    start: Int64Array
    end: Int64Array
    colour: Int64Array
    is_drawn: BoolArray


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A block that is large enough to be seen, in points, with the text that fits into it;
    ``note`` is what is to know of it, a fact a line.
    """

    x: float
    y: float
    width: float
    height: float
    font: float
    label: str
    fill: str
    note: str


def blocks_of(view: View) -> Blocks:
    """Every block: of each allocation itself, then its values.

    Colours follow those of the list of what is live at the peak; what is not in it gets the next.
    """
    known, values = view.placement.allocations, view.placement.values
    scale = _scale(view)
    drawn = np.array([row for row, _ in view.drawn if any(scale)], np.int64)
    at, place = known.values(drawn)
    starts, ends = spans_by_row(view.curve.blocks, values.own.size)
    is_live = starts[values.own[at]] >= 0
    # An allocation comes before its values.
    place = np.append(np.arange(drawn.size), place[is_live])
    order = np.argsort(place, kind="stable")
    place, row = place[order], np.append(np.full(drawn.size, -1), values.own[at[is_live]])[order]
    allocation, is_value = drawn[place], row >= 0
    size = np.where(is_value, np.append(values.bytes, 0)[row], known.bytes[allocation])
    start, end = starts[row], ends[row]
    start[~is_value], end[~is_value] = 0, view.steps
    is_drawn = ((end - start) * scale[0] >= 1) & (size * scale[1] >= 1)
    owner = np.where(is_value, np.append(values.allocation, 0)[row], allocation)
    return Blocks(
        row=row,
        allocation=allocation,
        category=known.category[owner],
        offset=_offsets(view, place, np.where(is_value, np.append(values.offset, 0)[row], 0)),
        bytes=size,
        start=start,
        end=end,
        colour=np.where(is_value, _colours(view, row, np.cumsum(is_drawn) - is_drawn), -1),
        is_drawn=is_drawn,
    )


def _offsets(view: View, place: Int64Array, offset: Int64Array) -> Float64Array:
    """Places in the picture, of offsets in the allocations drawn there."""
    # Those of a damaged program may be beyond 64 bits.
    bases = [base for _, base in view.drawn]
    pairs = zip(place.tolist(), offset.tolist(), strict=True)
    return np.array([bases[at] + one for at, one in pairs], np.float64)


def _scale(view: View) -> tuple[float, float]:
    """Points of an event and of a byte."""
    sizes = view.placement.allocations.bytes
    height = sum(sizes[[row for row, _ in view.drawn]].tolist())
    return (_SIDE / view.steps, _SIDE / height) if height and view.steps else (0.0, 0.0)


def _colours(view: View, rows: Int64Array, drawn: Int64Array) -> Int64Array:
    """The colour of each row's value: by its place in what is shown at the peak, else by how many
    are ``drawn`` before it.
    """
    large = view.shown[view.shown_bytes >= SMALL_BYTES]
    number = np.full(view.placement.values.own.size + 1, -1)
    number[large] = np.arange(large.size)
    result = number[rows]
    return np.where(result < 0, drawn, result) % len(COLOURS)


def _rectangles(view: View) -> Iterator[Rectangle]:
    blocks, scale = blocks_of(view), _scale(view)
    names, known = view.placement.instructions.name, view.placement.allocations
    for at in np.flatnonzero(blocks.is_drawn).tolist():
        row = int(blocks.row[at])
        if row < 0:
            allocation = int(blocks.allocation[at])
            count = int(known.first[allocation + 1] - known.first[allocation])
            note = (
                f"buffer_allocation_id:{known.number[allocation]}\n"
                f"size:{known.bytes[allocation]}\nbuffer_counts:{count}\n"
            )
            yield _rectangle(blocks, at, scale, "", note)
        else:
            instruction = int(view.placement.values.instruction[row])
            name = names[instruction] or "" if instruction >= 0 else ""
            yield _rectangle(blocks, at, scale, name, _note(view, blocks, at, name))


def _note(view: View, blocks: Blocks, at: int, name: str) -> str:
    """What is to know of a value."""
    values, row = view.placement.values, int(blocks.row[at])
    return (
        f"buffer_id:{values.number[row]}\nhlo_op:{name}\nshape:{view.shapes.text(row)}\n"
        f"size:{values.bytes[row]}\nunpadded_size:{view.shapes.bytes[row]}\n"
        f"offset:{values.offset[row]}\nspan:({blocks.start[at]},{blocks.end[at]})"
    )


def _rectangle(
    blocks: Blocks, at: int, scale: tuple[float, float], name: str, note: str
) -> Rectangle:
    start, end, size = (int(column[at]) for column in (blocks.start, blocks.end, blocks.bytes))
    width, height = (end - start) * scale[0], size * scale[1]
    font = min(max(height * _FONT_SHARE, _SMALLEST_FONT), _LARGEST_FONT)
    x = (start + (end - start) / 2) * scale[0]
    y = (float(blocks.offset[at]) + size / 2) * scale[1]
    colour = int(blocks.colour[at])
    fill = _ALLOCATION_FILL if colour < 0 else COLOURS[colour]
    return Rectangle(x, y, width, height, font, _fitting(name, width, height, font), fill, note)


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
        f'"{number}" [tooltip="{quote(r.note)}", pos="{r.x:.2f},{r.y:.2f}!", '
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
        f'<g><title>{escape(drawn.note)}</title><rect x="{x:.2f}" y="{y:.2f}" '
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
