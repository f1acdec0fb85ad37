"""The steps of a profile, which step each event belongs to, and what a person calls a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.errors import NotFoundError
from peakline.shown import Brief
from peakline.suggest import near
from peakline.tables import Profile
from peakline.tables.columns import Columns, Names
from peakline.tables.once import once
from peakline.text import whole_number
from peakline.trace.events import read_with_steps, trace_of

_NAME = 28
"""Characters of a step's name that are shown; sessions' handles can be hundreds long."""
_RANDOM = 1 << 32
"""No runtime counts steps so far: such ids are random, and say nothing to a person."""


def labels_of(steps: Columns) -> dict[int, str]:
    """The names of the steps by id."""
    ids, names = steps.array("step_id").tolist(), steps.names("name").to_list()
    return {number: name or "" for number, name in zip(ids, names, strict=True)}


def step_text(step: int | None, labels: Mapping[int, str]) -> str:
    """A step's id, and its name where it says more; of an id that is a random number the name."""
    if step is None:
        return ""
    name = labels.get(step, "")
    if len(name) > _NAME:
        name = f"{name[: _NAME - 1]}…"
    if name in ("", str(step)):
        return str(step)
    return name if abs(step) >= _RANDOM else f"{step} ({name})"


def step_phrase(step: int, labels: Mapping[int, str]) -> str:
    """``step 3 (train)`` within a sentence; ``run 3`` where that is its name alone."""
    text = step_text(step, labels)
    return text if text.startswith("run ") else f"step {text}"


@dataclass(frozen=True, eq=False, repr=False)
class Steps(Brief):
    """The steps in the order of the table ``steps``; ``begin`` to ``end`` (ps) is the event that
    marks each.

    ``found_by`` is ``mark``, ``annotation``, ``device`` or ``function``, null where the format does
    not say; ``is_cut_off`` whether the record does not hold a step whole.
    """

    step_id: Int64Array
    name: Names
    begin: Int64Array
    end: Int64Array
    found_by: Names
    is_cut_off: BoolArray

    @classmethod
    def of(cls, table: Columns) -> Steps:
        """The steps of a table ``steps``."""
        return cls(
            table.array("step_id"),
            table.names("name"),
            table.array("start_ps"),
            table.array("end_ps"),
            table.names("found_by"),
            table.array("is_cut_off").astype(np.bool_) & table.is_valid("is_cut_off"),
        )

    @property
    def size(self) -> int:
        """The number of steps."""
        return self.step_id.size

    @property
    def is_inferred(self) -> bool:
        """Whether nothing marked the steps: they are runs of functions."""
        return self.size > 0 and self.found_by[0] == "function"

    def take(self, rows: AnyArray) -> Steps:
        """Those of ``rows`` (indices in the wanted order, or a mask)."""
        return Steps(
            self.step_id[rows], self.name.take(rows), self.begin[rows], self.end[rows],
            self.found_by.take(rows), self.is_cut_off[rows],
        )  # fmt: skip

    def label(self, row: int) -> str:
        """The name of a step; its id where it has none."""
        return self.name[row] or str(int(self.step_id[row]))

    def find(self, step: str) -> int:
        """The id of the step given by id (``3``) or by name (``train 170``).

        Raises NotFoundError for an unknown step.
        """
        ids = self.step_id.tolist()
        # Logs have negative ids too.
        number = whole_number(step, 19)
        if number is not None and number in ids:
            return number
        named = np.flatnonzero(self.name.codes == self.name.code_of(step))
        if named.size:
            return int(ids[int(named[0])])
        if not ids:
            raise NotFoundError(f"no step {step!r:.200}: the profile has no steps")
        raise no_step(step, ids, self.name)


def no_step(step: str, ids: Sequence[int], names: Names) -> NotFoundError:
    """The error for a ``step`` that is no id of these and no name; there is one at least."""
    known = [name for name in names.to_list() if name is not None]
    close = near(step, dict.fromkeys(known))
    meant = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    return NotFoundError(
        f"no step {step!r:.200}; the profile has {len(ids)}, ids {min(ids)} to {max(ids)}{meant}"
    )


@once
def steps_of(profile: Profile) -> Steps:
    """The steps of ``profile``, read once; none where it has no table ``steps``.

    Raises InputError when the profile cannot be read.
    """
    return Steps.of(profile.columns_or_empty("steps"))


@once
def step_places_of(profile: Profile) -> Int32Array:
    """For every event of `trace_of` its row in `steps_of`, -1 for none.

    A group that the table does not hold counts as none.
    """
    if profile.has_rows("op_runs"):
        trace = trace_of(profile)
        own = profile.columns("op_runs", frozenset(("step_id",)))
    elif "events" not in profile.tables:
        return np.zeros(0, np.int32)
    else:
        read_with_steps(profile)
        own = profile.columns("events", frozenset(("step_id",)))
        trace = trace_of(profile)
    if not trace.size or "steps" not in profile.tables:
        return np.full(trace.size, -1, np.int32)
    place = _places_among(steps_of(profile).step_id, own)
    return place if trace.row is None else place[trace.row]


def _places_among(steps: AnyArray, own: Columns) -> Int32Array:
    """For each row of ``own`` the row of its step, -1 for none."""
    step = own.array("step_id")
    if not steps.size:
        return np.full(step.size, -1, np.int32)
    known = own.is_valid("step_id")
    if (steps == np.arange(steps.size)).all():
        within = (step >= 0) & (step < steps.size) & known
        if step.dtype == np.int32 and (within | (step == -1)).all():
            return step
        place = np.where(within, step, -1).astype(np.int32)
    else:
        order = np.argsort(steps, kind="stable")
        at = np.minimum(np.searchsorted(steps, step, sorter=order), steps.size - 1)
        place = order[at].astype(np.int32)
        place[steps[place] != step] = -1
    if not known.all():
        place[~known] = -1
    return place
