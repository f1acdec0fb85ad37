"""How values of the public interface print: one short line, HTML in a notebook, data frames.

A value says its headline itself; the HTML is that of `peakline.render.notebook`, which is found by
name when a notebook shows the value, so that no analysis depends on who draws it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from contextlib import suppress
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

from peakline.safe_text import cut_middle, for_log, one_line

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_LONGEST = 120
_TEXT = 32
_NAMED = 3
"""So many values of several are named in their line."""
_One_co = TypeVar("_One_co", covariant=True)


class Brief:
    """A value whose ``repr`` is one line of at most 120 characters, whatever it holds."""

    __slots__ = ()

    def _headline(self) -> str:
        """What the line says after the name of the class: here the fields, as far as they go."""
        return fields_text(self)

    def __repr__(self) -> str:
        return line_of(type(self).__name__, self._headline)

    def __dir__(self) -> list[str]:
        return public_names(self)


class Shown(Brief):
    """A `Brief` value that a notebook shows as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Self-contained HTML without a script, of at most 60 kB; never raises."""
        return cast("str", import_module("peakline.render.notebook").html_of(self))


class Tabular:
    """A value that is, or has, one table of rows, for other libraries.

    Times in columns that end in ``_ps`` are picoseconds and sizes in ``_bytes`` bytes, both int64,
    exactly; texts that repeat are dictionary-encoded, which pandas and Polars call categorical.
    """

    __slots__ = ()

    def to_arrow(self) -> pa.Table:
        """The rows as a pyarrow.Table."""
        raise NotImplementedError

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas.DataFrame; integers with nulls are ``Int64``, texts that repeat
        ``category``.

        Raises UsageError where pandas is not installed.
        """
        library("pandas")
        return pandas_of(self.to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars.DataFrame; texts that repeat are ``Categorical``.

        Raises UsageError where Polars is not installed.
        """
        library("polars")
        return polars_of(self.to_arrow())


class Several(Shown, Tabular, tuple[_One_co, ...]):
    """A tuple of values of one kind, which prints as one line and shows as HTML.

    Its slices and sums are plain tuples.
    """

    __slots__ = ()

    def to_arrow(self) -> pa.Table:
        """A row for each value: its ``as_json()``, else its fields; what is a list is left out."""
        return table_of([_row_of(one) for one in self])

    def _headline(self) -> str:
        if not self:
            return "none"
        names = "; ".join(headline_of(one) or str(one) for one in self[:_NAMED])
        return f"{len(self):,} {type(self[0]).__name__}: {names}"


def several(value: object, *names: str) -> None:
    """Make `Several` of the fields ``names`` of a frozen dataclass, which hold tuples."""
    for name in names:
        result = getattr(value, name)
        if not isinstance(result, Several):
            object.__setattr__(value, name, Several(result))


def _row_of(value: Any) -> dict[str, Any]:
    if hasattr(value, "as_json"):
        result = value.as_json()
    else:
        result = {one.name: getattr(value, one.name) for one in fields(value)}
    return {
        name: one
        for name, one in result.items()
        if not isinstance(one, list | tuple) and (not hasattr(one, "__dict__") or one is None)
    }


def line_of(name: str, headline: Callable[[], str]) -> str:
    """``<Name headline>`` in at most 120 characters; without the headline where it fails."""
    try:
        text = headline()
    except Exception:  # noqa: BLE001 (whatever is broken, it must print)
        text = ""
    shown = for_log(cut_middle(text, _LONGEST - len(name) - 3))
    return f"<{name} {shown}>" if text else f"<{name}>"


def fields_text(value: object) -> str:
    """The fields of a dataclass: numbers and short texts as they are, the length of all else."""
    if not is_dataclass(value):
        return ""
    result: list[str] = []
    room = _LONGEST - len(type(value).__name__) - 8
    for field in fields(value):
        if not field.repr or field.name.startswith("_"):
            continue
        text = _field_text(field.name, getattr(value, field.name))
        if text and sum(map(len, result)) + 2 * len(result) + len(text) > room:
            result.append("...")
            break
        result += [text] if text else []
    return ", ".join(result)


def _field_text(name: str, value: object) -> str:
    """One field; nothing of what is empty, or what has no length."""
    if value is None or value == "" or isinstance(value, type):
        return ""
    if isinstance(value, str):
        return f"{name}={cut_middle(value, _TEXT)!r}"
    if isinstance(value, bool | int):
        return f"{name}={value}"
    if isinstance(value, float):
        return f"{name}={value:g}"
    if isinstance(value, tuple | list | Mapping | Sized) and not hasattr(value, "__dict__"):
        return f"{name}[{len(value)}]" if len(value) else ""
    return ""


def table_of(rows: list[dict[str, Any]] | tuple[Mapping[str, Any], ...]) -> pa.Table:
    """Rows that have the same keys, or some of them, as Arrow: texts dictionary-encoded.

    A value that is a list or a mapping is its JSON; a column of values of several types is text.
    """
    import json

    import pyarrow as pa

    names = dict.fromkeys(name for row in rows for name in row)
    arrays = {}
    for name in names:
        values = [row.get(name) for row in rows]
        values = [
            json.dumps(one, default=str) if isinstance(one, list | tuple | Mapping) else one
            for one in values
        ]
        try:
            array = pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            array = pa.array([None if one is None else str(one) for one in values])
        text = pa.types.is_string(array.type)
        arrays[name] = array.dictionary_encode() if text else array
    return pa.table(arrays)


def pandas_of(table: pa.Table) -> pd.DataFrame:
    """``table`` as a pandas.DataFrame, whose integers stay integers where there are nulls.

    Raises UsageError where pandas is not installed.
    """
    import pyarrow as pa

    pandas, table = library("pandas"), _with_integers(table)
    result = table.to_pandas()
    for place, field in enumerate(table.schema):
        column = table.column(place)
        if pa.types.is_integer(field.type) and column.null_count:
            # By default they would be doubles, which have no 64 bits for a whole number.
            name = str(field.type).replace("i", "I").replace("uI", "UI")
            kinds = {field.type: pandas.api.types.pandas_dtype(name)}
            result.isetitem(place, column.to_pandas(types_mapper=kinds.get))
    return cast("pd.DataFrame", result)


def polars_of(table: pa.Table) -> pl.DataFrame:
    """``table`` as a polars.DataFrame; raises UsageError where Polars is not installed."""
    return cast("pl.DataFrame", library("polars").from_arrow(_with_integers(table)))


def _with_integers(table: pa.Table) -> pa.Table:
    """``table`` with the sums of SQL, which are decimals of 128 bits, as int64 where they fit."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type) and not field.type.scale:
            with suppress(pa.ArrowInvalid):
                whole = table.column(place).cast(pa.int64())
                table = table.set_column(place, field.name, whole)
    return table


def library(name: str) -> Any:
    """The named package; raises UsageError that says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        from peakline.errors import UsageError

        text = f"{name} is not installed: pip install {name}"
        raise UsageError(text) from error


def named(text: str) -> str:
    """A path by its last part, for a headline."""
    return one_line(text.rstrip("/\\").replace("\\", "/").rpartition("/")[2] or text)


def headline_of(value: Any) -> str:
    """The headline alone, empty where there is none; never raises."""
    try:
        return cast("str", value._headline())  # noqa: SLF001 (a part of it)
    except Exception:  # noqa: BLE001 (whatever is broken, it must print)
        return ""


def public_names(value: object) -> list[str]:
    """What ``dir`` lists of a value: its public names, and Python's own."""
    return [
        name
        for name in object.__dir__(value)
        if not name.startswith("_") or (name.startswith("__") and hasattr(object, name))
    ]
