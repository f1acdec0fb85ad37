"""The parts of a stream put together again, and decoding under stricter conditions than usual."""

import importlib
import mmap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from ctypes import CDLL, addressof, c_char, c_int, c_size_t, c_void_p
from typing import Any
from unittest.mock import patch

import numpy as np
from tests.wire.reference import Projection

from peakline.wire import Buffer, Damage, Plan, Spans, Union, WireTable, as_buffer, stream

decode_module = importlib.import_module("peakline.wire.decode")
"""The module, which the package's function of the same name hides."""
_ALLOCATING = [
    importlib.import_module(f"peakline.wire.{name}") for name in ("assemble", "decode", "walker")
]


def joined(
    buffer: Buffer,
    plan: Plan,
    projection: Projection,
    containers: Sequence[str],
    piece_bytes: int,
    spans: Spans | None = None,
) -> tuple[dict[str, WireTable], Damage]:
    """All parts of a stream as tables of the whole, rows renumbered, and their damage together."""
    atoms = {p for p, node in projection.tables.items() if node.frame.path not in containers}
    collected: dict[str, list[WireTable]] = {}
    first: dict[str, int] = {}
    damage, position = Damage(), 0
    last: dict[str, WireTable] = {}
    for part in stream(buffer, plan, spans, piece_bytes):
        order = list(part.tables)
        if spans is None:
            assert part.position >= position
            position = part.position
        damage += part.damage
        last = part.tables
        for path in atoms:
            collected.setdefault(path, []).append(_shifted(part.tables[path], order, atoms, first))
        for path in atoms:
            first[path] = first.get(path, 0) + part.tables[path].rows
    assert all(last[path].rows == 0 for path in atoms), "atoms in the last part"
    return {p: _concatenated(collected[p]) if p in atoms else last[p] for p in last}, damage


def _shifted(
    table: WireTable, order: list[str], atoms: set[str], first: dict[str, int]
) -> WireTable:
    """A copy whose parents are rows of the whole."""
    parent = table.parent.astype(np.int64)
    if "@parent_table" in table.columns:
        shift = [first.get(path, 0) if path in atoms else 0 for path in order]
        parent += np.array(shift, np.int64)[table.array("@parent_table")]
    else:
        above = table.path.rpartition(".")[0]
        parent += first.get(above, 0) if above in atoms else 0
    everything = np.ones(table.rows, np.bool_)
    columns = {
        name: c[everything] if isinstance(c, np.ndarray) else c.take(everything)
        for name, c in table.columns.items()
    }
    return WireTable(table.path, table.rows, parent, columns)


def _concatenated(tables: list[WireTable]) -> WireTable:
    def glue(columns: list[Any]) -> Any:
        if isinstance(columns[0], Spans):
            return Spans(glue([c.start for c in columns]), glue([c.length for c in columns]))
        if isinstance(columns[0], Union):
            names = ("case", "bits", "length")
            return Union(*(glue([getattr(c, name) for c in columns]) for name in names))
        return np.concatenate(columns)

    columns = {name: glue([t.columns[name] for t in tables]) for name in tables[0].columns}
    rows = sum(table.rows for table in tables)
    return WireTable(tables[0].path, rows, glue([t.parent for t in tables]), columns)


class _ShowingNumpy:
    """NumPy, but memory that it leaves as it is holds large negative numbers."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def empty(*args: Any, **kwargs: Any) -> Any:
        array = np.empty(*args, **kwargs)
        array.view(np.uint8)[...] = 0xFE
        return array


@contextmanager
def uninitialised_memory_shows() -> Iterator[None]:
    """What the decoder allocates and does not fill is not zero by luck.

    Only its own modules see it.
    """
    with ExitStack() as stack:
        for module in _ALLOCATING:
            stack.enter_context(patch.object(module, "np", _ShowingNumpy()))
        yield


class Fence:
    """A buffer whose last byte is followed by memory that may not be touched.

    Reading one byte too far ends the process: no test passes by luck.
    """

    def __init__(self, pages: int = 64) -> None:
        self._size = pages * mmap.PAGESIZE
        self._map = mmap.mmap(-1, self._size + mmap.PAGESIZE)
        start = addressof(c_char.from_buffer(self._map))
        protect = CDLL(None, use_errno=True).mprotect
        protect.argtypes, protect.restype = (c_void_p, c_size_t, c_int), c_int
        if protect(start + self._size, mmap.PAGESIZE, 0):
            raise OSError("mprotect failed")
        self._bytes = memoryview(self._map)

    def hold(self, data: bytes) -> Buffer:
        """``data`` right before the fence; valid until the next call."""
        at = self._size - len(data)
        if at < 0:
            raise ValueError("larger than the fenced memory")
        self._bytes[at : self._size] = data
        return as_buffer(self._bytes[at : self._size])
