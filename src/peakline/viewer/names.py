"""What events are called in a trace viewer: display names, and the names of steps."""

from __future__ import annotations

import numpy as np

from peakline.arrays import BoolArray, Int32Array, Int64Array
from peakline.tables import Columns, Profile
from peakline.trace.steps import steps_of

HIDDEN_EVENTS = frozenset(
    """
    MemoryAllocation MemoryDeallocation PrefetchProduce PrefetchConsume ParallelInterleaveProduce
    ParallelInterleaveConsume ParallelInterleaveInitializeInput ParallelMapProduce
    ParallelMapConsume MapAndBatchProduce MapAndBatchConsume ParseExampleProduce
    ParseExampleConsume
    """.split()
)
"""Events by which the runtime informs the profiler: no viewer shows them."""

_COLUMNS = frozenset(("line_id", "name", "step_id", "start_ps", "duration_ps"))
_INTERNED = 32
"""Upstream interns longer names, and orders their events as if they had none."""
_IMPLICIT_LINES = frozenset(("Steps", "Sparse Core Steps", "XLA Modules", "Sparse Core Modules"))
_IMPLICIT_ROOTS = frozenset(("FunctionRun", "SessionRun", "RunGraph", "ExecutorState::Process"))


class ShownNames:
    """Codes for shown names; more names can be given codes."""

    def __init__(self, profile: Profile, events: Columns) -> None:
        types = profile.columns("event_types")
        own = [name or "" for name in types.names("name").to_list()]
        display = [name or "" for name in types.names("display_name").to_list()]
        self._codes: dict[tuple[str, bool], int] = {}
        of_type = [
            self._add(shown or name, is_hidden=name in HIDDEN_EVENTS)
            for name, shown in zip(own, display, strict=True)
        ]
        nameless = self._add("", is_hidden=False)
        self._of_type = np.array([*of_type, nameless], np.int32)
        self._type = np.where(events.is_valid("type_id"), events.array("type_id"), -1)

    def _add(self, text: str, *, is_hidden: bool) -> int:
        return self._codes.setdefault((text, is_hidden), len(self._codes))

    def code(self, text: str) -> int:
        """The code of a name that is shown."""
        return self._add(text, is_hidden=False)

    @property
    def hidden_code(self) -> int:
        """The code of a name that is not shown."""
        return self._add("", is_hidden=True)

    def of_events(self) -> Int32Array:
        """The code of every event of the table."""
        return self._of_type[self._type]

    def texts(self) -> list[str]:
        """The names by code."""
        return [text for text, _ in self._codes]

    @property
    def hidden(self) -> BoolArray:
        """By code, whether events of that name are not shown."""
        return np.array([is_hidden for _, is_hidden in self._codes], np.bool_)


def step_names(profile: Profile) -> tuple[Int64Array, list[str]]:
    """The events that opened a step by their own mark, and the step's name, which is shown for
    theirs.

    Source: ``ProcessRootEvent`` in ``group_events.cc`` (openxla/xla).
    """
    none: tuple[Int64Array, list[str]] = (np.zeros(0, np.int64), [])
    if "steps" not in profile.tables or "event_types" not in profile.tables:
        return none
    events = profile.columns("events", _COLUMNS)
    steps = steps_of(profile)
    if not steps.size or not events.rows:
        return none
    order = np.argsort(steps.begin, kind="stable")
    begins = steps.begin[order]
    start = events.array("start_ps")
    at = np.minimum(np.searchsorted(begins, start), begins.size - 1)
    lines, planes = profile.columns("lines"), profile.columns("planes").names("name").to_list()
    guides = np.array(
        [
            name in _IMPLICIT_LINES or (planes[plane] or "").startswith("/device:TPU:")
            for name, plane in zip(
                lines.names("name").to_list(), lines.array("plane_id").tolist(), strict=True
            )
        ]
        or [False],
        np.bool_,
    )
    rows = np.flatnonzero(
        (begins[at] == start) & events.is_valid("step_id") & ~guides[events.array("line_id")]
    )
    ids = dict(zip(steps.step_id.tolist(), range(steps.size), strict=True))
    starts, ends, texts = steps.begin.tolist(), steps.end.tolist(), steps.name.to_list()
    name = events.names("name")
    result: dict[int, tuple[bool, int]] = {}
    for row, own, begin, length in zip(
        rows.tolist(),
        events.array("step_id")[rows].tolist(),
        start[rows].tolist(),
        events.array("duration_ps")[rows].tolist(),
        strict=True,
    ):
        step = ids.get(own, -1)
        if step < 0 or starts[step] != begin or ends[step] != begin + length:
            continue
        own_name = name[row] or ""
        if own_name in _IMPLICIT_ROOTS:
            continue
        is_named_so = (texts[step] or "").startswith(f"{own_name} ")
        if step not in result or (is_named_so and not result[step][0]):
            result[step] = is_named_so, row
    chosen = sorted((row, step) for step, (_, row) in result.items())
    return np.array([row for row, _ in chosen], np.int64), [texts[step] or "" for _, step in chosen]


def is_interned(text: str) -> bool:
    """Whether XProf keeps a name apart from its events."""
    return len(text.encode("utf-8", "surrogateescape")) > _INTERNED


def name_order(texts: list[str]) -> Int64Array:
    """The place of each name among all in upstream's order; interned ones come first, alike."""
    keys = ["" if is_interned(text) else text for text in texts]
    place = {key: number for number, key in enumerate(sorted(set(keys)))}
    return np.array([place[key] for key in keys] or [0], np.int64)
