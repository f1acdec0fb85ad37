"""The rows of a query as JSON, CSV or Parquet, up to a size."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from peakline.errors import CheckFailed
from peakline.tables.rows import write_csv, write_json

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = ("json", "csv", "parquet")


def written(table: pa.Table, kind: str, max_bytes: int, *, large_as_text: bool = False) -> bytes:
    """``table`` in the format ``kind``.

    Raises CheckFailed when that has more than ``max_bytes``, DeadlineError or CancelledError.
    """
    out = _Bounded(max_bytes)
    if kind == "csv":
        write_csv(table, out)
    elif kind == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, out)
    else:
        write_json(table, out, large_as_text=large_as_text)
    return out.getvalue()


class _Bounded(io.BytesIO):
    """A file in memory that refuses to grow beyond a size."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self._max_bytes = max_bytes

    def write(self, data: Any) -> int:
        if self.tell() + memoryview(data).nbytes > self._max_bytes:
            raise CheckFailed(
                f"the answer has more than {self._max_bytes} bytes; ask for fewer rows (LIMIT) "
                "or columns"
            )
        return super().write(data)
