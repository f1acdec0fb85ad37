"""The parameters of every tool: what is understood without pydantic is what pydantic says."""

import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.each_row import each_row

from peakline.errors import UsageError
from peakline.toolbox.parameter_models import validate
from peakline.toolbox.parameters import Parameters, parameter
from peakline.tools import Tool, find_tool, tool_names

PARAMETERS = [
    (tool, name) for tool in tool_names() for name in find_tool(tool).parameters.declared()
]
TRUTHS = "true True TRUE 1 yes on t y false False FALSE 0 no off f n K"
WHOLE = "0 1 -1 2 007 00 -0 +5 1_000 1.0 ٣ 1 9007199254740992 9007199254740993"
BROKEN = "0.1 1.50 -0.0 1e3 1e16 1e+16 1e400 nan inf -inf Infinity .5 5."
CHOICES = (
    "xprof XPROF scope graph op info error leak buffer bytes all tile lanes micros name category "
    "scopes inputs allocated requested memory time"
)
LISTS = "bytes,micros bytes,,micros , nope bytes,nope bytes,"
VALUES = (
    *(None, True, False, 0, 1, -1, 2, 1 << 31, 1 << 40, (1 << 40) + 1, 1 << 53, (1 << 53) + 1),
    *((1 << 31) - 1, 1 << 63, -(1 << 63), 10**30, 10**400),
    *(0.0, -0.0, 1.0, 1.5, 1e300, float("nan"), float("inf")),
    *TRUTHS.split(),
    *WHOLE.split(),
    *BROKEN.split(),
    *CHOICES.split(),
    *LISTS.split(),
    *("", " ", " 12", "12 ", "1\n", "a\0b", "é", "\ud800"),
    *("9" * 18, "9" * 19, "-" + "9" * 18, "-" + "9" * 19, "1" * 5000),
    *("a" * 40, "a" * 41, "a" * (1 << 16), "a" * ((1 << 16) + 1)),
    *((), [], ("bytes",), ["bytes", "micros"], ["nope"], [1], ["\ud800"], {}, {"bytes"}, b"1", 1j),
)


class Sub(str):
    """A text of a class of its own."""

    __slots__ = ()


class Every(Parameters):
    """One parameter of every type."""

    flag: bool = parameter(default=False, description="a truth")
    whole: int = parameter(0, ge=-5, lt=1 << 70, description="a number")
    number: float | None = parameter(None, description="a finite number")
    text: str | None = parameter(None, max_length=5, description="a text")
    pattern: str = parameter("", pattern=r"^-?[0-9]{0,18}$", description="digits")
    texts: tuple[str, ...] = parameter((), description="texts")


def told(error):
    """What pydantic says, but for the address of its page."""
    return error.errors(include_url=False, include_context=False)


def assert_as_pydantic(kind, given):
    """Whether ``given`` is plain; where it is, pydantic has the same values of the same types."""
    plain = kind.plain(given)
    if plain is None:
        return False
    decided = validate(kind, given)
    assert plain == decided, given
    assert repr(plain) == repr(decided), given
    return True


@each_row(("tool", "name"), PARAMETERS)
def test_what_is_plain_is_what_pydantic_accepts(tool, name):
    kind = find_tool(tool).parameters
    plain = [value for value in (*VALUES, Sub("1")) if assert_as_pydantic(kind, {name: value})]
    assert plain, "nothing is plain"


@each_row("name", Every.declared())
@given(value=st.one_of(st.text(), st.integers().map(str), st.floats().map(str), st.floats()))
def test_any_value_that_is_plain_is_one_that_pydantic_accepts(name, value):
    assert_as_pydantic(Every, {name: value})


@each_row("tool", tool_names())
def test_the_defaults_are_plain_and_so_are_they_as_they_are_written(tool):
    kind = find_tool(tool).parameters
    assert kind.plain({}) == kind() == validate(kind, {})
    defaults = {name: declared.default for name, declared in kind.declared().items()}
    assert kind.plain(defaults) == kind()
    written = {
        name: ",".join(value) if isinstance(value, tuple) else str(value)
        for name, value in defaults.items()
        if value is not None
    }
    assert kind.plain(written) == kind()


@each_row(
    ("given", "values"),
    [
        ({"flag": "true", "whole": "-3", "number": "2"}, (True, -3, 2.0)),
        ({"flag": "0", "whole": 1 << 60, "number": 7}, (False, 1 << 60, 7.0)),
        ({"flag": True, "number": "0.25"}, (True, 0, 0.25)),
    ],
)
def test_plain_values_are_understood(given, values):
    found = Every.plain(given)
    assert (found.flag, found.whole, found.number) == values
    assert type(found.number) is float


def test_plain_texts_are_understood():
    assert Every.plain({"texts": "a,,b"}).texts == ("a", "b")
    assert Every.plain({"texts": ["a"]}).texts == ("a",)
    assert Every.plain({"text": "Gerät"}).text == "Gerät"
    assert Every.plain({"pattern": "-12"}).pattern == "-12"


@each_row(
    "given",
    [
        *({"nonsense": 1}, {"whole": "1.0"}, {"whole": True}, {"whole": "-6"}, {"whole": None}),
        *({"flag": 1}, {"flag": "YES"}, {"number": "nan"}, {"number": float("inf")}),
        *({"text": "aaaaaa"}, {"text": "\ud800"}, {"text": 5}, {"pattern": "x"}),
    ],
)
def test_all_else_is_for_pydantic(given):
    assert Every.plain(given) is None


@each_row("tool", tool_names())
def test_what_is_wrong_is_told_as_pydantic_tells_it(tool):
    found = find_tool(tool)
    for name in found.parameters.declared():
        for value in VALUES:
            try:
                validate(found.parameters, {name: value})
            except ValidationError as error:
                first = told(error)[0]
                message = f"{tool}: parameter {'.'.join(map(str, first['loc']))}: "
                with pytest.raises(UsageError) as raised:
                    found.validated({name: value})
                assert str(raised.value).startswith(message)
                assert f", not {first['input']!r:.80}" in str(raised.value)


@each_row(
    ("name", "value", "message"),
    [
        ("max_depth", "x", "input should be a valid integer, unable to parse string as an integer"),
        ("max_depth", 1 << 31, "input should be less than 2147483648"),
        ("min_bytes", -1, "input should be greater than or equal to 0"),
        ("view", "nope", "input should be 'scope', 'graph', 'op', 'code' or 'advise'"),
        ("select", "nope", "value error, no column 'nope'; there is: "),
        ("account_displayed_op_only", "perhaps", "input should be a valid boolean, unable to"),
    ],
)
def test_the_words_for_what_is_wrong(name, value, message):
    with pytest.raises(UsageError) as raised:
        find_tool("op_stats").validated({name: value})
    assert str(raised.value).startswith(f"op_stats: parameter {name}: {message}")


def test_an_unknown_name_is_told_with_the_known_ones():
    with pytest.raises(UsageError, match=r"^trace_viewer: no parameter 'x'; there is: show_data"):
        find_tool("trace_viewer").validated({"step": "1", "x": "1"})


@each_row("tool", tool_names())
def test_parameters_are_keys_and_travel(tool):
    found = find_tool(tool).validated({})
    assert isinstance(found, Parameters)
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301 (just written)
    assert {found: 1}[find_tool(tool).parameters()] == 1
    for name in find_tool(tool).parameters.declared():
        with pytest.raises(AttributeError):
            setattr(found, name, None)


def test_the_schema_is_named_and_described_as_the_class():
    tool = Tool("every", "All.", Every, ("json",), (), lambda *_: b"")
    schema = tool.schema()
    assert (schema["title"], schema["description"]) == ("Every", "One parameter of every type.")
    assert schema["additionalProperties"] is False
    assert list(schema["properties"]) == list(Every.declared())
    assert schema["properties"]["whole"] == {
        "default": 0,
        "description": "a number",
        "exclusiveMaximum": 1 << 70,
        "minimum": -5,
        "title": "Whole",
        "type": "integer",
    }


QUESTIONS = {
    "memory_profile": {"max_snapshots": "20", "version": 1},
    "summary": {},
    "overview_page": {"compatible": "xprof"},
    "trace_viewer@": {"resolution": "800", "start_time_ms": 0, "full_dma": "true"},
}


def printed(code, path):
    """What a fresh interpreter prints."""
    return subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    ).stdout


def test_plain_parameters_are_answered_without_pydantic(root):
    code = (
        "import sys, peakline\n"
        "profile = peakline.open(sys.argv[1])\n"
        f"for tool, parameters in {QUESTIONS!r}.items():\n"
        "    profile.tool(tool, **parameters)\n"
        "    print(tool, 'pydantic' in sys.modules)"
    )
    found = printed(code, root / "tests/data/sessions/tf2_two_devices")
    assert found.splitlines() == [f"{tool} False" for tool in QUESTIONS]


def test_the_engine_asks_several_hosts_without_pydantic(root):
    code = (
        "import sys\n"
        "from peakline.engine import Engine\n"
        "from peakline.repository import resolve_hosts\n"
        "session = resolve_hosts(sys.argv[1])\n"
        "Engine().tool(session, 'step_breakdown', parameters={'align': 'false'})\n"
        "print(len(session.hosts()), 'pydantic' in sys.modules)"
    )
    assert printed(code, root / "tests/data/sessions/tf2_multihost") == "2 False\n"
