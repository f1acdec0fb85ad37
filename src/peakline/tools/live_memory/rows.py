"""The rows of the ``live_memory`` tool: chosen, grouped and in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array, IntpArray
from peakline.memory.over_time.live import MemoryMoment, MemoryRecords
from peakline.memory.peak.explained import BEFORE_PROFILE, DESCRIBED, Descriptions
from peakline.memory.signatures import normal_shape, scope_of
from peakline.tables import Columns, Names
from peakline.toolbox.parameters import check_choice

if TYPE_CHECKING:
    from peakline.tools.live_memory.parameters import LiveMemoryParameters

_TEXTS = ("op", "scope", "region_type", "data_type", "shape", *DESCRIBED)
_SEARCHED = ("op", "region_type", "data_type", "shape", *DESCRIBED)
"""A scope is a part of its op's name."""
_CARRIED = ("requested_bytes", "address", "allocation_id", "stream", "stack_id")
_BUFFER = (
    "record", *_TEXTS, "bytes", "requested_bytes", "count", "start_ps", "end_ps", "start_step",
    "end_step", "address", "allocation_id", "stream", "stack_id",
)  # fmt: skip
_GROUP = ("key", "bytes", "count", "share")


def columns_of(group: str, sort: str) -> tuple[str, ...]:
    """The columns of the rows of a grouping; raises UsageError where ``sort`` is none of them."""
    columns: tuple[str, ...] = _BUFFER if group == "buffer" else _GROUP
    if group == "step":
        columns = (*columns, "step_id")
    check_choice(sort, columns, f"live_memory: rows by {group} have no column")
    return columns


@dataclass(frozen=True, eq=False)
class _Labels:
    """A text per row: ``texts[codes]``, every text once."""

    codes: Int64Array
    texts: Sequence[str]

    def where(self, holds: Callable[[str], bool]) -> BoolArray:
        """The rows whose text is such; each text is looked at once."""
        result = np.fromiter(map(holds, self.texts), np.bool_, len(self.texts))
        chosen: BoolArray = result[self.codes]
        return chosen

    @property
    def known(self) -> BoolArray:
        """The rows whose text says something."""
        return ~self.where(lambda text: not text)

    def order(self) -> Int64Array:
        """Per row the place of its text in the alphabet."""
        order = sorted(range(len(self.texts)), key=lambda k: (self.texts[k].lower(), self.texts[k]))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return place[self.codes]


@dataclass(frozen=True, eq=False)
class _Numbers:
    """A number per row, where it is ``known``."""

    values: AnyArray
    known: BoolArray

    def order(self) -> Int64Array:
        """Per row a number with a sign that orders the rows alike."""
        if self.values.dtype != np.uint64:
            return self.values
        places: Int64Array = np.unique(self.values, return_inverse=True)[1]
        return places


class LiveRows:
    """What is live at a moment as columns: the buffers, and after them the remainders."""

    def __init__(
        self,
        records: MemoryRecords,
        moment: MemoryMoment,
        steps: Columns,
        descriptions: Descriptions | None = None,
    ) -> None:
        self._records, self._moment, self._steps = records, moment, steps
        self._descriptions = descriptions
        self._rows = moment.buffers
        self._rest = len(moment.remainders)
        self.size = self._rows.size + self._rest
        left = list(moment.remainders.values())
        self._bytes = np.concatenate([moment.buffer_bytes, np.array(left, np.int64)])
        events = records.events
        summed = events.is_valid("count")[self._rows]
        self._count = np.zeros(self.size, np.int64)
        self._count[: self._rows.size] = np.where(summed, events.array("count")[self._rows], 1)
        self._text: dict[str, _Labels] = {}

    def table(self, parameters: LiveMemoryParameters) -> dict[str, Any]:
        """The chosen rows, how many there are in all, and the bytes of all of them."""
        chosen = np.flatnonzero(self._wanted(parameters))
        rows_bytes = int(self._bytes[chosen].sum())
        if parameters.group == "buffer":
            shown, total = self._buffers(chosen, parameters), chosen.size
        else:
            shown, total = self._groups(chosen, parameters)
        return {"rows": shown, "rows_total": int(total), "rows_bytes": rows_bytes}

    def ops(self) -> dict[str, tuple[int, int]]:
        """Bytes and number of buffers of every op, and of every remainder."""
        labels = self._labels("op")
        sizes, counts = np.zeros((2, len(labels.texts)), np.int64)
        np.add.at(sizes, labels.codes, self._bytes)
        np.add.at(counts, labels.codes, self._count)
        return dict(
            zip(labels.texts, zip(sizes.tolist(), counts.tolist(), strict=True), strict=True)
        )

    def buffers(self) -> tuple[IntpArray, Int64Array, Int64Array]:
        """The records that begin the live buffers, and the bytes and number of buffers of each."""
        return self._rows, self._bytes[: self._rows.size], self._count[: self._rows.size]

    def step_name(self, step_id: int | None) -> str | None:
        """What a step is called; None for none, and for one that the profile does not know."""
        if step_id is None:
            return None
        result = np.flatnonzero(self._steps.array("step_id") == step_id)
        return self._steps.names("name")[int(result[0])] if result.size else None

    # Columns.

    def _labels(self, name: str) -> _Labels:
        if name not in self._text:
            if name == "scope":
                ops = self._labels("op")
                self._text[name] = _renamed(ops, scope_of)
            elif name in DESCRIBED:
                self._text |= self._described()
            else:
                names = self._records.events.names(name)
                extra = list(self._moment.remainders) if name == "op" else [""] * self._rest
                change = normal_shape if name == "shape" else str
                self._text[name] = _labels_of(names, self._rows, extra, change)
        return self._text[name]

    def _described(self) -> dict[str, _Labels]:
        """What is known of the buffers besides their records; of remainders nothing."""
        if self._descriptions is None:
            nothing = _Labels(np.zeros(self.size, np.int64), [""])
            return dict.fromkeys(DESCRIBED, nothing)
        result = self._descriptions.of(self._rows)
        return {
            name: _Labels(
                np.append(codes, np.full(self._rest, len(texts))).astype(np.int64), [*texts, ""]
            )
            for name, (codes, texts) in zip(DESCRIBED, result, strict=True)
        }

    def _special(self) -> BoolArray:
        """The rows that are of no op: remainders, and buffers from before the profile."""
        special = self._labels("op").where(lambda op: op == BEFORE_PROFILE)
        special[self._rows.size :] = True
        return special

    def _column(self, name: str) -> _Labels | _Numbers:
        """A column of the rows by buffer."""
        return self._labels(name) if name in _TEXTS else self._numbers(name)

    def _numbers(self, name: str) -> _Numbers:
        if name in {"bytes", "count"}:
            values = self._bytes if name == "bytes" else self._count
            return _Numbers(values, np.ones(self.size, np.bool_))
        events, rows = self._records.events, self._rows
        ends = self._records.lifetimes.end[rows]
        if name == "record":
            return self._padded(rows, np.ones(rows.size, np.bool_))
        if name in _CARRIED:
            return self._padded(events.array(name)[rows], events.is_valid(name)[rows])
        was_there = (events.array("is_before") & events.is_valid("is_before"))[rows]
        if name == "start_ps":
            return self._padded(events.array("time_ps")[rows], ~was_there)
        if name == "end_ps":
            return self._padded(events.array("time_ps")[ends], ends >= 0)
        if name == "start_step":
            known = events.is_valid("step_id")[rows] & ~was_there
            return self._padded(events.array("step_id")[rows], known)
        known = events.is_valid("step_id")[ends] & (ends >= 0)
        return self._padded(events.array("step_id")[ends], known)

    def _padded(self, values: AnyArray, known: BoolArray) -> _Numbers:
        """The values of the buffers, and nothing for the remainders."""
        rest = np.zeros(self._rest, values.dtype)
        return _Numbers(
            np.concatenate([np.where(known, values, values.dtype.type(0)), rest]),
            np.concatenate([known, np.zeros(self._rest, np.bool_)]),
        )

    # Which rows.

    def _wanted(self, parameters: LiveMemoryParameters) -> BoolArray:
        chosen = np.ones(self.size, np.bool_)
        if parameters.search:
            needle = parameters.search.lower()
            chosen[:] = False
            for name in _SEARCHED:
                chosen |= self._labels(name).where(lambda text: needle in text.lower())
        if parameters.op is not None:
            chosen &= self._labels("op").where(lambda text: text == parameters.op)
        if parameters.within is not None:
            path = parameters.within
            chosen &= self._labels("op").where(
                lambda text: not path or text == path or text.startswith(f"{path}/")
            )
        for name in _TEXTS[1:]:
            value = getattr(parameters, name)
            if value is not None:
                value = normal_shape(value) if name == "shape" else value
                chosen &= self._labels(name).where(lambda text, value=value: text == value)  # type: ignore[misc]
                chosen &= ~self._special()
        if parameters.step is not None:
            steps = self._numbers("start_step")
            number = int(parameters.step) if parameters.step.strip("-") else None
            of_step = ~steps.known if number is None else steps.known & (steps.values == number)
            chosen &= of_step & ~self._special()
        if parameters.record is not None:
            record = self._numbers("record")
            chosen &= record.known & (record.values == parameters.record)
        return chosen

    # Rows in their order.

    def _buffers(self, chosen: IntpArray, parameters: LiveMemoryParameters) -> list[dict[str, Any]]:
        order = _order(self._column(parameters.sort), chosen, self._bytes[chosen], parameters)
        page = chosen[order][_page(parameters)]
        columns = [_json_values(name, self._column(name), page) for name in _BUFFER]
        return [dict(zip(_BUFFER, row, strict=True)) for row in zip(*columns, strict=True)]

    def _groups(
        self, chosen: IntpArray, parameters: LiveMemoryParameters
    ) -> tuple[list[dict[str, Any]], int]:
        """The groups of one page, and how many there are."""
        ids, key = self._steps_of_rows() if parameters.group == "step" else (None, None)
        key = self._labels(parameters.group) if key is None else key
        ops, bound = self._labels("op"), len(key.texts)
        # What is of no op stands for itself, by its own name.
        codes = np.where(self._special(), bound + ops.codes, key.codes)[chosen]
        codes, group = np.unique(codes, return_inverse=True)
        sizes, counts = np.zeros((2, codes.size), np.int64)
        np.add.at(sizes, group, self._bytes[chosen])
        np.add.at(counts, group, self._count[chosen])
        every, in_use = np.ones(codes.size, np.bool_), self._moment.bytes_in_use
        columns: dict[str, _Labels | _Numbers] = {
            "key": _Labels(codes, [*key.texts, *ops.texts]),
            "bytes": _Numbers(sizes, every),
            "count": _Numbers(counts, every),
            "share": _Numbers(
                sizes / in_use if in_use else np.zeros(codes.size), every & bool(in_use)
            ),
        }
        sort = parameters.sort
        if ids is not None:
            known = codes < ids.size
            numbers = np.append(ids, 0)[np.minimum(codes, ids.size)]
            columns["step_id"] = _Numbers(numbers, known)
            sort = "step_id" if sort == "key" else sort
        order = _order(columns[sort], np.arange(codes.size), sizes, parameters)
        result = [
            _json_values(name, column, order[_page(parameters)]) for name, column in columns.items()
        ]
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*result, strict=True)]
        return rows, int(codes.size)

    def _steps_of_rows(self) -> tuple[Int64Array, _Labels]:
        """The ids of the steps that the buffers are from, and per row the number of its step.

        The last of the texts is that of none.
        """
        steps = self._numbers("start_step")
        ids, codes = np.unique(steps.values[steps.known], return_inverse=True)
        of_rows = np.full(self.size, ids.size, np.int64)
        of_rows[steps.known] = codes
        known = zip(
            self._steps.array("step_id").tolist(), self._steps.names("name").to_list(), strict=True
        )
        names = dict(known)
        return ids, _Labels(of_rows, [*(names.get(i) or str(i) for i in ids.tolist()), ""])


def _labels_of(
    names: Names, rows: IntpArray, rest: Sequence[str], change: Callable[[str], str]
) -> _Labels:
    """A text column of ``rows``, null as the empty text, and behind it the texts ``rest``."""
    of, texts = names.take(rows).grouped(change)
    numbers = {text: number for number, text in enumerate(texts)}
    last = [numbers.setdefault(text, len(numbers)) for text in rest]
    # Several codes may have one text: a dictionary may repeat strings.
    return _Labels(np.concatenate([of, np.array(last, np.int64)]), list(numbers))


def _renamed(labels: _Labels, change: Callable[[str], str]) -> _Labels:
    numbers: dict[str, int] = {}
    of = [numbers.setdefault(change(text), len(numbers)) for text in labels.texts]
    return _Labels(np.array(of, np.int64)[labels.codes], list(numbers))


def _page(parameters: LiveMemoryParameters) -> slice:
    return slice(parameters.offset, parameters.offset + parameters.limit)


def _order(
    column: _Labels | _Numbers,
    places: IntpArray,
    sizes: Int64Array,
    parameters: LiveMemoryParameters,
) -> IntpArray:
    """The order of ``places``: what is not known last, of equals the largest in bytes first."""
    is_number = isinstance(column, _Numbers)
    keys = column.order()[places]
    if is_number if parameters.descending is None else parameters.descending:
        keys = -keys
    missing = ~column.known[places]
    by: list[Int64Array] = [keys] if parameters.sort == "bytes" else [-sizes, keys]
    return np.lexsort((*by, missing) if missing.any() else by)


def _json_values(name: str, column: _Labels | _Numbers, page: IntpArray) -> list[Any]:
    """The values of some rows as JSON has them; an address is a text, since it may be too large."""
    if isinstance(column, _Labels):
        return [column.texts[code] for code in column.codes[page].tolist()]
    values: list[Any] = column.values[page].tolist()
    if name == "address":
        values = [f"{value:#x}" for value in values]
    known = column.known[page].tolist()
    return [value if ok else None for value, ok in zip(values, known, strict=True)]
