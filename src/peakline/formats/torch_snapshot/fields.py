"""Columns out of lists of dicts, as far as their values are what they should be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from peakline.arrays import Int64Array
from peakline.errors import InputError
from peakline.text import valid_text


class Bad(InputError):
    """A field is not what a snapshot has there; the message does not name the file yet."""


def dicts(value: object, what: str) -> list[dict[Any, Any]]:
    """``value`` as a list of dicts; None stands for an empty one."""
    if value is None:
        return []
    if not isinstance(value, list) or not set(map(type, value)) <= {dict}:
        raise Bad(f"{what} is no list of dicts")
    return value


def integers(rows: Sequence[dict[Any, Any]], name: str, default: int | None = None) -> Int64Array:
    """Field ``name`` of every row; Bad for one that is missing without a default or no integer.

    Unsigned 64-bit values keep their bits.
    """
    try:
        try:
            return _numbers(rows, itemgetter(name))
        except KeyError:
            if default is None:
                raise Bad(f"{name!r} is missing") from None
            return _numbers(rows, lambda row: row.get(name, default))
    except (TypeError, ValueError, OverflowError):
        raise Bad(f"{name!r} is no 64-bit number") from None


def _numbers(rows: Sequence[dict[Any, Any]], field: Callable[[dict[Any, Any]], Any]) -> Int64Array:
    try:
        return np.fromiter(map(field, rows), np.int64, len(rows))
    except OverflowError:
        return np.fromiter(map(field, rows), np.uint64, len(rows)).view(np.int64)


def texts(rows: Sequence[dict[Any, Any]], name: str, default: str = "") -> list[str]:
    """`text` of field ``name`` of every row."""
    return [text(row.get(name), default) for row in rows]


def text(value: object, default: str = "") -> str:
    """``value``, or ``default`` where it is no text; a pickle may hold halves of characters."""
    # Nothing else is turned into text: lists that share their parts have texts without end.
    return valid_text(value) if isinstance(value, str) else default
