"""Columns of profiles as Arrow files in memory, which several processes map.

A column is written once for a profile, when the first query needs it, and given up with the
profile, or earlier where there is no room. What is given up takes no memory any more, also where a
process still maps it.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import count

from peakline.deadline import check_deadline, holding
from peakline.tables.columns import Columns
from peakline.tables.sql_process.frames import nameless_file
from peakline.tables.table_source import TableSource
from peakline.tables.tables import arrow_of

_MOST_PIECES = 256
"""Each is an open file of this process."""
_numbers = count(1)


class Piece:
    """Some columns of a table, in a file of ``size`` bytes with a ``descriptor``."""

    parts: Sequence[Sequence[int]] | None = None
    """Where in the file the streams of the ranks of a job lie, where it is not one of Arrow's."""

    def __init__(self, name: str, columns: Columns) -> None:
        import pyarrow as pa

        self.number = next(_numbers)
        self.columns = frozenset(columns)
        self.descriptor = nameless_file("peakline-sql")
        self._finalizer = weakref.finalize(self, _give_up, self.descriptor, os.getpid())
        with os.fdopen(self.descriptor, "wb", closefd=False) as file:
            table = arrow_of(name, columns)
            check_deadline()
            with pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
        self.size = os.fstat(self.descriptor).st_size


class RankedPiece(Piece):
    """A table of all ranks, in the file with a ``descriptor``, which is somebody else's."""

    def __init__(self, descriptor: int, parts: Sequence[Sequence[int]]) -> None:
        self.number = next(_numbers)
        self.columns = frozenset()
        self.descriptor, self.parts = descriptor, parts
        self.size = os.fstat(descriptor).st_size


def _give_up(descriptor: int, owner: int) -> None:
    if os.getpid() == owner:
        with suppress(OSError):
            # Whoever still maps it does not read it.
            os.ftruncate(descriptor, 0)
    os.close(descriptor)


class _Stored:
    """What is shared of one profile: by table and column the piece that has it."""

    __retained__ = ""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.tables: dict[str, dict[str, Piece]] = {}

    def forget(self, piece: Piece) -> None:
        for columns in list(self.tables.values()):
            for column in piece.columns:
                if columns.get(column) is piece:
                    del columns[column]


class SharedTables:
    """Shared columns, the least recently used given up where they take more than ``max_bytes``."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.RLock()
        self._used: OrderedDict[int, tuple[weakref.ref[Piece], weakref.ref[_Stored]]] = (
            OrderedDict()
        )

    @property
    def nbytes(self) -> int:
        """Bytes of all columns that are shared."""
        return sum(piece.size for piece, _ in self._alive())

    def resize(self, max_bytes: int) -> None:
        """Let them take so much from now on."""
        self._max_bytes = max_bytes
        self._shrink()

    def numbers(self) -> frozenset[int]:
        """The numbers of the pieces that there are."""
        return frozenset(piece.number for piece, _ in self._alive())

    def pieces(
        self, profile: TableSource, name: str, columns: Columns, wanted: Iterable[str] | None
    ) -> list[Piece]:
        """Pieces with the ``wanted`` of ``columns`` (None: all) of the named table.

        They stay what they are as long as the caller has them. ``columns`` that change are not for
        this: see `Piece`. Raises as `check_deadline`.
        """
        stored = profile.made_once(self, _Stored)
        needed = [column for column in columns if wanted is None or column in wanted]
        with holding(stored.lock):
            there = stored.tables.setdefault(name, {})
            # Whoever makes room may take away what is there meanwhile.
            have = {column: piece for column in needed if (piece := there.get(column))}
            missing = [column for column in needed if column not in have]
            if missing:
                valid = {n: mask for n, mask in columns.valid.items() if n in missing}
                new = Piece(name, Columns({n: columns[n] for n in missing}, valid))
                have.update(dict.fromkeys(missing, new))
                there.update(dict.fromkeys(missing, new))
        result = list({piece.number: piece for piece in have.values()}.values())
        with self._lock:
            for piece in result:
                self._used[piece.number] = weakref.ref(piece), weakref.ref(stored)
                self._used.move_to_end(piece.number)
        self._shrink()
        return result

    def _alive(self) -> list[tuple[Piece, _Stored | None]]:
        """All pieces, the least recently used first."""
        with self._lock:
            result = [(piece(), stored()) for piece, stored in self._used.values()]
            return [(piece, stored) for piece, stored in result if piece is not None]

    def _shrink(self) -> None:
        with self._lock:
            alive = self._alive()
            left, size = len(alive), sum(piece.size for piece, _ in alive)
            for piece, stored in alive:
                if size <= self._max_bytes and left <= _MOST_PIECES:
                    break
                if stored is not None:
                    stored.forget(piece)
                left, size = left - 1, size - piece.size
            numbers = {piece.number for piece, _ in alive}
            for number in [number for number in self._used if number not in numbers]:
                del self._used[number]
