"""Tools by name."""

import subprocess
import sys

import pytest
from tests.tables.fake import FakeReader
from tests.tools.snapshots import alloc, profile_of

from peakline.api import Profile
from peakline.errors import NotFoundError, UsageError
from peakline.tools import ToolResult, available_tools, find_tool, run_tool, tool_names


def test_every_name_leads_to_a_tool_of_that_name_that_explains_itself():
    assert "memory_profile" in tool_names()
    for name in tool_names():
        tool = find_tool(name)
        assert tool.name == name
        assert tool.doc.endswith(".")
        assert tool.formats
        for parameter, declared in tool.parameters.declared().items():
            assert declared.description, parameter


def test_an_unknown_tool_is_not_found_and_the_known_are_named():
    with pytest.raises(NotFoundError, match=r"no tool 'nope'; there is: .*memory_profile"):
        run_tool(Profile(FakeReader({})), "nope")
    with pytest.raises(NotFoundError, match=r"^no tool named; there is: .*memory_profile"):
        run_tool(Profile(FakeReader({})), "")


def test_the_first_format_is_the_default():
    profile = profile_of([alloc(0, 1, 8)])
    result = run_tool(profile, "memory_profile")
    assert result == run_tool(profile, "memory_profile", {}, "json")
    assert isinstance(result, ToolResult)
    assert result.format == "json"


def test_an_unknown_format_is_a_usage_error():
    with pytest.raises(UsageError, match=r"memory_profile: no format 'xml'; there is: json, proto"):
        run_tool(profile_of([]), "memory_profile", {}, "xml")


def test_a_tool_is_available_where_it_has_something_to_show():
    assert "memory_profile" in available_tools(profile_of([alloc(0, 1, 8)]))
    assert "memory_profile" not in available_tools(Profile(FakeReader({})))


def test_knowing_the_names_loads_no_tool():
    code = (
        "import sys, peakline.tools as tools; tools.tool_names();"
        "print([m for m in ('msgspec', 'numpy') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"
