"""The lines of the user's program that instructions come from, and their call stacks."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from peakline.arrays import Int64Array
from peakline.formats.common.callers import MEAN_DEPTH, Frame, frame_kinds, stacks_table
from peakline.formats.hlo_proto.source import INSTRUCTIONS, ProgramSource
from peakline.tables.columns import Columns, Names
from peakline.wire import WireTable

FRAME_ID = "metadata.stack_frame_id"


class Lines:
    """Where instructions come from: ``meta`` is what so many ``rows`` of them say of it.

    The line is that of the metadata, else the innermost one outside of libraries of the call stack.
    """

    def __init__(self, source: ProgramSource, meta: WireTable, rows: int) -> None:
        self._source, self._meta, self._rows = source, meta, rows
        self.stack = np.full(self._rows, -1, np.int64)
        """Per instruction the stack's number in `stacks_of`, -1 without one."""
        number = self._meta.array("stack_frame_id").astype(np.int64)
        known = (number > 0) & (number <= len(source.stacks))
        self.stack[self._meta.parent[known]] = number[known] - 1

    @cached_property
    def _of_stack(self) -> list[Frame]:
        """The line of each stack that occurs; of others nothing."""
        index = self._source.stacks
        result: list[Frame] = [("", "", 0)] * len(index)
        stacks = np.unique(self.stack[self.stack >= 0])
        kinds = frame_kinds(index.places)
        best, chosen = np.full(stacks.size, -1, np.int64), np.zeros(stacks.size, np.int64)
        for which, place in index.levels(stacks):
            better = kinds[place] > best[which]
            best[which[better]], chosen[which[better]] = kinds[place[better]], place[better]
        for stack, place, kind in zip(*map(np.ndarray.tolist, (stacks, chosen, best)), strict=True):
            if kind >= 0:
                result[stack] = index.places[place]
        return result

    @cached_property
    def file(self) -> Names:
        """The file of the line, null where none is known."""
        texts = self._source.strings.of("source_file")
        codes = np.full(self._rows, -1, np.int32)
        if len(self._source.stacks):
            of = np.array([texts.add_bytes(f[1].encode()) if f[1] else -1 for f in self._of_stack])
            codes = np.where(self.stack >= 0, of[self.stack], -1).astype(np.int32)
        files = self._meta.spans("source_file")
        named = files.length > 0
        codes[self._meta.parent[named]] = texts.add(self._source.buffer, files.take(named))
        return Names(codes, texts.values)

    @cached_property
    def line(self) -> Int64Array:
        """The line's number."""
        result = np.zeros(self._rows, np.int64)
        if len(self._source.stacks):
            of = np.array([frame[2] for frame in self._of_stack], np.int64)
            result = np.where(self.stack >= 0, of[self.stack], 0)
        named = self._meta.spans("source_file").length > 0
        lines = self._meta.array("source_line").astype(np.int64)
        result[self._meta.parent[named]] = lines[named]
        return result


def read_frames(source: ProgramSource) -> Columns:
    """Table ``hlo_frames`` of one program: the stacks that instructions name."""
    number = source.decode(f"{INSTRUCTIONS}.{FRAME_ID}")[f"{INSTRUCTIONS}.metadata"]
    ids = np.unique(number.array("stack_frame_id").astype(np.int64))
    index = source.stacks
    stacks = ids[(ids > 0) & (ids <= len(index))] - 1
    levels: list[tuple[Int64Array, Int64Array, Int64Array]] = [(ids[:0], ids[:0], ids[:0])]
    rows = 0
    for level, (which, place) in enumerate(index.levels(stacks)):
        rows += which.size
        if level >= MEAN_DEPTH and rows > MEAN_DEPTH * stacks.size:
            levels = levels[: MEAN_DEPTH + 1]
            source.losses["hlo_frames", "outer frames"] = levels[-1][0].size
            break
        levels.append((stacks[which], np.full(which.size, level), place))
    stack, level_of, places = (np.concatenate(part) for part in zip(*levels, strict=True))
    order = np.lexsort((level_of, stack))
    stack = stack[order]
    depth = np.arange(stack.size) - np.searchsorted(stack, stack)
    return stacks_table(stack, depth, index.places, places[order])
