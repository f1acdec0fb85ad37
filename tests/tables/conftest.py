"""Processes for the queries of one module."""

import pytest

from peakline.tables.sql_process.pool import SqlPool


@pytest.fixture(scope="module")
def sql():
    """Processes of the module alone, all ended with it."""
    found = SqlPool()
    yield found
    found.close()
