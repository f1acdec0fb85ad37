"""When ops ran, how long they took, and when what they made was read: where a file tells.

Records of an allocator say when a buffer begins and ends, never when it is used. Executions of ops
(`op_runs`) with the graph that they executed do: what an op put out is read when the ops that it
feeds run. Ops that only hand a tensor on are looked through, for the buffer stays the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from peakline.profile.columns import Columns

__all__ = ["OpUse", "read_op_use"]

_HANDS_ON = frozenset(
    "Identity IdentityN Reshape Squeeze ExpandDims StopGradient PreventGradient Snapshot "
    "Switch RefSwitch Merge RefMerge Enter RefEnter Exit RefExit NextIteration "
    "RefNextIteration RefIdentity CheckNumerics Bitcast".split()
)
"""Ops whose output is their input's buffer (or may be): tensorflow/core/kernels."""


@dataclass(frozen=True)
class OpUse:
    """What executions of ops tell, by the op's name. Times are picoseconds.

    ``costs`` is how long one execution takes, the median; ``uses`` when what the op put out was
    read, ascending. An op that is in neither was not told of.
    """

    costs: Mapping[str, int] = field(default_factory=dict)
    uses: Mapping[str, npt.NDArray[np.int64]] = field(default_factory=dict)


def read_op_use(op_runs: Columns, edges: Columns | None = None) -> OpUse:
    """Costs from ``op_runs``, and uses where the ``edges`` of its graph are there too."""
    names = op_runs.names("name")
    told = np.flatnonzero(~(op_runs.array("is_duplicate") & op_runs.is_valid("is_duplicate")))
    computed = op_runs.is_valid("compute_ps")
    took = np.where(computed, op_runs.array("compute_ps"), op_runs.array("duration_ps"))
    starts, types = op_runs.array("start_ps"), op_runs.names("op_type")
    durations: dict[str, list[int]] = {}
    runs: dict[str, list[int]] = {}
    hands_on: set[str] = set()
    for row in told.tolist():
        name = names[row] or ""
        durations.setdefault(name, []).append(int(took[row]))
        runs.setdefault(name, []).append(int(starts[row]))
        if types[row] in _HANDS_ON:
            hands_on.add(name)
    costs = {name: int(np.median(times)) for name, times in durations.items()}
    if edges is None:
        return OpUse(costs)
    readers = _readers(edges)
    uses = {}
    for name in runs:
        reached = _reached(name, readers, hands_on)
        times = [time for reader in reached for time in runs.get(reader, ())]
        # A reader whose execution the file does not tell may have read at any time.
        if times and reached <= runs.keys():
            uses[name] = np.sort(np.array(times, np.int64))
    return OpUse(costs, uses)


def _readers(edges: Columns) -> dict[str, list[str]]:
    """The nodes outside functions that each node feeds with data."""
    sources, targets = edges.names("source"), edges.names("target")
    data = ~edges.array("is_control") & ~edges.is_valid("function")
    found: dict[str, list[str]] = {}
    for row in np.flatnonzero(data).tolist():
        found.setdefault(sources[row] or "", []).append(targets[row] or "")
    return found


def _reached(name: str, readers: Mapping[str, list[str]], hands_on: set[str]) -> set[str]:
    """The nodes that read what ``name`` put out, through those that hand it on."""
    found: set[str] = set()
    left = list(readers.get(name, ()))
    while left:
        reader = left.pop()
        if reader in found:
            continue
        found.add(reader)
        if reader in hands_on:
            left += readers.get(reader, ())
    return found
