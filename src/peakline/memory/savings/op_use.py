"""When ops ran, how long they took, and when what they made was read: where a file says it.

Records of an allocator say when a buffer begins and ends, never when it is used. Executions of ops
(`op_runs`) with the graph that they executed do: what an op put out is read when the ops that it
feeds run. Ops that only hand a tensor on are looked through, for the buffer stays the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from peakline.arrays import Int64Array, IntpArray
from peakline.deadline import check_deadline
from peakline.tables.columns import Columns, Names

_HANDS_ON = frozenset(
    "Identity IdentityN Reshape Squeeze ExpandDims StopGradient PreventGradient Snapshot "
    "Switch RefSwitch Merge RefMerge Enter RefEnter Exit RefExit NextIteration "
    "RefNextIteration RefIdentity CheckNumerics Bitcast".split()
)
"""Ops whose output is their input's buffer (or may be): tensorflow/core/kernels."""


@dataclass(frozen=True)
class OpUse:
    """What executions of ops show, by the op's name. Times are picoseconds.

    ``costs`` is how long one execution takes, the median; ``uses`` when what the op put out was
    read, ascending. An op that is in neither has no execution in the file.
    """

    costs: Mapping[str, int] = field(default_factory=dict)
    uses: Mapping[str, Int64Array] = field(default_factory=dict)


def read_op_use(op_runs: Columns, edges: Columns | None = None) -> OpUse:
    """Costs from ``op_runs``, and uses where the ``edges`` of its graph are there too."""
    ids: dict[str, int] = {}
    counted = np.flatnonzero(~(op_runs.array("is_duplicate") & op_runs.is_valid("is_duplicate")))
    names = _numbers(op_runs.names("name"), ids)[counted]
    texts = tuple(ids)
    computed = op_runs.is_valid("compute_ps")
    took = np.where(computed, op_runs.array("compute_ps"), op_runs.array("duration_ps"))
    first, sorted_took = _by_number(names, took[counted], len(texts))
    counts = np.diff(first)
    ran = np.flatnonzero(counts)
    # The median: the middle one, or half way between the two in the middle.
    low = sorted_took[first[ran] + (counts[ran] - 1) // 2].astype(np.float64)
    high = sorted_took[first[ran] + counts[ran] // 2].astype(np.float64)
    medians = ((low + high) / 2).astype(np.int64)
    costs = {texts[name]: cost for name, cost in zip(ran.tolist(), medians.tolist(), strict=True)}
    if edges is None:
        return OpUse(costs)
    types = op_runs.names("op_type")
    passes = types.per_row(_HANDS_ON.__contains__, np.bool_)
    hands_on = set(np.unique(names[passes[counted]]).tolist())
    data = np.flatnonzero(~edges.array("is_control") & ~edges.is_valid("function"))
    sources = _numbers(edges.names("source"), ids)[data]
    targets = _numbers(edges.names("target"), ids)[data]
    return OpUse(
        costs,
        _Uses(
            {texts[name]: name for name in ran.tolist()},
            _by_number(names, op_runs.array("start_ps")[counted], len(ids)),
            _by_number(sources, targets, len(ids)),
            hands_on,
        ),
    )


def _numbers(names: Names, ids: dict[str, int]) -> IntpArray:
    """The number of every row's text in ``ids``, which gets those that it lacks."""
    # The last place is that of the null code -1.
    of = np.array([ids.setdefault(text, len(ids)) for text in (*names.values, "")], np.intp)
    return of[names.codes]


def _by_number(numbers: IntpArray, values: Int64Array, count: int) -> tuple[IntpArray, Int64Array]:
    """``values`` sorted by number and then by value, and where those of each number begin."""
    order = np.lexsort((values, numbers))
    return np.searchsorted(numbers[order], np.arange(count + 1)), values[order]


class _Uses(Mapping[str, Int64Array]):
    """When what an op put out was read, worked out for the ops that are looked up.

    ``ran`` are the numbers of the ops whose executions are recorded; ``starts`` when each ran,
    ``readers`` the nodes outside functions that each feeds with data, as `_by_number` gives them.
    """

    def __init__(
        self,
        ran: Mapping[str, int],
        starts: tuple[IntpArray, Int64Array],
        readers: tuple[IntpArray, IntpArray],
        hands_on: set[int],
    ) -> None:
        self._ran, self._starts, self._readers, self._hands_on = ran, starts, readers, hands_on
        self._known: dict[str, Int64Array | None] = {}

    def __getitem__(self, name: str) -> Int64Array:
        if name not in self._known:
            check_deadline()
            self._known[name] = self._times(name)
        times = self._known[name]
        if times is None:
            raise KeyError(name)
        return times

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._ran if self.get(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _times(self, name: str) -> Int64Array | None:
        """When the readers of an op ran, ascending; None where that is not known."""
        if name not in self._ran:
            return None
        first, times = self._starts
        reached = self._reached(self._ran[name])
        parts = [times[first[reader] : first[reader + 1]] for reader in reached]
        # A reader whose execution is not recorded may have read at any time.
        if not parts or not all(part.size for part in parts):
            return None
        return np.sort(np.concatenate(parts))

    def _reached(self, name: int) -> set[int]:
        """The nodes that read what an op put out, through those that hand it on."""
        first, targets = self._readers
        result: set[int] = set()
        left = [name]
        while left:
            node = left.pop()
            for reader in targets[first[node] : first[node + 1]].tolist():
                if reader not in result:
                    result.add(reader)
                    if reader in self._hands_on:
                        left.append(reader)
        return result
