"""The parameters of every tool: what values mean, by the second opinion of pydantic."""

import pickle
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.each_row import each_row
from tests.tools.parameter_models import model_of, validate

from peakline.errors import UsageError
from peakline.toolbox.parameter_schema import properties_of, required_of
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
    "scopes inputs allocated requested memory time arrival collective"
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
    *("", " ", " 12", "12 ", "1\n", "a\0b", "é"),
    *("9" * 18, "9" * 19, "-" + "9" * 18, "-" + "9" * 19, "1" * 5000),
    *("a" * 40, "a" * 41, "a" * (1 << 16), "a" * ((1 << 16) + 1)),
    *((), [], ("bytes",), ["bytes", "micros"], ["nope"], [1], {}, {"bytes"}, b"1", 1j),
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
    choice: Literal["a", "b"] = parameter("a", description="one of two")


def assert_as_pydantic(kind, name, value):
    """Whether ``value`` is one of the parameter; pydantic says the same of texts, and of what is
    one here it has the same value of the same type.
    """
    try:
        ours = kind.read({name: value})
    except UsageError:
        ours = None
    try:
        theirs = validate(kind, {name: value})
    except ValidationError:
        theirs = None
    if ours is not None or type(value) is str:
        assert ours == theirs, (name, value)
        assert repr(ours) == repr(theirs), (name, value)
    return ours is not None


@each_row(("tool", "name"), PARAMETERS)
def test_a_value_is_what_pydantic_makes_of_it(tool, name):
    kind = find_tool(tool).parameters
    assert [value for value in (*VALUES, Sub("1")) if assert_as_pydantic(kind, name, value)]


@each_row("name", Every.declared())
@given(value=st.one_of(st.text(), st.integers().map(str), st.floats().map(str), st.floats()))
def test_any_value_is_what_pydantic_makes_of_it(name, value):
    assert_as_pydantic(Every, name, value)


@each_row("name", Every.declared())
@given(value=st.text("+-_.019eE \t\n", max_size=8))
def test_a_number_is_written_as_pydantic_reads_it(name, value):
    if name in {"whole", "number"} and not is_number(value):
        # Behind zeros pydantic takes some of what Python does not: 0-0, 0_.
        with pytest.raises(UsageError):
            Every.read({name: value})
    else:
        assert_as_pydantic(Every, name, value)


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


@each_row("tool", tool_names())
def test_the_defaults_are_values_and_so_are_they_as_they_are_written(tool):
    kind = find_tool(tool).parameters
    assert kind.read({}) == kind() == validate(kind, {})
    defaults = {name: declared.default for name, declared in kind.declared().items()}
    assert kind.read(defaults) == kind()
    written = {
        name: ",".join(value) if isinstance(value, tuple) else str(value)
        for name, value in defaults.items()
        if value is not None
    }
    assert kind.read(written) == kind()


@each_row(
    ("given", "values"),
    [
        ({"flag": "true", "whole": "-3", "number": "2"}, (True, -3, 2.0)),
        ({"flag": "0", "whole": 1 << 60, "number": 7}, (False, 1 << 60, 7.0)),
        ({"flag": True, "number": "0.25"}, (True, 0, 0.25)),
        ({"flag": "YES", "whole": "1_000", "number": ".5"}, (True, 1000, 0.5)),
        ({"flag": "off", "whole": " +007 ", "number": "1e3"}, (False, 7, 1000.0)),
        ({"flag": 1, "whole": "2.0", "number": "5."}, (True, 2, 5.0)),
        ({"flag": 0.0, "whole": 3.0, "number": True}, (False, 3, 1.0)),
        ({"flag": np.True_, "whole": np.int64(3), "number": np.float32(0.5)}, (True, 3, 0.5)),
    ],
)
def test_values_are_understood(given, values):
    result = Every.read(given)
    assert (result.flag, result.whole, result.number) == values
    assert list(map(type, values)) == [type(result.flag), type(result.whole), type(result.number)]


def test_texts_are_understood():
    assert Every.read({"texts": "a,,b"}).texts == ("a", "b")
    assert Every.read({"texts": ["a"]}).texts == ("a",)
    assert Every.read({"texts": {"a"}}).texts == ("a",)
    assert Every.read({"text": "Gerät"}).text == "Gerät"
    assert Every.read({"text": "None"}).text == "None"
    assert Every.read({"text": "\udcff"}).text == "\udcff", "of a path that is not UTF-8"
    assert Every.read({"pattern": "-12"}).pattern == "-12"


@each_row(
    ("given", "message"),
    [
        ({"flag": "perhaps"}, "parameter flag must be true or false, not 'perhaps'"),
        ({"flag": 2}, "parameter flag must be true or false, not 2"),
        ({"whole": "1.5"}, "parameter whole must be a whole number, not '1.5'"),
        ({"whole": 1.5}, "parameter whole must be a whole number, not 1.5"),
        ({"whole": None}, "parameter whole must be a whole number, not None"),
        ({"whole": "-6"}, "parameter whole must be at least -5, not '-6'"),
        ({"whole": 1 << 70}, f"parameter whole must be less than {1 << 70}, not {1 << 70}"),
        ({"whole": "1" * 5000}, f"parameter whole must have fewer digits, not '{'1' * 79}"),
        ({"number": "nan"}, "parameter number must be a finite number, not 'nan'"),
        ({"number": "x"}, "parameter number must be a finite number, not 'x'"),
        ({"number": 10**400}, f"parameter number must be a finite number, not 1{'0' * 79}"),
        ({"text": "aaaaaa"}, "parameter text must have at most 5 characters, not 'aaaaaa'"),
        ({"text": 5}, "parameter text must be a text, not 5"),
        ({"pattern": "x"}, "parameter pattern must match ^-?[0-9]{0,18}$, not 'x'"),
        ({"texts": 5}, "parameter texts must be texts with commas between, not 5"),
        ({"texts": [1]}, "parameter texts must be texts with commas between, not [1]"),
        ({"choice": "c"}, "parameter choice must be 'a' or 'b', not 'c'"),
        (
            {"nonsense": 1},
            "no parameter 'nonsense'; there is: flag, whole, number, text, pattern, texts, choice",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(given, message):
    with pytest.raises(UsageError) as raised:
        Every.read(given)
    assert str(raised.value) == message


class Needed(Parameters):
    name: str = parameter(description="has to be given", schema={"examples": ["a"]})
    more: str = parameter("", description="may be left out")


def test_a_parameter_without_a_default_has_to_be_given():
    assert Needed.read({"name": "a"}).name == "a"
    with pytest.raises(UsageError, match=r"^needed: parameter name is missing$"):
        Needed.read({"more": "b"}, "needed: ")
    assert required_of(Needed) == ["name"]
    assert properties_of(Needed)["name"] == {
        "type": "string",
        "description": "has to be given",
        "title": "Name",
        "examples": ["a"],
    }


@each_row(
    ("name", "value", "message"),
    [
        ("max_depth", "x", "max_depth must be a whole number, not 'x'"),
        ("max_depth", 1 << 31, "max_depth must be less than 2147483648, not 2147483648"),
        ("min_bytes", -1, "min_bytes must be at least 0, not -1"),
        ("view", "nope", "view must be 'scope', 'graph', 'op', 'code' or 'advise', not 'nope'"),
        ("select", "nope", "select: no column 'nope'; there is: "),
        ("account_displayed_op_only", "perhaps", "account_displayed_op_only must be true or false"),
    ],
)
def test_the_words_for_what_is_wrong(name, value, message):
    with pytest.raises(UsageError) as raised:
        find_tool("op_stats").validated({name: value})
    assert str(raised.value).startswith(f"op_stats: parameter {message}")


@each_row("tool", tool_names())
def test_the_schema_is_the_one_that_pydantic_makes(tool):
    result = find_tool(tool)
    assert result.schema() == model_of(result.parameters).model_json_schema()


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match=r"^trace_viewer: no parameter 'x'; there is: show_data"):
        find_tool("trace_viewer").validated({"step": "1", "x": "1"})


@each_row("tool", tool_names())
def test_parameters_are_keys_and_travel(tool):
    result = find_tool(tool).validated({})
    assert isinstance(result, Parameters)
    assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301 (just written)
    assert {result: 1}[find_tool(tool).parameters()] == 1
    for name in find_tool(tool).parameters.declared():
        with pytest.raises(AttributeError):
            setattr(result, name, None)


def test_the_schema_is_named_and_described_as_the_class():
    schema = Tool("every", "All.", Every, ("json",), (), lambda *_: b"").schema()
    assert (schema["title"], schema["description"]) == ("Every", "One parameter of every type.")
    assert schema["additionalProperties"] is False
    assert list(schema["properties"]) == list(Every.declared())
    assert schema["properties"]["whole"] == {
        "default": 0, "description": "a number", "exclusiveMaximum": 1 << 70, "minimum": -5,
        "title": "Whole", "type": "integer",
    }  # fmt: skip
