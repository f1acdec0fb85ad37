"""Breaks of the graphs that ``torch.compile`` makes: regions that resume within another.

TorchDynamo runs each compiled graph in a region of its own (``Torch-Compiled Region: 0/0``,
torch/_dynamo/eval_frame.py). What it cannot compile it leaves to Python, and goes on in a function
that resumes the one before (``torch_dynamo_resume_in_forward_at_8``, torch/_dynamo/
resume_execution.py): a region within the region.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray
from peakline.tables import Profile
from peakline.timing.ops.in_steps import StepOps
from peakline.trace.events import nesting_of

_REGION = "Torch-Compiled Region"
_RESUMES = re.compile(
    r"(?P<file>.+)\(\d+\): torch_dynamo_resume_in_(?P<function>.+)_at_(?P<line>\d+)$"
)
_READS = frozenset(("aten::item", "aten::is_nonzero", "aten::nonzero"))


@dataclass(frozen=True, eq=False)
class GraphBreaks:
    """``per_step`` regions that resume another, of ``regions``; ``op`` is what mostly ran before
    them, empty where no op did, and ``places`` are the functions, files and lines that break, most
    often first, where Python's functions are recorded. ``nested_ps`` is how long they run.
    """

    per_step: float
    regions: float
    op: str
    places: tuple[tuple[str, str, int], ...]
    nested_ps: int


def graph_breaks_of(profile: Profile, ops: StepOps) -> GraphBreaks | None:
    """None where no region lies in another."""
    trace = ops.trace
    named = [name.startswith(_REGION) for name, _ in ops.keys]
    is_region = np.array(named, np.bool_)[ops.op]
    if not is_region.any():
        return None
    regions = trace.name.per_row(lambda name: name.startswith(_REGION), np.bool_)
    event = ops.event[is_region]
    nesting = nesting_of(profile)
    is_inner = nesting.around(event, regions) >= 0
    inner = event[is_inner]
    if not inner.size:
        return None
    whole = ops.steps * ops.lanes
    places: Counter[tuple[str, str, int]] = Counter()
    resumed = {code: _RESUMES.match(name) for code, name in enumerate(trace.name.values)}
    count = np.bincount(trace.name.codes[trace.name.codes >= 0], minlength=len(resumed))
    for code, match in resumed.items():
        if match is not None:
            place = match["function"], match["file"], int(match["line"][:9])
            places[place] += int(count[code])
    took = int((trace.end[inner] - trace.start[inner]).sum())
    return GraphBreaks(
        inner.size / whole, event.size / whole, _before(ops, inner),
        tuple(place for place, _ in places.most_common()), took // ops.lanes,
    )  # fmt: skip


def _before(ops: StepOps, inner: AnyArray) -> str:
    """Which op that reads a value began last before most of the regions."""
    reads = np.array([name in _READS for name, _ in ops.keys], np.bool_)
    mine = np.flatnonzero(reads[ops.op])
    start = ops.trace.start[ops.event[mine]]
    order = np.argsort(start, kind="stable")
    every = np.sort(ops.trace.start[ops.event])
    at = np.searchsorted(start[order], ops.trace.start[inner]) - 1
    known = at >= 0
    if not known.any():
        return ""
    last = mine[order[at[known]]]
    between = np.searchsorted(every, ops.trace.start[inner[known]]) - np.searchsorted(
        every, ops.trace.start[ops.event[last]]
    )
    near = last[between <= _NEAR]
    if 2 * near.size < inner.size:
        return ""
    return ops.keys[int(np.bincount(ops.op[near]).argmax())][0]


_NEAR = 4
"""So many ops begin between what breaks a graph and the next region."""
