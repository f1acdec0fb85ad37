"""What ``import peakline`` gives and costs."""

import subprocess
import sys

import pytest

import peakline
from peakline import errors


def test_the_import_is_cheap():
    code = (
        "import sys, peakline; peakline.__version__; peakline.PeaklineError; peakline.ToolResult;"
        "heavy = ('numpy', 'pyarrow', 'duckdb', 'msgspec', 'google.protobuf', 'rich');"
        "print([m for m in heavy if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"


def test_a_profile_alone_loads_neither_the_database_nor_arrow():
    code = (
        "import sys, peakline; peakline.Profile;"
        "print([m for m in ('pyarrow', 'duckdb', 'msgspec') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"


def test_every_promised_name_is_there_and_listed():
    for name in peakline.__all__:
        assert getattr(peakline, name) is not None
    assert set(peakline.__all__) <= set(dir(peakline))


def test_every_error_is_at_the_top():
    for name in errors.__all__:
        assert getattr(peakline, name) is getattr(errors, name)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = peakline.nonsense


def test_the_version_is_that_of_the_package():
    assert peakline.__version__.split(".")[0].isdigit()
