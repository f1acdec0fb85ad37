"""A table held as NumPy columns: what sources fill and analyses read.

Arrow and DuckDB see the same memory later (`Columns.arrow`); nothing here imports them, so a
question that needs neither does not pay for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.shown import Brief

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False, repr=False)
class Names(Brief):
    """A dictionary-encoded string column: ``values[code]`` per row, null where the code is -1."""

    codes: Int32Array
    values: Sequence[str]

    def __len__(self) -> int:
        return int(self.codes.size)

    def __getitem__(self, row: int) -> str | None:
        code = int(self.codes[row])
        return None if code < 0 else self.values[code]

    def take(self, rows: AnyArray) -> Names:
        """The same column for ``rows`` (indices or a boolean mask)."""
        return Names(self.codes[rows], self.values)

    def to_list(self) -> list[str | None]:
        """One Python string (or None) per row."""
        return [None if code < 0 else self.values[code] for code in self.codes.tolist()]

    def per_row(self, find: Callable[[str], object], dtype: Any, null: int = 0) -> AnyArray:
        """What ``find`` says of the text of each row, ``null`` where there is none."""
        return np.array([*map(find, self.values), null], dtype)[self.codes]

    def code_of(self, value: str) -> int:
        """The code of ``value``, or -2 when no row can hold it."""
        for code, candidate in enumerate(self.values):
            if candidate == value:
                return code
        return -2

    def grouped(self, change: Callable[[str], str] = str) -> tuple[Int64Array, list[str]]:
        """The number of each row's text as ``change`` makes it of the column's, and these texts in
        order of their first code; a null is the empty one.
        """
        codes, place = np.unique(self.codes, return_inverse=True)
        numbers: dict[str, int] = {}
        of = [
            numbers.setdefault(change(self.values[code]) if code >= 0 else "", len(numbers))
            for code in codes.tolist()
        ]
        return np.array(of, np.int64)[place], list(numbers)

    @classmethod
    def encode(cls, strings: Sequence[str | None]) -> Names:
        """Build from plain strings; codes run in order of first appearance."""
        seen: dict[str, int] = {}
        codes = np.fromiter(
            (-1 if s is None else seen.setdefault(s, len(seen)) for s in strings),
            dtype=np.int32,
            count=len(strings),
        )
        return cls(codes, list(seen))

    @classmethod
    def constant(cls, value: str | None, rows: int) -> Names:
        """``rows`` times the same value."""
        if value is None:
            return cls(np.full(rows, -1, np.int32), [])
        return cls(np.zeros(rows, np.int32), [value])


Column = AnyArray | Names


@dataclass(frozen=True, eq=False, repr=False)
class Columns(Brief, Mapping[str, Column]):
    """Equal-length named columns; ``valid[name]`` marks the rows that are not null.

    A numeric column without an entry in ``valid`` has no nulls. `Names` columns carry their
    nulls themselves. Values of null rows are unspecified (usually 0).
    """

    data: dict[str, Column]
    valid: dict[str, BoolArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lengths = {name: len(column) for name, column in self.data.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns of different lengths: {lengths}")

    def __getitem__(self, name: str) -> Column:
        return self.data[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    @property
    def rows(self) -> int:
        """The number of rows."""
        for column in self.data.values():
            return len(column)
        return 0

    def array(self, name: str) -> AnyArray:
        """A numeric column; raises TypeError for a string column."""
        column = self.data[name]
        if isinstance(column, Names):
            raise TypeError(f"{name} is a string column")
        return column

    def names(self, name: str) -> Names:
        """A string column; raises TypeError for a numeric one."""
        column = self.data[name]
        if not isinstance(column, Names):
            raise TypeError(f"{name} is a numeric column")
        return column

    def is_valid(self, name: str) -> BoolArray:
        """True per row that is not null, for any column."""
        column = self.data[name]
        if isinstance(column, Names):
            return column.codes >= 0
        mask = self.valid.get(name)
        return np.ones(len(column), np.bool_) if mask is None else mask

    def take(self, rows: AnyArray) -> Columns:
        """The table restricted to ``rows`` (indices in the wanted order, or a boolean mask)."""
        return Columns(
            {
                name: column.take(rows) if isinstance(column, Names) else column[rows]
                for name, column in self.data.items()
            },
            {name: mask[rows] for name, mask in self.valid.items()},
        )

    def each(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """The values of these columns row by row: text or None, numbers as they are stored."""
        columns = (self.data[name] for name in names)
        lists = [c.to_list() if isinstance(c, Names) else c.tolist() for c in columns]
        return zip(*lists, strict=True)

    def lists(self) -> dict[str, list[Any]]:
        """One list per column, None for null."""
        lists: dict[str, list[Any]] = {}
        for name, column in self.data.items():
            if isinstance(column, Names):
                lists[name] = column.to_list()
                continue
            values = column.tolist()
            mask = self.valid.get(name)
            if mask is not None:
                values = [v if ok else None for v, ok in zip(values, mask.tolist(), strict=True)]
            lists[name] = values
        return lists

    def to_pylist(self) -> list[dict[str, Any]]:
        """One dict per row, None for null: for tests and small tables."""
        lists = self.lists()
        return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]

    def arrow(self) -> pa.Table:
        """The same table as Arrow; numeric columns without nulls share memory."""
        import pyarrow as pa

        arrays: dict[str, pa.Array] = {}
        for name, column in self.data.items():
            if isinstance(column, Names):
                codes = pa.array(column.codes, mask=column.codes < 0)
                values = pa.array(list(column.values), pa.string())
                arrays[name] = pa.DictionaryArray.from_arrays(codes, values)
            else:
                mask = self.valid.get(name)
                arrays[name] = pa.array(column, mask=None if mask is None else ~mask)
        return pa.table(arrays)
