"""The rows of a profile's tables and queries as data frames of other libraries."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from peakline.shown import library, pandas_of, polars_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from peakline.tables.query import SqlParameters


class Frames:
    """The part of a profile that gives data frames."""

    @property
    @abstractmethod
    def views(self) -> list[str]:
        """Names of the views that `sql` takes beside the tables, sorted."""

    @abstractmethod
    def table(self, name: str) -> pa.Table:
        """The named table as Arrow."""

    @abstractmethod
    def sql(self, query: str, parameters: SqlParameters = None) -> pa.Table:
        """The answer to one reading SQL statement."""

    def to_pandas(self, rows: str, parameters: SqlParameters = None) -> pd.DataFrame:
        """A table or view by its name, or the rows of an SQL query, as a pandas.DataFrame.

        ``profile.to_pandas("allocator_events")``, or as `sql`:
        ``profile.to_pandas("select * from steps where name = $name", {"name": "train 3"})``.
        Columns in ``_ps`` are picoseconds, in ``_bytes`` bytes, both int64 (``Int64`` where there
        are nulls); names are ``category``. Raises as `sql`, and UsageError without pandas.
        """
        library("pandas")
        return pandas_of(self._rows(rows, parameters))

    def to_polars(self, rows: str, parameters: SqlParameters = None) -> pl.DataFrame:
        """A table or view by its name, or the rows of an SQL query, as a polars.DataFrame.

        Integers stay integers, names are ``Categorical``; otherwise as `to_pandas`. Raises as
        `sql`, and UsageError without Polars.
        """
        library("polars")
        return polars_of(self._rows(rows, parameters))

    def _rows(self, rows: str, parameters: SqlParameters) -> pa.Table:
        name = rows.strip()
        if not name.isidentifier():
            return self.sql(rows, parameters)
        return self.sql(f"from {name}") if name in self.views else self.table(name)
