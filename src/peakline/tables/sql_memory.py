"""The memory that a query takes: its answer counted as it comes, the process watched beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from peakline.deadline import check_deadline
from peakline.errors import CheckFailed
from peakline.process_memory import resident_bytes

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_LOOK_S = 0.05
_SLACK = 256 << 20
"""What other work of the process may take meanwhile before a query is blamed for it."""
_BATCH_ROWS = 2048
_BATCH_COST = 8192
"""Bytes that the objects around a batch take, about; a column of nulls has no bytes itself."""

_running: dict[object, int] = {}
"""The limits of the queries that run now."""
_running_lock = threading.Lock()


def bounded_table(relation: duckdb.DuckDBPyRelation, max_bytes: int) -> pa.Table:
    """The rows of ``relation``, fetched while they are made.

    Raises CheckFailed when they take more than ``max_bytes``.
    """
    import pyarrow as pa

    # DuckDB 1.4 renamed it and warns of the old name.
    fetch = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
    batches: list[pa.RecordBatch] = []
    taken = 0
    try:
        with fetch(_BATCH_ROWS) as reader:
            for batch in reader:
                check_deadline()
                batches.append(batch)
                taken += batch.nbytes + _BATCH_COST
                _refuse_more(taken, max_bytes)
            return pa.Table.from_batches(batches, reader.schema)
    except Exception:
        # The error keeps this frame, and the frame would keep them.
        batches.clear()
        raise


def _refuse_more(taken: int, max_bytes: int) -> None:
    if taken > max_bytes:
        raise CheckFailed(
            f"the answer takes more than {max_bytes} bytes; request fewer rows (LIMIT) or columns"
        )


@contextmanager
def watching_memory(interrupt: Callable[[], object], limit: int) -> Iterator[None]:
    """Call ``interrupt`` while the process has grown by more than ``limit`` allows in the block.

    Raises CheckFailed at the end when that happened. Queries that run beside this one may take
    their own limits meanwhile.
    """
    before = resident_bytes()
    if before is None:
        yield
        return
    key = object()
    ended, exceeded = threading.Event(), threading.Event()

    def watch() -> None:
        while not ended.wait(_LOOK_S):
            with _running_lock:
                allowed = sum(_running.values()) + _SLACK
            if exceeded.is_set() or (resident_bytes() or 0) - before > allowed:
                exceeded.set()
                interrupt()

    with _running_lock:
        _running[key] = limit
    watcher = threading.Thread(target=watch, name="sql-memory", daemon=True)
    watcher.start()
    try:
        yield
    except Exception as error:
        if exceeded.is_set():
            message = f"the query takes more memory than its limit of {limit} bytes; request less"
            raise CheckFailed(message) from error
        raise
    finally:
        ended.set()
        watcher.join()
        with _running_lock:
            del _running[key]
