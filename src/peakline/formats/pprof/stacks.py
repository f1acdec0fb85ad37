"""Call stacks of a pprof profile: samples point to locations, locations to lines of functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.formats.common.callers import Frame, caller
from peakline.tables.columns import Columns, Names
from peakline.tables.joins import positions
from peakline.wire import Decoded

PATHS = (
    "sample.location_id",
    "location.id",
    "location.address",
    "location.line.function_id",
    "location.line.line",
    "function.id",
    "function.name",
    "function.filename",
)
"""What the stacks need of ``perftools.profiles.Profile``."""


@dataclass(frozen=True, eq=False)
class Stacks:
    """Distinct stacks, and the one of every sample (-1: the sample has none).

    ``missing`` counts references to locations and functions that the file lacks.
    """

    of_sample: Int64Array
    stack: Int64Array
    depth: Int64Array
    function: list[str]
    file: list[str]
    line: Int64Array
    frame: Int64Array
    """The row of the line (in ``function``, ``file`` and ``line``) for every frame."""
    missing: int

    def table(self) -> Columns:
        """The ``stacks`` table."""
        return Columns(
            {
                "stack_id": self.stack,
                "depth": self.depth,
                "function": Names.encode(self.function).take(self.frame),
                "file": Names.encode(self.file).take(self.frame),
                "line": self.line[self.frame],
            }
        )

    def callers(self) -> list[str | None]:
        """The caller of every stack."""
        bounds = np.searchsorted(self.stack, np.arange(int(self.stack.max(initial=-1)) + 2))
        lines = self.line.tolist()
        frames: list[Frame] = list(zip(self.function, self.file, lines, strict=True))
        rows = self.frame.tolist()
        return [
            caller([frames[row] for row in rows[start:end]])
            for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        ]


def read_stacks(profile: Decoded, strings: list[str]) -> Stacks:
    """The stacks of all samples, innermost frame first.

    A location with several lines is inlined code, innermost first (profile.proto); one without
    a line is named by its address.
    """
    location, line, function = (profile[path] for path in ("location", "location.line", "function"))
    names = [_text(strings, n) for n in function.array("name").tolist()]
    files = [_text(strings, n) for n in function.array("filename").tolist()]
    function_row, lost = _rows(function.array("id"), line.array("function_id"))

    # Frames of every location: its lines, or one frame for its address.
    line_location = line.parent.astype(np.int64)
    bare = np.setdiff1d(np.arange(location.rows), line_location)
    owner = np.concatenate([line_location, bare])
    order = np.argsort(owner, kind="stable")
    known = [n if n >= 0 else len(names) for n in function_row.tolist()]
    texts = [[*names, ""][n] for n in known]
    paths = [[*files, ""][n] for n in known]
    addresses = location.array("address")
    texts += [f"0x{int(addresses[row]):x}" for row in bare.tolist()]
    paths += [""] * bare.size
    numbers = np.concatenate([line.array("line").astype(np.int64), np.zeros(bare.size, np.int64)])
    first = np.searchsorted(owner[order], np.arange(location.rows + 1))

    # Distinct sequences of locations.
    used = profile["sample.location_id"]
    place, gone = _rows(location.array("id"), used.array("value"))
    sample = used.parent.astype(np.int64)[place >= 0]
    place = place[place >= 0]
    bounds = np.searchsorted(sample, np.arange(profile["sample"].rows + 1))
    seen: dict[bytes, int] = {}
    distinct: list[Int64Array] = []
    of_sample = np.full(profile["sample"].rows, -1, np.int64)
    for row, (start, end) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        if start == end:
            continue
        places = place[start:end]
        number = seen.setdefault(places.tobytes(), len(seen))
        if number == len(distinct):
            distinct.append(places)
        of_sample[row] = number

    places = np.concatenate(distinct) if distinct else np.zeros(0, np.int64)
    stack = np.repeat(np.arange(len(distinct), dtype=np.int64), [part.size for part in distinct])
    count = first[places + 1] - first[places]
    begin = np.cumsum(count) - count
    frame = np.arange(int(count.sum())) - np.repeat(begin - first[places], count)
    stack = np.repeat(stack, count)
    starts = np.searchsorted(stack, np.arange(len(distinct)))
    return Stacks(
        of_sample,
        stack,
        np.arange(stack.size, dtype=np.int64) - starts[stack],
        texts,
        paths,
        numbers,
        order[frame],
        lost + gone,
    )


def _text(strings: list[str], number: int) -> str:
    return strings[number] if 0 <= number < len(strings) else ""


def _rows(ids: AnyArray, wanted: AnyArray) -> tuple[Int64Array, int]:
    """Where each of ``wanted`` is in ``ids``, -1 for those that are not, and how many those are."""
    order = np.argsort(ids, kind="stable")
    row = np.append(order, -1)[positions(ids[order], wanted)]
    return row, int((row < 0).sum())
