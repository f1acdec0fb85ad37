"""Processes for the queries of one module."""

import pytest

from peakline.tables.sql_process.pool import SqlPool


@pytest.fixture(scope="module")
def sql():
    """Processes of the module alone, all ended with it."""
    result = SqlPool()
    yield result
    result.close()
