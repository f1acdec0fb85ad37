"""Groups as roots open them, and the steps that these are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray
from peakline.deadline import check_deadline
from peakline.formats.xplane.forest import Forest
from peakline.formats.xplane.names import IMPLICIT_ROOTS, TPU_MODULE_LINES, TPU_STEP_LINES
from peakline.kernels.event_forest import spread
from peakline.kernels.xplane_numbers import Role
from peakline.tables.typed import wrap

_INT64 = 4


@dataclass(frozen=True)
class Step:
    """One group: its name, and of the event that opened it the plane, when its line began (ps on
    the file's clock, of any size), how much later it did, and how long it was.

    ``found_by`` is ``mark``, ``device`` for a line of a device, or ``function`` for a run of a
    function that nobody marked.
    """

    step_id: int
    name: str
    found_by: str
    plane: int
    line_ps: int
    offset_ps: int
    length_ps: int

    @property
    def begin_ps(self) -> int:
        """When the event that opened it began, on the file's clock."""
        return self.line_ps + self.offset_ps


class Opening:
    """Opens groups in a forest; ``level`` and ``is_root`` say which nodes open some.

    ``groups`` is the group of every node and context, -1 for none.
    """

    def __init__(self, forest: Forest, level: AnyArray, is_root: AnyArray) -> None:
        self.forest, self._level, self._is_root = forest, level, is_root
        self._down, self._up = forest.adjacencies()
        self.groups = np.full(forest.nodes + forest.contexts, -1, np.int32)
        self._own_parent = forest.own_parent & is_root

    def open(
        self, roots: AnyArray, first: int, *, loop: bool = False, check: bool = False
    ) -> AnyArray:
        """Let ``roots`` open groups, numbered from ``first``; those that did, as `spread` says."""
        check_deadline()
        opened, total = np.empty(roots.size, np.int32), self.groups.size
        count = spread(
            roots.astype(np.int32), loop, self._level, self._is_root, self._own_parent,
            self.forest.parent, *self._up, *self._down, self.groups, first, check, opened,
            np.empty(total, np.int32), np.zeros(total, np.int32),
        )  # fmt: skip
        return opened[:count]

    def steps(self, roots: AnyArray, first: int) -> list[Step]:
        """The steps that ``roots`` opened, numbered from ``first``."""
        kinds = self._nearest(roots, Role.GRAPH_TYPE)
        iters = self._nearest(roots, Role.ITER_NUM)
        numbers = self._nearest(roots, Role.STEP_NUM)
        forest = self.forest
        places = np.searchsorted(forest.root_node, roots).tolist()
        steps = []
        for k, (root, at) in enumerate(zip(roots.tolist(), places, strict=True)):
            check_deadline()
            plane = forest.plane_of(root)
            if plane.tpu is not None:
                event, begin, length, header = plane.tpu.step(root - plane.first_node)
            else:
                event = plane.plane.event_names.get(int(forest.root_metadata[at]), "")
                begin, length = int(forest.root_begin[at]), int(forest.root_length[at])
                header = plane.headers[int(forest.root_line[at])]
            # Absolute times are those of 64 bits; how far the event is from its line is exact.
            base = header.timestamp_ns * 1000
            offset, length = wrap(begin - base), wrap(length)
            on_line = header.name in TPU_STEP_LINES + TPU_MODULE_LINES
            implicit = event in IMPLICIT_ROOTS or on_line
            # Of modules a device's line only says that they ran.
            by_step_line = header.name in TPU_STEP_LINES
            found_by = "device" if by_step_line else "function" if implicit else "mark"
            kind, value = kinds.get(k), iters.get(k) or numbers.get(k)
            prefix = "" if implicit else event + " "
            if kind is not None:
                prefix = self._text(kind) + " "
            number = first + k
            shown = number if value is None else value[1] if value[0] == _INT64 else 0
            index = plane.plane.index
            name = f"{prefix}{shown}"
            steps.append(Step(number, name, found_by, index, base, offset, length))
        return steps

    def _text(self, found: tuple[int, int, int]) -> str:
        case, bits, node = found
        plane = self.forest.plane_of(node)
        if case == 7:
            return plane.plane.stat_names.get(bits, "")
        if case == 5:
            start, length = bits & (1 << 44) - 1, bits >> 44
            return self.forest.file.read(start, length).tobytes().decode("utf-8", "replace")
        return ""

    def _nearest(self, roots: AnyArray, role: Role) -> dict[int, tuple[int, int, int]]:
        """By position in ``roots``: ``(case, bits, node)`` of the stat on the root or on the
        nearest ancestor that has it.
        """
        stats = self.forest.attrs.first(role)
        found: dict[int, tuple[int, int, int]] = {}
        if not stats.node.size:
            return found

        def cell(at: int) -> tuple[int, int, int]:
            return int(stats.case[at]), int(stats.bits[at]), int(stats.node[at])

        has, place = stats.at(roots.astype(stats.node.dtype))
        forest, (starts, heads) = self.forest, self._up
        for k, root in enumerate(roots.tolist()):
            if has[k]:
                found[k] = cell(int(place[k]))
                continue
            seen, queue = {root}, [root]
            for node in queue:
                above = heads[starts[node] : starts[node + 1]].tolist()
                if node < forest.nodes and forest.parent[node] >= 0:
                    above.insert(0, int(forest.parent[node]))
                new = [parent for parent in above if parent not in seen]
                seen.update(new)
                queue += new
                holds, where = stats.at(np.array(new, stats.node.dtype))
                if holds.any():
                    found[k] = cell(int(where[int(np.argmax(holds))]))
                    break
        return found
